"""Builds the types of a schema document.

From the outside in: an object becomes a declaration, whose properties are filled in later from a queue. So recursive
and deep schemas don't recurse in Python, and each schema is built once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from toolbridge_codegen.catalog import Reading
from toolbridge_codegen.derive.conjunction import Conjunction, Conjunctions, has_overlap
from toolbridge_codegen.derive.declarations import Draft, Drafts, is_larger
from toolbridge_codegen.derive.names import pascal_case, singular, variant_names
from toolbridge_codegen.derive.objects import array_type, object_type
from toolbridge_codegen.derive.unions import (
    NEVER,
    SCALARS,
    UNKNOWN,
    allowed_constants,
    kinds_of,
    restricted,
    scalars_of,
    union_of,
)
from toolbridge_codegen.escaping import brief_json, clean_line, is_list, is_object
from toolbridge_codegen.model import Docs, LiteralType, MapType, NamedType, Reporter, TypeNode, UnionType, escape_token
from toolbridge_codegen.read.kinds import ANY_KIND, ARRAY, OBJECT, Bounds, Budget
from toolbridge_codegen.read.normalize import (
    CONSTRAINTS,
    NOT_PLAIN,
    admits_nothing,
    declared_kinds,
    inferred_kinds,
    is_nullable,
)
from toolbridge_codegen.read.notes import NO_DOCS, constant_notes, docs_of, text_of
from toolbridge_codegen.read.refs import Document, reference_of

# Locations in a schema.


class Location(NamedTuple):
    """A position in a schema where a type is needed."""

    path: str
    """JSON Pointer into the tool's definition."""
    name: str
    """The name of an object declared here."""
    depth: int
    """Levels of nesting since the last definition."""
    definition: str = ""
    """The name of the definition, if it is the whole of this place."""

    def item(self, step: str) -> Location:
        """The location of an array's items."""
        return Location(self.path + step, singular(self.name), self.depth + 1)

    def value(self) -> Location:
        """The location of an object's other properties."""
        return Location(f"{self.path}/additionalProperties", f"{self.name}Value", self.depth + 1)

    def member(self, keyword: str, name: str) -> Location:
        """Returns the location of a property's schema under a keyword."""
        return Location(
            f"{self.path}/{keyword}/{escape_token(name)}", self.name + (pascal_case(name) or "Field"), self.depth + 1
        )


class Built(NamedTuple):
    """A type, with the schemas and notes that describe its place."""

    type: TypeNode
    annotated: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


# Descriptions of a choice's branches.

_LONGEST_MEANING = 200
_LONGEST_LABEL = 60
_MOST_MEANINGS = 50


def docs_of_branches(branches: Sequence[Any], built: Sequence[Built]) -> Built:
    """Returns what documents a choice's branches: all of a single non-null one, else notes. Its type means nothing."""
    real = [one for one in built if one.type not in (SCALARS["null"], NEVER)]
    if len(real) == 1:
        return real[0]
    meanings = [_meaning(branch) for branch in branches[:_MOST_MEANINGS] if is_object(branch)]
    return Built(SCALARS["null"], (), tuple(meaning for meaning in meanings if meaning))


def _meaning(branch: dict[str, Any]) -> str:
    """Returns a branch's note, `"asc": oldest first`: its constant, title or type, then its description.

    Without a description, the title or the constants stand in; empty without these, too.
    """
    title = clean_line(text_of(branch, "title"), limit=_LONGEST_LABEL)
    text = text_of(branch, "description")
    if isinstance(branch.get("const"), str | int | float):
        label = brief_json(branch["const"], _LONGEST_LABEL)
        text = text or (title if title != branch["const"] else "")
    else:
        text = text or "; ".join(constant_notes(branch))
        declared = branch.get("type")
        label = title or (clean_line(declared, limit=_LONGEST_LABEL) if isinstance(declared, str) else "")
    return clean_line(f"{label}: {text}" if label else text, limit=_LONGEST_MEANING) if text else ""


