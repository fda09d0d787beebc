"""The examples of docs/generate-types.md match the generated stubs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

import pytest

from codegen import corpus
from toolbridge_codegen.catalog import Catalog, ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.read.kinds import Bounds
from toolbridge_codegen.stubs import generate

DOCUMENT = (Path(__file__).resolve().parent.parent.parent / "docs" / "generate-types.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```(\S+)\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL))


def weather(**options: Any) -> Catalog:
    tools = json.loads(BLOCKS["json"])["tools"]
    definitions = [
        ToolDefinition(
            each["name"],
            each["inputSchema"],
            description=each.get("description", ""),
            output_schema=each.get("outputSchema"),
        )
        for each in tools
    ]
    return build_catalog([ServerListing("weather", tuple(definitions), **options)])


def with_input(schema: dict[str, Any]) -> tuple[str, str]:
    """The stubs of one tool with this input."""
    catalog = build_catalog([ServerListing("x", (ToolDefinition("f", schema),))])
    typescript, python = (generate(catalog, language=language).files for language in ("typescript", "python"))
    return typescript["mcp-x.d.ts"], python["host/mcp_x/__init__.pyi"]


def test_the_stubs_of_the_example_are_those_in_the_document() -> None:
    assert generate(weather(), language="typescript").files["mcp-weather.d.ts"] == BLOCKS["typescript"]
    assert generate(weather(), language="python").files["host/mcp_weather/__init__.pyi"] == BLOCKS["python"]


def test_the_output_schemas_in_the_document_type_the_tool_that_has_none() -> None:
    catalog = weather(output_schemas=json.loads(BLOCKS["outputs"]))
    stubs = generate(catalog, language="typescript", detail="compact")
    assert "list_stations(): { id?: string }[]" in stubs.files["mcp-weather.txt"]
    assert stubs.diagnostics == ()


@pytest.mark.parametrize("language", ["typescript", "python"])
def test_the_compact_stubs_of_the_example_are_those_in_the_document(language: Literal["typescript", "python"]) -> None:
    files = generate(weather(), language=language, detail="compact").files
    assert list(files.values()) == [BLOCKS[f"compact-{language}"]]


def test_each_type_in_the_document_is_generated() -> None:
    for line in BLOCKS["types"].splitlines():
        schema, typescript, python = line.split(" → ")
        found = with_input({"type": "object", "properties": {"p": json.loads(schema)}, "required": ["p"]})
        assert re.findall(r"\bp: (.*?)(?: }$|;$)", found[0], re.MULTILINE) == [typescript], line
        assert re.findall(r"^ p: (.*?)(?: #.*)?$", found[1], re.MULTILINE) == [python], line


def test_each_call_in_the_document_is_generated() -> None:
    for example in BLOCKS["calls"].strip().split("\n\n"):
        schema, typescript, *python = example.splitlines()
        found = with_input(json.loads(schema))
        assert [line.strip() for line in found[0].splitlines() if "function" in line] == [typescript], example
        assert [line for line in found[1].splitlines() if line.startswith("def ")] == python, example


def test_the_bounds_in_the_document_are_the_defaults() -> None:
    bounds = Bounds()
    told = " ".join(DOCUMENT.partition("## Bounds")[2].partition("## Size")[0].split())
    for text in (
        f"{bounds.depth} levels",
        f"{bounds.nodes:,} schemas and properties for one tool ({bounds.module_nodes:,} for a server)",
        f"{bounds.properties:,} properties",
        f"{bounds.union} members",
        f"{bounds.literals} constants",
        f"{bounds.characters // 1024} KB",
        f"{bounds.seconds:g} seconds ({bounds.module_seconds:g} for a server",
    ):
        assert text in told, text


def test_the_sizes_in_the_document_are_those_of_real_servers() -> None:
    real = corpus.real_listings()
    catalog = build_catalog(each.listing for each in real)
    raw = sum(each.raw_characters for each in real)
    assert f"({len(catalog.tools)} tools)" in DOCUMENT
    for line in BLOCKS["sizes"].splitlines():
        language, detail, percent, _ = line.split()
        files = generate(
            catalog,
            language="typescript" if language == "typescript" else "python",
            detail="full" if detail == "full" else "compact",
        ).files
        written = sum(len(text) for name, text in files.items() if "mcp" in name)
        assert written / raw == pytest.approx(int(percent) / 100, abs=0.01), line
