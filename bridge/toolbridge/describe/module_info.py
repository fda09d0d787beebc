"""One module in detail: its functions with parameters, signatures and annotations, and its stub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from toolbridge.describe.modules import GuestLanguage, module_summary, shown_name, stub_language, summary_of
from toolbridge_codegen.catalog import Catalog, ToolSpec, module_specifier, plain_schema
from toolbridge_codegen.derive.tools import build_module
from toolbridge_codegen.emit.compact import CUT, emit_compact
from toolbridge_codegen.escaping import brief_json, clean_line, is_object
from toolbridge_codegen.model import (
    Declaration,
    FunctionModel,
    ModuleModel,
    NamedType,
    ObjectType,
    Property,
    TypeNode,
    UnionType,
)
from toolbridge_codegen.read.notes import NO_DOCS
from toolbridge_codegen.stubs import Errors
from toolbridge_codegen.stubs import Language as StubLanguage

MOST_PARAMETERS = 200
_LONGEST_NAME = 100
_LONGEST_DESCRIPTION = 500
_LONGEST_DIAGNOSTIC = 300
_LONGEST_STUB = 200_000
"""Characters. The compact form replaces a longer stub."""
_DEEPEST = 20
_DEFAULT = "default: "
_NO_INPUT = Declaration("", ObjectType((), None))
"""No type of a module has an empty name."""

_CLAIMS = {
    ("readOnlyHint", True): "read-only",
    ("readOnlyHint", False): "changes something",
    ("destructiveHint", True): "may delete or overwrite",
    ("destructiveHint", False): "only adds, never deletes or overwrites",
    ("idempotentHint", True): "safe to repeat",
    ("openWorldHint", True): "reaches beyond its own data",
}
"""Annotations in words. A server writes them about itself, and nothing verifies them."""


def shown_schema(schema: object, most: int = 20_000) -> Any:
    """Copies a server's JSON Schema, sanitised and truncated to about `most` characters; `…` marks a cut."""
    left = most

    def shown(value: object, depth: int) -> Any:
        """Copies one part, until nothing is left of `most` or the nesting is too deep."""
        nonlocal left
        left -= 8
        if left <= 0 or depth > _DEEPEST:
            return CUT
        value = plain_schema(value)
        if isinstance(value, dict):
            members: dict[str, Any] = {}
            for key, each in cast("dict[Any, Any]", value).items():
                if left <= 0:
                    members[CUT] = CUT
                    break
                name = clean_line(str(key), limit=_LONGEST_NAME)
                left -= len(name)
                members[name] = shown(each, depth + 1)
            return members
        if isinstance(value, list | tuple):
            items: list[Any] = []
            for each in cast("Sequence[Any]", value):
                items.append(shown(each, depth + 1))
                if left <= 0:
                    break
            return items
        if value is None or isinstance(value, bool | int | float):
            return value
        text = clean_line(str(value), limit=_LONGEST_DESCRIPTION)
        left -= len(text)
        return text

    return shown(schema, 0)


# ── parameters ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """One property of a function's input."""

    name: str
    """Sanitised. The stub has the exact name, escaped."""
    type: str
    """In the requested language, truncated."""
    required: bool
    default: str | None
    """JSON, truncated; None if the schema has none."""
    description: str
    notes: tuple[str, ...]
    """Constraints that the type can't express: `format: date-time`, `minimum: 1`."""


def parameters_of(model: ModuleModel, language: StubLanguage) -> Mapping[str, tuple[ParameterInfo, ...]]:
    """Describes the parameters of every function of a module, at most 200 each: identifier → parameters."""
    by_name = {declaration.name: declaration.type for declaration in model.declarations}
    properties = {
        function.tool.identifier: _properties(function.input, by_name)[:MOST_PARAMETERS] for function in model.functions
    }
    every = [(function, known) for function in model.functions for known in properties[function.tool.identifier]]
    texts = iter(_type_texts(model, every, language))
    return {
        function.tool.identifier: tuple(
            _parameter(function, known, next(texts)) for known in properties[function.tool.identifier]
        )
        for function in model.functions
    }


