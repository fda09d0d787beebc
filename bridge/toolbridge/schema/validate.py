"""Validation of arguments against the input schema before a call, and of results against the output schema after it.

A server validates its arguments itself, so arguments are refused only where the server surely would, with advice for
repair. Parts that can't be validated within bounds are let through.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, cast

from toolbridge.errors import nearest
from toolbridge.schema.compile import CleanSchema, CompiledSchema, compile_schema
from toolbridge.schema.keywords import Path, ValidationResult, Violation, kind_of_value, validate
from toolbridge_codegen.catalog import Schema, ToolDefinition, ToolSpec
from toolbridge_codegen.derive.tools import wrapped_schema
from toolbridge_codegen.escaping import CUT_MARK, brief_json, clean_line
from toolbridge_codegen.read.kinds import OBJECT, kinds_of_type

ARGUMENT_STEPS = 20_000
"""Step budget for arguments: tens of milliseconds, at worst."""
RESULT_STEPS = 5_000
"""Step budget for results, which are larger, and only commented on."""
MAX_MESSAGES = 5
_MAX_REPAIRS = 100
_PARTLY = "not checked: the rest of a value that is large or nested in itself"
# As the guest is given integers that its numbers can't hold.
_DIGITS = re.compile(r"-?[0-9]{16,400}")


class PreparedArguments(NamedTuple):
    """Arguments to send."""

    arguments: Any
    problems: tuple[str, ...]
    """Why they can't be sent; empty if they can."""
    notes: tuple[str, ...]
    """Repairs, and parts that could not be validated."""


class ToolValidator:
    """The validator of one tool's definition. Each schema is compiled once, when it is first needed.

    `configured_schema` describes the results of a tool without an output schema of its own.
    """

    def __init__(self, definition: ToolDefinition, configured_schema: Schema | None = None) -> None:
        self._definition = definition
        self._configured_schema = configured_schema

    @cached_property
    def _input(self) -> CompiledSchema:
        """Compiles the input schema, once."""
        schema = self._definition.input_schema
        # Arguments are an object in any case: a schema of any other type is ignored.
        return compile_schema(schema if kinds_of_type(schema.get("type", "object"))[0] & OBJECT else {})

    @cached_property
    def _output(self) -> CompiledSchema | None:
        """Compiles the output schema, else the configured one, once; None without either."""
        schema = self._definition.output_schema
        if schema is None:
            return None if self._configured_schema is None else compile_schema(self._configured_schema)
        # A wrapped result is validated as guest code gets it: without the wrapper.
        return compile_schema(schema, wrapped_schema(schema))

    @cached_property
    def _input_fast_path(self) -> FastPath | None:
        return fast_path(self._input)

    @cached_property
    def _output_fast_path(self) -> FastPath | None:
        return None if self._output is None else fast_path(self._output)

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns the parts of the schemas that are not validated, and why; compiles both."""
        output = () if self._output is None else self._output.notes
        return tuple(dict.fromkeys((*self._input.notes, *output)))

    def argument_problems(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Validates arguments without repairing them; returns at most five messages with paths."""
        return messages(validate(self._input, arguments, steps=ARGUMENT_STEPS).violations)

    def prepare(self, arguments: Mapping[str, Any]) -> PreparedArguments:
        """Validates arguments and returns them, repaired in a copy if need be.

        Blocks for tens of milliseconds at worst.

        Two things are repaired where the schema leaves no doubt: a large integer that arrives as a string of digits,
        and null for a property that may be absent but not null. Guest code writes both.
        """
        if self._input_fast_path is not None and self._input_fast_path(arguments):
            return PreparedArguments(arguments, (), ())
        result = validate(self._input, arguments, steps=ARGUMENT_STEPS)
        if not result.violations:
            return PreparedArguments(arguments, (), () if result.complete else (_PARTLY,))
        repaired, result, notes = self._repair(arguments, result)
        if not result.complete:
            notes = (*notes, _PARTLY)
        return PreparedArguments(repaired, messages(result.violations), notes)

    def result_problem(self, value: Any) -> str:
        """Validates a result as guest code gets it; returns one line, or "" if it is valid or there is no schema.

        Not for results with handles: in the place of a handle, the value has null.
        """
        if self._output is None or (self._output_fast_path is not None and self._output_fast_path(value)):
            return ""
        result = validate(self._output, value, steps=RESULT_STEPS)
        # Integers that the guest can't hold were replaced by digits on purpose.
        real = tuple(each for each in result.violations if not _is_integer_in_digits(each))
        return "; ".join(messages(real, limit=3))

    def _repair(self, arguments: Any, result: ValidationResult) -> tuple[Any, ValidationResult, tuple[str, ...]]:
        """Repairs a copy of arguments; returns it, the violations that are left, and notes on the repairs."""
        nulls: set[Path] = set()
        digits: set[Path] = set()
        for violation in result.violations[:_MAX_REPAIRS]:
            if violation.value is None and violation.path and isinstance(violation.path[-1], str):
                nulls.add(violation.path)
            elif _is_integer_in_digits(violation):
                digits.add(violation.path)
        if not nulls and not digits:
            return arguments, result, ()
        repaired = _repaired(arguments, (), nulls, digits)
        after = validate(self._input, repaired, steps=ARGUMENT_STEPS)
        missing = {(*each.path, each.wanted) for each in after.violations if each.keyword == "required"}
        if not nulls.isdisjoint(missing):
            nulls -= missing
            repaired = _repaired(arguments, (), nulls, digits)
            after = validate(self._input, repaired, steps=ARGUMENT_STEPS)
        notes: list[str] = []
        if nulls:
            notes.append(f"properties that were null are left out: {len(nulls)}")
        if digits:
            notes.append(f"integers that were strings of digits are sent as numbers: {len(digits)}")
        return repaired, after, tuple(notes)


