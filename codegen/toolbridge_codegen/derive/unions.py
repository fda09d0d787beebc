"""Unions: flat, without duplicates and without members that another one admits; and literal types."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from toolbridge_codegen.escaping import is_list
from toolbridge_codegen.model import (
    ArrayType,
    LiteralType,
    MapType,
    NamedType,
    NeverType,
    ObjectType,
    ScalarKind,
    ScalarType,
    TupleType,
    TypeNode,
    UnionType,
    UnknownType,
)
from toolbridge_codegen.read.kinds import (
    ANY_KIND,
    ARRAY,
    BOOLEAN,
    FRACTION,
    INTEGER,
    KINDS,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    kind_of_value,
)
from toolbridge_codegen.read.normalize import is_nullable

if TYPE_CHECKING:
    from toolbridge_codegen.derive.types import SchemaTypes


UNKNOWN = UnknownType()
NEVER = NeverType()
SCALARS: dict[ScalarKind, ScalarType] = {kind: ScalarType(kind) for kind in get_args(ScalarKind)}
_SCALAR_KINDS: dict[ScalarKind, int] = {kind: KINDS[kind] for kind in SCALARS}

KindsOfName = Callable[[str], int]
"""Looks up the kinds of values that a declared type admits."""


def scalars_of(kinds: int) -> list[TypeNode]:
    """Returns the scalar types for some kinds, null last; lists and objects are left out."""
    number: ScalarKind = "number" if kinds & FRACTION else "integer"
    present: list[tuple[ScalarKind, int]] = [("string", STRING), (number, NUMBER), ("boolean", BOOLEAN), ("null", NULL)]
    return [SCALARS[name] for name, kind in present if kinds & kind]


def literal_type(values: Iterable[str | int | float | bool]) -> TypeNode:
    """Returns the type of some constants, without duplicates; `never` for none.

    `true` and `false` together are a boolean. Of `1` and `1.0`, the latter stays: a program may write it so.
    """
    kept: dict[tuple[bool, object], str | int | float | bool] = {}
    for value in values:
        key = (isinstance(value, bool), value)
        kept[key] = value if isinstance(value, float) else kept.get(key, value)
    if (True, True) in kept and (True, False) in kept:
        others = [value for value in kept.values() if not isinstance(value, bool)]
        boolean = SCALARS["boolean"]
        return UnionType((LiteralType(tuple(others)), boolean)) if others else boolean
    return LiteralType(tuple(kept.values())) if kept else NEVER


def union_of(members: Iterable[TypeNode]) -> TypeNode:
    """Returns the union of some types: flat, without members that another one admits, null last.

    A single member stays itself, no member is `never`, and one unknown makes all unknown.
    """
    flat: list[TypeNode] = []
    literals: list[str | int | float | bool] = []
    literals_at = 0
    admitted = 0
    for member in members:
        for part in member.members if isinstance(member, UnionType) else (member,):
            if isinstance(part, UnknownType):
                return UNKNOWN
            if isinstance(part, LiteralType):
                literals_at = literals_at if literals else len(flat)
                literals += [value for value in part.values if value is not None]
            elif isinstance(part, ScalarType):
                if not _SCALAR_KINDS[part.kind] & ~admitted:
                    continue
                admitted |= _SCALAR_KINDS[part.kind]
                flat.append(part)
            elif not isinstance(part, NeverType):
                flat.append(part)
    if literals:
        # All constants go where the first one was; those that a scalar type admits are dropped.
        together = literal_type(value for value in literals if not kind_of_value(value) & admitted)
        flat[literals_at:literals_at] = together.members if isinstance(together, UnionType) else (together,)
    return _flat_union(flat)


def _flat_union(parts: list[TypeNode]) -> TypeNode:
    """Returns the union of parts that are no unions, without duplicates and `never`, null last."""
    if len(parts) == 1:
        return parts[0]
    left_out: set[TypeNode] = {NEVER, SCALARS["null"]}
    if SCALARS["number"] in parts:
        left_out.add(SCALARS["integer"])
    unique: dict[object, TypeNode] = {}
    for part in parts:
        known = unique.get(part)
        if part not in left_out and (known is None or known is not part):
            # To Python, a list of `1` equals a list of `True`; their texts differ.
            unique.setdefault(part if known is None or repr(known) == repr(part) else repr(part), part)
    if SCALARS["null"] in parts:
        unique[SCALARS["null"]] = SCALARS["null"]
    if len(unique) > 1:
        return UnionType(tuple(unique.values()))
    return next(iter(unique.values()), NEVER)


def kinds_of(node: TypeNode, kinds_of_name: KindsOfName) -> int:  # noqa: PLR0911  # one for each kind of type
    """Returns the kinds of values that a type admits; `kinds_of_name` looks up those of a named type."""
    match node:
        case ScalarType(kind):
            return _SCALAR_KINDS[kind]
        case LiteralType(values):
            return reduce(int.__or__, map(kind_of_value, values), 0)
        case ArrayType() | TupleType():
            return ARRAY
        case MapType() | ObjectType():
            return OBJECT
        case UnionType(members):
            return reduce(int.__or__, [kinds_of(member, kinds_of_name) for member in members], 0)
        case NamedType(name):
            return kinds_of_name(name)
        case UnknownType():
            return ANY_KIND
        case NeverType():
            return 0


def restricted(node: TypeNode, kinds: int, kinds_of_name: KindsOfName) -> TypeNode:
    """Returns a type without the values of other kinds than these, as far as types can express it.

    A named type stays itself if any kind is left; a type without any is `never`.
    """
    if kinds == ANY_KIND or isinstance(node, NeverType):
        return node
    if isinstance(node, UnionType):
        return union_of(restricted(member, kinds, kinds_of_name) for member in node.members)
    if isinstance(node, LiteralType):
        return literal_type(value for value in node.values if value is not None and kind_of_value(value) & kinds)
    common = kinds_of(node, kinds_of_name) & kinds
    if isinstance(node, UnknownType):
        structured: list[TypeNode] = []
        if common & ARRAY:
            structured.append(ArrayType(UNKNOWN))
        if common & OBJECT:
            structured.append(MapType(UNKNOWN))
        return union_of([*structured, *scalars_of(common)])
    if isinstance(node, ScalarType):
        return union_of(scalars_of(common))
    return node if common else NEVER


# Constants: `const` and `enum` as literal types.

_LARGEST_LITERAL = 2**53
"""Larger numbers are inexact in TypeScript."""


class Constants(NamedTuple):
    """The constants that a place admits."""

    literals: TypeNode
    other_kinds: int
    """The kinds of those without a literal: null, lists, objects, long strings."""


def allowed_constants(types: SchemaTypes, facts: list[dict[str, Any]], kinds: int) -> Constants | None:
    """Returns the values that every `const` and `enum` among the facts admits; None without such a keyword.

    Those of other `kinds` are dropped and reported; if that leaves none, all stay, as the type must be a mistake.
    """
    values: list[Any] | None = None
    for fact in facts:
        own = _constants_of(types, fact)
        if own is not None:
            values = own if values is None else _intersection(values, own)
    if values is None:
        return None
    fitting = [value for value in values if kind_of_value(value) & kinds]
    if len(fitting) < len(values):
        types.reporter.report(facts[0], "enum", "some constants don't have the declared type")
    # A type that excludes all constants is a mistake: the server compares with the constants.
    return _literal_constants(types, [_as_integer(value, kinds) for value in fitting or values], facts[0])


def _constants_of(types: SchemaTypes, fact: dict[str, Any]) -> list[Any] | None:
    """Returns a fact's constants, null too if nullable; None without any. Reports an `enum` that is no list."""
    values: list[Any] | None = None
    if "const" in fact:
        values = [fact["const"]]
    if "enum" in fact:
        listed = fact["enum"]
        if not is_list(listed) or not listed:
            types.reporter.report(fact, "enum", "'enum' is not a list of values")
        else:
            values = listed if values is None else _intersection(values, listed)
    if values is not None and is_nullable(fact):
        return [*values, None]
    return values


