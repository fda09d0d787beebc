"""Conjunctions: all schemas that hold in one place, through references, `allOf` and choices.

Each `anyOf` and `oneOf` is a choice. Expanded, the choices give alternatives, each a set of schemas ("facts") that is
merged into one type. Nothing is copied: a fact is the server's own object, compared by identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from toolbridge_codegen.escaping import is_list, is_object
from toolbridge_codegen.model import Reporter
from toolbridge_codegen.read.kinds import ANY_KIND, OBJECT, Bounds, Budget
from toolbridge_codegen.read.normalize import (
    CHOICES,
    CONSTRAINTS,
    UNRESOLVED,
    admits_nothing,
    check_references,
    declared_kinds,
    is_nullable,
    is_remark,
    member_list,
    requires_itself,
)
from toolbridge_codegen.read.refs import REFERENCES, Document, RefusedReferenceError, Target, reference_of

if TYPE_CHECKING:
    from toolbridge_codegen.derive.types import SchemaTypes


_NULL = {"type": "null"}
_NULLABLE = frozenset({"nullable", "x-nullable"})
_COMPOSING = REFERENCES | {"allOf", *CHOICES}
_COPIED_AT_ONCE = 64
"""Choices and branches copied into an alternative for one step of the budget."""


class Choice(NamedTuple):
    """At least one of these branches holds; with `exclusive`, exactly one."""

    branches: list[Any]
    exclusive: bool
    holder: dict[str, Any]
    keyword: str


class Conjunction(NamedTuple):
    """The schemas that hold in one place."""

    facts: list[dict[str, Any]]
    """Schemas with keywords that a type depends on."""
    choices: list[Choice]
    annotated: list[dict[str, Any]]
    """All schemas, for descriptions and remarks, nearest first."""
    impossible: bool
    complete: bool
    """False if a bound was exceeded: then nothing may be concluded."""


class Alternative(NamedTuple):
    """Facts that hold together, and branches not taken that may hold as well."""

    facts: list[dict[str, Any]]
    also: list[Any]


class Conjunctions:
    """Flattens the schemas of one document into conjunctions."""

    def __init__(self, document: Document, path: str, budget: Budget, bounds: Bounds, reporter: Reporter) -> None:
        self._document = document
        self._path = path
        self._budget = budget
        self._bounds = bounds
        self._reporter = reporter
        self._ignores_siblings = document.ignores_siblings
        self._known: dict[int, Conjunction] = {}
        self._not_nullable: dict[int, dict[str, Any]] = {}

    def target(self, schema: dict[str, Any], reference: str) -> Target | None:
        """Resolves a schema's reference, and records the path of its target.

        None, with a diagnostic, if that fails.
        """
        try:
            target = self._document.resolve(reference, schema)
        except RefusedReferenceError as error:
            self._reporter.report(schema, "$ref", f"the reference {reference!r:.100} {error}")
            return None
        pointer = self._path + target.pointer if target.pointer or target.schema is self._document.root else ""
        if pointer:
            self._reporter.locate(target.schema, pointer)
        else:
            self._reporter.locate_inside(schema, target.schema, "/$ref")
        return target

    def kinds_by_type(self, schema: dict[str, Any]) -> int:
        """Returns the kinds that a schema's own `type` admits; all if its reference hides it."""
        return ANY_KIND if self.siblings_ignored(schema) else declared_kinds(schema, self._reporter)

    def siblings_ignored(self, schema: dict[str, Any]) -> bool:
        """Returns whether the schema has a `$ref` beside which its draft ignores keywords."""
        return self._ignores_siblings and isinstance(schema.get("$ref"), str)

    def flatten(self, schemas: Sequence[Any]) -> Conjunction:
        """Returns all schemas that hold where these do, with choices not expanded; cached for a single schema.

        Spends the budget; `complete` is false once it is exhausted.
        """
        if len(schemas) != 1:
            return self._flatten_all(schemas)
        # A branch is part of many alternatives.
        known = self._known.get(id(schemas[0]))
        if known is None:
            known = self._flatten_plain(schemas[0]) or self._flatten_all(schemas)
            self._known[id(schemas[0])] = known
        return known

    def _flatten_plain(self, schema: Any) -> Conjunction | None:
        """Fast path: returns the conjunction of a schema without references, `allOf`, `not` and choices.

        None for others, and once the budget is exhausted.
        """
        if not is_object(schema) or not _COMPOSING.isdisjoint(schema) or "not" in schema or not self._budget.visit():
            return None
        facts = [] if CONSTRAINTS.isdisjoint(schema) else [schema]
        return Conjunction(facts, [], [schema], impossible=False, complete=True)

    def _flatten_all(self, schemas: Sequence[Any]) -> Conjunction:
        """Collects the facts, choices and annotations of schemas through references and `allOf`; not cached."""
        facts: list[dict[str, Any]] = []
        choices: list[Choice] = []
        annotated: list[dict[str, Any]] = []
        seen: set[int] = set()
        met_again = False
        stack: list[Any] = list(reversed(schemas))
        while stack:
            schema = stack.pop()
            if admits_nothing(schema):
                return Conjunction([], [], annotated, impossible=True, complete=True)
            if schema is True or id(schema) in seen:
                met_again = met_again or (is_object(schema) and not _COMPOSING.isdisjoint(schema))
                continue
            if not self._budget.visit():
                return Conjunction(facts, choices, annotated, impossible=False, complete=False)
            if not is_object(schema):
                self._reporter.report(schema, "", "a schema is an object or a boolean")
                continue
            seen.add(id(schema))
            check_references(schema, self._reporter)
            if is_nullable(schema) and not _COMPOSING.isdisjoint(schema):
                choices.append(Choice([_NULL, self._without_nullable(schema)], False, schema, "nullable"))
                continue
            annotated.append(schema)
            target = self._target_or_fact(schema, facts)
            if self.siblings_ignored(schema):
                self._report_ignored(schema)
                stack += [target.schema] if target else []
                continue
            if not CONSTRAINTS.isdisjoint(schema):
                facts.append(schema)
            choices += self._choices(schema)
            if "allOf" in schema:
                stack += reversed(self._members(schema, "allOf"))
            if target is not None:
                stack.append(target.schema)
        whole = Conjunction(facts, choices, annotated, impossible=False, complete=True)
        self._report_circle(schemas, whole, met_again=met_again)
        return whole

    def _target_or_fact(self, schema: dict[str, Any], facts: list[dict[str, Any]]) -> Target | None:
        """Resolves a schema's reference; None without one, or if that fails.

        Adds `UNRESOLVED` to `facts` if it fails: the reference may describe anything.
        """
        reference = reference_of(schema)
        target = None if reference is None else self.target(schema, reference)
        if reference is not None and target is None:
            facts.append(UNRESOLVED)
        return target

    def _report_circle(self, schemas: Sequence[Any], whole: Conjunction, *, met_again: bool) -> None:
        """Reports references that only led back to themselves, without a fact or a choice."""
        if met_again and not whole.facts and not whole.choices:
            self._reporter.report(schemas[0], "", "the references lead back to themselves: unknown")

    def _without_nullable(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Returns a copy of the schema without `nullable`: the branch for values other than null. Cached."""
        plain = self._not_nullable.get(id(schema))
        if plain is None:
            plain = {keyword: value for keyword, value in schema.items() if keyword not in _NULLABLE}
            self._not_nullable[id(schema)] = plain
            self._document.alias(plain, schema)
            self._reporter.locate(plain, self._reporter.path_of(schema))
        return plain

    def _report_ignored(self, schema: dict[str, Any]) -> None:
        """Reports keywords that matter but are ignored beside `$ref`."""
        if not CONSTRAINTS.isdisjoint(schema) or "allOf" in schema or not schema.keys().isdisjoint(CHOICES):
            self._reporter.report(schema, "$ref", "keywords beside '$ref' mean nothing up to draft 7")

    def _choices(self, schema: dict[str, Any]) -> list[Choice]:
        """Returns a schema's `anyOf` and `oneOf`, without those whose branches are all remarks."""
        choices: list[Choice] = []
        for keyword in CHOICES:
            if keyword in schema:
                branches = self._members(schema, keyword)
                # A choice between remarks is itself a remark.
                if branches and not all(is_remark(branch) for branch in branches):
                    choices.append(Choice(branches, keyword == "oneOf", schema, keyword))
        return choices

    def _members(self, schema: dict[str, Any], keyword: str) -> list[Any]:
        """Returns the schemas that a keyword lists, and records their paths; reports what is no list."""
        members = member_list(schema, keyword, self._reporter)
        for index, member in enumerate(members[: self._bounds.nodes]):
            self._reporter.locate_inside(schema, member, f"/{keyword}/{index}")
        return members

    def alternatives(self, whole: Conjunction) -> list[Alternative] | None:
        """Expands the choices of a conjunction, without duplicates and impossible alternatives.

        None if there are too many, or the budget is exhausted.
        """
        found: list[Alternative] = []
        known: set[tuple[frozenset[int], frozenset[int]]] = set()
        only_itself: Choice | None = None
        # By choice made: the choices that its branch depends on.
        stack = [(whole.facts, whole.choices, list[Any](), dict[int, frozenset[int]]())]
        while stack:
            facts, choices, also, taken = stack.pop()
            if not choices:
                key = (frozenset(map(id, facts)), frozenset(map(id, also)))
                if key not in known:
                    known.add(key)
                    found.append(Alternative(facts, also))
                if len(found) > self._bounds.union:
                    return None
                continue
            choice, others = choices[0], choices[1:]
            if len(choice.branches) > self._bounds.literals:
                return None
            # A choice already made, or still pending, adds nothing: repeated on each way to it, it would double
            # with every level.
            asked = {id(choice.branches), *taken, *(id(one.branches) for one in others)}
            for index in range(len(choice.branches) - 1, -1, -1):
                branch = choice.branches[index]
                part = self.flatten([branch])
                # Copies below are counted, too: many large alternatives take memory.
                copied = (len(also) + len(asked) + len(choice.branches) + len(part.choices)) // _COPIED_AT_ONCE
                if not part.complete or not self._budget.visit(1 + len(facts) // 8 + copied):
                    return None
                if part.impossible:
                    continue
                needs = frozenset(id(one.branches) for one in part.choices)
                if self._is_circular(needs, id(choice.branches), taken):
                    # A branch that holds only if it holds adds nothing to the other branches.
                    only_itself = choice
                    continue
                own = set(map(id, facts))
                more = [fact for fact in part.facts if id(fact) not in own]
                inner = [one for one in part.choices if id(one.branches) not in asked]
                rest = [] if choice.exclusive else choice.branches[:index] + choice.branches[index + 1 :]
                made = {**taken, id(choice.branches): needs}
                stack.append(([*facts, *more], [*others, *inner], [*also, *rest], made))
        if not found and only_itself is not None:
            self._reporter.report(only_itself.holder, only_itself.keyword, "a choice only of itself: unknown")
            return [Alternative(whole.facts, [])]
        return found

    def _is_circular(self, needs: frozenset[int], choice: int, taken: Mapping[int, frozenset[int]]) -> bool:
        """Returns whether a branch depends on its own choice, through the branches taken.

        `needs` are the choices within the branch, `taken` those of each branch taken; all by identity.
        """
        waiting, seen = list(needs), set(needs)
        while waiting:
            one = waiting.pop()
            if one == choice:
                return True
            more = taken.get(one, frozenset()) - seen
            seen |= more
            waiting += more
        self._budget.visit(len(seen) // _COPIED_AT_ONCE)
        return False


# Overlapping branches of an `anyOf`: an object may satisfy several, and then has the properties of all of them, which
# a union of closed objects would refuse. Branches with a discriminator (a required property with other constants, or
# of another type) never overlap.

Facts = Sequence[dict[str, Any]]


def has_overlap(types: SchemaTypes, choice: Choice) -> bool:
    """Returns whether an object may satisfy two branches of a choice that list different properties.

    False for `oneOf`, for too many branches, and once the budget is exhausted.
    """
    if choice.exclusive or len(choice.branches) > types.bounds.literals:
        return False
    listing: list[tuple[Facts, set[str]]] = []
    for branch in choice.branches:
        whole = types.schemas.flatten([branch])
        names = _listed_names(whole.facts)
        if whole.choices and _can_be_object(types, whole.facts):
            names |= {"", *(name for inner in whole.choices for name in _listed_names(inner.branches))}
        if names:
            listing.append((whole.facts, names))
    for index, (facts, names) in enumerate(listing):
        for others, other_names in listing[:index]:
            if not types.budget.visit():
                return False
            if names != other_names and not are_disjoint(types, facts, others):
                return True
    return False


def are_disjoint(types: SchemaTypes, one: Facts, other: Facts) -> bool:
    """Returns whether surely no object satisfies both, by a discriminator or by their types."""
    if not (_can_be_object(types, one) and _can_be_object(types, other)):
        return True
    first, second = _required_schemas(one), _required_schemas(other)
    return any(
        _are_values_disjoint(types, schema, opposite)
        for name, schemas in first.items()
        for schema in schemas
        for opposite in second.get(name, ())
    )


def _can_be_object(types: SchemaTypes, facts: Facts) -> bool:
    return all(declared_kinds(fact, types.reporter) & OBJECT for fact in facts)


def _listed_names(facts: Sequence[Any]) -> set[str]:
    """Returns the names, and patterns of names, that schemas list, each after its keyword."""
    names: set[str] = set()
    for fact in facts:
        for keyword in ("properties", "patternProperties"):
            members = fact.get(keyword) if is_object(fact) else None
            if is_object(members):
                names.update(f"{keyword} {name}" for name in members)
    return names


def _required_schemas(facts: Facts) -> dict[str, list[dict[str, Any]]]:
    """Returns the schemas of required properties, by name."""
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


def _are_values_disjoint(types: SchemaTypes, one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Returns whether surely no value satisfies both schemas, by their types or constants."""
    if not declared_kinds(one, types.reporter) & declared_kinds(other, types.reporter):
        return True
    first, second = _constants(one), _constants(other)
    return first is not None and second is not None and first.isdisjoint(second)


def _constants(schema: dict[str, Any]) -> set[tuple[bool, str | float | None]] | None:
    """Returns the only values that a schema admits, each with whether it is a boolean.

    None if there are others, or lists and objects among them.
    """
    listed: Any = [schema["const"]] if "const" in schema else schema.get("enum")
    if not is_list(listed) or not all(value is None or isinstance(value, str | int | float) for value in listed):
        return None
    return {(isinstance(value, bool), value) for value in listed}
