"""Normalised reading of schemas: drafts 4 to 2020-12, and what real servers write, read as one language.

A keyword is read by what it means in the draft that defines it, whatever draft a schema declares. A keyword of the
wrong type is reported and otherwise treated as absent. Nothing is copied: these are readings of the server's own
objects, made when they are needed.

Named rules, by which a type may be narrower than the schema. None of the first four holds where schemas are read to
the letter (`Reading`), and there no valid instance is refused by its type:

- "An object that lists properties is closed": it has no others, unless `additionalProperties`, `patternProperties` or
  `unevaluatedProperties` says so. A misspelt property shall be an error. All parts of an `allOf` are one object, and
  so is each branch of an `anyOf` or `oneOf` with what stands beside it. What only a condition (`if`, `then`, `else`,
  `dependentSchemas`) or another branch of an `anyOf` lists stays possible, and so does what only a condition,
  `dependentRequired` or a choice between remarks requires. An empty list of properties says nothing, except that
- "A tool that lists no parameters takes none".
- "Treat missing 'type' with 'properties' as object" (with any other keyword about properties too, but
  `unevaluatedProperties`), and with `items` or `prefixItems` as array.
- "Pattern properties are all the other properties": the union of them in all parts of an `allOf`, and of
  `additionalProperties` if it is given.
- "Draft 3's `required: true` on a property makes it required".

And one by which it is wider: OpenAPI's `nullable: true` admits null.
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
"""What is left over is said of any value: it doesn't make one an object, or an array."""
CONDITIONS = frozenset({"if", "then", "else", "dependentSchemas", "dependencies"})

CONSTRAINTS = (
    OBJECT_STRUCTURE
    | ARRAY_STRUCTURE
    | CONDITIONS
    | {"type", "enum", "const", "required", "maxItems", "minItems", "contains"}
)
"""Keywords that a type depends on, besides references, `allOf`, and choices."""

CHOICES = ("anyOf", "oneOf")

SHAPING = CONSTRAINTS - CONDITIONS - {"required", "maxItems", "minItems", "contains"} | REFERENCES | {"allOf", *CHOICES}
"""Keywords that make a branch of a choice more than a remark about its base."""

NOT_PLAIN = REFERENCES | {"allOf", "anyOf", "oneOf", "enum", "const", "nullable", "x-nullable"}
"""A schema without any of these, and with a scalar type, is that scalar type."""

MISSING = object()

UNRESOLVED: dict[str, Any] = {}
"""Stands among facts for a reference that means nothing here: it may describe, and so evaluate, anything."""


def is_nullable(schema: dict[str, Any]) -> bool:
    """OpenAPI's way to say that null is allowed too."""
    return schema.get("nullable") is True or schema.get("x-nullable") is True


def declared_kinds(schema: dict[str, Any], reporter: Reporter) -> int:
    """The kinds of values that the schema's own `type` admits; all, if it has none."""
    declared = schema.get("type", MISSING)
    if declared is MISSING:
        return ANY_KIND
    kinds, odd = kinds_of_type(declared)
    if odd:
        reporter.report(schema, "type", odd)
    return kinds | NULL if is_nullable(schema) else kinds


def inferred_kinds(facts: list[dict[str, Any]]) -> int:
    """The kinds that schemas without any `type` are about. A server that lists properties means an object."""
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
    """`false`, or what some generators write for it: `{"not": {}}`. Beside a reference, it may mean nothing itself."""
    if not is_object(schema):
        return schema is False
    if "not" not in schema or not REFERENCES.isdisjoint(schema):
        return False
    excluded = schema["not"]
    return excluded is True or (is_object(excluded) and not excluded)


def check_references(schema: dict[str, Any], reporter: Reporter) -> None:
    """Report a reference that is none: what was meant by it is not known."""
    for keyword in sorted(REFERENCES.intersection(schema)):
        if not isinstance(schema[keyword], str):
            reporter.report(schema, keyword, f"'{keyword}' is not a string")


def member_map(schema: dict[str, Any], keyword: str, reporter: Reporter) -> dict[str, Any]:
    """The value of a keyword that maps names to schemas."""
    value = schema.get(keyword)
    if is_object(value):
        return value
    if value is not None or keyword in schema:
        reporter.report(schema, keyword, f"'{keyword}' is not an object")
    return {}


def member_list(schema: dict[str, Any], keyword: str, reporter: Reporter) -> list[Any]:
    """The value of a keyword that lists schemas."""
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
    """The names that `required` lists."""
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
    """Draft 3: `required: true` on a property."""
    return is_object(schema) and schema.get("required") is True


class ExtraStatement(NamedTuple):
    """What one schema says of properties that it doesn't list."""

    schemas: list[Any]
    """One of these holds for each; none at all means that there are no others."""
    by_pattern: bool
    is_complete: bool
    """It holds for every other property, not only for those that a pattern matches."""


def extra_statement(schema: dict[str, Any], reporter: Reporter) -> ExtraStatement | None:
    """What a schema says of the properties that it doesn't list; None if it says nothing."""
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
    """What one schema says of the items of an array."""

    prefix: list[Any]
    rest: Any
    """The schema of all further items."""


def items_statement(schema: dict[str, Any], reporter: Reporter) -> ItemsStatement:
    """Items by position and the rest, in the spelling of any draft."""
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
    value = schema.get(keyword, True)
    if isinstance(value, bool) or is_object(value):
        return value
    reporter.report(schema, keyword, f"'{keyword}' is not a schema")
    return True


def whole_number(schema: dict[str, Any], keyword: str) -> int | None:
    """The value of a keyword that counts, if it is one."""
    value = schema.get(keyword)
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < 2**53 else None


def is_remark(branch: Any) -> bool:
    """Whether a branch of a choice only remarks on its base: it names required properties, or excludes something."""
    return is_object(branch) and SHAPING.isdisjoint(branch) and not admits_nothing(branch)
