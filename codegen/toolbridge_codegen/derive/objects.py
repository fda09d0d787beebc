"""The types of objects, maps, arrays and tuples: properties, required ones, and whether there may be others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from toolbridge_codegen.derive.conjunction import are_disjoint
from toolbridge_codegen.derive.declarations import Draft
from toolbridge_codegen.derive.unions import NEVER, UNKNOWN, union_of
from toolbridge_codegen.escaping import is_list, is_object
from toolbridge_codegen.model import ArrayType, MapType, NamedType, ObjectType, Property, TupleType, TypeNode
from toolbridge_codegen.read.kinds import OBJECT
from toolbridge_codegen.read.normalize import (
    CHOICES,
    CONDITIONS,
    UNRESOLVED,
    ExtraStatement,
    admits_nothing,
    extra_statement,
    is_remark,
    items_statement,
    lists_properties,
    member_map,
    required_names,
    requires_itself,
    whole_number,
)

if TYPE_CHECKING:
    from toolbridge_codegen.derive.types import Location, SchemaTypes


# Arrays and tuples.


def array_type(types: SchemaTypes, facts: list[dict[str, Any]], place: Location) -> TypeNode:
    """Builds the type of arrays for which all facts hold; a tuple where items are described by position.

    A tuple beyond the bound is reported, and an array of anything.
    """
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


def _items(types: SchemaTypes, schemas: list[Any], place: Location, step: str) -> TypeNode:
    """Builds the type of items for which all schemas hold; unknown without any. `step` extends the path."""
    if not schemas:
        return UNKNOWN
    return types.build_inside(schemas, place.item(step))


def _evaluated_only(facts: list[dict[str, Any]]) -> bool:
    """Returns whether `unevaluatedItems: false` ends the array: nothing else could evaluate items."""
    evaluates = {"contains", "if", "then", "else", "dependentSchemas", "anyOf", "oneOf"}
    return any(admits_nothing(fact.get("unevaluatedItems")) for fact in facts) and all(
        fact is not UNRESOLVED
        and evaluates.isdisjoint(fact)
        and ("items" not in fact or isinstance(fact["items"], list))
        for fact in facts
    )


# Conditional properties. An object that lists its properties is closed. Properties that only its `then`, `else`,
# `dependentSchemas` or an overlapping branch of its `anyOf` lists stay possible: they are optional.

MOST_TOGETHER = 8
"""Overlapping branches per object; with more, the object is open, as their properties would take quadratic space."""


_REQUIRING = CONDITIONS | {"dependentRequired", *CHOICES}


class Conditional(NamedTuple):
    """The properties that an object has only conditionally."""

    properties: dict[str, list[Any]]
    """By name, schemas of which one holds."""
    by_pattern: list[Any]
    """Schemas of properties described by patterns only."""
    too_many: bool = False
    """Any property may exist: there are too many overlapping branches."""


def conditional_properties(
    types: SchemaTypes, facts: list[dict[str, Any]], also: Sequence[Any], known: dict[str, list[Any]]
) -> Conditional:
    """Collects the properties that an object has only conditionally, within the budget.

    `also` are branches not taken that may hold as well; `known` are the properties to leave out.
    """
    found: dict[str, list[Any]] = {}
    by_pattern: list[Any] = []
    stack: list[tuple[Any, bool]] = []
    for part in also:
        if not are_disjoint(types, facts, types.schemas.flatten([part]).facts):
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
            if fact is UNRESOLVED or (is_explicit and _evaluates_others(fact)):  # it may list any
                by_pattern.append(True)
            statement = extra_statement(fact, types.reporter)
            if statement is not None and not statement.is_complete:
                by_pattern += [True] if is_question else statement.schemas
            properties = fact.get("properties")
            for name, schema in properties.items() if is_object(properties) else ():
                if name not in known:
                    # A property need not satisfy the condition.
                    found.setdefault(name, []).append(True if is_question else schema)
    return Conditional(found, by_pattern)


def _evaluates_others(fact: dict[str, Any]) -> bool:
    """Returns whether a fact admits unlisted properties, so that an outer `unevaluatedProperties` does, too."""
    others = ("additionalProperties", "unevaluatedProperties")
    return any(keyword in fact and not admits_nothing(fact[keyword]) for keyword in others)


def conditionally_required(types: SchemaTypes, facts: list[dict[str, Any]]) -> list[str]:
    """Returns the names required only by a condition or a choice between remarks, within the budget.

    These could not hold without such properties.
    """
    names: dict[str, None] = {}
    stack: list[Any] = []
    for fact in facts:
        if not _REQUIRING.isdisjoint(fact):
            names.update(_names_in_remarks(fact))
            stack += [part for part, _ in _conditions(fact)]
    seen: set[int] = set()
    while stack and types.budget.visit():
        part = stack.pop()
        if not is_object(part) or id(part) in seen:
            continue
        seen.add(id(part))
        whole = types.schemas.flatten([part])
        stack += [branch for choice in whole.choices for branch in choice.branches]
        for fact in whole.annotated:  # a list of mere remarks is no fact
            names.update(dict.fromkeys(required_names(fact, types.reporter)))
            names.update(_names_in_remarks(fact))
            stack += [inner for inner, _ in _conditions(fact)]
    return list(names)


def _names_in_remarks(fact: dict[str, Any]) -> dict[str, None]:
    """Returns the names in `dependentRequired`, and in branches that only list required properties."""
    lists: list[Any] = []
    for keyword in ("dependentRequired", "dependencies"):
        dependent = fact.get(keyword)
        lists += dependent.values() if is_object(dependent) else ()
    for keyword in CHOICES:
        branches = fact.get(keyword)
        lists += [one.get("required") for one in branches if is_remark(one)] if is_list(branches) else ()
    return {name: None for names in lists if is_list(names) for name in names if isinstance(name, str)}


def _conditions(fact: dict[str, Any]) -> list[tuple[Any, bool]]:
    """Returns the conditional schemas of a fact, each with whether it is the condition (`if`) itself."""
    parts = [(fact[keyword], keyword == "if") for keyword in ("if", "then", "else") if keyword in fact]
    for keyword in ("dependentSchemas", "dependencies"):
        dependent = fact.get(keyword)
        if is_object(dependent):
            parts += [(schema, False) for schema in dependent.values() if not is_list(schema)]
    return parts


@dataclass(slots=True)
class _Plan:
    """An object before its properties have types."""

    known: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    """The schemas of each property, all of which hold."""
    conditional: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    """The schemas of conditional properties, one of which holds."""
    required: dict[str, None] = field(default_factory=dict[str, None])
    extra: list[Any] | None = None
    """The schemas of other properties, one of which holds; None if there are no others."""
    together: bool = False
    """Whether all of `extra` hold."""
    maybe: bool = False
    """Whether `extra` is from another branch, so that there may be properties that it does not describe."""


def object_type(types: SchemaTypes, facts: list[dict[str, Any]], also: Sequence[Any], place: Location) -> TypeNode:
    """Declares an object with known properties, which are built later; otherwise returns a map.

    `never` if no object can satisfy the facts. `also` are branches not taken that may hold as well.
    """
    plan = _plan(types, facts, also, place)
    if plan is None:
        return NEVER
    if not plan.known and not plan.conditional and plan.extra is not None:
        return MapType(_extra_type(types, plan, place))
    draft = types.declare(place, OBJECT)
    types.later(lambda: _complete_draft(types, draft, plan, place))
    return NamedType(draft.key)


def _plan(types: SchemaTypes, facts: list[dict[str, Any]], also: Sequence[Any], place: Location) -> _Plan | None:
    """Plans an object's properties, and reports contradictions; None if no object can satisfy the facts."""
    plan = _Plan()
    statements: list[tuple[dict[str, Any], ExtraStatement]] = []
    for fact in facts:
        if "properties" in fact:
            for name, schema in member_map(fact, "properties", types.reporter).items():
                plan.known.setdefault(name, []).append(schema)
                if requires_itself(schema):
                    plan.required[name] = None
        if "required" in fact:
            plan.required.update(dict.fromkeys(required_names(fact, types.reporter)))
        statement = extra_statement(fact, types.reporter)
        if statement is not None:
            statements.append((fact, statement))
    _decide_extra(plan, facts, [statement for _, statement in statements], is_literal=types.is_literal)
    for fact, statement in statements if len(facts) > 1 else ():
        _apply_to_others(types, plan, fact, statement, place=place)
    is_closed_by_rule = plan.extra is None and not statements
    if is_closed_by_rule:
        _add_conditional(types, plan, facts, also, place)
    _add_required(types, plan, place, is_closed=plan.extra is None and not is_closed_by_rule)
    _enforce_bounds(types, plan, place)
    for name, schemas in list(plan.known.items()):
        if any(map(admits_nothing, schemas)):
            if name in plan.required:
                return None
            if plan.extra is None:
                del plan.known[name]
    return plan


