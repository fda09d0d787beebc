"""From the schemas of one document to types of the model.

Types are made from the outside in. An object becomes a declaration, whose properties are filled in later from a
queue: so neither recursive nor deeply nested schemas recurse in Python, and each schema is made into a type once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolbridge_codegen.bounds import Bounds, Budget
from toolbridge_codegen.catalog import Reading
from toolbridge_codegen.choices import choice_type, is_plain_choice, multiplied_type
from toolbridge_codegen.conjunction import Conjunctions
from toolbridge_codegen.diagnostics import Reporter
from toolbridge_codegen.drafts import Draft, Drafts, is_larger
from toolbridge_codegen.json_values import is_list, is_object
from toolbridge_codegen.merged_types import merged_type
from toolbridge_codegen.model import Docs, NamedType, TypeNode
from toolbridge_codegen.normalize import CONSTRAINTS, NOT_PLAIN, admits_nothing, is_nullable
from toolbridge_codegen.notes import NO_DOCS, docs_of
from toolbridge_codegen.places import Built, Place
from toolbridge_codegen.refs import Document, reference_of
from toolbridge_codegen.schema_kinds import ANY_KIND
from toolbridge_codegen.type_names import pascal_case
from toolbridge_codegen.unions import NEVER, SCALARS, UNKNOWN, kinds_of, restricted, union_of

_UNKNOWN = Built(UNKNOWN)
_NOTHING = Built(NEVER)
_PLAIN_SCALARS: dict[str, TypeNode] = {**SCALARS}

_MOST_LEVELS = 24
"""Types made inside each other, on Python's stack: what is deeper inside arrays and maps is made later, by name."""
_MOST_CHOICES = 36
"""The same for choices inside choices, which can't have names: a type that is only another name for itself is none."""

_LARGEST_INLINE = 64
"""Parts of a type that is written out where it is used."""

_Key: TypeAlias = int | frozenset[int]
"""The identity of the schemas that hold together in a place."""


@dataclass(slots=True, eq=False)
class _Making:
    """A type that is being made."""

    level: int
    inside: int
    """How many arrays and maps it is inside of."""
    draft: Draft | None = None
    """Its declaration, once it was met inside itself."""