# Choices: `anyOf` and `oneOf` as unions.


def is_plain_choice(types: SchemaTypes, whole: Conjunction) -> bool:
    """Returns whether the choice is the only one, beside at most `type`, and its branches don't overlap."""
    is_alone = len(whole.choices) == 1 and all(_has_only_type(fact) for fact in whole.facts)
    return is_alone and not has_overlap(types, whole.choices[0])


def _has_only_type(fact: dict[str, Any]) -> bool:
    return CONSTRAINTS.intersection(fact) <= {"type"}


def choice_type(types: SchemaTypes, whole: Conjunction, place: Location) -> Built:
    """Builds a plain choice as the union of its branches, each named. Too many are reported, and ignored."""
    choice = whole.choices[0]
    base = merged_type(types, whole.facts, (), place) if whole.facts else UNKNOWN
    if len(choice.branches) > types.bounds.literals:
        message = f"more than {types.bounds.literals} branches: unknown"
        types.reporter.report(choice.holder, choice.keyword, message)
        return Built(base, tuple(whole.annotated))
    names = variant_names([(branch,) for branch in choice.branches], place.name)
    built = [
        types.build((branch,), Location(f"{place.path}/{choice.keyword}/{index}", names[index], place.depth + 1))
        for index, branch in enumerate(choice.branches)
    ]
    kinds = kinds_of(base, types.drafts.kinds_of_name)
    members = [restricted(one.type, kinds, types.drafts.kinds_of_name) for one in built]
    said = docs_of_branches(choice.branches, built)
    union = bounded_union(types, members, choice.holder)
    return Built(union, (*whole.annotated, *said.annotated), said.notes)


def multiplied_type(types: SchemaTypes, whole: Conjunction, place: Location) -> Built:
    """Builds several choices, or one beside properties, expanded into a union. Too many are reported: unknown."""
    annotated = tuple(whole.annotated)
    alternatives = types.schemas.alternatives(whole)
    if alternatives is None:
        types.reporter.report_at(place.path, f"{types.budget.exhausted or 'too many alternatives'}: unknown")
        # Without its choices, an object's properties are unknown: only the kind of value remains.
        return Built(merged_type(types, [fact for fact in whole.facts if _has_only_type(fact)], (), place), annotated)
    names = variant_names([one.facts[len(whole.facts) :] for one in alternatives], place.name)
    members = [
        merged_type(types, one.facts, one.also, Location(place.path, names[index], place.depth + 1))
        for index, one in enumerate(alternatives)
    ]
    return Built(bounded_union(types, members, whole.annotated[0]), annotated)


def bounded_union(types: SchemaTypes, members: Sequence[TypeNode], holder: Any) -> TypeNode:
    """Builds a union; one beyond the bounds is reported, and unknown or its constants widened to their types."""
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


# Merged types: one type of facts that all hold.


def merged_type(types: SchemaTypes, facts: list[dict[str, Any]], also: Sequence[Any], place: Location) -> TypeNode:
    """Builds the type of values for which all facts hold.

    `also` are branches of overlapping choices that may hold as well: their properties become optional. Contradictory
    types are reported, and `never`.
    """
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
        # A schema that names every type means it; in the literal reading, so does one that names none.
        is_any = types.is_literal or any("type" in fact for fact in facts)
        kinds = kinds if is_any else inferred
        members = []
    else:
        members = []
    if kinds & ARRAY:
        members.append(array_type(types, facts, place))
    if kinds & OBJECT:
        # A constant object may have unlisted properties.
        is_constant = constants is not None
        members.append(MapType(UNKNOWN) if is_constant else object_type(types, facts, also, place))
    members += scalars_of(kinds)
    return members[0] if len(members) == 1 else union_of(members)


_UNKNOWN = Built(UNKNOWN)
_NOTHING = Built(NEVER)
_PLAIN_SCALARS: dict[str, TypeNode] = {**SCALARS}