def _add_conditional(
    types: SchemaTypes, plan: _Plan, facts: list[dict[str, Any]], also: Sequence[Any], place: Location
) -> None:
    """Adds conditional properties to an object that would otherwise be closed, and reports undescribed ones.

    Mutates the plan.
    """
    plan.conditional, patterns, too_many = conditional_properties(types, facts, also, plan.known)
    if patterns:
        plan.extra, plan.maybe = patterns, True
    says_others = plan.extra is not None or any("unevaluatedProperties" in fact for fact in facts)
    for name in () if says_others else conditionally_required(types, facts):
        if name not in plan.known and name not in plan.conditional and name not in plan.required:
            plan.conditional[name] = [True]
            types.reporter.report_at(place.path, f"{name!r:.100} is required by a condition but not described")
    if too_many:
        message = f"more than {MOST_TOGETHER} other branches can hold at once: it may have any other property"
        types.reporter.report_at(place.path, message)


def _decide_extra(
    plan: _Plan, facts: list[dict[str, Any]], statements: list[ExtraStatement], *, is_literal: bool
) -> None:
    """Decides on unlisted properties, from all statements about them. Mutates the plan."""
    if not statements and any(fact is UNRESOLVED for fact in facts):
        plan.extra = [True]  # it may list others
        return
    if not statements:
        unevaluated = [fact["unevaluatedProperties"] for fact in facts if "unevaluatedProperties" in fact]
        is_closed = any(map(admits_nothing, unevaluated)) or (not is_literal and any(map(lists_properties, facts)))
        opening = [schema for schema in unevaluated if not admits_nothing(schema)]
        if is_literal and opening and any(not CONDITIONS.isdisjoint(fact) for fact in facts):
            opening = [True]  # it does not cover properties that a condition evaluates
        plan.extra = opening if opening else None if is_closed else [True]
        plan.together = bool(opening)
        return
    complete = [statement for statement in statements if statement.is_complete]
    single = [statement.schemas[0] for statement in complete if len(statement.schemas) == 1]
    if any(not statement.schemas for statement in statements):
        plan.extra = None
    elif single:
        plan.extra, plan.together = single, True
    elif complete:
        plan.extra = complete[0].schemas
    elif is_literal:
        plan.extra = [True]  # names that no pattern matches are unrestricted
    else:
        plan.extra = [schema for statement in statements for schema in statement.schemas]


