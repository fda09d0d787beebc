"""The corpora: our own schemas in fixtures/schemas, and the listings of real servers if present."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from codegen.poisoned import name_tool, text_tool
from toolbridge_codegen.catalog import Catalog, ServerListing, ToolDefinition, build_catalog

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEMAS = ROOT / "fixtures" / "schemas"
SCHEMA_FILES = ("keywords", "spellings", "malformed", "references")


@dataclass(frozen=True, slots=True)
class SchemaCase:
    """A schema with a name that says what is odd about it."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TextCase:
    """A hostile text or name."""

    name: str
    text: str


@cache
def schema_cases(file: str) -> tuple[SchemaCase, ...]:
    """The schemas of one file."""
    return tuple(SchemaCase(case["name"], case["schema"]) for case in read_cases(file))


@cache
def text_cases(file: str) -> tuple[TextCase, ...]:
    """The texts of one file."""
    return tuple(TextCase(case["name"], case["text"]) for case in read_cases(file))


def read_cases(file: str) -> list[dict[str, Any]]:
    """One file of the corpus as it is."""
    return json.loads((SCHEMAS / f"{file}.json").read_text("utf-8"))["cases"]


def tool_of(name: str, schema: Mapping[str, Any], **more: Any) -> ToolDefinition:
    """A tool whose input and output both have this schema: the two take different ways through the generator."""
    return ToolDefinition(name, schema, output_schema=schema, **more)


def catalog_of(server: str, tools: Iterable[ToolDefinition], **more: Any) -> Catalog:
    """A catalog with one server."""
    return build_catalog([ServerListing(server=server, tools=tuple(tools), **more)])


@cache
def corpus_listings() -> tuple[ServerListing, ...]:
    """Everything of our own: a server for each file, a tool for each case."""
    schemas = {file: tuple(tool_of(case.name, case.schema) for case in schema_cases(file)) for file in SCHEMA_FILES}
    texts = tuple(text_tool(case.name, case.text) for case in text_cases("texts"))
    names = tuple(name_tool(case.text) for case in text_cases("names"))
    # The same names once more as properties of one object: they must not meet each other either.
    together = {case.text: {"type": "string", "description": case.name} for case in text_cases("names")}
    names += (tool_of("all_together", {"type": "object", "properties": together}),)
    tools = {**schemas, "texts": texts, "names": names}
    return tuple(ServerListing(server=server, tools=definitions) for server, definitions in tools.items())


@dataclass(frozen=True, slots=True)
class RealListing:
    """What a real server answered, and the size of it."""

    listing: ServerListing
    raw_characters: int
    """Of the tools as JSON without needless spaces: what a model would be given without stubs."""


def real_listing_files() -> list[Path]:
    """The files with the listings of real servers: none where there are none."""
    directory = Path(os.environ.get("TOOLBRIDGE_TOOL_LISTS", ROOT.parent / "shared" / "tools"))
    return sorted(directory.glob("*.json"))


@cache
def real_listings() -> tuple[RealListing, ...]:
    """The listings of real servers; a test that needs them is skipped where there are none."""
    files = real_listing_files()
    if not files:
        pytest.skip("there are no listings of real servers here (TOOLBRIDGE_TOOL_LISTS)")
    return tuple(_real_listing(file) for file in files)


def _real_listing(file: Path) -> RealListing:
    content = json.loads(file.read_text("utf-8"))
    tools = tuple(definition_of(tool) for tool in content["tools"])
    name = file.stem.lower().replace("__", "-")
    server = "".join(character if character.isalnum() or character in "-_" else "-" for character in name)
    instructions = content["server"].get("instructions") or ""
    raw = json.dumps(content["tools"], ensure_ascii=False, separators=(",", ":"))
    return RealListing(ServerListing(server=server, tools=tools, instructions=instructions), len(raw))


def definition_of(tool: Mapping[str, Any]) -> ToolDefinition:
    """A tool as `tools/list` gives it."""
    annotations = cast("Mapping[str, Any] | None", tool.get("annotations"))
    return ToolDefinition(
        name=tool["name"],
        input_schema=tool["inputSchema"],
        title=tool.get("title") or "",
        description=tool.get("description") or "",
        output_schema=tool.get("outputSchema"),
        annotations=annotations or {},
    )
