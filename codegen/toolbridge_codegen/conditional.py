"""Properties that only a condition mentions.

An object that lists its properties is closed. What its `then`, `else`, `dependentSchemas`, or another branch of its
`anyOf` that may hold as well lists must stay possible all the same: such properties are optional.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from toolbridge_codegen.json_values import is_list, is_object
from toolbridge_codegen.normalize import (
    CHOICES,
    CONDITIONS,
    UNRESOLVED,
    admits_nothing,
    extra_statement,
    is_remark,
    required_names,
)
from toolbridge_codegen.overlaps import are_apart

if TYPE_CHECKING:
    from toolbridge_codegen.schema_types import SchemaTypes

MOST_TOGETHER = 8
"""Branches that may hold together with one: with more of them, listing what each has in each would grow with the square
of their number, so the object is open instead."""


_REQUIRING = CONDITIONS | {"dependentRequired", *CHOICES}


class Conditional(NamedTuple):
    """What isn't listed for sure."""

    properties: dict[str, list[Any]]
    """By name, the schemas of which one holds."""
    by_pattern: list[Any]
    """The schemas of properties that only patterns describe."""
    too_many: bool = False
    """There may be any properties, because to say which would take too long."""


def conditional_properties(
    types: SchemaTypes, facts: list[dict[str, Any]], also: Sequence[Any], known: dict[str, list[Any]]
) -> Conditional:
    """Properties that aren't listed for sure."""
    found: dict[str, list[Any]] = {}
    by_pattern: list[Any] = []
    stack: list[tuple[Any, bool]] = []
    for part in also:
        if not are_apart(types, facts, types.schemas.flatten([part]).facts):
            stack.append((part, False))
            if len(stack) > MOST_TOGETHER:
                return Conditional({}, [True], too_many=True)
    for fact in facts:
        stack += _conditions(fact)
    is_explicit = any("unevaluatedProperties" in fact for fact in facts)
    seen: set[tuple[int, bool]] = set()
    while stack and types.budget.visit():
        part, is_question = stack.pop()
        if not is_object(part) or (id(part), is_question) in seen:
            continue
        seen.add((id(part), is_question))
        whole = types.schemas.flatten([part])
        for choice in whole.choices:
            stack += [(branch, is_question) for branch in choice.branches]
        for fact in whole.facts:
            stack += _conditions(fact)
            if fact is UNRESOLVED or (is_explicit and _evaluates_others(fact)):  # what it means may list any
                by_pattern.append(True)
            statement = extra_statement(fact, types.reporter)
            if statement is not None and not statement.is_complete:
                by_pattern += [True] if is_question else statement.schemas
            properties = fact.get("properties")
            for name, schema in properties.items() if is_object(properties) else ():
                if name not in known:
                    # What a question asks of a property, the property need not be.
                    found.setdefault(name, []).append(True if is_question else schema)
    return Conditional(found, by_pattern)


def _evaluates_others(fact: dict[str, Any]) -> bool:
    """Whether `unevaluatedProperties` beside a condition leaves properties alone because this lets them be."""
    others = ("additionalProperties", "unevaluatedProperties")
    return any(keyword in fact and not admits_nothing(fact[keyword]) for keyword in others)


def required_sometimes(types: SchemaTypes, facts: list[dict[str, Any]]) -> list[str]:
    """The names that only a condition or a choice between remarks requires: without them it could not be met."""
    names: dict[str, None] = {}
    stack: list[Any] = []
    for fact in facts:
        if not _REQUIRING.isdisjoint(fact):
            names.update(_named_by_remarks(fact))
            stack += [part for part, _ in _conditions(fact)]
    seen: set[int] = set()
    while stack and types.budget.visit():
        part = stack.pop()
        if not is_object(part) or id(part) in seen:
            continue
        seen.add(id(part))
        whole = types.schemas.flatten([part])
        stack += [branch for choice in whole.choices for branch in choice.branches]
        for fact in whole.annotated:  # one that only lists remarks is no fact
            names.update(dict.fromkeys(required_names(fact, types.reporter)))
            names.update(_named_by_remarks(fact))
            stack += [inner for inner, _ in _conditions(fact)]
    return list(names)


def _named_by_remarks(fact: dict[str, Any]) -> dict[str, None]:
    """The names in lists of what goes together, and in branches that list only what is required."""
    lists: list[Any] = []
    for keyword in ("dependentRequired", "dependencies"):
        dependent = fact.get(keyword)
        lists += dependent.values() if is_object(dependent) else ()
    for keyword in CHOICES:
        branches = fact.get(keyword)
        lists += [one.get("required") for one in branches if is_remark(one)] if is_list(branches) else ()
    return {name: None for names in lists if is_list(names) for name in names if isinstance(name, str)}


def _conditions(fact: dict[str, Any]) -> list[tuple[Any, bool]]:
    """The schemas that hold only sometimes, each with whether it is the question itself."""
    parts = [(fact[keyword], keyword == "if") for keyword in ("if", "then", "else") if keyword in fact]
    for keyword in ("dependentSchemas", "dependencies"):
        dependent = fact.get(keyword)
        if is_object(dependent):
            parts += [(schema, False) for schema in dependent.values() if not is_list(schema)]
    return parts
