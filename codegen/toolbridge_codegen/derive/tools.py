"""The types of a tool's input and output, and the type model of a module."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from toolbridge_codegen.catalog import ModuleSpec, ToolSpec, plain_schema
from toolbridge_codegen.derive.declarations import Drafts, Renaming, declare
from toolbridge_codegen.derive.names import TypeNames, tool_prefixes
from toolbridge_codegen.derive.types import SchemaTypes, ToolScope
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

# Wrapped results. The protocol's structured content is an object; frameworks put a string or a list under `result`,
# with or without a mark in the schema. Guest code gets the value inside. Whether a result is wrapped is decided here
# alone, from the schema, so that stubs and values agree.

PROPERTY = "result"
_MARK = "x-fastmcp-wrap-result"
_MOST_REFERENCES = 8
# Keywords that could admit another property, or another kind of value.
_OTHER_SHAPES = frozenset(
    {
        *("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
        *("const", "enum"),
        *("patternProperties", "propertyNames", "dependentSchemas", "dependentRequired", "dependencies"),
        *("minProperties", "maxProperties", "unevaluatedProperties", "nullable"),
    }
)


def is_wrapped_result(schema: object) -> bool:
    """Returns whether results with this output schema are `{"result": …}`, of which guest code gets the value."""
    return wrapped_schema(schema) is not None


def wrapped_schema(schema: object) -> tuple[Any] | None:
    """Returns the schema of the wrapped value in a tuple, as it may be any value; None if results are not wrapped."""
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
    """Follows up to eight local references from a schema that is nothing else; None if that fails.

    A schema without a reference is returned itself; one that is no mapping gives None.
    """
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
    """The types of a tool, in terms of drafts."""

    input: NamedType | MapType
    input_required: bool
    output: TypeNode


def tool_types(tool: ToolScope, input_schema: Any, output_schema: Any, *, is_operators: bool) -> ToolTypes:
    """Builds the types of a tool's two schemas, as drafts. Without an output schema, the result may be anything.

    An operator's output schema describes what guest code gets; a server's, what it sends, which may be wrapped.
    """
    taken = _input(tool, input_schema)
    wrapped = None if is_operators else wrapped_schema(output_schema)
    # A name for any value: no interface, as such a result may as well be a string or an array.
    given = (
        _declare(tool, UNKNOWN, "output") if output_schema is None else _root(tool, output_schema, "output", wrapped)
    )
    required = _refuses_empty_input(input_schema) or not _may_be_empty(tool.drafts, taken)
    return ToolTypes(taken, required, given)


def _input(tool: ToolScope, schema: Any) -> NamedType | MapType:
    """Builds an input's type, always an object; a schema of anything else is reported, and any object."""
    if tool.reading == "intended" and _has_no_parameters(schema):
        return _declare(tool, ObjectType((), None), "input")
    kind = _root(tool, schema, "input")
    if isinstance(kind, NamedType | MapType):
        return kind
    tool.reporter.report_at("/inputSchema", "the input is not described as an object")
    return MapType(UNKNOWN)


def _root(tool: ToolScope, schema: Any, side: Side, inside: tuple[Any] | None = None) -> TypeNode:
    """Builds the type of a whole schema, or of the wrapped value `inside` it.

    A named type or a union gets the tool's name, and the former its comment.
    """
    types = SchemaTypes(schema, f"/{side}Schema", tool, is_result=side == "output")
    # A wrapped result is unwrapped before guest code gets it; its references are the whole document's.
    part = None if inside is None else (inside[0], f"/properties/{PROPERTY}")
    name = root_name(tool.prefix, side)
    built = types.make_root(name, part)
    kind = restricted(built.type, OBJECT, tool.drafts.kinds_of_name) if side == "input" else built.type
    if isinstance(kind, UnionType):
        kind = _declare(tool, kind, side)
    if not isinstance(kind, NamedType):
        return kind
    draft = tool.drafts.get(kind.name)
    draft.wanted, draft.root_of = name, tool.identifier
    if draft.docs is NO_DOCS:
        draft.docs = types.described(built)
    return kind


