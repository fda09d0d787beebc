"""How a tool is called, on one line."""

from __future__ import annotations

from typing import Any

import pytest

from describe.listings import catalog, tool, weather
from toolbridge.describe import modules as signatures
from toolbridge.describe.modules import signature_of, stub_language
from toolbridge_codegen.derive.tools import build_module
from toolbridge_codegen.read.kinds import Bounds
from toolbridge_codegen.stubs import Language, generate


def test_a_signature_is_the_compact_stubs_line_without_its_comment() -> None:
    (module,) = weather().modules
    marks: dict[Language, str] = {"typescript": " // ", "python": " # "}
    for language, mark in marks.items():
        (text,) = generate(weather(), language=language, detail="compact").files.values()
        lines = [line.partition(mark)[0] for line in text.splitlines()[1:]]
        assert [signature_of(module, spec, language) for spec in module.tools] == lines


def test_a_signature_says_that_failures_are_returned() -> None:
    (module,) = catalog(x=[tool("f")]).modules
    assert signature_of(module, module.tools[0], "typescript", errors="return") == "f(): any | { error: string }"
    assert signature_of(module, module.tools[0], "python", errors="return") == 'f() -> Any | { "error": str }'


def test_a_signature_has_no_word_of_a_description() -> None:
    (module,) = catalog(x=[tool("f", "SECRET", title="SECRET")]).modules
    assert signature_of(module, module.tools[0], "typescript") == "f(): any"


def test_a_signature_is_made_within_tighter_bounds_than_a_stub(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Bounds] = []

    def watched(module: Any, **options: Any) -> Any:
        used.append(options["bounds"])
        return build_module(module, **options)

    monkeypatch.setattr(signatures, "build_module", watched)
    (module,) = weather().modules
    signature_of(module, module.tools[0], "python")
    (bounds,) = used
    assert bounds.seconds < Bounds().seconds
    assert bounds.nodes < Bounds().nodes


def test_javascript_is_described_in_typescripts_words() -> None:
    assert [stub_language(language) for language in ("javascript", "typescript", "python")] == [
        "typescript",
        "typescript",
        "python",
    ]
