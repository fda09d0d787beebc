"""Merged types: one type from facts that all hold, for each kind of value that they admit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolbridge_codegen.array_types import array_type
from toolbridge_codegen.constants import allowed_constants
from toolbridge_codegen.model import MapType, TypeNode
from toolbridge_codegen.normalize import declared_kinds, inferred_kinds
from toolbridge_codegen.object_types import object_type
from toolbridge_codegen.schema_kinds import ANY_KIND, ARRAY, OBJECT
from toolbridge_codegen.unions import NEVER, UNKNOWN, scalars_of, union_of

if TYPE_CHECKING:
    from toolbridge_codegen.places import Place
    from toolbridge_codegen.schema_types import SchemaTypes


def merged_type(types: SchemaTypes, facts: list[dict[str, Any]], also: Sequence[Any], place: Place) -> TypeNode:
    """The type of values for which all facts hold."""
    kinds = ANY_KIND
    for fact in facts:
        kinds &= declared_kinds(fact, types.reporter)
    if kinds == 0:
        types.reporter.report_at(place.path, "no value has all of the types that are asked for")
        return NEVER
    constants = allowed_constants(types, facts, kinds)
    if constants is not None:
        members: list[TypeNode] = [constants.literals]
        kinds = constants.other_kinds
    elif kinds == ANY_KIND:
        inferred = inferred_kinds(facts)
        if inferred == ANY_KIND:
            return UNKNOWN
        # A schema that names every type means every type; to the letter, so does one that names none.
        is_any = types.is_literal or any("type" in fact for fact in facts)
        kinds = kinds if is_any else inferred
        members = []
    else:
        members = []
    if kinds & ARRAY:
        members.append(array_type(types, facts, place))
    if kinds & OBJECT:
        # A constant object may have properties that aren't listed beside it.
        is_constant = constants is not None
        members.append(MapType(UNKNOWN) if is_constant else object_type(types, facts, also, place))
    members += scalars_of(kinds)
    return members[0] if len(members) == 1 else union_of(members)
