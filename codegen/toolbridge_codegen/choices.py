"""Choices: `anyOf` and `oneOf` as unions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolbridge_codegen.conjunction import Conjunction
from toolbridge_codegen.model import LiteralType, TypeNode, UnionType
from toolbridge_codegen.normalize import CONSTRAINTS
from toolbridge_codegen.overlaps import has_overlap
from toolbridge_codegen.places import Built, Place
from toolbridge_codegen.unions import UNKNOWN, kinds_of, restricted, union_of
from toolbridge_codegen.variants import said_by_branches, variant_names

if TYPE_CHECKING:
    from toolbridge_codegen.schema_types import SchemaTypes


def is_plain_choice(types: SchemaTypes, whole: Conjunction) -> bool:
    """A choice that stands alone, or beside a mere `type`, between branches that don't hold together."""
    is_alone = len(whole.choices) == 1 and all(_says_only_type(fact) for fact in whole.facts)
    return is_alone and not has_overlap(types, whole.choices[0])


def _says_only_type(fact: dict[str, Any]) -> bool:
    return CONSTRAINTS.intersection(fact) <= {"type"}


def choice_type(types: SchemaTypes, whole: Conjunction, place: Place) -> Built:
    """A plain choice is the union of its branches, each of which may have a name and a definition of its own."""
    choice = whole.choices[0]
    base = types.merged(whole.facts, (), place) if whole.facts else UNKNOWN
    if len(choice.branches) > types.bounds.literals:
        message = f"more than {types.bounds.literals} branches: unknown"
        types.reporter.report(choice.holder, choice.keyword, message)
        return Built(base, tuple(whole.annotated))
    names = variant_names([(branch,) for branch in choice.branches], place.name)
    built = [
        types.build((branch,), Place(f"{place.path}/{choice.keyword}/{index}", names[index], place.depth + 1))
        for index, branch in enumerate(choice.branches)
    ]
    kinds = kinds_of(base, types.drafts.kinds_of_name)
    members = [restricted(one.type, kinds, types.drafts.kinds_of_name) for one in built]
    said = said_by_branches(choice.branches, built)
    union = bounded_union(types, members, choice.holder)
    return Built(union, (*whole.annotated, *said.annotated), said.notes)


def multiplied_type(types: SchemaTypes, whole: Conjunction, place: Place) -> Built:
    """Choices beside properties, or several choices: each alternative, with what stands beside it, is a type."""
    annotated = tuple(whole.annotated)
    alternatives = types.schemas.alternatives(whole)
    if alternatives is None:
        types.reporter.report_at(place.path, f"{types.budget.exhausted or 'too many alternatives'}: unknown")
        # Without its choices nothing is known of an object's properties: only the kind of value is left.
        return Built(types.merged([fact for fact in whole.facts if _says_only_type(fact)], (), place), annotated)
    names = variant_names([one.facts[len(whole.facts) :] for one in alternatives], place.name)
    members = [
        types.merged(one.facts, one.also, Place(place.path, names[index], place.depth + 1))
        for index, one in enumerate(alternatives)
    ]
    return Built(bounded_union(types, members, whole.annotated[0]), annotated)


def bounded_union(types: SchemaTypes, members: Sequence[TypeNode], holder: Any) -> TypeNode:
    """A union that isn't too wide to be read."""
    kinds_of_name = types.drafts.kinds_of_name
    union = union_of(members)
    parts = union.members if isinstance(union, UnionType) else (union,)
    if len(parts) > types.bounds.union:
        types.reporter.report(holder, "", f"a union of more than {types.bounds.union} types: unknown")
        return restricted(UNKNOWN, kinds_of(union, kinds_of_name), kinds_of_name)
    for part in parts:
        if isinstance(part, LiteralType) and len(part.values) > types.bounds.literals:
            types.reporter.report(holder, "", f"more than {types.bounds.literals} constants: only their types are kept")
            wider = restricted(UNKNOWN, kinds_of(part, kinds_of_name), kinds_of_name)
            return union_of([wider if other is part else other for other in parts])
    return union
