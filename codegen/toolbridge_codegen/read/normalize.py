"""Normalised reading of schemas: drafts 4 to 2020-12, and the habits of real servers, as one language.

A keyword means what the draft that defines it says, whatever draft a schema declares. A keyword of the wrong type is
reported and ignored. Nothing is copied: schemas are read as needed.

Named rules, by which a type may be narrower than the schema. The first four don't hold in the literal reading
(`Reading`), where no type refuses a valid instance:

- "An object that lists properties is closed": it has no others, unless `additionalProperties`, `patternProperties` or
  `unevaluatedProperties` says so, so that a misspelt property is an error. All parts of an `allOf` are one object, and
  so is each branch of an `anyOf` or `oneOf` with its siblings. Properties listed only by a condition (`if`, `then`,
  `else`, `dependentSchemas`) or by another branch of an `anyOf` stay possible, and so do those required only by
  a condition, `dependentRequired` or a choice between remarks. An empty list of properties means nothing, except that
- "A tool that lists no parameters takes none".
- "Treat missing 'type' with 'properties' as object" (with any other keyword about properties too, but
  `unevaluatedProperties`), and with `items` or `prefixItems` as array.
- "Pattern properties are all the other properties": the union of them in all parts of an `allOf`, and of
  `additionalProperties` if present.
- "Draft 3's `required: true` on a property makes it required".

One rule makes a type wider: OpenAPI's `nullable: true` admits null.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from toolbridge_codegen.escaping import is_list, is_object
from toolbridge_codegen.model import Reporter
from toolbridge_codegen.read.kinds import ANY_KIND, ARRAY, NULL, OBJECT, kinds_of_type
from toolbridge_codegen.read.refs import REFERENCES

OBJECT_STRUCTURE = frozenset({"properties", "patternProperties", "additionalProperties", "unevaluatedProperties"})
ARRAY_STRUCTURE = frozenset({"items", "prefixItems", "additionalItems", "unevaluatedItems"})
_ABOUT_OBJECTS = OBJECT_STRUCTURE - {"unevaluatedProperties"}
_ABOUT_ARRAYS = ARRAY_STRUCTURE - {"unevaluatedItems"}
"""Keywords that imply an object or an array; the `unevaluated…` ones apply to any value."""
CONDITIONS = frozenset({"if", "then", "else", "dependentSchemas", "dependencies"})

CONSTRAINTS = (
    OBJECT_STRUCTURE
    | ARRAY_STRUCTURE
    | CONDITIONS
    | {"type", "enum", "const", "required", "maxItems", "minItems", "contains"}
)
"""Keywords that a type depends on, besides references, `allOf` and choices."""

CHOICES = ("anyOf", "oneOf")

SHAPING = CONSTRAINTS - CONDITIONS - {"required", "maxItems", "minItems", "contains"} | REFERENCES | {"allOf", *CHOICES}
"""Keywords that make a branch of a choice more than a remark about its base."""

NOT_PLAIN = REFERENCES | {"allOf", "anyOf", "oneOf", "enum", "const", "nullable", "x-nullable"}
"""A schema with a scalar type and none of these is that scalar type."""

MISSING = object()

UNRESOLVED: dict[str, Any] = {}
"""A fact in place of an unresolved reference, which may describe anything."""


def is_nullable(schema: dict[str, Any]) -> bool:
    """Whether OpenAPI's `nullable` admits null."""
    return schema.get("nullable") is True or schema.get("x-nullable") is True


def declared_kinds(schema: dict[str, Any], reporter: Reporter) -> int:
    """Returns the kinds that the schema's `type` admits, null too if nullable; all without a `type`.

    Reports a `type` that is not of JSON Schema.
    """
    declared = schema.get("type", MISSING)
    if declared is MISSING:
        return ANY_KIND
    kinds, odd = kinds_of_type(declared)
    if odd:
        reporter.report(schema, "type", odd)
    return kinds | NULL if is_nullable(schema) else kinds


def inferred_kinds(facts: list[dict[str, Any]]) -> int:
    """Returns the kinds that keywords about properties or items imply: object, array, or null too if nullable.

    All kinds if no schema has such a keyword. Ignores `type`.
    """
    kinds = 0
    for fact in facts:
        if not _ABOUT_OBJECTS.isdisjoint(fact):
            kinds |= OBJECT
        if not _ABOUT_ARRAYS.isdisjoint(fact):
            kinds |= ARRAY
    if kinds and any(is_nullable(fact) for fact in facts):
        kinds |= NULL
    return kinds or ANY_KIND


def admits_nothing(schema: Any) -> bool:
    """Returns whether a schema is `false`, or has `"not": {}` or `"not": true`.

    A `not` beside a reference is ignored.
    """
    if not is_object(schema):
        return schema is False
    if "not" not in schema or not REFERENCES.isdisjoint(schema):
        return False
    excluded = schema["not"]
    return excluded is True or (is_object(excluded) and not excluded)


