"""Results that are wrapped: `{"result": …}` around what is no object.

The protocol's structured content is an object. Frameworks that let a tool return a string or a list put it under
`result`, some with a mark in the schema, some without. Guest code wants what is inside. Whether a tool's results are
wrapped is decided here and nowhere else, from the schema alone: so the stub and the value always agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

PROPERTY = "result"
_MARK = "x-fastmcp-wrap-result"
_MOST_REFERENCES = 8
# Anything that could let another property in, or make the object something else.
_OTHER_SHAPES = frozenset(
    {
        *(
            "$ref",
            "$dynamicRef",
            "$recursiveRef",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "if",
            "then",
            "else",
            "const",
            "enum",
        ),
        *("patternProperties", "propertyNames", "dependentSchemas", "dependentRequired", "dependencies"),
        *("minProperties", "maxProperties", "unevaluatedProperties", "nullable"),
    }
)


def is_wrapped_result(schema: object) -> bool:
    """Whether results with this output schema are `{"result": …}` and mean what is inside."""
    return wrapped_schema(schema) is not None


def wrapped_schema(schema: object) -> tuple[Any] | None:
    """The schema of what is inside, as the only member of a tuple since it may be anything; None if nothing is."""
    whole = _through_references(schema)
    if whole is None or not _OTHER_SHAPES.isdisjoint(whole) or whole.get("type", "object") != "object":
        return None
    given: object = whole.get("properties")
    properties: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
    if set(properties) != {PROPERTY}:
        return None
    if isinstance(whole.get("additionalProperties"), Mapping):
        return None
    if whole.get(_MARK) is not True and whole.get("required") != [PROPERTY]:
        return None
    return (properties[PROPERTY],)


def _through_references(schema: object) -> Mapping[str, Any] | None:
    """The schema that a schema which only points elsewhere in its document means."""
    if not isinstance(schema, Mapping):
        return None
    root = cast("Mapping[str, Any]", schema)
    found = root
    for _ in range(_MOST_REFERENCES):
        reference = found.get("$ref")
        if not isinstance(reference, str):
            return found
        if not {"properties", "required"}.isdisjoint(found):
            return None
        holder, _, name = reference.removeprefix("#/").partition("/")
        group: object = root.get(holder) if holder in ("$defs", "definitions") else None
        target: object = cast("Mapping[str, Any]", group).get(name) if isinstance(group, Mapping) else None
        if not isinstance(target, Mapping):
            return None
        found = cast("Mapping[str, Any]", target)
    return None