class SchemaTypes:
    """Makes the types of one schema document."""

    def __init__(
        self,
        root: Any,
        path: str,
        *,
        tool_prefix: str,
        is_result: bool,
        reading: Reading,
        drafts: Drafts,
        budget: Budget,
        bounds: Bounds,
        reporter: Reporter,
    ) -> None:
        self.is_literal = reading == "literal"
        """Whether schemas are read to the letter: without the rules that `normalize` names."""
        self.bounds = bounds
        self.budget = budget
        self.reporter = reporter
        self.drafts = drafts
        self.schemas = Conjunctions(Document(root), path, budget, bounds, reporter)
        self._root = root
        self._path = path
        self._tool_prefix = tool_prefix
        self._is_result = is_result
        self._made: dict[_Key, Built] = {}
        self._making: dict[_Key, _Making] = {}
        self._inside = 0
        self._partial_above = _MOST_CHOICES
        """Of the types being made, those above this level are made of parts only."""
        self._bodies: deque[Callable[[], None]] = deque()

    # ---- for the module

    def make_root(self, name: str, part: tuple[Any, str] | None = None) -> Built:
        """The type of the whole document, or of a part of it at a path, with everything in it."""
        schema, path = part or (self._root, "")
        built = self.build((schema,), Place(self._path + path, name, 0))
        while self._bodies:
            self._bodies.popleft()()
        return built

    def described(self, built: Built, *, name: str = "", is_required: bool = False) -> Docs:
        """The documentation of a place, as far as there is room for it."""
        if self.budget.comments_full:
            return NO_DOCS
        docs = docs_of(built.annotated, built.notes, name=name, with_default=not is_required, is_result=self._is_result)
        if docs is NO_DOCS or self.budget.describe(len(docs.description) + sum(map(len, docs.notes)) + 8):
            return docs
        self.reporter.report_at("", "there is no room for all descriptions; some are left out")
        return NO_DOCS

    # ---- for the parts of a type

    def build(self, schemas: Sequence[Any], place: Place) -> Built:
        """The type of values for which all of these schemas hold."""
        if len(schemas) != 1:
            schemas = [schema for schema in schemas if schema is not True] or (True,)
        if len(schemas) != 1:
            for schema in schemas:
                self.reporter.locate(schema, place.path)
            return self._made_once(frozenset(map(id, schemas)), schemas, place)
        plain = self.build_plain(schemas)
        if plain is not None:
            return plain
        schema = schemas[0]
        if not is_object(schema) or admits_nothing(schema):
            return self._all_or_nothing(schema, place)
        if not schema:
            return _UNKNOWN
        self.reporter.locate(schema, place.path)
        if "allOf" in schema or reference_of(schema) is not None:
            return self._through_references(schema, place)
        return self._made_once(id(schema), (schema,), place)

    def build_plain(self, schemas: Sequence[Any]) -> Built | None:
        """The same if it is a scalar type, as most are: that has no name, so its place doesn't matter."""
        schema = schemas[0]
        if len(schemas) > 1 or not is_object(schema):
            return None
        declared = schema.get("type")
        scalar = _PLAIN_SCALARS.get(declared) if isinstance(declared, str) else None
        if scalar is None or not NOT_PLAIN.isdisjoint(schema) or ("not" in schema and admits_nothing(schema)):
            return None
        self.budget.visit()
        return Built(scalar, (schema,))

    def build_inside(self, schemas: Sequence[Any], place: Place) -> TypeNode:
        """The same for what is inside an array or a map: there, a type may contain itself."""
        self._inside += 1
        built = self.build(schemas, place)
        self._inside -= 1
        return built.type

    def merged(self, facts: list[dict[str, Any]], also: Sequence[Any], place: Place) -> TypeNode:
        """The type of values for which all facts hold."""
        return merged_type(self, facts, also, place)

    def declare(self, place: Place, kinds: int) -> Draft:
        """A declaration for what is at a place."""
        self.budget.write(len(place.name) + 32)
        if not place.definition:
            return self.drafts.open(place.name, kinds, path=place.path)
        wanted = self._tool_prefix + place.definition
        return self.drafts.open(wanted, kinds, path=place.path, definition=place.definition)

    def later(self, body: Callable[[], None]) -> None:
        """Fill in a declaration once the types around it are made."""
        self._bodies.append(body)

    def _all_or_nothing(self, schema: Any, place: Place) -> Built:
        if admits_nothing(schema):
            return _NOTHING
        if schema is not True:
            self.reporter.report_at(place.path, "a schema is an object or a boolean: unknown")
        return _UNKNOWN

    # ---- references

    def _through_references(self, schema: dict[str, Any], place: Place) -> Built:
        """A schema that only points at another has that one's type, and that one's name."""
        wrappers: list[dict[str, Any]] = []
        seen: set[int] = set()
        kinds = ANY_KIND
        current: Any = schema
        while is_object(current):
            inner = self._pointed_at(current, place)
            if inner is None:
                break
            if id(current) in seen:
                self.reporter.report(schema, "$ref", "the reference leads back to itself: unknown")
                return Built(restricted(UNKNOWN, kinds, self.drafts.kinds_of_name), tuple(wrappers))
            wrappers.append(current)
            seen.add(id(current))
            kinds &= self.schemas.own_kinds(current)
            current, place = inner
        built = self.build((current,), place) if wrappers else self._made_once(id(current), (current,), place)
        kind = restricted(built.type, kinds, self.drafts.kinds_of_name)
        if any(map(is_nullable, wrappers)):
            kind = union_of([kind, SCALARS["null"]])
        if isinstance(built.type, NamedType) and self._describe_definition(built, place):
            return Built(kind, tuple(wrappers))
        return Built(kind, (*wrappers, *built.annotated), built.notes)

    def _pointed_at(self, schema: dict[str, Any], place: Place) -> tuple[Any, Place] | None:
        """The one schema that this one only points at, and its place."""
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
        if not self.schemas.ignored_beside_reference(schema) and not (only_points and "allOf" not in schema):
            return None
        target = self.schemas.target(schema, reference)
        if target is None:
            return True, place
        definition = pascal_case(target.definition)
        path = self.reporter.path_of(target.schema)
        return target.schema, Place(path, definition or place.name, 0, definition)

    def _describe_definition(self, built: Built, place: Place) -> bool:
        """What a definition says of itself is said once, where it is declared; false if it isn't declared."""
        assert isinstance(built.type, NamedType)
        draft = self.drafts.get(built.type.name)
        if not place.definition or draft.path != place.path:
            return False
        if draft.docs is NO_DOCS and (built.annotated or built.notes):
            draft.docs = self.described(built)
        return True

    # ---- one conjunction

    def _made_once(self, key: _Key, schemas: Sequence[Any], place: Place) -> Built:  # noqa: PLR0911  # each a reason
        known = self._made.get(key)
        if known is not None:
            return known
        making = self._making.get(key)
        if making is not None:
            return self._inside_itself(making, place)
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
            return self._make_later(key, schemas, place)
        return self._make_now(key, schemas, place, _Making(len(self._making), self._inside))

    def _make_now(self, key: _Key, schemas: Sequence[Any], place: Place, making: _Making) -> Built:
        self._making[key] = making
        built = self._make(schemas, place)
        del self._making[key]
        if self._partial_above == making.level:
            self._partial_above = _MOST_CHOICES
            if built.type is NEVER:
                self.reporter.report_at(place.path, "a choice only of itself: unknown")
                built = built._replace(type=UNKNOWN)
        if making.draft is None and is_larger(built.type, _LARGEST_INLINE):
            # Written out wherever it is used, it would grow with every level of references to it.
            making.draft = self.declare(place, ANY_KIND)
        if making.draft is not None:
            making.draft.type = built.type
            making.draft.kinds = kinds_of(built.type, self.drafts.kinds_of_name)
            built = built._replace(type=NamedType(making.draft.key))
        if self._partial_above > making.level:
            self._made[key] = built
        return built

    def _inside_itself(self, making: _Making, place: Place) -> Built:
        """A type met while it is being made. Inside an array or a map of itself, it needs a name."""
        if making.inside == self._inside:
            # A choice of which it is a branch itself gains nothing from it. But what is made of the types between
            # is only a part of them, and must not be remembered.
            self._partial_above = min(self._partial_above, making.level)
            return _NOTHING
        if making.draft is None:
            making.draft = self.declare(place, ANY_KIND)
        return Built(NamedType(making.draft.key))

    def _make_later(self, key: _Key, schemas: Sequence[Any], place: Place) -> Built:
        """A type too deep inside others for Python's stack: a declaration that is filled in later."""
        draft = self.declare(place, ANY_KIND)
        self._made[key] = Built(NamedType(draft.key))

        def fill() -> None:
            del self._made[key]  # so that it is noticed if it is a branch of itself
            self._make_now(key, schemas, place, _Making(0, 0, draft))

        self.later(fill)
        return self._made[key]

    def _make(self, schemas: Sequence[Any], place: Place) -> Built:
        whole = self.schemas.flatten(schemas)
        if whole.impossible:
            return Built(NEVER, tuple(whole.annotated))
        if not whole.complete:
            self.reporter.report_at(place.path, f"{self.budget.exhausted}: this and what follows is unknown")
            return Built(UNKNOWN, tuple(whole.annotated))
        if not whole.choices:
            return Built(self.merged(whole.facts, (), place), tuple(whole.annotated))
        return choice_type(self, whole, place) if is_plain_choice(self, whole) else multiplied_type(self, whole, place)
