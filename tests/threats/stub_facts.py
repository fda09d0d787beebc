"""What the stub threats share: stubs of hostile servers, and what the languages' own parsers see in them."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from codegen import corpus
from codegen.poisoned import name_tool, text_listing
from codegen.stub_syntax import PythonFacts, TypeScriptFacts, python_facts, typescript_facts
from toolbridge_codegen.catalog import ServerListing, build_catalog
from toolbridge_codegen.stubs import StubSet, generate

BENIGN = "Plain words."
"""The same servers with this text everywhere: what is not text must come out the same."""

IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


@cache
def hostile_servers() -> dict[str, ServerListing]:
    """A server for each hostile text (`text-0`, …) and for each hostile name, and two that are benign."""
    servers = {"benign": text_listing("benign", BENIGN), "silent": text_listing("silent", "")}
    for number, case in enumerate(corpus.text_cases("texts")):
        servers[f"text-{number}"] = text_listing(f"text-{number}", case.text)
    for number, text in enumerate(all_names()):
        servers[f"name-{number}"] = ServerListing(f"name-{number}", (name_tool(text), name_tool(text, "plain")))
    return servers


@cache
def all_names() -> tuple[str, ...]:
    """Hostile names, and hostile texts used as names."""
    texts = [case.text for file in ("names", "texts") for case in corpus.text_cases(file)]
    return tuple(dict.fromkeys(texts))


def text_ids() -> list[str]:
    return [case.name for case in corpus.text_cases("texts")]


@cache
def stub_sets() -> tuple[StubSet, StubSet]:
    """Of all hostile servers at once, in both languages."""
    catalog = build_catalog(hostile_servers().values())
    return generate(catalog, language="typescript"), generate(catalog, language="python")


@cache
def compact_sets() -> tuple[StubSet, StubSet]:
    """The same, one line for each tool."""
    catalog = build_catalog(hostile_servers().values())
    return generate(catalog, language="typescript", detail="compact"), generate(
        catalog, language="python", detail="compact"
    )


@cache
def all_typescript_facts() -> dict[str, TypeScriptFacts]:
    """By server."""
    files = {name: text for name, text in stub_sets()[0].files.items() if name.startswith("mcp-")}
    with tempfile.TemporaryDirectory() as directory:
        found = typescript_facts(Path(directory), files)
    return {name.removeprefix("mcp-").removesuffix(".d.ts"): facts for name, facts in found.items()}


def python_stub(server: str) -> str:
    return stub_sets()[1].files[f"host/mcp_{server.replace('-', '_')}/__init__.pyi"]


@cache
def all_python_facts() -> dict[str, PythonFacts]:
    """By server."""
    return {server: python_facts(python_stub(server)) for server in hostile_servers()}


def exports(server: str) -> set[str]:
    """The identifiers that the manifest knows for a server."""
    return set(stub_sets()[0].manifest[f"host:mcp-{server}"])


def duplicates(names: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    return {name for name in names if name in seen or seen.add(name)}
