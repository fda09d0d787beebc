"""What is searched of a tool: bounded, whatever a server sends."""

from __future__ import annotations

from typing import Any

import pytest

from describe.listings import WEATHER, catalog, tool
from toolbridge.describe.search import SearchRow, search_row
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog

MEGABYTE = "two words " * 100_000
WIDE: dict[str, Any] = {"properties": {f"name{number}": {"description": MEGABYTE} for number in range(2_000)}}


def row(definition: ToolDefinition, **more: Any) -> SearchRow:
    (module,) = build_catalog([ServerListing("the-server", (definition,), **more)]).modules
    return search_row(module, module.tools[0])


def test_a_row_has_the_words_of_every_place() -> None:
    assert row(WEATHER, display_name="The Server") == SearchRow(
        name="get forecast",
        title="",
        server="the server the server",
        description="Get the weather forecast for a location. Needs no key.",
        parameters="location City, or latitude and longitude\ndays \nunits Defaults to metric",
    )


@pytest.mark.parametrize(
    "definition",
    [
        tool(MEGABYTE),
        tool("f", MEGABYTE, title=MEGABYTE),
        tool("f", "天" * 100_000, title="\u200b" * 100_000),
        tool("f", input_schema=WIDE),
        tool("f", input_schema={"properties": {MEGABYTE: WIDE}}),
        tool("f", input_schema={"items": {"anyOf": [WIDE]}}),
    ],
    ids=["name", "texts", "not ASCII", "properties", "nested", "choice"],
)
def test_a_row_is_bounded(definition: ToolDefinition) -> None:
    limits = SearchRow(*map(str, (200, 200, 420, 2_000, 3_000)))
    for text, limit in zip(row(definition, display_name=MEGABYTE).columns, limits.columns, strict=True):
        assert len(text) <= int(limit)


def test_half_a_character_is_no_word() -> None:
    (spec,) = catalog(x=[tool("a\ud800b", "c\udfffd é", title="\ud800")]).tools
    assert all(column.encode() is not None for column in row(spec.definition).columns)
