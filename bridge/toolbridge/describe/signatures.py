"""How a tool is called, on one line, in the language that a program is written in."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from toolbridge_codegen.bounds import Bounds
from toolbridge_codegen.build import build_module
from toolbridge_codegen.catalog import ModuleSpec, ToolSpec
from toolbridge_codegen.emit_compact import emit_compact
from toolbridge_codegen.stubs import Errors
from toolbridge_codegen.stubs import Language as StubLanguage

GuestLanguage: TypeAlias = Literal["javascript", "typescript", "python"]
"""What guest code is written in. JavaScript's functions are described in TypeScript's words."""


_BOUNDS = Bounds(nodes=5_000, seconds=0.5)
"""Tighter than for stubs: signatures are written while somebody waits, and show a few dozen parts at most."""


def stub_language(language: GuestLanguage) -> StubLanguage:
    """The language of the stubs that a program in this language is written against.

    Raises:
        ValueError: there is no such language.
    """
    if language not in ("javascript", "typescript", "python"):
        raise ValueError(f"{language!r} is none of javascript, typescript, python")
    return "python" if language == "python" else "typescript"


def signature_of(module: ModuleSpec, tool: ToolSpec, language: StubLanguage, *, errors: Errors = "raise") -> str:
    """How a tool is called, on one line of bounded length: `get_forecast(input: { location: string }): any`."""
    silent = replace(tool, definition=replace(tool.definition, description="", title=""))
    model, _ = build_module(replace(module, tools=(silent,), instructions=""), bounds=_BOUNDS)
    return emit_compact(model, language, errors=errors).splitlines()[1]