def _intersection(first: list[Any], second: list[Any]) -> list[Any]:
    """Returns the values of the first list that equal one of the second, as JSON."""
    known = {_equality_key(value) for value in second}
    return [value for value in first if _equality_key(value) in known]


def _equality_key(value: Any) -> object:
    """Returns a key equal for equal JSON: `1` is `1.0`, but not `true`.

    Lists and objects count by kind only.
    """
    if isinstance(value, dict | list):
        return kind_of_value(value)
    return (isinstance(value, bool), value)


def _as_integer(value: Any, kinds: int) -> Any:
    """Returns `1.0` as an integer where only integers are admitted; 1e300 and others unchanged."""
    if kinds & FRACTION or not isinstance(value, float) or kind_of_value(value) != INTEGER:
        return value
    return int(value) if abs(value) < _LARGEST_LITERAL else value


def _literal_constants(types: SchemaTypes, values: list[Any], fact: dict[str, Any]) -> Constants:
    """Builds the types of constants; reports too many, or too long ones, of which only the types are kept."""
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
    """Returns whether a constant has a literal type: no list, object or null, not too long, an exact number."""
    if isinstance(value, str):
        return len(value) <= types.bounds.name
    if isinstance(value, float):
        return math.isfinite(value) and abs(value) < _LARGEST_LITERAL
    return isinstance(value, int) and abs(value) < _LARGEST_LITERAL
