"""The parameters of a module's functions, one by one: for a reader who wants facts rather than a stub."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from toolbridge_codegen.catalog import plain_schema
from toolbridge_codegen.emit_compact import emit_compact
from toolbridge_codegen.json_values import brief_json, is_object
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
from toolbridge_codegen.notes import NO_DOCS
from toolbridge_codegen.sanitise import clean_line
from toolbridge_codegen.stubs import Language as StubLanguage

MOST_PARAMETERS = 200
_LONGEST_NAME = 100
_LONGEST_DESCRIPTION = 500
_DEFAULT = "default: "
_NO_INPUT = Declaration("", ObjectType((), None))
"""No type of a module has an empty name."""


_CUT = "…"
_DEEPEST = 20


def shown_schema(schema: object, most: int = 20_000) -> Any:
    """A server's JSON Schema for a reader: texts cleaned, bounded to about `most` characters, `…` where it is cut."""
    left = most

    def shown(value: object, depth: int) -> Any:
        nonlocal left
        left -= 8
        if left <= 0 or depth > _DEEPEST:
            return _CUT
        value = plain_schema(value)
        if isinstance(value, dict):
            members: dict[str, Any] = {}
            for key, each in cast("dict[Any, Any]", value).items():
                if left <= 0:
                    members[_CUT] = _CUT
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


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """One property of a function's input."""

    name: str
    """Cleaned: where the real name holds what can't be seen, it is in the stub, escaped."""
    type: str
    """In the language that was asked for, cut where it is long."""
    required: bool
    default: str | None
    """JSON, cut where it is long; None if its schema names none."""
    description: str
    notes: tuple[str, ...]
    """What the type can't say: `format: date-time`, `minimum: 1`."""

    def as_json(self) -> dict[str, Any]:
        """For a model or a program to read."""
        return {**asdict(self), "notes": list(self.notes)}


def parameters_of(model: ModuleModel, language: StubLanguage) -> Mapping[str, tuple[ParameterInfo, ...]]:
    """Identifier → parameters, for every function of a module."""
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
    """The properties of an input; of one that is a union, those of all its members."""
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
    """The types as compact stubs write them: each as the result of a function without parameters."""
    nothing = NamedType(_NO_INPUT.name)
    functions = tuple(
        replace(function, input=nothing, input_required=False, output=known.type, docs=NO_DOCS)
        for function, known in every
    )
    asked = replace(model, declarations=(*model.declarations, _NO_INPUT), functions=functions)
    arrow = "() -> " if language == "python" else "(): "
    return [line.partition(arrow)[2] for line in emit_compact(asked, language).splitlines()[1:]]


def _parameter(function: FunctionModel, known: Property, type_text: str) -> ParameterInfo:
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
    """The default that the schema itself names: the model leaves it out where the description has it."""
    schema = plain_schema(function.tool.definition.input_schema)
    properties = schema.get("properties") if is_object(schema) else None
    known = properties.get(name) if is_object(properties) else None
    return brief_json(known["default"]) if is_object(known) and "default" in known else None
