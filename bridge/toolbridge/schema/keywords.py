"""SECURITY: the validator: the keywords of JSON Schema, applied to a hostile value with a step budget.

The `jsonschema` package is its oracle in the tests. It is not used here: it copies the whole value into each error's
text, also for branches that it only tries, and has no budget.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

from toolbridge.schema.compile import CleanSchema, CompiledSchema, safe_pattern

_KINDS: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
    type(None): "null",
}
_MAX_COMPARED = 1_000


def kind_of_value(value: object) -> str:
    """Returns the JSON type of a value, `integer` for an int; empty if it has none."""
    return _KINDS.get(type(value), "")


def fits_kind(value: object, kinds: list[str]) -> bool:
    """Returns whether a value is of one of these types. An integer is a number, and 1.0 is an integer.

    True for a value without a JSON type.
    """
    kind = kind_of_value(value)
    if kind in kinds or not kind:
        return True
    if kind == "integer":
        return "number" in kinds
    return kind == "number" and "integer" in kinds and cast("float", value).is_integer()


def _is_number(value: object) -> bool:
    return type(value) is int or type(value) is float


def _same(value: Any, other: Any) -> bool:
    """Compares two JSON values: in Python, unlike in JSON, `True` equals 1."""
    if value != other:
        return False
    if type(value) is dict:
        return all(_same(member, other[name]) for name, member in cast("dict[str, Any]", value).items())
    if type(value) is list:
        return all(map(_same, cast("list[Any]", value), other))
    return (type(value) is bool) == (type(other) is bool)


def _multiple(value: Any, step: Any) -> bool:
    """Returns whether a number is a multiple of `step`, with a tolerance for floats; True for anything else."""
    if not _is_number(value):
        return True
    if type(value) is int and type(step) is int:
        return value % step == 0
    try:
        # Tolerant: in floats, 0.3 is no multiple of 0.1.
        times = value / step
        return times - times != 0.0 or abs(times - round(times)) <= 1e-9 * max(1.0, abs(times))
    except (OverflowError, ZeroDivisionError):
        return True


def _unique(value: Any, wanted: bool) -> bool:
    """Returns whether a list's members all differ; True for anything else, and for more than 1,000 members."""
    if not wanted or type(value) is not list or len(cast("list[Any]", value)) > _MAX_COMPARED:
        return True
    members = cast("list[Any]", value)
    try:
        return len({json.dumps(member, sort_keys=True) for member in members}) == len(members)
    except (TypeError, ValueError):
        return True


def _matches(value: Any, pattern: str) -> bool:
    """Returns whether a text matches a pattern; True for anything else, and where the pattern can't safely be run."""
    if type(value) is not str:
        return True
    safe = safe_pattern(pattern)
    return safe is None or not safe.refuses(value)


def _sized(kind: type) -> tuple[Callable[[Any, int], bool], Callable[[Any, int], bool]]:
    """Makes the rules of the minimum and maximum length of a type, which accept values of other types."""
    return (
        lambda value, least: type(value) is not kind or len(value) >= least,
        lambda value, most: type(value) is not kind or len(value) <= most,
    )


_at_least_characters, _at_most_characters = _sized(str)
_at_least_items, _at_most_items = _sized(list)
_at_least_properties, _at_most_properties = _sized(dict)

SCALAR_RULES: dict[str, Callable[[Any, Any], bool]] = {
    "enum": lambda value, wanted: any(_same(value, each) for each in wanted),
    "const": _same,
    "minimum": lambda value, least: not _is_number(value) or value >= least,
    "maximum": lambda value, most: not _is_number(value) or value <= most,
    "exclusiveMinimum": lambda value, bound: not _is_number(value) or value > bound,
    "exclusiveMaximum": lambda value, bound: not _is_number(value) or value < bound,
    "multipleOf": _multiple,
    "minLength": _at_least_characters,
    "maxLength": _at_most_characters,
    "pattern": _matches,
    "minItems": _at_least_items,
    "maxItems": _at_most_items,
    "uniqueItems": _unique,
    "minProperties": _at_least_properties,
    "maxProperties": _at_most_properties,
}