def _properties(node: TypeNode, by_name: Mapping[str, TypeNode]) -> list[Property]:
    """Lists the properties of an input; of a union, those of all members, merged by name."""
    members = _objects(node, by_name)
    if len(members) == 1:
        return list(members[0].properties)
    merged: dict[str, list[Property]] = {}
    for member in members:
        for known in member.properties:
            merged.setdefault(known.name, []).append(known)
    return [
        replace(
            same[0],
            type=same[0].type if len(same) == 1 else UnionType(tuple(known.type for known in same)),
            required=len(same) == len(members) and all(known.required for known in same),
        )
        for same in merged.values()
    ]


def _objects(node: TypeNode, by_name: Mapping[str, TypeNode]) -> list[ObjectType]:
    """Lists the object types that a type may be: follows names and unions, each name once."""
    found: list[ObjectType] = []
    seen: set[str] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, NamedType) and node.name not in seen:
            seen.add(node.name)
            waiting.append(by_name[node.name])
        elif isinstance(node, UnionType):
            waiting += node.members
        elif isinstance(node, ObjectType):
            found.append(node)
    return found


def _type_texts(
    model: ModuleModel, every: Iterable[tuple[FunctionModel, Property]], language: StubLanguage
) -> list[str]:
    """Writes each property's type as compact stubs do: as the result of a function without parameters."""
    nothing = NamedType(_NO_INPUT.name)
    functions = tuple(
        replace(function, input=nothing, input_required=False, output=known.type, docs=NO_DOCS)
        for function, known in every
    )
    asked = replace(model, declarations=(*model.declarations, _NO_INPUT), functions=functions)
    arrow = "() -> " if language == "python" else "(): "
    return [line.partition(arrow)[2] for line in emit_compact(asked, language).splitlines()[1:]]


def _parameter(function: FunctionModel, known: Property, type_text: str) -> ParameterInfo:
    """Describes one property of a function's input, sanitised; `type_text` is its type."""
    noted = [note for note in known.docs.notes if note.startswith(_DEFAULT)]
    return ParameterInfo(
        name=clean_line(known.name, limit=_LONGEST_NAME),
        type=type_text,
        required=known.required,
        default=_default(function, known.name) or next((note.removeprefix(_DEFAULT) for note in noted), None),
        description=clean_line(known.docs.description, limit=_LONGEST_DESCRIPTION),
        notes=tuple(note for note in known.docs.notes if note not in noted),
    )


def _default(function: FunctionModel, name: str) -> str | None:
    """Returns the default in the schema, as JSON; None without one. The model omits one that the description states."""
    schema = plain_schema(function.tool.definition.input_schema)
    properties = schema.get("properties") if is_object(schema) else None
    known = properties.get(name) if is_object(properties) else None
    return brief_json(known["default"]) if is_object(known) and "default" in known else None


# ── functions and their module ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """One tool as a function."""

    identifier: str
    tool: str
    """Its original name, unsanitised: hostile text. `as_json` sanitises it."""
    signature: str
    summary: str
    description: str
    """The server's text, sanitised, at most 2,000 characters."""
    parameters: tuple[ParameterInfo, ...]
    notes: tuple[str, ...]
    """Its server's annotations in words, and its original name if renamed."""

    def as_json(self) -> dict[str, Any]:
        """Returns the description as JSON, names sanitised, for a model or a program."""
        return {
            **asdict(self),
            "tool": shown_name(self.tool),
            "notes": list(self.notes),
            "parameters": [{**asdict(each), "notes": list(each.notes)} for each in self.parameters],
        }


