"""Objects and maps: properties, which of them are required, and what others there may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolbridge_codegen.conditional import MOST_TOGETHER, conditional_properties, required_sometimes
from toolbridge_codegen.drafts import Draft
from toolbridge_codegen.model import MapType, NamedType, ObjectType, Property, TypeNode
from toolbridge_codegen.normalize import (
    CONDITIONS,
    UNRESOLVED,
    ExtraStatement,
    admits_nothing,
    extra_statement,
    lists_properties,
    member_map,
    required_names,
    requires_itself,
)
from toolbridge_codegen.schema_kinds import OBJECT
from toolbridge_codegen.unions import NEVER, UNKNOWN, union_of

if TYPE_CHECKING:
    from toolbridge_codegen.places import Place
    from toolbridge_codegen.schema_types import SchemaTypes


@dataclass(slots=True)
class _Plan:
    """An object before its properties have types."""

    known: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    """All schemas that hold for each property."""
    conditional: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    """Properties that only a condition mentions: one of the schemas holds for each."""
    required: dict[str, None] = field(default_factory=dict[str, None])
    extra: list[Any] | None = None
    """One of these schemas holds for each other property; None if there are no others."""
    together: bool = False
    """All of `extra` hold, not one of it."""
    maybe: bool = False
    """There may be properties that `extra` says nothing of: it is another branch that says it."""


def object_type(types: SchemaTypes, facts: list[dict[str, Any]], also: Sequence[Any], place: Place) -> TypeNode:
    """An object with known properties as a declaration; without, a map."""
    plan = _plan(types, facts, also, place)
    if plan is None:
        return NEVER
    if not plan.known and not plan.conditional and plan.extra is not None:
        return MapType(_extra_type(types, plan, place))
    draft = types.declare(place, OBJECT)
    types.later(lambda: _fill(types, draft, plan, place))
    return NamedType(draft.key)


def _plan(types: SchemaTypes, facts: list[dict[str, Any]], also: Sequence[Any], place: Place) -> _Plan | None:
    """What is known of an object's properties; None if no object can satisfy it."""
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
    _settle_extra(plan, facts, [statement for _, statement in statements], is_literal=types.is_literal)
    for fact, statement in statements if len(facts) > 1 else ():
        _apply_to_others(types, plan, fact, statement, place=place)
    is_closed_by_rule = plan.extra is None and not statements
    if is_closed_by_rule:
        _add_conditional(types, plan, facts, also, place)
    _add_required(types, plan, place, is_closed=plan.extra is None and not is_closed_by_rule)
    _bound(types, plan, place)
    for name, schemas in list(plan.known.items()):
        if any(map(admits_nothing, schemas)):
            if name in plan.required:
                return None
            if plan.extra is None:
                del plan.known[name]
    return plan


def _add_conditional(
    types: SchemaTypes, plan: _Plan, facts: list[dict[str, Any]], also: Sequence[Any], place: Place
) -> None:
    """What may hold as well adds to an object that would be closed without it."""
    plan.conditional, patterns, too_many = conditional_properties(types, facts, also, plan.known)
    if patterns:
        plan.extra, plan.maybe = patterns, True
    says_others = plan.extra is not None or any("unevaluatedProperties" in fact for fact in facts)
    for name in () if says_others else required_sometimes(types, facts):
        if name not in plan.known and name not in plan.conditional and name not in plan.required:
            plan.conditional[name] = [True]
            types.reporter.report_at(place.path, f"{name!r:.100} is required by a condition but not described")
    if too_many:
        message = f"more than {MOST_TOGETHER} other branches can hold at once: it may have any other property"
        types.reporter.report_at(place.path, message)


def _settle_extra(
    plan: _Plan, facts: list[dict[str, Any]], statements: list[ExtraStatement], *, is_literal: bool
) -> None:
    """What holds for properties that aren't listed, by all that is said of them."""
    if not statements and any(fact is UNRESOLVED for fact in facts):
        plan.extra = [True]  # what it means may list others
        return
    if not statements:
        unevaluated = [fact["unevaluatedProperties"] for fact in facts if "unevaluatedProperties" in fact]
        is_closed = any(map(admits_nothing, unevaluated)) or (not is_literal and any(map(lists_properties, facts)))
        opening = [schema for schema in unevaluated if not admits_nothing(schema)]
        if is_literal and opening and any(not CONDITIONS.isdisjoint(fact) for fact in facts):
            opening = [True]  # what a condition evaluates is not what this is about
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
        plan.extra = [True]  # whatever no pattern matches may be anything
    else:
        plan.extra = [schema for statement in statements for schema in statement.schemas]


def _apply_to_others(
    types: SchemaTypes, plan: _Plan, fact: dict[str, Any], statement: ExtraStatement, *, place: Place
) -> None:
    """What one fact says of its extra properties holds for the properties that only other facts list."""
    if statement.by_pattern:
        return  # which names a pattern matches isn't asked: foreign patterns are never run
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


def _add_required(types: SchemaTypes, plan: _Plan, place: Place, *, is_closed: bool) -> None:
    """A required property that isn't listed is one of the others, or unknown."""
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


def _bound(types: SchemaTypes, plan: _Plan, place: Place) -> None:
    """Not more properties than are useful; with any left out, there may be others."""
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


def _fill(types: SchemaTypes, draft: Draft, plan: _Plan, place: Place) -> None:
    """Make the types of an object's properties."""
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


def _extra_type(types: SchemaTypes, plan: _Plan, place: Place) -> TypeNode:
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
