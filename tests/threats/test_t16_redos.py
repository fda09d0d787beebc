"""T16, ReDoS: stubs quote a server's patterns; they are never compiled, and never run on anything."""

from __future__ import annotations

import re
from typing import Any

import pytest

from codegen import corpus
from growth import work_within
from toolbridge_codegen.catalog import build_catalog
from toolbridge_codegen.stubs import generate

CATASTROPHIC = "(x+x+)+y-marker"
VICTIM = "x" * 64


def schema() -> dict[str, Any]:
    """The pattern in every place that has one, with names and values that would take it for ever to refuse."""
    pattern = {"type": "string", "pattern": CATASTROPHIC}
    return {
        "type": "object",
        "properties": {
            "value": {**pattern, "default": VICTIM, "examples": [VICTIM], "format": "regex"},
            "choice": {**pattern, "enum": [VICTIM, "y"]},
            "constant": {**pattern, "const": VICTIM},
            VICTIM: {"type": "string"},
            "map": {
                "type": "object",
                "propertyNames": pattern,
                "patternProperties": {CATASTROPHIC: {"type": "string"}},
            },
            "both": {"allOf": [pattern, {"pattern": "(z*)*-marker"}], "default": VICTIM},
            "named": {
                "type": "object",
                "properties": {VICTIM: {"type": "string"}},
                "patternProperties": {CATASTROPHIC: {"type": "number"}},
                "additionalProperties": False,
            },
        },
        "patternProperties": {CATASTROPHIC: {"type": "string"}},
        "required": [VICTIM],
    }


@pytest.mark.parametrize("language", ["typescript", "python"])
def test_no_pattern_of_a_server_is_compiled(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    original: Any = getattr(re, "_compile")  # noqa: B009

    def spy(pattern: Any, flags: Any) -> Any:
        compiled.append(str(getattr(pattern, "pattern", pattern)))
        return original(pattern, flags)

    monkeypatch.setattr(re, "_compile", spy)
    assert re.search("seen-by-the-spy", "") is None
    assert "seen-by-the-spy" in compiled
    catalog = build_catalog([*corpus.corpus_listings(), corpus.ServerListing("s", (corpus.tool_of("f", schema()),))])
    generate(catalog, language="typescript" if language == "typescript" else "python")
    assert not [pattern for pattern in compiled if "marker" in pattern]


def test_a_catastrophic_pattern_costs_no_time() -> None:
    catalog = corpus.catalog_of("s", [corpus.tool_of("f", schema())])
    with work_within(1.0):
        for language in ("typescript", "python"):
            text = "".join(generate(catalog, language=language).files.values())
            assert "marker" in text  # it is said to the reader


@pytest.mark.parametrize(
    "text",
    [
        " " * 100_000,
        "*/" * 50_000,
        '"' * 100_000,
        "\\" * 100_000,
        "\n" * 100_000,
        "@" * 100_000,
        "\x1b[" * 50_000,
        "\x1b]" * 50_000,
        "\x1b" * 100_000,
        "#type" * 20_000,
        "# " * 50_000 + "type",
        " \n" * 50_000,
        "a " * 50_000,
        "{@" * 50_000,
        "\u200b" * 100_000,
        ("\x9d" + "x" * 5000) * 20,
        "<" * 100_000,
        "`" * 100_000,
    ],
    ids=lambda text: ascii(text[:6]),
)
def test_our_own_patterns_take_no_time_on_100_kb_of_anything(text: str) -> None:
    tool = corpus.tool_of(text, {"type": "object", "properties": {text: {"enum": [text], "title": text}}})
    listing = corpus.ServerListing("s", (tool, corpus.tool_of("g", {"description": text, "default": text})), text, text)
    catalog = build_catalog([listing])
    with work_within(1.0):
        for language in ("typescript", "python"):
            for detail in ("full", "compact"):
                generate(catalog, language=language, detail=detail)
