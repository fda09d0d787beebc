"""Keywords of a schema that need no more than the value itself. In doubt, a value fits."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from toolbridge.servers.safe_patterns import safe_pattern

_KINDS: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
    type(None): "null",
}
_MOST_COMPARED = 1_000


def kind_of_value(value: object) -> str:
    """The JSON type of a value: `integer` for whole numbers; empty for what is no JSON."""
    return _KINDS.get(type(value), "")


def fits_kind(value: object, kinds: list[str]) -> bool:
    """Whether a value is of one of these types. An integer is a number, and 1.0 is an integer."""
    kind = kind_of_value(value)
    if kind in kinds or not kind:
        return True
    if kind == "integer":
        return "number" in kinds
    return kind == "number" and "integer" in kinds and cast("float", value).is_integer()


def _is_number(value: object) -> bool:
    return type(value) is int or type(value) is float


def _same(value: Any, other: Any) -> bool:
    """Equal as JSON: in Python `True` is 1 as well."""
    if value != other:
        return False
    if type(value) is dict:
        return all(_same(member, other[name]) for name, member in cast("dict[str, Any]", value).items())
    if type(value) is list:
        return all(map(_same, cast("list[Any]", value), other))
    return (type(value) is bool) == (type(other) is bool)


def _multiple(value: Any, step: Any) -> bool:
    if not _is_number(value):
        return True
    if type(value) is int and type(step) is int:
        return value % step == 0
    try:
        # 0.3 is a multiple of 0.1 to everybody but a computer.
        times = value / step
        return times - times != 0.0 or abs(times - round(times)) <= 1e-9 * max(1.0, abs(times))
    except (OverflowError, ZeroDivisionError):
        return True


def _unique(value: Any, wanted: bool) -> bool:
    if not wanted or type(value) is not list or len(cast("list[Any]", value)) > _MOST_COMPARED:
        return True
    members = cast("list[Any]", value)
    try:
        return len({json.dumps(member, sort_keys=True) for member in members}) == len(members)
    except (TypeError, ValueError):
        return True


def _matches(value: Any, pattern: str) -> bool:
    if type(value) is not str:
        return True
    safe = safe_pattern(pattern)
    return safe is None or not safe.refuses(value)


def _sized(kind: type) -> tuple[Callable[[Any, int], bool], Callable[[Any, int], bool]]:
    """At least and at most so many characters, items or properties."""
    return (
        lambda value, least: type(value) is not kind or len(value) >= least,
        lambda value, most: type(value) is not kind or len(value) <= most,
    )


_at_least_characters, _at_most_characters = _sized(str)
_at_least_items, _at_most_items = _sized(list)
_at_least_properties, _at_most_properties = _sized(dict)

SCALAR_RULES: dict[str, Callable[[Any, Any], bool]] = {
    "enum": lambda value, wanted: any(_same(value, each) for each in wanted),
    "const": _same,
    "minimum": lambda value, least: not _is_number(value) or value >= least,
    "maximum": lambda value, most: not _is_number(value) or value <= most,
    "exclusiveMinimum": lambda value, bound: not _is_number(value) or value > bound,
    "exclusiveMaximum": lambda value, bound: not _is_number(value) or value < bound,
    "multipleOf": _multiple,
    "minLength": _at_least_characters,
    "maxLength": _at_most_characters,
    "pattern": _matches,
    "minItems": _at_least_items,
    "maxItems": _at_most_items,
    "uniqueItems": _unique,
    "minProperties": _at_least_properties,
    "maxProperties": _at_most_properties,
}
