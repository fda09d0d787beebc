"""The programs of fixtures/programs, and the stubs that they are checked against.

Every author's programs are a corpus in a directory of its own, with the servers that they are written for. The first
one is fixtures/programs itself: its servers are also those of the honest and mistaken programs beside it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from toolbridge.check.checker import World
from toolbridge_codegen.catalog import Catalog, ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.stubs import Language, generate

PROGRAMS = Path(__file__).resolve().parents[2] / "fixtures" / "programs"
FIRST = "."


@dataclass(frozen=True)
class Seeded:
    """A program with one mistake."""

    title: str
    kind: str
    source: str
    line: int


@dataclass(frozen=True)
class Corpus:
    """Programs that are right, by title, and programs that are not."""

    correct: dict[str, str]
    mistaken: list[Seeded]


@cache
def catalog(author: str = FIRST) -> Catalog:
    """The tools of a corpus' servers.json."""
    servers = json.loads((PROGRAMS / author / "servers.json").read_text(encoding="utf-8"))
    return build_catalog(
        ServerListing(
            server,
            tuple(
                ToolDefinition(
                    tool["name"],
                    tool["inputSchema"],
                    description=tool["description"],
                    output_schema=tool.get("outputSchema"),
                )
                for tool in tools
            ),
        )
        for server, tools in servers.items()
    )


@cache
def world(language: Language, author: str = FIRST) -> World:
    """Everything that the programs of a corpus may be written against."""
    tools = catalog(author)
    files = generate(tools, language=language).files
    return World(files, tuple(module.specifier for module in tools.modules))


def read_programs(name: str) -> dict[str, str]:
    """The programs of a file: title → text."""
    text = (PROGRAMS / name).read_text(encoding="utf-8")
    parts = (part.partition("\n") for part in re.split("^== ", text, flags=re.MULTILINE)[1:])
    return {title: code.removesuffix("\n") for title, _, code in parts}


def read_corpus(name: str) -> Corpus:
    """The programs of a file, and what its edits make of them."""
    corpus = Corpus({}, [])
    for title, text in read_programs(name).items():
        code, _, edit = text.partition("\n-- ")
        kind, old, new = (part.strip() for part in edit.split(" |"))
        assert old in code, f"{title}: {old!r} is not in it"
        corpus.correct[title] = code
        line = code[: code.index(old)].count("\n") + 1
        corpus.mistaken.append(Seeded(title, kind, code.replace(old, new, 1), line))
    return corpus
