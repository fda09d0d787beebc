"""Constants: `const` and `enum` as literal types."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from toolbridge_codegen.json_values import is_list
from toolbridge_codegen.model import TypeNode
from toolbridge_codegen.normalize import is_nullable
from toolbridge_codegen.schema_kinds import FRACTION, INTEGER, NUMBER, kind_of_value
from toolbridge_codegen.unions import literal_type

if TYPE_CHECKING:
    from toolbridge_codegen.schema_types import SchemaTypes

_LARGEST_LITERAL = 2**53
"""Numbers from here on are not exact in TypeScript."""


class Constants(NamedTuple):
    """The constants that are allowed in a place."""

    literals: TypeNode
    other_kinds: int
    """The kinds of those that can't be written as literals: null, lists, objects, what is too long."""


def allowed_constants(types: SchemaTypes, facts: list[dict[str, Any]], kinds: int) -> Constants | None:
    """The values that every `const` and `enum` among the facts allows; None if there is none."""
    values: list[Any] | None = None
    for fact in facts:
        own = _constants_of(types, fact)
        if own is not None:
            values = own if values is None else _common(values, own)
    if values is None:
        return None
    fitting = [value for value in values if kind_of_value(value) & kinds]
    if len(fitting) < len(values):
        types.reporter.report(facts[0], "enum", "some constants don't have the declared type")
    # A type that excludes all of the constants is a mistake; what the server compares with is the constants.
    return _as_types(types, [_as_kind(value, kinds) for value in fitting or values], facts[0])


def _constants_of(types: SchemaTypes, fact: dict[str, Any]) -> list[Any] | None:
    values: list[Any] | None = None
    if "const" in fact:
        values = [fact["const"]]
    if "enum" in fact:
        listed = fact["enum"]
        if not is_list(listed) or not listed:
            types.reporter.report(fact, "enum", "'enum' is not a list of values")
        else:
            values = listed if values is None else _common(values, listed)
    if values is not None and is_nullable(fact):
        return [*values, None]
    return values


def _common(first: list[Any], second: list[Any]) -> list[Any]:
    known = {_identity(value) for value in second}
    return [value for value in first if _identity(value) in known]


def _identity(value: Any) -> object:
    """Equal for equal JSON: `1` is `1.0`, but not `true`. Of lists and objects, only the kind will be used."""
    if isinstance(value, dict | list):
        return kind_of_value(value)
    return (isinstance(value, bool), value)


def _as_kind(value: Any, kinds: int) -> Any:
    """Where only integers are asked for, `1.0` is one. But nobody would write 1e300 without its exponent."""
    if kinds & FRACTION or not isinstance(value, float) or kind_of_value(value) != INTEGER:
        return value
    return int(value) if abs(value) < _LARGEST_LITERAL else value


def _as_types(types: SchemaTypes, values: list[Any], fact: dict[str, Any]) -> Constants:
    most = types.bounds.literals
    if len(values) > most:
        types.reporter.report(fact, "enum", f"more than {most} constants: only their types are kept")
    elif any(isinstance(value, str) and len(value) > types.bounds.name for value in values):
        types.reporter.report(
            fact, "enum", f"a constant of more than {types.bounds.name} characters: only its type is kept"
        )
    literals: list[str | int | float | bool] = []
    other_kinds = 0
    for value in values:
        if len(values) <= most and _can_be_literal(types, value):
            literals.append(value)
        else:
            other_kinds |= NUMBER if isinstance(value, float) else kind_of_value(value)
    types.budget.write(sum(len(value) + 4 if isinstance(value, str) else 8 for value in literals))
    return Constants(literal_type(literals), other_kinds)


def _can_be_literal(types: SchemaTypes, value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= types.bounds.name
    if isinstance(value, float):
        return math.isfinite(value) and abs(value) < _LARGEST_LITERAL
    return isinstance(value, int) and abs(value) < _LARGEST_LITERAL
