"""Keywords of a schema that look into a value, or try it on other schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from toolbridge.servers.checkable_schema import CleanSchema
from toolbridge.servers.safe_patterns import safe_pattern
from toolbridge.servers.schema_problems import Path, Problem

if TYPE_CHECKING:
    from toolbridge.servers.schema_judge import Judgement

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
