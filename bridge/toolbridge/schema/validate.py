"""Arguments against the input schema before they are sent, results against the output schema when they came.

A server checks its arguments itself, so the rule here is: refuse only what it would surely refuse, and say what
to do about it. Whatever can't be checked within bounds is let through.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, cast

from toolbridge.errors import nearest
from toolbridge.schema.compile import Checkable, checkable
from toolbridge.schema.keywords import Path, Problem, SureFit, Verdict, judge, kind_of_value, sure_fit
from toolbridge_codegen.catalog import Schema, ToolDefinition, ToolSpec
from toolbridge_codegen.derive.tools import wrapped_schema
from toolbridge_codegen.escaping import CUT_MARK, brief_json, clean_line
from toolbridge_codegen.read.kinds import OBJECT, kinds_of_type

# What is wrong with a value, in words that a model can repair it from.
#
# Names and values in it are a guest's or a server's: written as JSON, cleaned, cut.


MOST_PROBLEMS = 5
_LONGEST_VALUE = 80
_MOST_CHOICES = 10
_LONGEST_PROBLEM = 400


def problem_texts(problems: tuple[Problem, ...], most: int = MOST_PROBLEMS) -> tuple[str, ...]:
    """One line for each problem, without repetitions; the first few."""
    lines = dict.fromkeys(_line(_best(problem)) for problem in problems)
    return tuple(islice(lines, most))


def _line(problem: Problem) -> str:
    where = path_text(problem.path)
    what = _what(problem)
    return clean_line(f"{where}: {what}" if where else what, limit=_LONGEST_PROBLEM)


def path_text(path: Path) -> str:
    """A place in a value, as in a program: `filter.tags[3]`."""
    parts: list[str] = []
    for step in path[:20]:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif step.isascii() and step.isidentifier() and len(step) <= _LONGEST_VALUE:
            parts.append(f".{step}" if parts else step)
        else:
            parts.append(f"[{_shown(step)}]")
    return "".join(parts) + (CUT_MARK if len(path) > 20 else "")


def _shown(value: Any) -> str:
    return brief_json(value, _LONGEST_VALUE)


def _got(value: Any) -> str:
    """A value with its type, as far as a reader needs both."""
    kind = kind_of_value(value)
    shown = _shown(value)
    if kind in ("null", ""):
        return kind or "something that is no JSON"
    return f"{'number' if kind == 'integer' else kind} {shown}"


def _what(problem: Problem) -> str:  # noqa: PLR0911, PLR0912  # one line for each keyword
    value, wanted = problem.value, problem.wanted
    match problem.keyword:
        case "type":
            return f"expected {' or '.join(wanted)}, got {_got(value)}"
        case "required":
            kind = _kind_wanted(_property_schema(problem.schema, wanted))
            return f"missing property {_shown(wanted)}" + (f" ({kind})" if kind else "")
        case "additionalProperties":
            return f"unknown property {_shown(wanted)}{_nearest_property(wanted, problem.schema)}"
        case "propertyNames":
            return f"the property name {_shown(wanted)} is not allowed"
        case "enum":
            return f"{_shown(value)} is none of {_listed(wanted)}"
        case "const":
            return f"expected {_shown(wanted)}, got {_got(value)}"
        case "minimum":
            return f"{_shown(value)} is less than the minimum of {_shown(wanted)}"
        case "maximum":
            return f"{_shown(value)} is more than the maximum of {_shown(wanted)}"
        case "exclusiveMinimum":
            return f"{_shown(value)} is not more than {_shown(wanted)}"
        case "exclusiveMaximum":
            return f"{_shown(value)} is not less than {_shown(wanted)}"
        case "multipleOf":
            return f"{_shown(value)} is not a multiple of {_shown(wanted)}"
        case "minLength" | "maxLength":
            return _size(problem, "characters")
        case "minItems" | "maxItems":
            return _size(problem, "items")
        case "minProperties" | "maxProperties":
            return _size(problem, "properties")
        case "uniqueItems":
            return "the items are not all different"
        case "pattern":
            return f"{_shown(value)} does not match the pattern {_shown(wanted)}"
        case "contains":
            return "too few of the items are of the expected form"
        case "false":
            return f"nothing is allowed here, got {_got(value)}"
        case "anyOf":
            return f"expected {_kind_wanted(problem.schema) or 'another form'}, got {_got(value)}"
        case _:
            return f"this form is not allowed, got {_got(value)}"


def _size(problem: Problem, unit: str) -> str:
    bound = "fewer than the minimum of" if problem.keyword.startswith("min") else "more than the maximum of"
    return f"has {len(problem.value)} {unit}, {bound} {_shown(problem.wanted)}"


def _listed(values: list[Any]) -> str:
    some = ", ".join(_shown(value) for value in values[:_MOST_CHOICES])
    return some + (f" and {len(values) - _MOST_CHOICES} more" if len(values) > _MOST_CHOICES else "")


def _property_schema(schema: Mapping[str, Any], name: str) -> Any:
    return schema.get("properties", {}).get(name, True)


def _kind_wanted(schema: Any) -> str:
    """The type that a schema asks for, in a few words; empty if it doesn't say."""
    if not isinstance(schema, Mapping):
        return ""
    known = cast("Mapping[str, Any]", schema)
    if "type" in known:
        return " or ".join(known["type"])
    if "enum" in known:
        return f"one of {_listed(known['enum'])}"
    if "const" in known:
        return _shown(known["const"])
    kinds = [_kind_wanted(branch) for branch in known.get("anyOf", ())]
    return " or ".join(dict.fromkeys(kinds)) if kinds and all(kinds) and len(kinds) <= _MOST_CHOICES else ""


def _nearest_property(name: str, schema: Mapping[str, Any]) -> str:
    known: list[str] = [each for each in islice(schema.get("properties", {}), 200) if len(each) <= _LONGEST_VALUE]
    if not known:
        return "; there are no properties"
    near = nearest(name, known)
    return f"; known are {_listed(known)}" if near is None else f"; did you mean {_shown(near)}?"


# ---- choices


def _best(problem: Problem) -> Problem:
    """Of a choice, the branch that was probably meant: its first problem is what to repair."""
    for _ in range(10):
        if problem.keyword != "anyOf" or not problem.branches:
            break
        meant = min(problem.branches, key=lambda branch: _distance(branch, problem.path))
        if _distance(meant, problem.path)[0]:
            values = [value for branch in problem.branches for value in _constants(branch, problem.path)]
            if values:
                return problem._replace(keyword="enum", wanted=values)
            break
        problem = meant[0]
    return problem


def _distance(branch: tuple[Problem, ...], path: Path) -> tuple[int, int, int]:
    """How far a value is from a branch: another type altogether, another variant, or just a few problems."""
    at_root = [problem for problem in branch if problem.path == path and problem.keyword in ("type", "const", "enum")]
    variant = [problem for problem in branch if problem.keyword in ("const", "enum")]
    return (min(len(at_root), 1), len(variant), len(branch))


def _constants(branch: tuple[Problem, ...], path: Path) -> list[Any]:
    """The values of a branch that is nothing but values."""
    found: list[Any] = []
    for problem in branch:
        if problem.path == path and problem.keyword == "const":
            found.append(problem.wanted)
        elif problem.path == path and problem.keyword == "enum":
            found.extend(problem.wanted)
    return found


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
