"""Arguments against the input schema before they are sent, results against the output schema when they came.

A server checks its arguments itself, so the rule here is: refuse only what it would surely refuse, and say what
to do about it. Whatever can't be checked within bounds is let through.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple, cast

from toolbridge.servers.checkable_schema import Checkable, checkable
from toolbridge.servers.problem_texts import problem_texts
from toolbridge.servers.schema_judge import judge
from toolbridge.servers.schema_problems import Path, Problem, Verdict
from toolbridge.servers.sure_fit import SureFit, sure_fit
from toolbridge_codegen.catalog import Schema, ToolDefinition, ToolSpec
from toolbridge_codegen.schema_kinds import OBJECT, kinds_of_type
from toolbridge_codegen.wrapped_result import wrapped_schema

ARGUMENT_STEPS = 20_000
"""How much of the arguments is checked: tens of milliseconds, at worst."""
RESULT_STEPS = 5_000
"""The same for results, which are larger and only commented on."""
_MOST_REPAIRS = 100
_PARTLY = "not checked: the rest of a value that is large or nested in itself"
# As the guest is given integers that its numbers can't hold.
_DIGITS = re.compile(r"-?[0-9]{16,400}")


class Prepared(NamedTuple):
    """Arguments as they are to be sent."""

    arguments: Any
    problems: tuple[str, ...]
    """Why they can't be; empty if they can."""
    notes: tuple[str, ...]
    """What was changed, and what could not be checked."""


class ToolChecks:
    """The checks of one definition of a tool. Each schema is prepared once, when it is first needed.

    `operators_schema` is of the results of a tool that doesn't describe them itself.
    """

    def __init__(self, definition: ToolDefinition, operators_schema: Schema | None = None) -> None:
        self._definition = definition
        self._operators_schema = operators_schema

    @cached_property
    def _input(self) -> Checkable:
        schema = self._definition.input_schema
        # Arguments are an object in any case: a schema that asks for anything else is not about them.
        return checkable(schema if kinds_of_type(schema.get("type", "object"))[0] & OBJECT else {})

    @cached_property
    def _output(self) -> Checkable | None:
        schema = self._definition.output_schema
        if schema is None:
            return None if self._operators_schema is None else checkable(self._operators_schema)
        # A wrapped result is checked as guest code gets it: without the wrapper.
        return checkable(schema, wrapped_schema(schema))

    @cached_property
    def _surely_fits_input(self) -> SureFit | None:
        return sure_fit(self._input)

    @cached_property
    def _surely_fits_output(self) -> SureFit | None:
        return None if self._output is None else sure_fit(self._output)

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the schemas is not checked, and why."""
        output = () if self._output is None else self._output.notes
        return tuple(dict.fromkeys((*self._input.notes, *output)))

    def argument_problems(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """What is wrong with arguments exactly as they are, by path; empty if nothing is."""
        return problem_texts(judge(self._input, arguments, steps=ARGUMENT_STEPS).problems)

    def prepared(self, arguments: Mapping[str, Any]) -> Prepared:
        """Arguments as they are to be sent, or what is wrong with them.

        Two things are repaired where the schema leaves no doubt: a large integer that arrives as a string of digits,
        and null for a property that may be absent but not null. Both are how guest code writes what it means.
        """
        if self._surely_fits_input is not None and self._surely_fits_input(arguments):
            return Prepared(arguments, (), ())
        verdict = judge(self._input, arguments, steps=ARGUMENT_STEPS)
        if not verdict.problems:
            return Prepared(arguments, (), () if verdict.complete else (_PARTLY,))
        repaired, verdict, notes = self._repaired(arguments, verdict)
        if not verdict.complete:
            notes = (*notes, _PARTLY)
        return Prepared(repaired, problem_texts(verdict.problems), notes)

    def result_problem(self, value: Any) -> str:
        """What is wrong with a result as guest code gets it, in one line; empty if nothing is.

        Not for results with handles in them: where a handle is, the value has null.
        """
        if self._output is None or (self._surely_fits_output is not None and self._surely_fits_output(value)):
            return ""
        verdict = judge(self._output, value, steps=RESULT_STEPS)
        # Integers that the guest can't hold were made into digits on purpose.
        real = tuple(problem for problem in verdict.problems if not _is_integer_in_digits(problem))
        return "; ".join(problem_texts(real, most=3))

    def _repaired(self, arguments: Any, verdict: Verdict) -> tuple[Any, Verdict, tuple[str, ...]]:
        nulls: set[Path] = set()
        digits: set[Path] = set()
        for problem in verdict.problems[:_MOST_REPAIRS]:
            if problem.value is None and problem.path and isinstance(problem.path[-1], str):
                nulls.add(problem.path)
            elif _is_integer_in_digits(problem):
                digits.add(problem.path)
        if not nulls and not digits:
            return arguments, verdict, ()
        changed = _with_repairs(arguments, (), nulls, digits)
        after = judge(self._input, changed, steps=ARGUMENT_STEPS)
        missing = {(*each.path, each.wanted) for each in after.problems if each.keyword == "required"}
        if not nulls.isdisjoint(missing):
            nulls -= missing
            changed = _with_repairs(arguments, (), nulls, digits)
            after = judge(self._input, changed, steps=ARGUMENT_STEPS)
        notes: list[str] = []
        if nulls:
            notes.append(f"properties that were null are left out: {len(nulls)}")
        if digits:
            notes.append(f"integers that were strings of digits are sent as numbers: {len(digits)}")
        return changed, after, tuple(notes)


class CheckStore:
    """The checks of the tools that are in use, each made once for a definition."""

    def __init__(self, most: int = 1_000) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str], tuple[ToolDefinition, Schema | None, ToolChecks]] = OrderedDict()

    def of(self, tool: ToolSpec) -> ToolChecks:
        """The checks of a tool as it is defined now."""
        key = (tool.server, tool.definition.name)
        kept = self._kept.get(key)
        if kept is not None and kept[0] is tool.definition and kept[1] is tool.output_schema:
            self._kept.move_to_end(key)
            return kept[2]
        checks = ToolChecks(tool.definition, tool.output_schema)
        self._kept[key] = (tool.definition, tool.output_schema, checks)
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return checks


def _is_integer_in_digits(problem: Problem) -> bool:
    """A string of digits where only an integer was asked for."""
    if not isinstance(problem.value, str) or not _DIGITS.fullmatch(problem.value):
        return False
    if problem.keyword == "type":
        return "integer" in problem.wanted or "number" in problem.wanted
    return any(
        inner.path == problem.path and _is_integer_in_digits(inner) for branch in problem.branches for inner in branch
    )


def _with_repairs(value: Any, path: Path, nulls: set[Path], digits: set[Path]) -> Any:
    """A copy with some members left out and some strings of digits as integers."""
    if path in digits:
        return int(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {
            name: _with_repairs(member, (*path, name), nulls, digits)
            for name, member in members.items()
            if (*path, name) not in nulls
        }
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [_with_repairs(item, (*path, index), nulls, digits) for index, item in enumerate(items)]
    return value
