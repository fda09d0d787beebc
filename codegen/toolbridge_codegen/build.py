"""From a module of the catalog to its type model."""

from __future__ import annotations

import time

from toolbridge_codegen.bounds import Bounds, Budget
from toolbridge_codegen.catalog import ModuleSpec, ToolSpec, plain_schema
from toolbridge_codegen.declare import Renaming, declare
from toolbridge_codegen.diagnostics import Reporter
from toolbridge_codegen.drafts import Drafts
from toolbridge_codegen.model import Diagnostic, Docs, FunctionModel, MapType, ModuleModel, NamedType
from toolbridge_codegen.output_schemas import unused_output_schemas
from toolbridge_codegen.sanitise import clean_text
from toolbridge_codegen.tool_types import ToolTypes, ToolTypesMaker, root_name
from toolbridge_codegen.type_names import TypeNames, tool_prefixes

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
