"""Programs that hand instances to stubs as typed literals, one on a line, so that a checker's verdict has a place."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from codegen import literals
from toolbridge_codegen.catalog import ModuleSpec
from toolbridge_codegen.escaping import is_object

Place = Literal["input", "output"]


@dataclass(frozen=True, slots=True)
class Probe:
    """One instance in one place of one tool."""

    tool: str
    """The tool's identifier."""
    place: Place
    instance: Any


@dataclass(frozen=True, slots=True)
class Program:
    """A program, and the line of each probe. A probe that the language has no way to write has none."""

    name: str
    text: str
    lines: Mapping[int, int]
    """From a probe's index to its line."""


def typescript_program(module: ModuleSpec, probes: Sequence[Probe]) -> Program:
    """Calls for inputs, declarations for outputs."""
    text = [f'import * as tools from "{module.specifier}";']
    lines: dict[int, int] = {}
    for index, probe in enumerate(probes):
        value = literals.typescript(probe.instance)
        function = f"tools.{probe.tool}"
        call = f"{function}({value});" if probe.instance != {} else f"{function}({{}});"
        declaration = f"{{ const value: ReturnType<typeof {function}> = {value}; }}"
        text.append(call if probe.place == "input" else declaration)
        lines[index] = len(text)
    return Program(f"program-{module.server}.ts", "\n".join([*text, ""]), lines)


def python_program(module: ModuleSpec, probes: Sequence[Probe], stub: str) -> Program:
    """Calls for inputs, annotated assignments for outputs."""
    body = ast.parse(stub).body
    functions: dict[str, list[ast.FunctionDef]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            functions.setdefault(node.name, []).append(node)
    text = [
        f"import {module.python_module} as tools",
        *(ast.unparse(node) for node in body if isinstance(node, ast.ImportFrom)),  # what its annotations are made of
        *(f"from {module.python_module} import {name}" for name in sorted(_declared(body))),
    ]
    lines: dict[int, int] = {}
    for index, probe in enumerate(probes):
        overloads = functions[probe.tool]
        if probe.place == "output":
            returns = overloads[0].returns
            assert returns is not None
            statement = f"value_{index}: {ast.unparse(returns)} = {literals.python(probe.instance)}"
        else:
            statement = _call(overloads, probe.instance)
        if statement:
            text.append(statement)
            lines[index] = len(text)
    return Program(f"program_{module.server.replace('-', '_')}.py", "\n".join([*text, ""]), lines)


def _call(overloads: Sequence[ast.FunctionDef], instance: Any) -> str:
    """By keywords where the stub takes keywords, with one mapping otherwise; nothing if it can't be written."""
    called = f"tools.{overloads[0].name}"
    takes_keywords = any(function.args.kwarg is not None for function in overloads)
    if takes_keywords and is_object(instance) and all(map(literals.can_be_keyword, instance)):
        arguments = (f"{key}={literals.python(value)}" for key, value in instance.items())
        return f"{called}({', '.join(arguments)})"
    takes_mapping = any(function.args.posonlyargs for function in overloads)
    return f"{called}({literals.python(instance)})" if takes_mapping else ""


def _declared(body: Iterable[ast.stmt]) -> set[str]:
    """The names of types that a stub declares."""
    names: set[str] = set()
    for node in body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names