class ValidatorCache:
    """LRU cache of the validators of tools."""

    def __init__(self, limit: int = 1_000) -> None:
        self._limit = limit
        self._cached: OrderedDict[tuple[str, str], tuple[ToolDefinition, Schema | None, ToolValidator]] = OrderedDict()

    def of(self, tool: ToolSpec) -> ToolValidator:
        """Returns the validator of a tool as it is defined now: a cached one, unless the definition changed."""
        key = (tool.server, tool.definition.name)
        cached = self._cached.get(key)
        if cached is not None and cached[0] is tool.definition and cached[1] is tool.output_schema:
            self._cached.move_to_end(key)
            return cached[2]
        validator = ToolValidator(tool.definition, tool.output_schema)
        self._cached[key] = (tool.definition, tool.output_schema, validator)
        self._cached.move_to_end(key)
        if len(self._cached) > self._limit:
            self._cached.popitem(last=False)
        return validator


def _is_integer_in_digits(violation: Violation) -> bool:
    """Returns whether a violation is a string of digits where only a number may be."""
    if not isinstance(violation.value, str) or not _DIGITS.fullmatch(violation.value):
        return False
    if violation.keyword == "type":
        return "integer" in violation.wanted or "number" in violation.wanted
    return any(
        inner.path == violation.path and _is_integer_in_digits(inner)
        for branch in violation.branches
        for inner in branch
    )


