"""What is wrong with a value, in words that a model can repair it from.

Names and values in it are a guest's or a server's: written as JSON, cleaned, cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any, cast

from toolbridge.servers.scalar_rules import kind_of_value
from toolbridge.servers.schema_problems import Path, Problem
from toolbridge_codegen.json_values import brief_json
from toolbridge_codegen.sanitise import CUT_MARK, clean_line

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
            return f"unknown property {_shown(wanted)}{_nearest(wanted, problem.schema)}"
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


def _nearest(name: str, schema: Mapping[str, Any]) -> str:
    known: list[str] = [each for each in islice(schema.get("properties", {}), 200) if len(each) <= _LONGEST_VALUE]
    if not known:
        return "; there are no properties"
    near = get_close_matches(name[:_LONGEST_VALUE], known, n=1, cutoff=0.6)
    near = near or [each for each in known if len(name) >= 3 and each.startswith(name)]
    if near:
        return f"; did you mean {_shown(near[0])}?"
    return f"; known are {_listed(known)}"


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
