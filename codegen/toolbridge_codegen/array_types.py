"""Arrays and tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolbridge_codegen.model import ArrayType, TupleType, TypeNode
from toolbridge_codegen.normalize import UNRESOLVED, admits_nothing, items_statement, whole_number
from toolbridge_codegen.unions import UNKNOWN

if TYPE_CHECKING:
    from toolbridge_codegen.places import Place
    from toolbridge_codegen.schema_types import SchemaTypes


def array_type(types: SchemaTypes, facts: list[dict[str, Any]], place: Place) -> TypeNode:
    """An array of one type, or a tuple where items are described by position."""
    statements = [items_statement(fact, types.reporter) for fact in facts]
    length = max((len(statement.prefix) for statement in statements), default=0)
    most = min((count for fact in facts if (count := whole_number(fact, "maxItems")) is not None), default=None)
    least = max((count for fact in facts if (count := whole_number(fact, "minItems")) is not None), default=0)
    rests = [statement.rest for statement in statements if statement.rest is not True]
    closed = any(map(admits_nothing, rests)) or _evaluated_only(facts)
    if length == 0:
        if closed or most == 0:
            return TupleType((), 0, None)
        return ArrayType(_items(types, rests, place, "/items"))
    if length > types.bounds.union:
        types.reporter.report_at(place.path, f"a tuple of more than {types.bounds.union} items: unknown")
        return ArrayType(UNKNOWN)
    if most is not None and most < length:
        length, closed = most, True
    items: list[TypeNode] = []
    for index in range(length):
        here = [
            statement.prefix[index] if index < len(statement.prefix) else statement.rest for statement in statements
        ]
        items.append(_items(types, [item for item in here if item is not True], place, f"/prefixItems/{index}"))
    rest = None if closed or most == length else _items(types, rests, place, "/items")
    return TupleType(tuple(items), min(least, length), rest)


def _items(types: SchemaTypes, schemas: list[Any], place: Place, step: str) -> TypeNode:
    if not schemas:
        return UNKNOWN
    return types.build_inside(schemas, place.item(step))


def _evaluated_only(facts: list[dict[str, Any]]) -> bool:
    """`unevaluatedItems: false`, as far as nothing else could evaluate items: then there are no more."""
    evaluates = {"contains", "if", "then", "else", "dependentSchemas", "anyOf", "oneOf"}
    return any(admits_nothing(fact.get("unevaluatedItems")) for fact in facts) and all(
        fact is not UNRESOLVED
        and evaluates.isdisjoint(fact)
        and ("items" not in fact or isinstance(fact["items"], list))
        for fact in facts
    )
