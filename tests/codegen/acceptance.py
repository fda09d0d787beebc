"""Whether a type of the model accepts a value: the reference semantics of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbridge_codegen.escaping import is_list, is_object
from toolbridge_codegen.model import (
    ArrayType,
    Declaration,
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


def accepts(model: ModuleModel, node: TypeNode, value: Any) -> bool:
    """Whether a value has a type."""
    return _accepts({declaration.name: declaration for declaration in model.declarations}, node, value)


def _accepts(declared: Mapping[str, Declaration], node: TypeNode, value: Any) -> bool:  # noqa: PLR0911
    match node:
        case UnknownType():
            return True
        case NeverType():
            return False
        case ScalarType(kind):
            return _is_scalar(kind, value)
        case LiteralType(values):
            return any(same(value, constant) for constant in values)
        case NamedType(name):
            return _accepts(declared, declared[name].type, value)
        case UnionType(members):
            return any(_accepts(declared, member, value) for member in members)
        case ArrayType(items):
            return is_list(value) and all(_accepts(declared, items, item) for item in value)
        case MapType(values):
            return is_object(value) and all(_accepts(declared, values, item) for item in value.values())
        case TupleType(items, required, rest):
            return is_list(value) and _accepts_tuple(declared, items, required, rest, value)
        case ObjectType():
            return is_object(value) and _accepts_object(declared, node, value)


def _accepts_tuple(
    declared: Mapping[str, Declaration],
    items: tuple[TypeNode, ...],
    required: int,
    rest: TypeNode | None,
    value: list[Any],
) -> bool:
    if len(value) < required or (rest is None and len(value) > len(items)):
        return False
    return all(
        _accepts(declared, items[index] if index < len(items) else rest or NeverType(), item)
        for index, item in enumerate(value)
    )


def _accepts_object(declared: Mapping[str, Declaration], node: ObjectType, value: dict[str, Any]) -> bool:
    known = {item.name: item for item in node.properties}
    if any(item.required and item.name not in value for item in node.properties):
        return False
    for name, member in value.items():
        kind = known[name].type if name in known else node.extra
        if kind is None or not _accepts(declared, kind, member):
            return False
    return True


def _is_scalar(kind: str, value: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return (isinstance(value, int) and not isinstance(value, bool)) or (
                isinstance(value, float) and value.is_integer()
            )


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: `1` is `1.0`, but not `true`."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other