Path: TypeAlias = tuple[str | int, ...]
"""A place in a value: property names and list indices."""


class Violation(NamedTuple):
    """One keyword that a value violates."""

    path: Path
    keyword: str
    wanted: Any
    """The keyword's value; for a missing or unknown property, its name."""
    value: Any
    schema: Mapping[str, Any]
    """The schema with the keyword."""
    branches: tuple[tuple[Violation, ...], ...] = ()
    """The violations of each branch of `anyOf`."""


class ValidationResult(NamedTuple):
    """The violations of a value."""

    violations: tuple[Violation, ...]
    complete: bool
    """False when the budget ended before the whole value was validated."""


Rule: TypeAlias = "Callable[[Validator, Any, Any, dict[str, Any], Path], bool]"
"""Validates a keyword's value, a value, the keyword's schema and a place; reports violations."""


def _reference(validator: Validator, name: str, value: Any, _schema: dict[str, Any], path: Path) -> bool:
    return validator.validate(validator.definitions[name], value, path)


# ---- rules for objects


def _properties(
    validator: Validator, wanted: dict[str, CleanSchema], value: Any, _schema: dict[str, Any], path: Path
) -> bool:
    """Validates each member that the schema names; returns whether all are valid."""
    fits = True
    for name in value if len(value) < len(wanted) else wanted:
        if name in wanted and name in value:
            fits = validator.validate(wanted[name], value[name], (*path, name)) and fits
    return fits


def _required(validator: Validator, names: list[str], value: Any, schema: dict[str, Any], path: Path) -> bool:
    """Reports each name that the value lacks; returns whether it has all."""
    fits = True
    for name in names:
        if name not in value:
            fits = validator.report(Violation(path, "required", name, value, schema))
    return fits


