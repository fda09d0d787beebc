"""Output overrides: an operator's schemas for the results of tools that don't describe them.

The file is JSON: `{"<server>": {"<tool>": <schema>}}`, with servers' and tools' own names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from toolbridge_codegen.catalog import Catalog, Schema
from toolbridge_codegen.json_values import is_object
from toolbridge_codegen.model import Diagnostic

_LARGEST_FILE = 16 * 1024 * 1024


class OverrideFileError(ValueError):
    """A file of output overrides can't be used; the message says which and why."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


def read_output_overrides(path: str | os.PathLike[str]) -> dict[str, Schema]:
    """The overrides in a file, by `server/tool`.

    Raises:
        OverrideFileError: the file can't be read, or isn't what it should be.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise OverrideFileError(name, f"can't be read ({error.strerror})") from error
    if len(content) > _LARGEST_FILE:
        raise OverrideFileError(name, f"is larger than {_LARGEST_FILE // 1024 // 1024} MB")
    try:
        document: Any = json.loads(content)
    except UnicodeDecodeError:
        raise OverrideFileError(name, "is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise OverrideFileError(name, f"is not JSON (line {error.lineno}: {error.msg})") from None
    except (ValueError, RecursionError):
        raise OverrideFileError(name, "is not JSON that can be read") from None
    return _by_tool(name, document)


def _by_tool(name: str, document: Any) -> dict[str, Schema]:
    if not is_object(document):
        raise OverrideFileError(name, 'must be an object: {"<server>": {"<tool>": <schema>}}')
    overrides: dict[str, Schema] = {}
    for server, tools in document.items():
        if not is_object(tools):
            raise OverrideFileError(name, f'"{server}" must be an object: {{"<tool>": <schema>}}')
        for tool, schema in tools.items():
            if not is_object(schema):
                raise OverrideFileError(name, f'the schema of "{server}", "{tool}" must be an object')
            overrides[override_key(server, tool)] = schema
    return overrides


def override_key(server: str, tool: str) -> str:
    """`server/tool`: a server's name has no slash, so this is unique."""
    return f"{server}/{tool}"


def unused_overrides(catalog: Catalog, overrides: Mapping[str, Schema]) -> list[Diagnostic]:
    """Overrides that change nothing. Those of servers that aren't in the catalog are none of its business."""
    servers = {module.server for module in catalog.modules}
    diagnostics: list[Diagnostic] = []
    for key in sorted(overrides):
        server, _, name = key.partition("/")
        if server not in servers:
            continue
        tool = catalog.tool(server, name)
        if tool is None:
            diagnostics.append(Diagnostic(server, name, "", "there is an output override, but no such tool"))
        elif tool.definition.output_schema is not None:
            message = "the output override is not used: the tool has an output schema"
            diagnostics.append(Diagnostic(server, name, "/outputSchema", message))
    return diagnostics