_MOST_LEVELS = 24
"""Nested types built on Python's stack; deeper ones in arrays and maps are built later, by name."""
_MOST_CHOICES = 36
"""The same for nested choices, which can't have names: a mere alias of itself is no type."""

_LARGEST_INLINE = 64
"""The largest number of parts of an inline type."""

_Key: TypeAlias = int | frozenset[int]
"""The identity of the schemas that hold together in a place."""


@dataclass(slots=True, eq=False)
class _Construction:
    """A type under construction."""

    level: int
    inside: int
    """The number of arrays and maps around it."""
    draft: Draft | None = None
    """Its declaration, once it is found to be recursive."""


class ToolScope(NamedTuple):
    """State shared by the types of one tool."""

    identifier: str
    prefix: str
    """The beginning of its types' names."""
    reading: Reading
    drafts: Drafts
    budget: Budget
    bounds: Bounds
    reporter: Reporter


class SchemaTypes:
    """Builds the types of one schema document; `path` is its JSON Pointer in the tool's definition."""

    def __init__(self, root: Any, path: str, tool: ToolScope, *, is_result: bool) -> None:
        self.is_literal = tool.reading == "literal"
        """Whether schemas are read to the letter, without the rules of `normalize`."""
        self.bounds, self.budget, self.reporter, self.drafts = tool.bounds, tool.budget, tool.reporter, tool.drafts
        self.schemas = Conjunctions(Document(root), path, tool.budget, tool.bounds, tool.reporter)
        self._root = root
        self._path = path
        self._tool_prefix = tool.prefix
        self._is_result = is_result
        self._made: dict[_Key, Built] = {}
        self._making: dict[_Key, _Construction] = {}
        self._inside = 0
        self._partial_above = _MOST_CHOICES
        """Types under construction above this level are incomplete, and not cached."""
        self._bodies: deque[Callable[[], None]] = deque()

    # ---- for the module

    def make_root(self, name: str, part: tuple[Any, str] | None = None) -> Built:
        """Builds the type of the document, or of a part as `(schema, path)`, and all queued declarations."""
        schema, path = part or (self._root, "")
        built = self.build((schema,), Location(self._path + path, name, 0))
        while self._bodies:
            self._bodies.popleft()()
        return built

    def described(self, built: Built, *, name: str = "", is_required: bool = False) -> Docs:
        """Returns the documentation of a place; none, with a diagnostic, once the budget for comments is spent."""
        if self.budget.comments_full:
            return NO_DOCS
        docs = docs_of(built.annotated, built.notes, name=name, with_default=not is_required, is_result=self._is_result)
        if docs is NO_DOCS or self.budget.describe(len(docs.description) + sum(map(len, docs.notes)) + 8):
            return docs
        self.reporter.report_at("", "there is no room for all descriptions; some are left out")
        return NO_DOCS

    # ---- for the parts of a type

    def build(self, schemas: Sequence[Any], place: Location) -> Built:
        """Builds the type of values for which all schemas hold, or unknown with a diagnostic. Cached by identity."""
        if len(schemas) != 1:
            schemas = [schema for schema in schemas if schema is not True] or (True,)
        if len(schemas) != 1:
            for schema in schemas:
                self.reporter.locate(schema, place.path)
            return self._cached_type(frozenset(map(id, schemas)), schemas, place)
        plain = self.build_plain(schemas)
        if plain is not None:
            return plain
        schema = schemas[0]
        if not is_object(schema) or admits_nothing(schema):
            return self._boolean_schema(schema, place)
        if not schema:
            return _UNKNOWN
        self.reporter.locate(schema, place.path)
        if "allOf" in schema or reference_of(schema) is not None:
            return self._through_references(schema, place)
        return self._cached_type(id(schema), (schema,), place)

    def build_plain(self, schemas: Sequence[Any]) -> Built | None:
        """Fast path: builds a scalar type, which needs no name and so no location; None for others."""
        schema = schemas[0]
        if len(schemas) > 1 or not is_object(schema):
            return None
        declared = schema.get("type")
        scalar = _PLAIN_SCALARS.get(declared) if isinstance(declared, str) else None
        if scalar is None or not NOT_PLAIN.isdisjoint(schema) or ("not" in schema and admits_nothing(schema)):
            return None
        self.budget.visit()
        return Built(scalar, (schema,))

    def build_inside(self, schemas: Sequence[Any], place: Location) -> TypeNode:
        """Builds the type of items or values: inside an array or a map, a type may contain itself."""
        self._inside += 1
        built = self.build(schemas, place)
        self._inside -= 1
        return built.type

    def declare(self, place: Location, kinds: int) -> Draft:
        """Opens a draft for a location, named after its definition if it has one. Spends the budget for text."""
        self.budget.write(len(place.name) + 32)
        if not place.definition:
            return self.drafts.open(place.name, kinds, path=place.path)
        wanted = self._tool_prefix + place.definition
        return self.drafts.open(wanted, kinds, path=place.path, definition=place.definition)

    def later(self, body: Callable[[], None]) -> None:
        """Queues a declaration's body until the types around it are built."""
        self._bodies.append(body)

    def _boolean_schema(self, schema: Any, place: Location) -> Built:
        """Returns the type of a schema that admits all or nothing; any other value is reported, and unknown."""
        if admits_nothing(schema):
            return _NOTHING
        if schema is not True:
            self.reporter.report_at(place.path, "a schema is an object or a boolean: unknown")
        return _UNKNOWN

    # ---- references

    def _through_references(self, schema: dict[str, Any], place: Location) -> Built:
        """Follows schemas that only refer to another, and builds that. A circle is reported, and unknown."""
        wrappers: list[dict[str, Any]] = []
        seen: set[int] = set()
        kinds = ANY_KIND
        current: Any = schema
        while is_object(current):
            inner = self._sole_target(current, place)
            if inner is None:
                break
            if id(current) in seen:
                self.reporter.report(schema, "$ref", "the reference leads back to itself: unknown")
                return Built(restricted(UNKNOWN, kinds, self.drafts.kinds_of_name), tuple(wrappers))
            wrappers.append(current)
            seen.add(id(current))
            kinds &= self.schemas.kinds_by_type(current)
            current, place = inner
        built = self.build((current,), place) if wrappers else self._cached_type(id(current), (current,), place)
        kind = restricted(built.type, kinds, self.drafts.kinds_of_name)
        if any(map(is_nullable, wrappers)):
            kind = union_of([kind, SCALARS["null"]])
        if isinstance(built.type, NamedType) and self._describe_definition(built, place):
            return Built(kind, tuple(wrappers))
        return Built(kind, (*wrappers, *built.annotated), built.notes)

    def _sole_target(self, schema: dict[str, Any], place: Location) -> tuple[Any, Location] | None:
        """Returns the only schema that this one refers to, with its location; None if it says more than that.

        An unresolved reference gives the schema `true`. None, too, once the budget is exhausted.
        """
        if not self.budget.visit():
            return None
        reference = reference_of(schema)
        only_points = "anyOf" not in schema and "oneOf" not in schema and CONSTRAINTS.intersection(schema) <= {"type"}
        members = schema.get("allOf")
        if reference is None:
            if only_points and is_list(members) and len(members) == 1:
                self.reporter.locate(members[0], f"{place.path}/allOf/0")
                return members[0], place
            return None
        if not self.schemas.siblings_ignored(schema) and not (only_points and "allOf" not in schema):
            return None
        target = self.schemas.target(schema, reference)
        if target is None:
            return True, place
        definition = pascal_case(target.definition)
        path = self.reporter.path_of(target.schema)
        return target.schema, Location(path, definition or place.name, 0, definition)

    def _describe_definition(self, built: Built, place: Location) -> bool:
        """Puts a definition's description at its draft, once; False if the type is not that definition's draft."""
        assert isinstance(built.type, NamedType)
        draft = self.drafts.get(built.type.name)
        if not place.definition or draft.path != place.path:
            return False
        if draft.docs is NO_DOCS and (built.annotated or built.notes):
            draft.docs = self.described(built)
        return True

    # ---- one conjunction

    def _cached_type(self, key: _Key, schemas: Sequence[Any], place: Location) -> Built:  # noqa: PLR0911  # each a reason
        """Returns the type of schemas by identity: known, under construction, unknown beyond a bound, or built."""
        known = self._made.get(key)
        if known is not None:
            return known
        making = self._making.get(key)
        if making is not None:
            return self._recursive_type(making, place)
        if not self.budget.visit():
            self.reporter.report_at(place.path, f"{self.budget.exhausted}: this and what follows is unknown")
            return _UNKNOWN
        if place.depth > self.bounds.depth:
            self.reporter.report_at(place.path, f"nested more than {self.bounds.depth} levels deep: unknown")
            return _UNKNOWN
        if len(self._making) >= _MOST_CHOICES:
            self.reporter.report_at(place.path, "too many choices inside each other: unknown")
            return _UNKNOWN
        if len(self._making) >= _MOST_LEVELS and next(reversed(self._making.values())).inside < self._inside:
            return self._build_later(key, schemas, place)
        return self._build_now(key, schemas, place, _Construction(len(self._making), self._inside))

    def _build_now(self, key: _Key, schemas: Sequence[Any], place: Location, making: _Construction) -> Built:
        """Builds a type and caches it, unless incomplete; gives a recursive or large one a declaration."""
        self._making[key] = making
        built = self._build(schemas, place)
        del self._making[key]
        if self._partial_above == making.level:
            self._partial_above = _MOST_CHOICES
            if built.type is NEVER:
                self.reporter.report_at(place.path, "a choice only of itself: unknown")
                built = built._replace(type=UNKNOWN)
        if making.draft is None and is_larger(built.type, _LARGEST_INLINE):
            # Inline, it would grow with every level of references.
            making.draft = self.declare(place, ANY_KIND)
        if making.draft is not None:
            making.draft.type = built.type
            making.draft.kinds = kinds_of(built.type, self.drafts.kinds_of_name)
            built = built._replace(type=NamedType(making.draft.key))
        if self._partial_above > making.level:
            self._made[key] = built
        return built

    def _recursive_type(self, making: _Construction, place: Location) -> Built:
        """Returns a type that is still under construction: by name inside an array or a map of itself, else `never`."""
        if making.inside == self._inside:
            # A choice gains nothing from itself as a branch. But the types between are incomplete, and must not be
            # cached.
            self._partial_above = min(self._partial_above, making.level)
            return _NOTHING
        if making.draft is None:
            making.draft = self.declare(place, ANY_KIND)
        return Built(NamedType(making.draft.key))

    def _build_later(self, key: _Key, schemas: Sequence[Any], place: Location) -> Built:
        """Returns a type too deep for Python's stack: a declaration that is queued to be filled in."""
        draft = self.declare(place, ANY_KIND)
        self._made[key] = Built(NamedType(draft.key))

        def fill() -> None:
            del self._made[key]  # to detect whether it is a branch of itself
            self._build_now(key, schemas, place, _Construction(0, 0, draft))

        self.later(fill)
        return self._made[key]

    def _build(self, schemas: Sequence[Any], place: Location) -> Built:
        """Builds the type of schemas that all hold, without the cache: impossible, unknown, merged or a choice."""
        whole = self.schemas.flatten(schemas)
        if whole.impossible:
            return Built(NEVER, tuple(whole.annotated))
        if not whole.complete:
            self.reporter.report_at(place.path, f"{self.budget.exhausted}: this and what follows is unknown")
            return Built(UNKNOWN, tuple(whole.annotated))
        if not whole.choices:
            return Built(merged_type(self, whole.facts, (), place), tuple(whole.annotated))
        return choice_type(self, whole, place) if is_plain_choice(self, whole) else multiplied_type(self, whole, place)