def _additional_properties(
    validator: Validator, wanted: CleanSchema, value: Any, schema: dict[str, Any], path: Path
) -> bool:
    """Validates, or reports, each member that neither a name nor a pattern covers; returns whether all are valid."""
    if wanted is True:
        return True
    known: dict[str, Any] = schema.get("properties", {})
    patterns: dict[str, Any] = schema.get("patternProperties", {})
    validator.spend(len(value) // 10)
    fits = True
    for name, member in value.items():
        if name in known or (patterns and _matches_any(validator, patterns, name)):
            continue
        if wanted is False:
            fits = validator.report(Violation(path, "additionalProperties", name, member, schema))
        else:
            fits = validator.validate(wanted, member, (*path, name)) and fits
    return fits


def _matches_any(validator: Validator, patterns: dict[str, Any], name: str) -> bool:
    """Returns whether a name matches one of the patterns; spends a step for each."""
    validator.spend(len(patterns))
    return any(_matches(name, pattern) for pattern in patterns)


def _pattern_properties(
    validator: Validator, wanted: dict[str, CleanSchema], value: Any, _schema: dict[str, Any], path: Path
) -> bool:
    """Validates each member whose name surely matches a pattern; returns whether all are valid."""
    fits = True
    for pattern, schema in wanted.items():
        safe = safe_pattern(pattern)
        for name, member in value.items():
            validator.spend(1)
            # A name that is too long for the pattern may or may not match.
            if safe is not None and len(name) <= safe.longest and not safe.refuses(name):
                fits = validator.validate(schema, member, (*path, name)) and fits
    return fits


def _property_names(validator: Validator, wanted: CleanSchema, value: Any, schema: dict[str, Any], path: Path) -> bool:
    """Reports each name that violates the schema `wanted`; returns whether none does."""
    fits = True
    for name in value:
        if validator.violations_of(wanted, name, path):
            fits = validator.report(Violation(path, "propertyNames", name, name, schema))
    return fits


def _dependent_required(
    validator: Validator, wanted: dict[str, list[str]], value: Any, schema: dict[str, Any], path: Path
) -> bool:
    """Reports each name that the value lacks beside a member which requires it; returns whether it has all."""
    return False not in [
        _required(validator, needed, value, schema, path) for name, needed in wanted.items() if name in value
    ]


def _dependent_schemas(
    validator: Validator, wanted: dict[str, CleanSchema], value: Any, _schema: dict[str, Any], path: Path
) -> bool:
    """Validates the value against the schema of each member that it has; returns whether it fits all."""
    return False not in [validator.validate(schema, value, path) for name, schema in wanted.items() if name in value]


# ---- rules for lists


def _items(validator: Validator, wanted: CleanSchema, value: Any, schema: dict[str, Any], path: Path) -> bool:
    """Validates the items after those of `prefixItems`; returns whether all are valid."""
    if wanted is True:
        return True
    indices = range(len(schema.get("prefixItems", ())), len(value))
    return False not in [validator.validate(wanted, value[index], (*path, index)) for index in indices]


def _prefix_items(
    validator: Validator, wanted: list[CleanSchema], value: Any, _schema: dict[str, Any], path: Path
) -> bool:
    """Validates the first items, each against its own schema; returns whether all are valid."""
    pairs = enumerate(zip(wanted, value, strict=False))
    return False not in [validator.validate(schema, member, (*path, index)) for index, (schema, member) in pairs]


def _contains(validator: Validator, wanted: CleanSchema, value: Any, schema: dict[str, Any], path: Path) -> bool:
    """Reports the list if too few items fit; counts no further than `minContains`. Returns whether enough fit."""
    missing: int = schema.get("minContains", 1)
    for index, member in enumerate(value):
        if missing <= 0:
            break
        validator.spend(1)
        if not validator.violations_of(wanted, member, (*path, index)):
            missing -= 1
    return missing <= 0 or validator.report(Violation(path, "contains", wanted, value, schema))


# ---- rules for choices


def _all_of(validator: Validator, wanted: list[CleanSchema], value: Any, _schema: dict[str, Any], path: Path) -> bool:
    """Validates the value against each schema; returns whether it fits all."""
    return False not in [validator.validate(schema, value, path) for schema in wanted]


def _any_of(validator: Validator, wanted: list[CleanSchema], value: Any, schema: dict[str, Any], path: Path) -> bool:
    """Returns whether the value fits a branch, at the first that it fits; if none, reports the violations of all."""
    branches: list[tuple[Violation, ...]] = []
    for branch in wanted:
        violations = validator.violations_of(branch, value, path)
        if not violations:
            return True
        branches.append(tuple(violations))
    return validator.report(Violation(path, "anyOf", wanted, value, schema, tuple(branches)))


def _not(validator: Validator, wanted: CleanSchema, value: Any, schema: dict[str, Any], path: Path) -> bool:
    """Reports the value if it fits `wanted`; returns whether it doesn't."""
    if validator.violations_of(wanted, value, path):
        return True
    return validator.report(Violation(path, "not", wanted, value, schema))


def _if(validator: Validator, wanted: CleanSchema, value: Any, schema: dict[str, Any], path: Path) -> bool:
    """Validates the value against `then` or `else`, by whether it fits `wanted`; returns whether it is valid."""
    branch = "else" if validator.violations_of(wanted, value, path) else "then"
    return validator.validate(schema.get(branch, True), value, path)


STRUCTURE_RULES: dict[str, tuple[Rule, type]] = {
    "$ref": (_reference, object),
    "properties": (_properties, dict),
    "required": (_required, dict),
    "additionalProperties": (_additional_properties, dict),
    "patternProperties": (_pattern_properties, dict),
    "propertyNames": (_property_names, dict),
    "dependentRequired": (_dependent_required, dict),
    "dependentSchemas": (_dependent_schemas, dict),
    "items": (_items, list),
    "prefixItems": (_prefix_items, list),
    "contains": (_contains, list),
    "allOf": (_all_of, object),
    "anyOf": (_any_of, object),
    "not": (_not, object),
    "if": (_if, object),
}
"""The rule of each keyword, and the type of the values that it is about."""

_MAX_VIOLATIONS = 20
_MAX_DEPTH = 120
_MAX_SECONDS = 0.2
"""For costs that steps don't measure: comparisons of large values, patterns on long texts."""
_COSTLY = frozenset({"enum", "const", "pattern", "uniqueItems"})
_CLOCK_MASK = 127


class _BudgetError(Exception):
    """The budget is exhausted."""


def validate(schema: CompiledSchema, value: Any, *, steps: int) -> ValidationResult:
    """Validates a value; parts beyond the step budget, or 0.2 seconds, are taken as valid."""
    validator = Validator(schema.definitions, steps)
    try:
        validator.validate(schema.schema, value, ())
    except (_BudgetError, RecursionError):
        return ValidationResult(tuple(validator.found), complete=False)
    return ValidationResult(tuple(validator.found), complete=True)


class Validator:
    """Validates one value."""

    __slots__ = ("_deadline", "_depth", "_sink", "_steps", "definitions", "found")

    def __init__(self, definitions: Mapping[str, CleanSchema], steps: int) -> None:
        self.definitions = definitions
        self._steps = steps
        self._deadline = time.monotonic() + _MAX_SECONDS
        self._depth = 0
        self.found: list[Violation] = []
        # Where violations go: those inside a choice are not violations of the value yet.
        self._sink = self.found

    def validate(self, schema: CleanSchema, value: Any, path: Path) -> bool:
        """Validates a value against a schema and reports violations; returns False if there are any.

        Raises:
            _BudgetError: the budget is exhausted, the nesting too deep, or enough violations are found.
        """
        if schema is True:
            return True
        self._steps -= 1
        if self._steps < 0 or not self._steps & _CLOCK_MASK:
            self.spend(0)
        if schema is False:
            return self.report(Violation(path, "false", None, value, {}))
        assert isinstance(schema, dict)
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _BudgetError
        fits = True
        for keyword, wanted in schema.items():
            if keyword == "type":
                is_valid = fits_kind(value, wanted)
            elif (scalar := SCALAR_RULES.get(keyword)) is not None:
                if keyword in _COSTLY:
                    self.spend((_length(value) + _length(wanted)) // 20)
                is_valid = scalar(value, wanted)
            elif (structure := STRUCTURE_RULES.get(keyword)) is not None:
                rule, kind = structure
                fits = (kind not in (object, type(value)) or rule(self, wanted, value, schema, path)) and fits
                continue
            else:
                continue
            if not is_valid:
                fits = self.report(Violation(path, keyword, wanted, value, schema))
        self._depth -= 1
        return fits

    def spend(self, steps: int) -> None:
        """Takes steps off the budget.

        Raises:
            _BudgetError: the budget or the time is exhausted.
        """
        self._steps -= steps
        if self._steps < 0 or time.monotonic() > self._deadline:
            raise _BudgetError

    def report(self, violation: Violation) -> bool:
        """Keeps a violation; returns False, for its caller to return.

        Inside a branch, those after the 20th are dropped.

        Raises:
            _BudgetError: there are enough violations.
        """
        if len(self._sink) < _MAX_VIOLATIONS:
            self._sink.append(violation)
        elif self._sink is self.found:
            raise _BudgetError
        return False

    def violations_of(self, schema: CleanSchema, value: Any, path: Path) -> list[Violation]:
        """Returns the violations of a value in a branch, without reporting them.

        Raises:
            _BudgetError: the budget is exhausted.
        """
        inner: list[Violation] = []
        outer, self._sink = self._sink, inner
        self.validate(schema, value, path)
        self._sink = outer
        return inner


def _length(value: object) -> int:
    return len(cast("str", value)) if isinstance(value, (str, list, dict)) else 0