@dataclass(frozen=True, slots=True)
class ModuleInfo:
    """One server's module."""

    specifier: str
    python_module: str
    server: str
    display_name: str
    summary: str
    instructions: str
    """The server's text, sanitised, at most 1,000 characters."""
    functions: tuple[FunctionInfo, ...]
    renamed: Mapping[str, str]
    """Identifier → original name, for tools whose names are no identifiers, or taken."""
    stub: str
    """`.d.ts` or `.pyi`; the compact form if that is too long."""
    diagnostics: tuple[str, ...]
    """Constraints that the types can't express, by tool."""

    def as_json(self) -> dict[str, Any]:
        """Returns the description as JSON, names sanitised, for a model or a program."""
        facts = asdict(self)
        return {
            "module": facts.pop("specifier"),
            **facts,
            "functions": [function.as_json() for function in self.functions],
            "renamed": {identifier: shown_name(name) for identifier, name in self.renamed.items()},
            "diagnostics": list(self.diagnostics),
        }


def module_info(
    catalog: Catalog,
    specifier: str,
    *,
    language: GuestLanguage = "typescript",
    errors: Errors = "raise",
) -> ModuleInfo | None:
    """Describes one module, found by specifier, Python name, server name or a tool's full name; None if unknown.

    Connects nothing. `language` is that of signatures, types and stub; `errors` is how calls report errors there.

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
    silent = replace(model, functions=tuple(replace(function, docs=NO_DOCS) for function in model.functions))
    signatures = emit_compact(silent, written, errors=errors).splitlines()[1:]
    return ModuleInfo(
        specifier=module.specifier,
        python_module=module.python_module,
        server=module.server,
        display_name=shown_name(module.display_name) or module.server,
        summary=module_summary(module),
        instructions=model.docs.description,
        functions=tuple(_functions(model, signatures, written)),
        renamed={tool.identifier: tool.name for tool in module.tools if tool.identifier != tool.name},
        stub=_stub(model, written, errors),
        diagnostics=tuple(
            clean_line(f"{shown_name(item.tool)} {item.path}: {item.message}", limit=_LONGEST_DIAGNOSTIC)
            for item in diagnostics
        ),
    )


def _functions(model: ModuleModel, signatures: list[str], language: StubLanguage) -> Iterator[FunctionInfo]:
    """Yields the functions of a module; `signatures` has one line for each."""
    parameters = parameters_of(model, language)
    for function, signature in zip(model.functions, signatures, strict=True):
        tool = function.tool
        yield FunctionInfo(
            identifier=tool.identifier,
            tool=tool.name,
            signature=signature,
            summary=summary_of(tool),
            description=function.docs.description,
            parameters=parameters[tool.identifier],
            notes=tuple(_notes(tool, parameters[tool.identifier])),
        )


def _notes(tool: ToolSpec, parameters: Sequence[ParameterInfo]) -> Iterator[str]:
    """Yields a tool's original name if renamed, its annotations in words, and whether parameters are missing."""
    if tool.name != tool.identifier:
        yield f"its server calls it {shown_name(tool.name)!r}"
    for claim in claims_of(tool):
        yield f"its server claims: {claim}"
    if len(parameters) == MOST_PARAMETERS:
        yield f"only the first {MOST_PARAMETERS} parameters are listed; the stub has all"


def claims_of(tool: ToolSpec) -> tuple[str, ...]:
    """Returns a tool's well-formed annotations, in words: claims of its server that nothing verifies."""
    annotations = tool.definition.annotations
    # By identity: 1 equals True, and is malformed.
    return tuple(words for (hint, value), words in _CLAIMS.items() if annotations.get(hint) is value)


def _stub(model: ModuleModel, language: StubLanguage, errors: Errors) -> str:
    """Writes a module's stub; the compact form, cut to whole lines, if it has more than 200,000 characters."""
    if language == "python":
        from toolbridge_codegen.emit.pyi import emit_pyi

        text = emit_pyi(model, errors=errors)
    else:
        from toolbridge_codegen.emit.dts import emit_dts

        text = emit_dts(model, errors=errors)
    if len(text) <= _LONGEST_STUB:
        return text
    return cut_lines(emit_compact(model, language, errors=errors), _LONGEST_STUB, language)


def cut_lines(text: str, limit: int, language: StubLanguage) -> str:
    """Truncates a text of more than `limit` characters to whole lines, and adds a comment with the number cut."""
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
