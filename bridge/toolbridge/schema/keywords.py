"""Keywords of a schema that look into a value, or try it on other schemas."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

from toolbridge.schema.compile import Checkable, CleanSchema, safe_pattern

# Keywords of a schema that need no more than the value itself. In doubt, a value fits.


_KINDS: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
    type(None): "null",
}
_MOST_COMPARED = 1_000


def kind_of_value(value: object) -> str:
    """The JSON type of a value: `integer` for whole numbers; empty for what is no JSON."""
    return _KINDS.get(type(value), "")


def fits_kind(value: object, kinds: list[str]) -> bool:
    """Whether a value is of one of these types. An integer is a number, and 1.0 is an integer."""
    kind = kind_of_value(value)
    if kind in kinds or not kind:
        return True
    if kind == "integer":
        return "number" in kinds
    return kind == "number" and "integer" in kinds and cast("float", value).is_integer()


def _is_number(value: object) -> bool:
    return type(value) is int or type(value) is float


def _same(value: Any, other: Any) -> bool:
    """Equal as JSON: in Python `True` is 1 as well."""
    if value != other:
        return False
    if type(value) is dict:
        return all(_same(member, other[name]) for name, member in cast("dict[str, Any]", value).items())
    if type(value) is list:
        return all(map(_same, cast("list[Any]", value), other))
    return (type(value) is bool) == (type(other) is bool)


def _multiple(value: Any, step: Any) -> bool:
    if not _is_number(value):
        return True
    if type(value) is int and type(step) is int:
        return value % step == 0
    try:
        # 0.3 is a multiple of 0.1 to everybody but a computer.
        times = value / step
        return times - times != 0.0 or abs(times - round(times)) <= 1e-9 * max(1.0, abs(times))
    except (OverflowError, ZeroDivisionError):
        return True


def _unique(value: Any, wanted: bool) -> bool:
    if not wanted or type(value) is not list or len(cast("list[Any]", value)) > _MOST_COMPARED:
        return True
    members = cast("list[Any]", value)
    try:
        return len({json.dumps(member, sort_keys=True) for member in members}) == len(members)
    except (TypeError, ValueError):
        return True


def _matches(value: Any, pattern: str) -> bool:
    if type(value) is not str:
        return True
    safe = safe_pattern(pattern)
    return safe is None or not safe.refuses(value)


def _sized(kind: type) -> tuple[Callable[[Any, int], bool], Callable[[Any, int], bool]]:
    """At least and at most so many characters, items or properties."""
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


# What can be wrong with a value, as data.


Path: TypeAlias = tuple[str | int, ...]
"""A place in a value: names of properties and places in lists."""


class Problem(NamedTuple):
    """One thing that is wrong with a value."""

    path: Path
    keyword: str
    wanted: Any
    """The keyword's value; for a missing or unknown property, its name."""
    value: Any
    schema: Mapping[str, Any]
    """The schema that has the keyword."""
    branches: tuple[tuple[Problem, ...], ...] = ()
    """What is wrong with the value for each branch of a choice."""


class Verdict(NamedTuple):
    """What was found."""

    problems: tuple[Problem, ...]
    complete: bool
    """False when the value was only looked at in part."""


Rule: TypeAlias = "Callable[[Judgement, Any, Any, dict[str, Any], Path], bool]"
"""Whether a keyword's value, a value, the keyword's schema and a place fit; problems are noted."""


def _reference(judgement: Judgement, name: str, value: Any, _schema: dict[str, Any], path: Path) -> bool:
    return judgement.check(judgement.meant(name), value, path)


# ---- objects


def _properties(
    judgement: Judgement, wanted: dict[str, CleanSchema], value: Any, _schema: dict[str, Any], path: Path
) -> bool:
    if type(value) is not dict:
        return True
    members = cast("dict[str, Any]", value)
    fits = True
    if len(members) < len(wanted):
        for name, member in members.items():
            if name in wanted:
                fits = judgement.check(wanted[name], member, (*path, name)) and fits
        return fits
    for name, schema in wanted.items():
        if name in members:
            fits = judgement.check(schema, members[name], (*path, name)) and fits
    return fits


