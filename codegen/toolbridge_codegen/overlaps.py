"""Branches of an `anyOf` that can hold at once: an object for which they do has the properties of all of them.

A union of closed objects would refuse it. Branches that a tag tells apart (a required property with other constants,
or of another type, in each) never hold together: they stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolbridge_codegen.conjunction import Choice
from toolbridge_codegen.json_values import is_list, is_object
from toolbridge_codegen.normalize import declared_kinds, requires_itself
from toolbridge_codegen.schema_kinds import OBJECT

if TYPE_CHECKING:
    from toolbridge_codegen.schema_types import SchemaTypes

Facts = Sequence[dict[str, Any]]


def has_overlap(types: SchemaTypes, choice: Choice) -> bool:
    """Whether an object may satisfy two branches of a choice that list different properties."""
    if choice.exclusive or len(choice.branches) > types.bounds.literals:
        return False
    listing: list[tuple[Facts, set[str]]] = []
    for branch in choice.branches:
        whole = types.schemas.flatten([branch])
        names = _listed(whole.facts)
        if whole.choices and _can_be_object(types, whole.facts):
            names |= {"", *(name for inner in whole.choices for name in _listed(inner.branches))}
        if names:
            listing.append((whole.facts, names))
    for index, (facts, names) in enumerate(listing):
        for others, other_names in listing[:index]:
            if not types.budget.visit():
                return False
            if names != other_names and not are_apart(types, facts, others):
                return True
    return False


def are_apart(types: SchemaTypes, one: Facts, other: Facts) -> bool:
    """Whether no object satisfies both."""
    if not (_can_be_object(types, one) and _can_be_object(types, other)):
        return True
    first, second = _required_schemas(one), _required_schemas(other)
    return any(
        _differ(types, schema, opposite)
        for name, schemas in first.items()
        for schema in schemas
        for opposite in second.get(name, ())
    )


def _can_be_object(types: SchemaTypes, facts: Facts) -> bool:
    return all(declared_kinds(fact, types.reporter) & OBJECT for fact in facts)


def _listed(facts: Sequence[Any]) -> set[str]:
    """The names, and the patterns of names, that schemas list."""
    names: set[str] = set()
    for fact in facts:
        for keyword in ("properties", "patternProperties"):
            members = fact.get(keyword) if is_object(fact) else None
            if is_object(members):
                names.update(f"{keyword} {name}" for name in members)
    return names


def _required_schemas(facts: Facts) -> dict[str, list[dict[str, Any]]]:
    """By name, what is said of the properties that must be there."""
    required: set[Any] = set()
    found: dict[str, list[dict[str, Any]]] = {}
    for fact in facts:
        listed = fact.get("required")
        if is_list(listed):
            required.update(name for name in listed if isinstance(name, str))
        properties = fact.get("properties")
        for name, schema in properties.items() if is_object(properties) else ():
            if is_object(schema):
                found.setdefault(name, []).append(schema)
                if requires_itself(schema):
                    required.add(name)
    return {name: schemas for name, schemas in found.items() if name in required}


def _differ(types: SchemaTypes, one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether no value is allowed by both."""
    if not declared_kinds(one, types.reporter) & declared_kinds(other, types.reporter):
        return True
    first, second = _constants(one), _constants(other)
    return first is not None and second is not None and first.isdisjoint(second)


def _constants(schema: dict[str, Any]) -> set[tuple[bool, str | float | None]] | None:
    """The only values that a schema allows, if they are plain."""
    listed: Any = [schema["const"]] if "const" in schema else schema.get("enum")
    if not is_list(listed) or not all(value is None or isinstance(value, str | int | float) for value in listed):
        return None
    return {(isinstance(value, bool), value) for value in listed}
