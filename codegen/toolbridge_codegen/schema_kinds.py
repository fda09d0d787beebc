"""The kinds of JSON values that a schema's `type` admits, as sets of bits."""

from __future__ import annotations

from typing import Any

from toolbridge_codegen.json_values import is_list

NULL, BOOLEAN, STRING, INTEGER, FRACTION, ARRAY, OBJECT = 1, 2, 4, 8, 16, 32, 64
NUMBER = INTEGER | FRACTION
ANY_KIND = 127

KINDS = {
    "string": STRING,
    "number": NUMBER,
    "integer": INTEGER,
    "boolean": BOOLEAN,
    "null": NULL,
    "array": ARRAY,
    "object": OBJECT,
}

_OTHER_SPELLINGS = {
    "any": ANY_KIND,
    "mixed": ANY_KIND,
    "str": STRING,
    "text": STRING,
    "int": INTEGER,
    "long": INTEGER,
    "float": NUMBER,
    "double": NUMBER,
    "decimal": NUMBER,
    "bool": BOOLEAN,
    "dict": OBJECT,
    "map": OBJECT,
    "list": ARRAY,
    "none": NULL,
    "nil": NULL,
}
"""What servers write that JSON Schema doesn't know, and can only mean one thing."""


def kinds_of_type(declared: Any) -> tuple[int, str]:
    """The kinds that the value of a `type` keyword admits, and what is odd about it, if anything."""
    if isinstance(declared, str):
        kinds = KINDS.get(declared)
        return (kinds, "") if kinds is not None else _odd_spelling(declared)
    if not is_list(declared):
        return ANY_KIND, "'type' is neither a string nor a list"
    kinds, odd = 0, ""
    for name in declared[:100]:
        one, odd_one = kinds_of_type(name) if isinstance(name, str) else (ANY_KIND, "'type' lists something else")
        kinds |= one
        odd = odd or odd_one
    return (kinds, odd) if kinds and len(declared) <= 100 else (ANY_KIND, odd or "'type' is an empty list")


def _odd_spelling(declared: str) -> tuple[int, str]:
    lowered = declared.strip().lower()
    kinds = KINDS.get(lowered) or _OTHER_SPELLINGS.get(lowered, ANY_KIND)
    return kinds, "" if lowered == "any" else f"'type' is no type of JSON Schema: {declared!r:.60}"


def kind_of_value(value: Any) -> int:
    """The kind of a JSON value; `1.0` is an integer."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, str):
        return STRING
    if isinstance(value, int):
        return INTEGER
    if isinstance(value, float):
        return INTEGER if value.is_integer() else FRACTION
    return ARRAY if is_list(value) else OBJECT