def check_references(schema: dict[str, Any], reporter: Reporter) -> None:
    """Reports a diagnostic for each reference keyword whose value is no string."""
    for keyword in sorted(REFERENCES.intersection(schema)):
        if not isinstance(schema[keyword], str):
            reporter.report(schema, keyword, f"'{keyword}' is not a string")


def member_map(schema: dict[str, Any], keyword: str, reporter: Reporter) -> dict[str, Any]:
    """Returns the value of a keyword that maps names to schemas; empty, with a diagnostic, if it is no object."""
    value = schema.get(keyword)
    if is_object(value):
        return value
    if value is not None or keyword in schema:
        reporter.report(schema, keyword, f"'{keyword}' is not an object")
    return {}


def member_list(schema: dict[str, Any], keyword: str, reporter: Reporter) -> list[Any]:
    """Returns the value of a keyword that lists schemas; empty, with a diagnostic, if it is no list.

    An empty list is reported, too.
    """
    value = schema.get(keyword)
    if is_list(value):
        if not value:
            reporter.report(schema, keyword, f"'{keyword}' is an empty list")
        return value
    if keyword in schema:
        reporter.report(schema, keyword, f"'{keyword}' is not a list")
    return []


def lists_properties(schema: dict[str, Any]) -> bool:
    """Whether the schema lists any properties."""
    return bool(is_object(properties := schema.get("properties")) and properties)


def required_names(schema: dict[str, Any], reporter: Reporter) -> list[str]:
    """Returns the names in `required`, in order; reports what is no list or no name.

    Draft 3's boolean `required`, which is about the schema itself, gives none.
    """
    value = schema.get("required")
    if value is None or isinstance(value, bool):  # draft 3: about the schema itself
        return []
    if not is_list(value):
        reporter.report(schema, "required", "'required' is not a list")
        return []
    names = [name for name in value if isinstance(name, str)]
    if len(names) != len(value):
        reporter.report(schema, "required", "'required' lists something that is not a name")
    return names


def requires_itself(schema: Any) -> bool:
    """Whether a property's schema has draft 3's `required: true`."""
    return is_object(schema) and schema.get("required") is True


class ExtraStatement(NamedTuple):
    """A schema's statement about properties that it doesn't list."""

    schemas: list[Any]
    """One of these holds for each; none means that there are no others."""
    by_pattern: bool
    is_complete: bool
    """Whether it covers every other property, not only those that a pattern matches."""


def extra_statement(schema: dict[str, Any], reporter: Reporter) -> ExtraStatement | None:
    """Returns a schema's statement about the properties that it doesn't list; None if it has none.

    Reports a malformed `additionalProperties`, which counts as true.
    """
    additional = schema.get("additionalProperties", MISSING)
    if additional is not MISSING and not isinstance(additional, bool) and not is_object(additional):
        reporter.report(schema, "additionalProperties", "'additionalProperties' is not a schema")
        additional = True if additional is not None else MISSING
    schemas: list[Any] = []
    if "patternProperties" in schema:
        schemas += member_map(schema, "patternProperties", reporter).values()
    by_pattern = bool(schemas)
    if additional is MISSING:
        return ExtraStatement(schemas, by_pattern, is_complete=False) if by_pattern else None
    if not admits_nothing(additional):
        schemas.append(additional)
    return ExtraStatement(schemas, by_pattern, is_complete=True)


class ItemsStatement(NamedTuple):
    """A schema's statement about the items of an array."""

    prefix: list[Any]
    rest: Any
    """The schema of further items."""


def items_statement(schema: dict[str, Any], reporter: Reporter) -> ItemsStatement:
    """Returns the items by position and the schema of the rest, in the syntax of any draft."""
    items = schema.get("items", MISSING)
    prefix: list[Any] = []
    if "prefixItems" in schema:
        prefix = member_list(schema, "prefixItems", reporter)
    if is_list(items):  # before 2020-12
        return ItemsStatement(prefix or items, _schema_or_true(schema, "additionalItems", reporter))
    if items is MISSING:
        return ItemsStatement(prefix, True)
    return ItemsStatement(prefix, _schema_or_true(schema, "items", reporter))


def _schema_or_true(schema: dict[str, Any], keyword: str, reporter: Reporter) -> Any:
    """Returns the schema under a keyword: true if it is absent, or malformed, which is reported."""
    value = schema.get(keyword, True)
    if isinstance(value, bool) or is_object(value):
        return value
    reporter.report(schema, keyword, f"'{keyword}' is not a schema")
    return True


def whole_number(schema: dict[str, Any], keyword: str) -> int | None:
    """Returns the value of a counting keyword, rounded down; None if absent, negative, from 2**53 on or no number."""
    value = schema.get(keyword)
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < 2**53 else None


def is_remark(branch: Any) -> bool:
    """Returns whether a branch of a choice only remarks on its base: requires properties, or excludes something.

    A branch that admits nothing is no remark.
    """
    return is_object(branch) and SHAPING.isdisjoint(branch) and not admits_nothing(branch)
