"""A quick yes to values that surely fit their schema; to any other, the judge has to look.

Most tools take a few scalars and give one, or an object that may hold anything. For those a look at each value's type
says what the judge would say, at a tenth of the cost. Nothing is ever refused here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from toolbridge.servers.checkable_schema import Checkable, CleanSchema

SureFit: TypeAlias = Callable[[Any], bool]
"""Whether a value surely fits: the judge would find no problem, and look at all of it."""

# Every value of these types is of that kind. A float may be an integer: then the judge says so.
_TYPES: dict[str, frozenset[type]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "null": frozenset({type(None)}),
    "object": frozenset({dict}),
    "array": frozenset({list}),
}
_ANY_TYPE = frozenset[type]().union(*_TYPES.values())
_NO_TYPE: frozenset[type] = frozenset()
_OF_FLAT_OBJECTS = frozenset({"type", "properties", "required", "additionalProperties"})
# So many properties and choices take far fewer steps than the judge has.
_MOST_PROPERTIES = 200
_MOST_CHOICES = 5


def sure_fit(schema: Checkable) -> SureFit | None:
    """What says yes to values of a simple schema; None for one that is not simple."""
    root = schema.schema
    types = _types(root)
    if types is not None:
        return lambda value: type(value) in types
    if not isinstance(root, dict) or not _OF_FLAT_OBJECTS.issuperset(root) or root.get("type") != ["object"]:
        return None
    properties: dict[str, CleanSchema] = root.get("properties", {})
    known = {name: _types(each) for name, each in properties.items()}
    if len(known) > _MOST_PROPERTIES or None in known.values():
        return None
    required = frozenset[str](root.get("required", ()))
    if root.get("additionalProperties", True) is not True:
        return _closed_object(cast("dict[str, frozenset[type]]", known), required)
    return None if known or required else lambda value: type(value) is dict


def _closed_object(known: dict[str, frozenset[type]], required: frozenset[str]) -> SureFit:
    """Of the properties that it names; the judge says what is to be done about others."""

    def fits(value: Any) -> bool:
        if type(value) is not dict:
            return False
        members = cast("dict[str, Any]", value)
        for name, member in members.items():
            if type(member) not in known.get(name, _NO_TYPE):
                return False
        return members.keys() >= required

    return fits


def _types(schema: CleanSchema) -> frozenset[type] | None:
    """Of which types every value fits a schema; None if that is not all there is to it."""
    if schema is True or schema == {}:
        return _ANY_TYPE
    if not isinstance(schema, dict) or len(schema) != 1:
        return None
    if "type" in schema:
        return frozenset[type]().union(*(_TYPES[kind] for kind in schema["type"]))
    choices = [_types(choice) for choice in schema.get("anyOf", ())[: _MOST_CHOICES + 1]]
    if not choices or len(choices) > _MOST_CHOICES or None in choices:
        return None
    return frozenset[type]().union(*cast("list[frozenset[type]]", choices))