def _apply_to_others(
    types: SchemaTypes, plan: _Plan, fact: dict[str, Any], statement: ExtraStatement, *, place: Location
) -> None:
    """Applies a fact's statement about unlisted properties to those that only other facts list.

    They get its schemas, or are dropped if it admits none; a required one is kept and reported. Mutates the plan.
    """
    if statement.by_pattern:
        return  # ReDoS guard: patterns from servers are never run
    own = fact.get("properties")
    for name in list(plan.known):
        if isinstance(own, dict) and name in own:
            continue
        if statement.schemas:
            plan.known[name] += [schema for schema in statement.schemas if schema is not True]
        elif name in plan.required:
            types.reporter.report_at(place.path, f"{name!r:.100} is required by one part and excluded by another")
        else:
            del plan.known[name]


def _add_required(types: SchemaTypes, plan: _Plan, place: Location, *, is_closed: bool) -> None:
    """Adds required properties without a schema: of the type of unlisted ones, or unknown.

    Reports those not described or excluded. Mutates the plan.
    """
    for name in plan.required:
        if name in plan.known:
            continue
        if len(plan.known) > types.bounds.properties:
            break
        if is_closed:
            types.reporter.report_at(f"{place.path}/required", f"{name!r:.100} is required and excluded")
        elif name in plan.conditional:
            continue
        elif plan.extra is None:
            plan.known[name] = [True]
            types.reporter.report_at(f"{place.path}/required", f"{name!r:.100} is required but not described")
        else:
            is_sure = not plan.maybe and (plan.together or len(plan.extra) == 1)
            plan.known[name] = list(plan.extra) if is_sure else [True]
            if not is_sure and not any(schema is True for schema in plan.extra):
                message = f"which of several schemas describes {name!r:.100} is not known: unknown"
                types.reporter.report_at(f"{place.path}/required", message)