def _repaired(value: Any, path: Path, nulls: set[Path], digits: set[Path]) -> Any:
    """Copies a value without the null members at some paths, and with strings of digits at others as integers."""
    if path in digits:
        return int(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {
            name: _repaired(member, (*path, name), nulls, digits)
            for name, member in members.items()
            if (*path, name) not in nulls
        }
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [_repaired(item, (*path, index), nulls, digits) for index, item in enumerate(items)]
    return value


# ---- the fast path


FastPath: TypeAlias = Callable[[Any], bool]
"""True if a value surely is valid; False says nothing."""

# A float may be an integer: then the validator decides.
_TYPES: dict[str, frozenset[type]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "null": frozenset({type(None)}),
    "object": frozenset({dict}),
    "array": frozenset({list}),
}
_ANY_TYPE = frozenset[type]().union(*_TYPES.values())
_NO_TYPE: frozenset[type] = frozenset()
_FLAT_KEYWORDS = frozenset({"type", "properties", "required", "additionalProperties"})
# These numbers take far fewer steps than the budget.
_MAX_PROPERTIES = 200
_MAX_BRANCHES = 5


def fast_path(schema: CompiledSchema) -> FastPath | None:
    """Makes a check for a simple schema, at a tenth of the validator's cost; None for any other.

    Most tools take a few scalars, and return one or an object with any members: the values' types decide.
    """
    root = schema.schema
    types = _types(root)
    if types is not None:
        return lambda value: type(value) in types
    if not isinstance(root, dict) or not _FLAT_KEYWORDS.issuperset(root) or root.get("type") != ["object"]:
        return None
    properties: dict[str, CleanSchema] = root.get("properties", {})
    known = {name: _types(each) for name, each in properties.items()}
    if len(known) > _MAX_PROPERTIES or None in known.values():
        return None
    required = frozenset[str](root.get("required", ()))
    if root.get("additionalProperties", True) is not True:
        return _closed_object(cast("dict[str, frozenset[type]]", known), required)
    return None if known or required else lambda value: type(value) is dict


def _closed_object(known: dict[str, frozenset[type]], required: frozenset[str]) -> FastPath:
    """Makes the check of an object with these members only, by the types that each may have."""

    def fits(value: Any) -> bool:
        """Returns whether the value surely is valid."""
        if type(value) is not dict:
            return False
        members = cast("dict[str, Any]", value)
        for name, member in members.items():
            if type(member) not in known.get(name, _NO_TYPE):
                return False
        return members.keys() >= required

    return fits


def _types(schema: CleanSchema) -> frozenset[type] | None:
    """Returns the Python types whose values are all valid; None if the schema has other conditions."""
    if schema is True or schema == {}:
        return _ANY_TYPE
    if not isinstance(schema, dict) or len(schema) != 1:
        return None
    if "type" in schema:
        return frozenset[type]().union(*(_TYPES[kind] for kind in schema["type"]))
    choices = [_types(choice) for choice in schema.get("anyOf", ())[: _MAX_BRANCHES + 1]]
    if not choices or len(choices) > _MAX_BRANCHES or None in choices:
        return None
    return frozenset[type]().union(*cast("list[frozenset[type]]", choices))


# ---- messages, from which a model can repair a value. Names and values in them are untrusted: JSON, cleaned, cut.


_MAX_VALUE = 80
_MAX_CHOICES = 10
_MAX_MESSAGE = 400


def messages(violations: tuple[Violation, ...], limit: int = MAX_MESSAGES) -> tuple[str, ...]:
    """Writes the first `limit` violations, one sanitised line each, without repetitions."""
    lines = dict.fromkeys(_line(_best(violation)) for violation in violations)
    return tuple(islice(lines, limit))


def _line(violation: Violation) -> str:
    """Writes a violation with its path, sanitised and truncated."""
    where = path_text(violation.path)
    text = _message(violation)
    return clean_line(f"{where}: {text}" if where else text, limit=_MAX_MESSAGE)


def path_text(path: Path) -> str:
    """Formats a path as an expression: `filter.tags[3]`; at most 20 steps."""
    parts: list[str] = []
    for step in path[:20]:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif step.isascii() and step.isidentifier() and len(step) <= _MAX_VALUE:
            parts.append(f".{step}" if parts else step)
        else:
            parts.append(f"[{_shown(step)}]")
    return "".join(parts) + (CUT_MARK if len(path) > 20 else "")


def _shown(value: Any) -> str:
    return brief_json(value, _MAX_VALUE)


def _got(value: Any) -> str:
    """Formats a value with its type, where both help."""
    kind = kind_of_value(value)
    shown = _shown(value)
    if kind in ("null", ""):
        return kind or "a value that is no JSON"
    return f"{'number' if kind == 'integer' else kind} {shown}"


def _message(violation: Violation) -> str:  # noqa: PLR0911, PLR0912  # one line for each keyword
    """Writes what is wrong, without the path."""
    value, wanted = violation.value, violation.wanted
    match violation.keyword:
        case "type":
            return f"expected {' or '.join(wanted)}, got {_got(value)}"
        case "required":
            kind = _kind_wanted(_property_schema(violation.schema, wanted))
            return f"missing property {_shown(wanted)}" + (f" ({kind})" if kind else "")
        case "additionalProperties":
            return f"unknown property {_shown(wanted)}{_nearest_property(wanted, violation.schema)}"
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
            return _size(violation, "characters")
        case "minItems" | "maxItems":
            return _size(violation, "items")
        case "minProperties" | "maxProperties":
            return _size(violation, "properties")
        case "uniqueItems":
            return "the items are not all different"
        case "pattern":
            return f"{_shown(value)} does not match the pattern {_shown(wanted)}"
        case "contains":
            return "too few of the items are of the expected form"
        case "false":
            return f"nothing is allowed here, got {_got(value)}"
        case "anyOf":
            return f"expected {_kind_wanted(violation.schema) or 'another form'}, got {_got(value)}"
        case _:
            return f"this form is not allowed, got {_got(value)}"


def _size(violation: Violation, unit: str) -> str:
    """Writes that a value has too few or too many of a unit."""
    bound = "fewer than the minimum of" if violation.keyword.startswith("min") else "more than the maximum of"
    return f"has {len(violation.value)} {unit}, {bound} {_shown(violation.wanted)}"


def _listed(values: list[Any]) -> str:
    """Lists the first ten values, and how many more there are."""
    some = ", ".join(_shown(value) for value in values[:_MAX_CHOICES])
    return some + (f" and {len(values) - _MAX_CHOICES} more" if len(values) > _MAX_CHOICES else "")


def _property_schema(schema: Mapping[str, Any], name: str) -> Any:
    return schema.get("properties", {}).get(name, True)


def _kind_wanted(schema: Any) -> str:
    """Returns the type that a schema wants, in a few words; empty if it names none."""
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
    return " or ".join(dict.fromkeys(kinds)) if kinds and all(kinds) and len(kinds) <= _MAX_CHOICES else ""


def _nearest_property(name: str, schema: Mapping[str, Any]) -> str:
    """Suggests the known property most similar to an unknown one, else lists the known ones."""
    known: list[str] = [each for each in islice(schema.get("properties", {}), 200) if len(each) <= _MAX_VALUE]
    if not known:
        return "; there are no properties"
    near = nearest(name, known)
    return f"; known are {_listed(known)}" if near is None else f"; did you mean {_shown(near)}?"


def _best(violation: Violation) -> Violation:
    """Returns, of a violated choice, the first violation of the branch that was probably meant; others as they are."""
    for _ in range(10):
        if violation.keyword != "anyOf" or not violation.branches:
            break
        meant = min(violation.branches, key=lambda branch: _distance(branch, violation.path))
        if _distance(meant, violation.path)[0]:
            values = [value for branch in violation.branches for value in _constants(branch, violation.path)]
            if values:
                return violation._replace(keyword="enum", wanted=values)
            break
        violation = meant[0]
    return violation


def _distance(branch: tuple[Violation, ...], path: Path) -> tuple[int, int, int]:
    """Returns the distance of a value from a branch: another type, another variant, the number of violations."""
    at_root = [
        violation for violation in branch if violation.path == path and violation.keyword in ("type", "const", "enum")
    ]
    variant = [violation for violation in branch if violation.keyword in ("const", "enum")]
    return (min(len(at_root), 1), len(variant), len(branch))


def _constants(branch: tuple[Violation, ...], path: Path) -> list[Any]:
    """Lists the values that a branch of constants allows."""
    found: list[Any] = []
    for violation in branch:
        if violation.path == path and violation.keyword == "const":
            found.append(violation.wanted)
        elif violation.path == path and violation.keyword == "enum":
            found.extend(violation.wanted)
    return found
