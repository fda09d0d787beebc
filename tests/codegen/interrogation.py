"""Asks three type checkers, in one run of each, whether instances fit the stubs of tools."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codegen import checkers
from codegen.programs import Place, Probe, python_program, typescript_program
from toolbridge_codegen.catalog import Reading, ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.escaping import is_object
from toolbridge_codegen.stubs import generate

CHECKERS = ("tsc", "pyright", "mypy")
Objections = dict[str, dict[int, str | None]]
"""For each checker, what it says of each probe: an objection, or None. What can't be asked is left out."""

_SERVER = "asked"
_SEVERAL_CONTAINERS = re.compile(r"\b(list|dict|Mapping|Sequence)\[.* \| (list|dict|Mapping|Sequence)\[")
_NOT_TRIED = re.compile(r"No overload variant .* matches argument type \"dict\[")
_HOISTED = ("$defs", "definitions", "$schema")


def tools_for(name: str, schema: Mapping[str, Any]) -> list[ToolDefinition]:
    """The schema as a whole output, as a whole input if it is an object's, and as a part of both if it can be moved."""
    tools = [ToolDefinition(f"{name}_whole", schema if _is_object(schema) else {}, output_schema=schema)]
    outer = _wrapped(schema)
    return tools if outer is None else [*tools, ToolDefinition(f"{name}_part", outer, output_schema=outer)]


def probes_for(name: str, schema: Mapping[str, Any], instance: Any) -> list[Probe]:
    """The instance in every place that `tools_for` made."""
    places: list[tuple[str, Place, Any]] = [("whole", "output", instance)]
    if _is_object(schema) and is_object(instance):
        places.append(("whole", "input", instance))
    if _wrapped(schema) is not None:
        places.append(("part", "input", {"value": instance}))
        places.append(("part", "output", {"value": instance}))
    return [Probe(f"{name}_{tool}", place, value) for tool, place, value in places]


def ask(
    directory: Path, tools: Sequence[ToolDefinition], probes: Sequence[Probe], *, reading: Reading = "intended"
) -> Objections:
    """What each checker says of each probe; the stubs themselves must be beyond reproach."""
    catalog = build_catalog([ServerListing(_SERVER, tuple(tools), reading=reading)])
    module = catalog.modules[0]
    typescript = generate(catalog, language="typescript").files
    python = generate(catalog, language="python").files
    in_typescript = typescript_program(module, probes)
    in_python = python_program(module, probes, python[f"host/mcp_{_SERVER}/__init__.pyi"])
    texts = {program.name: program.text for program in (in_typescript, in_python)}
    verdicts = checkers.check(directory, {**typescript, **python, **texts})
    stubs = [problem for name in CHECKERS for problem in getattr(verdicts, name) if problem.file not in texts]
    assert not stubs, f"{len(stubs)} problems in stubs:\n" + "\n".join(map(str, stubs[:20]))
    found: Objections = {}
    for checker in CHECKERS:
        program = in_typescript if checker == "tsc" else in_python
        lines = verdicts.lines(checker, program.name)
        found[checker] = {index: lines.get(line) for index, line in program.lines.items()}
    return found


def is_beyond(checker: str, objection: str) -> bool:
    """Whether a checker objects only because it can't work it out.

    Mypy doesn't try the members of a union of containers one by one: `[1]` is no `list[str] | list[float]` to it.
    For an overload it doesn't try what is expected at all: `{"a": [1, ["b"]]}` is a `dict[str, list[object]]`.
    """
    is_beyond = _SEVERAL_CONTAINERS.search(objection) or _NOT_TRIED.search(objection)
    return checker == "mypy" and is_beyond is not None


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object"


def _wrapped(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema as that of a property; None if it refers to places that would then be elsewhere."""
    text = json.dumps(schema)
    if any(f'"$ref": "{start}' in text for start in ("#/properties", '#"', "#here", "item.json")):
        return None
    inner = {key: value for key, value in schema.items() if key not in _HOISTED}
    outer = {key: value for key, value in schema.items() if key in _HOISTED}
    return {**outer, "type": "object", "properties": {"value": inner}, "required": ["value"]}