def _enforce_bounds(types: SchemaTypes, plan: _Plan, place: Location) -> None:
    """Drops properties beyond the bounds, with a diagnostic; the object is then open. Mutates the plan."""
    most, longest = types.bounds.properties, types.bounds.name
    names = [*plan.known, *plan.conditional]
    if len(names) <= most and max(map(len, names), default=0) <= longest:
        return
    left_out = [name for name in names if len(name) > longest]
    left_out += [name for name in names if len(name) <= longest][most:]
    types.reporter.report_at(place.path, f"{len(left_out)} properties are left out: too many, or their names too long")
    for name in left_out:
        plan.known.pop(name, None)
        plan.conditional.pop(name, None)
    plan.extra, plan.together = [True], False


def _complete_draft(types: SchemaTypes, draft: Draft, plan: _Plan, place: Location) -> None:
    """Builds the types of an object's properties, and completes its draft.

    Once the budget is exhausted, drops the others with a diagnostic, and the object is open.
    """
    properties: list[Property] = []
    extra: TypeNode | None = None
    for name, schemas in plan.known.items():
        if not types.budget.visit() or not types.budget.write(len(name) + 16):
            types.reporter.report_at(place.path, f"{types.budget.exhausted}: some properties are left out")
            plan.extra, plan.together = [True], False
            break
        built = types.build_plain(schemas) or types.build(schemas, place.member("properties", name))
        is_required = name in plan.required
        docs = types.described(built, name=name, is_required=is_required)
        properties.append(Property(name, built.type, is_required, docs))
    else:
        for name, schemas in plan.conditional.items():
            inner = place.member("properties", name)
            kind = union_of([types.build((schema,), inner).type for schema in schemas])
            properties.append(Property(name, kind, name in plan.required))
    if plan.extra is not None:
        extra = _extra_type(types, plan, place)
    draft.type = ObjectType(tuple(properties), extra)


def _extra_type(types: SchemaTypes, plan: _Plan, place: Location) -> TypeNode:
    """Builds the type of unlisted properties. Needs `plan.extra`."""
    assert plan.extra is not None
    inner = place.value()
    schemas = [schema for schema in plan.extra if schema is not True]
    if len(schemas) < len(plan.extra) and not plan.together:
        return UNKNOWN
    if not schemas:
        return UNKNOWN
    if plan.together:
        return types.build_inside(schemas, inner)
    return union_of([types.build_inside((schema,), inner) for schema in schemas])
