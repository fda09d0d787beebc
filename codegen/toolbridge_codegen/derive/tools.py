"""The types of one tool: what it takes and what it gives."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from toolbridge_codegen.catalog import ModuleSpec, Reading, ToolSpec, plain_schema
from toolbridge_codegen.derive.declarations import Draft, Drafts, Renaming, declare
from toolbridge_codegen.derive.names import TypeNames, tool_prefixes
from toolbridge_codegen.derive.types import SchemaTypes
from toolbridge_codegen.derive.unions import UNKNOWN, kinds_of, restricted
from toolbridge_codegen.escaping import clean_text, is_list, is_object
from toolbridge_codegen.model import (
    Diagnostic,
    Docs,
    FunctionModel,
    MapType,
    ModuleModel,
    NamedType,
    ObjectType,
    Reporter,
    TypeNode,
    UnionType,
    unused_output_schemas,
)
from toolbridge_codegen.read.kinds import OBJECT, Bounds, Budget
from toolbridge_codegen.read.normalize import CHOICES, CONDITIONS, SHAPING, is_remark, whole_number
from toolbridge_codegen.read.notes import NO_DOCS

# Results that are wrapped: `{"result": …}` around what is no object.
#
# The protocol's structured content is an object. Frameworks that let a tool return a string or a list put it under
# `result`, some with a mark in the schema, some without. Guest code wants what is inside. Whether a tool's results
# are wrapped is decided here and nowhere else, from the schema alone: so the stub and the value always agree.


PROPERTY = "result"
_MARK = "x-fastmcp-wrap-result"
_MOST_REFERENCES = 8
# Anything that could let another property in, or make the object something else.
_OTHER_SHAPES = frozenset(
    {
        *(
            "$ref",
            "$dynamicRef",
            "$recursiveRef",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "if",
            "then",
            "else",
            "const",
            "enum",
        ),
        *("patternProperties", "propertyNames", "dependentSchemas", "dependentRequired", "dependencies"),
        *("minProperties", "maxProperties", "unevaluatedProperties", "nullable"),
    }
)


def is_wrapped_result(schema: object) -> bool:
    """Whether results with this output schema are `{"result": …}` and mean what is inside."""
    return wrapped_schema(schema) is not None


def wrapped_schema(schema: object) -> tuple[Any] | None:
    """The schema of what is inside, as the only member of a tuple since it may be anything; None if nothing is."""
    whole = _through_references(schema)
    if whole is None or not _OTHER_SHAPES.isdisjoint(whole) or whole.get("type", "object") != "object":
        return None
    given: object = whole.get("properties")
    properties: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
    if set(properties) != {PROPERTY}:
        return None
    if isinstance(whole.get("additionalProperties"), Mapping):
        return None
    if whole.get(_MARK) is not True and whole.get("required") != [PROPERTY]:
        return None
    return (properties[PROPERTY],)


def _through_references(schema: object) -> Mapping[str, Any] | None:
    """The schema that a schema which only points elsewhere in its document means."""
    if not isinstance(schema, Mapping):
        return None
    root = cast("Mapping[str, Any]", schema)
    found = root
    for _ in range(_MOST_REFERENCES):
        reference = found.get("$ref")
        if not isinstance(reference, str):
            return found
        if not {"properties", "required"}.isdisjoint(found):
            return None
        holder, _, name = reference.removeprefix("#/").partition("/")
        group: object = root.get(holder) if holder in ("$defs", "definitions") else None
        target: object = cast("Mapping[str, Any]", group).get(name) if isinstance(group, Mapping) else None
        if not isinstance(target, Mapping):
            return None
        found = cast("Mapping[str, Any]", target)
    return None


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


# From a module of the catalog to its type model.


DEFAULT_BOUNDS = Bounds()
_LONGEST_INSTRUCTIONS = 1000


def build_module(module: ModuleSpec, *, bounds: Bounds = DEFAULT_BOUNDS) -> tuple[ModuleModel, tuple[Diagnostic, ...]]:
    """The type model of a server's module. Whatever the schemas are, each tool is in it."""
    prefixes = tool_prefixes(tool.identifier for tool in module.tools)
    drafts = Drafts()
    diagnostics = unused_output_schemas(module)
    made: list[ToolTypes] = []
    nodes_left = bounds.module_nodes
    deadline = time.monotonic() + bounds.module_seconds
    for tool in module.tools:
        reporter = Reporter(tool.server, tool.name, bounds.diagnostics)
        budget = Budget(bounds, nodes_left, deadline - time.monotonic())
        maker = ToolTypesMaker(
            tool.identifier,
            prefixes[tool.identifier],
            reading=module.reading,
            drafts=drafts,
            budget=budget,
            bounds=bounds,
            reporter=reporter,
        )
        made.append(
            maker.make(
                plain_schema(tool.definition.input_schema),
                plain_schema(tool.output_schema),
                is_operators=tool.definition.output_schema is None,
            )
        )
        nodes_left -= budget.spent
        diagnostics += reporter.diagnostics
    names = TypeNames(prefixes)
    for identifier, prefix in prefixes.items():
        names.reserve(root_name(prefix, "input"), identifier)
        names.reserve(root_name(prefix, "output"), identifier)
    declarations, renamed = declare(drafts, [kind for types in made for kind in (types.input, types.output)], names)
    functions = [_function(tool, types, renamed) for tool, types in zip(module.tools, made, strict=True)]
    docs = Docs(clean_text(module.instructions, limit=_LONGEST_INSTRUCTIONS))
    return ModuleModel(module, docs, declarations, tuple(functions)), tuple(diagnostics)


def _function(tool: ToolSpec, types: ToolTypes, renamed: Renaming) -> FunctionModel:
    argument = renamed(types.input)
    assert isinstance(argument, NamedType | MapType)
    definition = tool.definition
    return FunctionModel(
        tool=tool,
        input=argument,
        input_required=types.input_required,
        output=renamed(types.output),
        docs=Docs(clean_text(definition.description) or clean_text(definition.title)),
    )