def _required(judgement: Judgement, names: list[str], value: Any, schema: dict[str, Any], path: Path) -> bool:
    if type(value) is not dict:
        return True
    fits = True
    for name in names:
        if name not in value:
            fits = judgement.report(Problem(path, "required", name, cast("Any", value), schema))
    return fits


def _additional_properties(
    judgement: Judgement, wanted: CleanSchema, value: Any, schema: dict[str, Any], path: Path
) -> bool:
    if type(value) is not dict or wanted is True:
        return True
    known: dict[str, Any] = schema.get("properties", {})
    patterns: dict[str, Any] = schema.get("patternProperties", {})
    members = cast("dict[str, Any]", value)
    judgement.spend(len(members) // 10)
    fits = True
    for name, member in members.items():
        if name in known or (patterns and _some_pattern(judgement, patterns, name)):
            continue
        if wanted is False:
            fits = judgement.report(Problem(path, "additionalProperties", name, member, schema))
        else:
            fits = judgement.check(wanted, member, (*path, name)) and fits
    return fits


def _some_pattern(judgement: Judgement, patterns: dict[str, Any], name: str) -> bool:
    judgement.spend(len(patterns))
    return any(not _refuses(pattern, name) for pattern in patterns)


def _refuses(pattern: str, text: str) -> bool:
    safe = safe_pattern(pattern)
    return safe is not None and safe.refuses(text)


def _pattern_properties(
    judgement: Judgement, wanted: dict[str, CleanSchema], value: Any, _schema: dict[str, Any], path: Path
) -> bool:
    if type(value) is not dict:
        return True
    fits = True
    for pattern, schema in wanted.items():
        safe = safe_pattern(pattern)
        for name, member in cast("dict[str, Any]", value).items():
            judgement.spend(1)
            # A name that is too long for the pattern is not known to match it.
            if safe is not None and len(name) <= safe.longest and not safe.refuses(name):
                fits = judgement.check(schema, member, (*path, name)) and fits
    return fits


def _property_names(judgement: Judgement, wanted: CleanSchema, value: Any, schema: dict[str, Any], path: Path) -> bool:
    if type(value) is not dict:
        return True
    fits = True
    for name in cast("dict[str, Any]", value):
        if judgement.tried(wanted, name, path):
            fits = judgement.report(Problem(path, "propertyNames", name, name, schema))
    return fits


def _dependent_required(
    judgement: Judgement, wanted: dict[str, list[str]], value: Any, schema: dict[str, Any], path: Path
) -> bool:
    if type(value) is not dict:
        return True
    fits = True
    for name, needed in wanted.items():
        if name in value:
            fits = _required(judgement, needed, cast("Any", value), schema, path) and fits
    return fits


def _dependent_schemas(
    judgement: Judgement, wanted: dict[str, CleanSchema], value: Any, _schema: dict[str, Any], path: Path
) -> bool:
    if type(value) is not dict:
        return True
    members = cast("dict[str, Any]", value)
    fits = True
    for name, schema in wanted.items():
        if name in members:
            fits = judgement.check(schema, members, path) and fits
    return fits


# ---- lists


def _items(judgement: Judgement, wanted: CleanSchema, value: Any, schema: dict[str, Any], path: Path) -> bool:
    if type(value) is not list or wanted is True:
        return True
    fits = True
    members = cast("list[Any]", value)
    for index in range(len(schema.get("prefixItems", ())), len(members)):
        fits = judgement.check(wanted, members[index], (*path, index)) and fits
    return fits


def _prefix_items(
    judgement: Judgement, wanted: list[CleanSchema], value: Any, _schema: dict[str, Any], path: Path
) -> bool:
    if type(value) is not list:
        return True
    members = cast("list[Any]", value)
    fits = True
    for index, schema in enumerate(wanted[: len(members)]):
        fits = judgement.check(schema, members[index], (*path, index)) and fits
    return fits


def _contains(judgement: Judgement, wanted: CleanSchema, value: Any, schema: dict[str, Any], path: Path) -> bool:
    if type(value) is not list:
        return True
    missing: int = schema.get("minContains", 1)
    for index, member in enumerate(cast("list[Any]", value)):
        if missing <= 0:
            break
        judgement.spend(1)
        if not judgement.tried(wanted, member, (*path, index)):
            missing -= 1
    return missing <= 0 or judgement.report(Problem(path, "contains", wanted, cast("Any", value), schema))


# ---- choices


def _all_of(judgement: Judgement, wanted: list[CleanSchema], value: Any, _schema: dict[str, Any], path: Path) -> bool:
    fits = True
    for schema in wanted:
        fits = judgement.check(schema, value, path) and fits
    return fits


def _any_of(judgement: Judgement, wanted: list[CleanSchema], value: Any, schema: dict[str, Any], path: Path) -> bool:
    branches: list[tuple[Problem, ...]] = []
    for branch in wanted:
        problems = judgement.tried(branch, value, path)
        if not problems:
            return True
        branches.append(tuple(problems))
    return judgement.report(Problem(path, "anyOf", wanted, value, schema, tuple(branches)))


def _not(judgement: Judgement, wanted: CleanSchema, value: Any, schema: dict[str, Any], path: Path) -> bool:
    if judgement.tried(wanted, value, path):
        return True
    return judgement.report(Problem(path, "not", wanted, value, schema))


def _if(judgement: Judgement, wanted: CleanSchema, value: Any, schema: dict[str, Any], path: Path) -> bool:
    branch = "else" if judgement.tried(wanted, value, path) else "then"
    return judgement.check(schema.get(branch, True), value, path)


STRUCTURE_RULES: dict[str, Rule] = {
    "$ref": _reference,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional_properties,
    "patternProperties": _pattern_properties,
    "propertyNames": _property_names,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "items": _items,
    "prefixItems": _prefix_items,
    "contains": _contains,
    "allOf": _all_of,
    "anyOf": _any_of,
    "not": _not,
    "if": _if,
}


# SECURITY: does a value fit a schema, and if not, where and why. Both may be hostile; the work is bounded.
#
# The `jsonschema` package is the judge of this one in the tests, and not used here: it writes the whole value into
# the text of each error, also of those that it only tries for a choice, and counts nothing.


_MOST_PROBLEMS = 20
_DEEPEST = 120
_MOST_SECONDS = 0.2
"""For what a count of steps doesn't tell: comparisons of large values, long texts on patterns."""
_COSTLY = frozenset({"enum", "const", "pattern", "uniqueItems"})
_MASK = 127


class _DoneError(Exception):
    """Enough was looked at."""


def judge(schema: Checkable, value: Any, *, steps: int) -> Verdict:
    """What is wrong with a value. After so many steps, the rest of it is taken as right."""
    judgement = Judgement(schema.definitions, steps)
    try:
        judgement.check(schema.schema, value, ())
    except (_DoneError, RecursionError):
        return Verdict(tuple(judgement.found), complete=False)
    return Verdict(tuple(judgement.found), complete=True)


class Judgement:
    """One value being judged."""

    __slots__ = ("_deadline", "_definitions", "_depth", "_sink", "_steps", "found")

    def __init__(self, definitions: Mapping[str, CleanSchema], steps: int) -> None:
        self._definitions = definitions
        self._steps = steps
        self._deadline = time.monotonic() + _MOST_SECONDS
        self._depth = 0
        self.found: list[Problem] = []
        # Where problems go: inside a choice, they are not yet problems of the value.
        self._sink = self.found

    def check(self, schema: CleanSchema, value: Any, path: Path) -> bool:
        """Whether a value fits; if not, problems are noted."""
        if schema is True:
            return True
        self._steps -= 1
        if self._steps < 0 or not self._steps & _MASK:
            self.spend(0)
        if schema is False:
            return self.report(Problem(path, "false", None, value, {}))
        assert isinstance(schema, dict)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _DoneError
        fits = True
        for keyword, wanted in schema.items():
            if keyword == "type":
                right = fits_kind(value, wanted)
            elif (scalar := SCALAR_RULES.get(keyword)) is not None:
                if keyword in _COSTLY:
                    self.spend(_cost(value, wanted))
                right = scalar(value, wanted)
            elif (rule := STRUCTURE_RULES.get(keyword)) is not None:
                fits = rule(self, wanted, value, schema, path) and fits
                continue
            else:
                continue
            if not right:
                fits = self.report(Problem(path, keyword, wanted, value, schema))
        self._depth -= 1
        return fits

    def spend(self, steps: int) -> None:
        """Count work, and end it when it was enough."""
        self._steps -= steps
        if self._steps < 0 or time.monotonic() > self._deadline:
            raise _DoneError

    def report(self, problem: Problem) -> bool:
        """Note a problem; it is one, so the answer is no."""
        if len(self._sink) < _MOST_PROBLEMS:
            self._sink.append(problem)
        elif self._sink is self.found:
            raise _DoneError
        return False

    def tried(self, schema: CleanSchema, value: Any, path: Path) -> list[Problem]:
        """What would be wrong; nothing is noted."""
        inner: list[Problem] = []
        outer, self._sink = self._sink, inner
        self.check(schema, value, path)
        self._sink = outer
        return inner

    def meant(self, name: str) -> CleanSchema:
        """What a reference means."""
        return self._definitions[name]


def _cost(value: Any, wanted: Any) -> int:
    """About how many steps a comparison is worth."""
    size = len(cast("str", value)) if isinstance(value, (str, list, dict)) else 0
    return (size + (len(cast("str", wanted)) if isinstance(wanted, (str, list, dict)) else 0)) // 20


# A quick yes to values that surely fit their schema; to any other, the judge has to look.
#
# Most tools take a few scalars and give one, or an object that may hold anything. For those a look at each value's
# type says what the judge would say, at a tenth of the cost. Nothing is ever refused here.


SureFit: TypeAlias = Callable[[Any], bool]
"""Whether a value surely fits: the judge would find no problem, and look at all of it."""

# Every value of these types is of that kind. A float may be an integer: then the judge says so.
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
_OF_FLAT_OBJECTS = frozenset({"type", "properties", "required", "additionalProperties"})
# So many properties and choices take far fewer steps than the judge has.
_MOST_PROPERTIES = 200
_MOST_CHOICES = 5


def sure_fit(schema: Checkable) -> SureFit | None:
    """What says yes to values of a simple schema; None for one that is not simple."""
    root = schema.schema
    types = _types(root)
    if types is not None:
        return lambda value: type(value) in types
    if not isinstance(root, dict) or not _OF_FLAT_OBJECTS.issuperset(root) or root.get("type") != ["object"]:
        return None
    properties: dict[str, CleanSchema] = root.get("properties", {})
    known = {name: _types(each) for name, each in properties.items()}
    if len(known) > _MOST_PROPERTIES or None in known.values():
        return None
    required = frozenset[str](root.get("required", ()))
    if root.get("additionalProperties", True) is not True:
        return _closed_object(cast("dict[str, frozenset[type]]", known), required)
    return None if known or required else lambda value: type(value) is dict


def _closed_object(known: dict[str, frozenset[type]], required: frozenset[str]) -> SureFit:
    """Of the properties that it names; the judge says what is to be done about others."""

    def fits(value: Any) -> bool:
        if type(value) is not dict:
            return False
        members = cast("dict[str, Any]", value)
        for name, member in members.items():
            if type(member) not in known.get(name, _NO_TYPE):
                return False
        return members.keys() >= required

    return fits


def _types(schema: CleanSchema) -> frozenset[type] | None:
    """Of which types every value fits a schema; None if that is not all there is to it."""
    if schema is True or schema == {}:
        return _ANY_TYPE
    if not isinstance(schema, dict) or len(schema) != 1:
        return None
    if "type" in schema:
        return frozenset[type]().union(*(_TYPES[kind] for kind in schema["type"]))
    choices = [_types(choice) for choice in schema.get("anyOf", ())[: _MOST_CHOICES + 1]]
    if not choices or len(choices) > _MOST_CHOICES or None in choices:
        return None
    return frozenset[type]().union(*cast("list[frozenset[type]]", choices))
