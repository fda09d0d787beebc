"""All about one module: its functions, their parameters, and the stub that describes them exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from toolbridge.describe.parameters import MOST_PARAMETERS, ParameterInfo, parameters_of
from toolbridge.describe.signatures import GuestLanguage, stub_language
from toolbridge.describe.summaries import module_summary, shown_name, summary_of
from toolbridge_codegen.build import build_module
from toolbridge_codegen.catalog import Catalog, ToolSpec, module_specifier
from toolbridge_codegen.emit_compact import emit_compact
from toolbridge_codegen.model import ModuleModel
from toolbridge_codegen.notes import NO_DOCS
from toolbridge_codegen.sanitise import clean_line
from toolbridge_codegen.stubs import Errors
from toolbridge_codegen.stubs import Language as StubLanguage

_LONGEST_DIAGNOSTIC = 300
_LONGEST_STUB = 200_000
"""Characters. A longer one is no help to anybody: the compact form stands in for it."""

_CLAIMS = {
    ("readOnlyHint", True): "read-only",
    ("readOnlyHint", False): "changes something",
    ("destructiveHint", True): "may delete or overwrite",
    ("destructiveHint", False): "only adds, never deletes or overwrites",
    ("idempotentHint", True): "safe to repeat",
    ("openWorldHint", True): "reaches beyond its own data",
}
"""What annotations say in words. A server writes them about itself, and nothing checks them."""


@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """One tool as a function."""

    identifier: str
    tool: str
    """Its original name, exactly: hostile text. `as_json` has it cleaned."""
    signature: str
    summary: str
    description: str
    """The server's words, cleaned, at most 2,000 characters."""
    parameters: tuple[ParameterInfo, ...]
    notes: tuple[str, ...]
    """What its server claims of it, and whether it is called otherwise here."""

    def as_json(self) -> dict[str, Any]:
        """For a model or a program to read."""
        return {
            **asdict(self),
            "tool": shown_name(self.tool),
            "notes": list(self.notes),
            "parameters": self._parameters,
        }

    @property
    def _parameters(self) -> list[dict[str, Any]]:
        return [parameter.as_json() for parameter in self.parameters]


@dataclass(frozen=True, slots=True)
class ModuleInfo:
    """One server's module."""

    specifier: str
    python_module: str
    server: str
    display_name: str
    summary: str
    instructions: str
    """The server's words, cleaned, at most 1,000 characters."""
    functions: tuple[FunctionInfo, ...]
    renamed: Mapping[str, str]
    """Identifier → original name, of the tools whose own names are no identifiers, or taken."""
    stub: str
    """`.d.ts` or `.pyi`; the compact form where that would be too long."""
    diagnostics: tuple[str, ...]
    """What the types can't say, tool by tool."""

    def as_json(self) -> dict[str, Any]:
        """For a model or a program to read."""
        return {
            "module": self.specifier,
            "python_module": self.python_module,
            "server": self.server,
            "display_name": self.display_name,
            "summary": self.summary,
            "instructions": self.instructions,
            "functions": [function.as_json() for function in self.functions],
            "renamed": {identifier: shown_name(name) for identifier, name in self.renamed.items()},
            "stub": self.stub,
            "diagnostics": list(self.diagnostics),
        }


def module_info(
    catalog: Catalog,
    specifier: str,
    *,
    language: GuestLanguage = "typescript",
    errors: Errors = "raise",
) -> ModuleInfo | None:
    """Everything about one module, by its specifier, Python name, server's name, or one of its tools' full names.

    None if there is none.

    Raises:
        ValueError: there is no such language.
    """
    written = stub_language(language)
    module = next(
        (each for each in catalog.modules if specifier in (each.specifier, each.python_module, each.server)), None
    )
    if module is None and (tool := catalog.named(specifier)) is not None:
        module = catalog.module(module_specifier(tool.server))
    if module is None:
        return None
    model, diagnostics = build_module(module)
    compact = emit_compact(_without_descriptions(model), written, errors=errors).splitlines()[1:]
    return ModuleInfo(
        specifier=module.specifier,
        python_module=module.python_module,
        server=module.server,
        display_name=shown_name(module.display_name) or module.server,
        summary=module_summary(module),
        instructions=model.docs.description,
        functions=tuple(_functions(model, compact, written)),
        renamed={tool.identifier: tool.name for tool in module.tools if tool.identifier != tool.name},
        stub=_stub(model, written, errors),
        diagnostics=tuple(
            clean_line(f"{shown_name(item.tool)} {item.path}: {item.message}", limit=_LONGEST_DIAGNOSTIC)
            for item in diagnostics
        ),
    )


def _without_descriptions(model: ModuleModel) -> ModuleModel:
    return replace(model, functions=tuple(replace(function, docs=NO_DOCS) for function in model.functions))


def _functions(model: ModuleModel, signatures: list[str], language: StubLanguage) -> Iterator[FunctionInfo]:
    parameters = parameters_of(model, language)
    for function, signature in zip(model.functions, signatures, strict=True):
        yield FunctionInfo(
            identifier=function.tool.identifier,
            tool=function.tool.name,
            signature=signature,
            summary=summary_of(function.tool),
            description=function.docs.description,
            parameters=parameters[function.tool.identifier],
            notes=tuple(_notes(function.tool, parameters[function.tool.identifier])),
        )


def _notes(tool: ToolSpec, parameters: Sequence[ParameterInfo]) -> Iterator[str]:
    if tool.name != tool.identifier:
        yield f"its server calls it {shown_name(tool.name)!r}"
    for claim in claims_of(tool):
        yield f"its server claims: {claim}"
    if len(parameters) == MOST_PARAMETERS:
        yield f"only the first {MOST_PARAMETERS} parameters are listed; the stub has all"


def claims_of(tool: ToolSpec) -> tuple[str, ...]:
    """What a server's annotations say of a tool, as far as they are what they should be."""
    annotations = tool.definition.annotations
    # By identity: 1 and "true" are not what the specification has, and equal neither.
    return tuple(words for (hint, value), words in _CLAIMS.items() if annotations.get(hint) is value)


def _stub(model: ModuleModel, language: StubLanguage, errors: Errors) -> str:
    if language == "python":
        from toolbridge_codegen.emit_pyi import emit_pyi

        text = emit_pyi(model, errors=errors)
    else:
        from toolbridge_codegen.emit_dts import emit_dts

        text = emit_dts(model, errors=errors)
    if len(text) <= _LONGEST_STUB:
        return text
    return cut_lines(emit_compact(model, language, errors=errors), _LONGEST_STUB, language)


def cut_lines(text: str, limit: int, language: StubLanguage) -> str:
    """As many whole lines as fit, and how many more there are."""
    if len(text) <= limit:
        return text
    lines = text.splitlines(keepends=True)
    kept: list[str] = []
    room = limit
    for line in lines:
        room -= len(line)
        if room < 0:
            break
        kept.append(line)
    mark = "#" if language == "python" else "//"
    return "".join(kept) + f"{mark} … and {len(lines) - len(kept)} more\n"