def _declare(tool: ToolScope, kind: TypeNode, side: Side) -> NamedType:
    """Adds a draft for a type, as that of the tool's input or output; returns its name."""
    draft = tool.drafts.open(root_name(tool.prefix, side), kinds_of(kind, tool.drafts.kinds_of_name))
    draft.type, draft.root_of = kind, tool.identifier
    return NamedType(draft.key)


def _may_be_empty(drafts: Drafts, kind: TypeNode) -> bool:
    """Returns whether an input type admits `{}`: no object in it requires a property."""
    match kind:
        case NamedType(key):
            return _may_be_empty(drafts, drafts.get(key).type)
        case UnionType(members):
            return any(_may_be_empty(drafts, member) for member in members)
        case ObjectType(properties, _):
            return not any(known.required for known in properties)
        case _:
            return True


def root_name(prefix: str, side: Side) -> str:
    """The type name of a tool's input or output."""
    return f"{prefix}{side.capitalize()}"


def _has_no_parameters(schema: Any) -> bool:
    """Returns whether a tool lists its parameters and has none.

    Elsewhere, an empty list of properties means nothing.
    """
    return (
        is_object(schema)
        and schema.get("properties") in ({}, [])  # some languages encode an empty object as a list
        and SHAPING.intersection(schema) <= {"type", "properties"}
        and not schema.get("required")
        and CONDITIONS.isdisjoint(schema)
    )


def _refuses_empty_input(schema: Any) -> bool:
    """Returns whether an empty input is invalid for a reason other than a required property."""
    if not is_object(schema):
        return False
    if (whole_number(schema, "minProperties") or 0) > 0:
        return True
    for keyword in CHOICES:
        branches = schema.get(keyword)
        if is_list(branches) and branches and all(is_remark(one) and one.get("required") for one in branches):
            return True
    return False


# Modules.

DEFAULT_BOUNDS = Bounds()
_LONGEST_INSTRUCTIONS = 1000


def build_module(module: ModuleSpec, *, bounds: Bounds = DEFAULT_BOUNDS) -> tuple[ModuleModel, tuple[Diagnostic, ...]]:
    """Builds the type model of a server's module. Every tool is in it, whatever its schemas are.

    Beyond the bounds on size and time, types are unknown, with diagnostics.
    """
    prefixes = tool_prefixes(tool.identifier for tool in module.tools)
    drafts = Drafts()
    diagnostics = unused_output_schemas(module)
    made: list[ToolTypes] = []
    nodes_left = bounds.module_nodes
    deadline = time.monotonic() + bounds.module_seconds
    for tool in module.tools:
        reporter = Reporter(tool.server, tool.name, bounds.diagnostics)
        budget = Budget(bounds, nodes_left, deadline - time.monotonic())
        context = ToolScope(
            tool.identifier, prefixes[tool.identifier], module.reading, drafts, budget, bounds, reporter
        )
        schemas = plain_schema(tool.definition.input_schema), plain_schema(tool.output_schema)
        made.append(tool_types(context, *schemas, is_operators=tool.definition.output_schema is None))
        nodes_left -= budget.spent
        diagnostics += reporter.diagnostics
    names = TypeNames(prefixes)
    for identifier, prefix in prefixes.items():
        names.reserve(root_name(prefix, "input"), identifier)
        names.reserve(root_name(prefix, "output"), identifier)
    declarations, renamed = declare(drafts, [kind for types in made for kind in (types.input, types.output)], names)
    functions = [_function_model(tool, types, renamed) for tool, types in zip(module.tools, made, strict=True)]
    docs = Docs(clean_text(module.instructions, limit=_LONGEST_INSTRUCTIONS))
    return ModuleModel(module, docs, declarations, tuple(functions)), tuple(diagnostics)


def _function_model(tool: ToolSpec, types: ToolTypes, renamed: Renaming) -> FunctionModel:
    """Returns the model of a tool's function; `renamed` puts names into its types."""
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
