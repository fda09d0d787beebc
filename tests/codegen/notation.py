"""Types of the model as short text, with declarations written out in place: whole types to compare with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolbridge_codegen.catalog import Reading, ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.derive.tools import build_module
from toolbridge_codegen.model import (
    ArrayType,
    Declaration,
    Diagnostic,
    LiteralType,
    MapType,
    ModuleModel,
    NamedType,
    NeverType,
    ObjectType,
    ScalarType,
    TupleType,
    TypeNode,
    UnionType,
    UnknownType,
)
from toolbridge_codegen.read.kinds import Bounds


def build(
    *tools: ToolDefinition,
    reading: Reading = "intended",
    output_schemas: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[ModuleModel, tuple[Diagnostic, ...]]:
    """The model of a server with these tools."""
    catalog = build_catalog([ServerListing("server", tools, reading=reading, output_schemas=output_schemas or {})])
    return build_module(catalog.modules[0], **options)


def result_model(schema: Any, **options: Any) -> tuple[ModuleModel, tuple[Diagnostic, ...]]:
    """The model of a server with one tool, whose result has this schema."""
    return build(ToolDefinition("tool", {"type": "object"}, output_schema=schema), **options)


def written(schema: Any, **options: Any) -> str:
    """The type of a schema."""
    model, _ = result_model(schema, **options)
    return show(model, model.functions[0].output)


def written_input(schema: Any, **options: Any) -> str:
    """The type of a schema as a tool's input."""
    model, _ = build(ToolDefinition("tool", schema), **options)
    return show(model, model.functions[0].input)


def problems(schema: Any, bounds: Bounds | None = None) -> list[tuple[str, str]]:
    """Path and message of each diagnostic for a schema."""
    _, diagnostics = result_model(schema, **({} if bounds is None else {"bounds": bounds}))
    return [(item.path, item.message) for item in diagnostics]


def show(model: ModuleModel, node: TypeNode) -> str:
    """A type as text. A declaration inside itself is written as its name."""
    return _show({declaration.name: declaration for declaration in model.declarations}, node, ())


def _show(declared: Mapping[str, Declaration], node: TypeNode, inside: tuple[str, ...]) -> str:  # noqa: PLR0911
    def inner(part: TypeNode) -> str:
        return _show(declared, part, inside)

    match node:
        case UnknownType():
            return "unknown"
        case NeverType():
            return "never"
        case ScalarType(kind):
            return kind
        case LiteralType(values):
            return " | ".join(json.dumps(value) for value in values)
        case ArrayType(items):
            return f"{_grouped(items, inner(items))}[]"
        case TupleType(items, required, rest):
            parts = [inner(item) + ("" if index < required else "?") for index, item in enumerate(items)]
            parts += [] if rest is None else [f"...{inner(rest)}"]
            return f"[{', '.join(parts)}]"
        case MapType(values):
            return f"{{*: {inner(values)}}}"
        case UnionType(members):
            return " | ".join(map(inner, members))
        case NamedType(name):
            return f"@{name}" if name in inside else _show(declared, declared[name].type, (*inside, name))
        case ObjectType(properties, extra):
            parts = [f"{known.name}{'' if known.required else '?'}: {inner(known.type)}" for known in properties]
            parts += [] if extra is None else [f"*: {inner(extra)}"]
            return f"{{{', '.join(parts)}}}"


def _grouped(node: TypeNode, text: str) -> str:
    return f"({text})" if " | " in text and not isinstance(node, NamedType) else text
