"""An operator's schemas for the results of tools that don't describe them: which of them change nothing."""

from __future__ import annotations

from toolbridge_codegen.catalog import ModuleSpec
from toolbridge_codegen.model import Diagnostic


def unused_output_schemas(module: ModuleSpec) -> list[Diagnostic]:
    """Schemas that an operator gave for nothing: most often, a tool's name is misspelt."""
    tools = {tool.name: tool for tool in module.tools}
    diagnostics: list[Diagnostic] = []
    for name in sorted(module.output_schemas):
        tool = tools.get(name)
        if tool is None:
            message = "there is an output schema in the configuration, but no such tool"
            diagnostics.append(Diagnostic(module.server, name, "", message))
        elif tool.definition.output_schema is not None:
            message = "the configuration's output schema is not used: the tool has one of its own"
            diagnostics.append(Diagnostic(module.server, name, "/outputSchema", message))
    return diagnostics
