"""The types of one tool: what it takes and what it gives."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from toolbridge_codegen.bounds import Bounds, Budget
from toolbridge_codegen.catalog import Reading
from toolbridge_codegen.diagnostics import Reporter
from toolbridge_codegen.drafts import Draft, Drafts
from toolbridge_codegen.json_values import is_list, is_object
from toolbridge_codegen.model import MapType, NamedType, ObjectType, TypeNode, UnionType
from toolbridge_codegen.normalize import CHOICES, CONDITIONS, SHAPING, is_remark, whole_number
from toolbridge_codegen.notes import NO_DOCS
from toolbridge_codegen.schema_kinds import OBJECT
from toolbridge_codegen.schema_types import SchemaTypes
from toolbridge_codegen.unions import UNKNOWN, kinds_of, restricted
from toolbridge_codegen.wrapped_result import PROPERTY, wrapped_schema

Side: TypeAlias = Literal["input", "output"]


class ToolTypes(NamedTuple):
    """A tool's types, in terms of drafts."""

    input: NamedType | MapType
    input_required: bool
    output: TypeNode


class ToolTypesMaker:
    """Makes the types of one tool."""

    def __init__(
        self,
        identifier: str,
        prefix: str,
        *,
        reading: Reading,
        drafts: Drafts,
        budget: Budget,
        bounds: Bounds,
        reporter: Reporter,
    ) -> None:
        self._identifier = identifier
        self._prefix = prefix
        self._reading: Reading = reading
        self._drafts = drafts
        self._budget = budget
        self._bounds = bounds
        self._reporter = reporter

    def make(self, input_schema: Any, output_schema: Any, *, is_operators: bool) -> ToolTypes:
        """The types for two schemas; a tool without an output schema may give anything.

        An operator's says what guest code gets; a server's, what it sends, in which that may be wrapped.
        """
        taken = self._input(input_schema)
        wrapped = None if is_operators else wrapped_schema(output_schema)
        given = self._anything() if output_schema is None else self._root(output_schema, "output", wrapped)
        required = _refuses_nothing_given(input_schema) or not self._may_be_empty(taken)
        return ToolTypes(taken, required, given)

    def _anything(self) -> NamedType:
        """A name for any value: no interface, as such a result may as well be a string or an array."""
        return NamedType(self._declare(UNKNOWN, "output").key)

    def _input(self, schema: Any) -> NamedType | MapType:
        """An input is always an object."""
        if self._reading == "intended" and _takes_nothing(schema):
            draft = self._declare(ObjectType((), None), "input")
            return NamedType(draft.key)
        kind = self._root(schema, "input")
        if isinstance(kind, NamedType | MapType):
            return kind
        self._reporter.report_at("/inputSchema", "the input is not described as an object")
        return MapType(UNKNOWN)

    def _root(self, schema: Any, side: Side, inside: tuple[Any] | None = None) -> TypeNode:
        """The type of a whole schema. Where there is something to be named, it has the tool's name."""
        types = SchemaTypes(
            schema,
            f"/{side}Schema",
            tool_prefix=self._prefix,
            is_result=side == "output",
            reading=self._reading,
            drafts=self._drafts,
            budget=self._budget,
            bounds=self._bounds,
            reporter=self._reporter,
        )
        # A wrapped result is unwrapped before guest code gets it; its references are the whole document's.
        part = None if inside is None else (inside[0], f"/properties/{PROPERTY}")
        built = types.make_root(self._root_name(side), part)
        kind = built.type
        if side == "input":
            kind = restricted(kind, OBJECT, self._drafts.kinds_of_name)
        if isinstance(kind, NamedType):
            draft = self._drafts.get(kind.name)
            draft.wanted, draft.root_of = self._root_name(side), self._identifier
        elif isinstance(kind, UnionType):
            draft = self._declare(kind, side)
        else:
            return kind
        if draft.docs is NO_DOCS:
            draft.docs = types.described(built)
        return NamedType(draft.key)

    def _declare(self, kind: TypeNode, side: Side) -> Draft:
        draft = self._drafts.open(self._root_name(side), kinds_of(kind, self._drafts.kinds_of_name))
        draft.type = kind
        draft.root_of = self._identifier
        return draft

    def _root_name(self, side: Side) -> str:
        return root_name(self._prefix, side)

    def _may_be_empty(self, kind: TypeNode) -> bool:
        match kind:
            case NamedType(key):
                return self._may_be_empty(self._drafts.get(key).type)
            case UnionType(members):
                return any(self._may_be_empty(member) for member in members)
            case ObjectType(properties, _):
                return not any(known.required for known in properties)
            case _:
                return True


def root_name(prefix: str, side: Side) -> str:
    """The name of a tool's input or output type."""
    return f"{prefix}{side.capitalize()}"


def _takes_nothing(schema: Any) -> bool:
    """A tool that lists its parameters and has none. (Elsewhere, an empty list of properties says nothing.)"""
    return (
        is_object(schema)
        and schema.get("properties") in ({}, [])  # some languages write an empty object as a list
        and SHAPING.intersection(schema) <= {"type", "properties"}
        and not schema.get("required")
        and CONDITIONS.isdisjoint(schema)
    )


def _refuses_nothing_given(schema: Any) -> bool:
    """Whether an empty input is refused by something that no single property says."""
    if not is_object(schema):
        return False
    if (whole_number(schema, "minProperties") or 0) > 0:
        return True
    for keyword in CHOICES:
        branches = schema.get(keyword)
        if is_list(branches) and branches and all(is_remark(one) and one.get("required") for one in branches):
            return True
    return False
