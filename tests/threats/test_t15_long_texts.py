"""T15, schema bombs made of text: however long names, constants and descriptions are, a stub stays small."""

from __future__ import annotations

from typing import Any

import pytest

from growth import work_within
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.read.kinds import Bounds
from toolbridge_codegen.stubs import generate

LONG = "n" * (Bounds().name - 10)


def names(count: int, text: str = LONG) -> dict[str, Any]:
    return {f"{text}{number}": {"type": "string"} for number in range(count)}


BOMBS: dict[str, dict[str, Any]] = {
    "long names": {
        "type": "object",
        "properties": {f"o{n}": {"type": "object", "properties": names(900)} for n in range(9)},
    },
    "long names in definitions": {
        "type": "object",
        "$defs": {f"d{n}": {"type": "object", "properties": names(900)} for n in range(9)},
        "properties": {f"p{n}": {"$ref": f"#/$defs/d{n}"} for n in range(9)},
    },
    "long constants": {
        "type": "object",
        "properties": {f"p{n}": {"enum": [f"{LONG}{value}" for value in range(190)]} for n in range(90)},
    },
    "long descriptions": {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "description": "words " * 50_000} for n in range(200)},
    },
    "long unions": {
        "type": "object",
        "properties": {
            f"p{n}": {"anyOf": [{"type": "object", "properties": names(10, f"{LONG[:400]}{m}")} for m in range(90)]}
            for n in range(20)
        },
    },
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("language", ["typescript", "python"])
def test_a_stub_of_one_tool_has_no_more_text_than_it_may(bomb: str, language: Any) -> None:
    tool = ToolDefinition("f", BOMBS[bomb], description="words " * 200_000, output_schema=BOMBS[bomb])
    catalog = build_catalog([ServerListing("s", (tool,))])
    with work_within(5.0):
        stubs = generate(catalog, language=language)
    # Two modules, the second of which refers to the first; some room for what is around the types.
    assert sum(map(len, stubs.files.values())) < 2 * Bounds().characters
    assert stubs.diagnostics, "nothing was left out: it is no bomb"
