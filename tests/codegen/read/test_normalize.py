"""Drafts 4 to 2020-12 and the habits of real servers, read as one language."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.notation import problems, written, written_input

STRING = {"type": "string"}
NOTHING: dict[str, Any] = {"not": {}}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer"}, "integer"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": ["null", "integer", "number"]}, "number | null"),
        ({"type": "any"}, "unknown"),
        ({"type": "str"}, "string"),
        ({"type": "String"}, "string"),
        ({"type": "dict"}, "{*: unknown}"),
        ({"type": ["bool", "none"]}, "boolean | null"),
        ({"type": "date"}, "unknown"),
        ({"type": []}, "unknown"),
        ({"type": 5}, "unknown"),
        ({"type": {"enum": ["a"]}}, "unknown"),
        ({"type": None}, "unknown"),
        ({"type": ["string", {"type": "object"}]}, "unknown"),
        ({"type": "string", "nullable": True}, "string | null"),
        ({"type": "string", "nullable": "yes"}, "string"),
        ({"type": "string", "x-nullable": True}, "string | null"),
        ({"type": "string", "enum": ["a"], "nullable": True}, '"a" | null'),
        ({"nullable": True, "anyOf": [{"type": "string"}, {"type": "integer"}]}, "string | integer | null"),
        ({"nullable": True, "allOf": [{"type": "string"}]}, "string | null"),
        ({"nullable": True, "properties": {"a": STRING}}, "{a?: string} | null"),
        ({}, "unknown"),
        (True, "unknown"),
        (False, "never"),
        (NOTHING, "never"),
        ({"not": True}, "never"),
        ({"not": False}, "unknown"),
        ({"type": "string", **NOTHING}, "never"),
        ({"type": "string", "not": {"const": "a"}}, "string"),
        ({"allOf": [STRING, NOTHING]}, "never"),
    ],
)
def test_types_are_read_in_every_spelling(schema: Any, expected: str) -> None:
    assert written(schema) == expected


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "String"}, ("/outputSchema/type", "'type' is no type of JSON Schema: 'String'")),
        ({"type": []}, ("/outputSchema/type", "'type' is an empty list")),
        ({"type": 5}, ("/outputSchema/type", "'type' is neither a string nor a list")),
        ({"properties": []}, ("/outputSchema/properties", "'properties' is not an object")),
        (
            {"type": "object", "properties": {"a": "string"}},
            ("/outputSchema/properties/a", "a schema is an object or a boolean: unknown"),
        ),
        ({"type": "object", "required": "a"}, ("/outputSchema/required", "'required' is not a list")),
        (
            {"type": "object", "required": ["a", 1]},
            ("/outputSchema/required", "'required' lists something that is not a name"),
        ),
        (
            {"type": "object", "additionalProperties": "yes"},
            ("/outputSchema/additionalProperties", "'additionalProperties' is not a schema"),
        ),
        (
            {"type": "object", "patternProperties": None},
            ("/outputSchema/patternProperties", "'patternProperties' is not an object"),
        ),
        ({"type": "array", "items": "string"}, ("/outputSchema/items", "'items' is not a schema")),
        ({"type": "array", "prefixItems": {}}, ("/outputSchema/prefixItems", "'prefixItems' is not a list")),
        ({"anyOf": {}}, ("/outputSchema/anyOf", "'anyOf' is not a list")),
        ({"allOf": []}, ("/outputSchema/allOf", "'allOf' is an empty list")),
        ({"enum": []}, ("/outputSchema/enum", "'enum' is not a list of values")),
        ({"anyOf": [5, {"type": "null"}]}, ("/outputSchema/anyOf/0", "a schema is an object or a boolean: unknown")),
    ],
)
def test_a_keyword_of_the_wrong_type_is_reported_and_means_nothing(schema: Any, problem: tuple[str, str]) -> None:
    assert problem in problems(schema)


def test_an_object_that_lists_its_properties_is_closed() -> None:
    assert written({"type": "object", "properties": {"a": STRING}}) == "{a?: string}"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object"}, "{*: unknown}"),
        ({"type": "object", "properties": {}}, "{*: unknown}"),
        ({"type": "object", "additionalProperties": True}, "{*: unknown}"),
        ({"type": "object", "additionalProperties": {}}, "{*: unknown}"),
        ({"type": "object", "additionalProperties": STRING}, "{*: string}"),
        ({"type": "object", "additionalProperties": False}, "{}"),
        ({"type": "object", "additionalProperties": NOTHING}, "{}"),
        ({"type": "object", "properties": {"a": STRING}, "additionalProperties": True}, "{a?: string, *: unknown}"),
        (
            {"type": "object", "properties": {"a": STRING}, "additionalProperties": {"type": "integer"}},
            "{a?: string, *: integer}",
        ),
        ({"type": "object", "patternProperties": {"^x": STRING}}, "{*: string}"),
        (
            {"type": "object", "patternProperties": {"^x": STRING, "^y": {"type": "null"}}},
            "{*: string | null}",
        ),
        (
            {"type": "object", "patternProperties": {"^x": STRING}, "additionalProperties": False},
            "{*: string}",
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "null"}},
                "patternProperties": {"^x": STRING},
                "additionalProperties": {"type": "integer"},
            },
            "{a?: null, *: string | integer}",
        ),
        (
            {"type": "object", "patternProperties": {"^x": STRING}, "additionalProperties": True},
            "{*: unknown}",
        ),
        ({"type": "object", "properties": {"a": STRING}, "unevaluatedProperties": False}, "{a?: string}"),
        ({"$ref": "#/nowhere", "unevaluatedProperties": False}, "unknown"),
        ({"type": "object", "$ref": "#/nowhere", "unevaluatedProperties": False}, "{*: unknown}"),
        ({"type": "array", "$ref": "#/nowhere", "unevaluatedItems": False}, "unknown[]"),
        (
            {"allOf": [{"$ref": "#/nowhere"}, {"properties": {"a": STRING}}], "unevaluatedProperties": False},
            "{a?: string, *: unknown}",
        ),
        ({"type": "object", "if": {"$ref": "#/nowhere"}, "unevaluatedProperties": False}, "{*: unknown}"),
        (
            {"properties": {"a": STRING}, "dependentSchemas": {"a": {"$ref": "#/no"}}, "unevaluatedProperties": False},
            "{a?: string, *: unknown}",
        ),
        ({"unevaluatedProperties": False}, "unknown"),
        ({"unevaluatedItems": False}, "unknown"),
        ({"type": "object", "properties": {"a": STRING}, "unevaluatedProperties": NOTHING}, "{a?: string}"),
        (
            {"type": "object", "properties": {"a": STRING}, "unevaluatedProperties": {"type": "integer"}},
            "{a?: string, *: integer}",
        ),
    ],
)
def test_other_properties_are_what_the_schema_says_of_them(schema: Any, expected: str) -> None:
    assert written(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"properties": {"a": STRING}}, "{a?: string}"),
        ({"items": STRING}, "string[]"),
        ({"additionalProperties": STRING}, "{*: string}"),
        ({"minLength": 1}, "unknown"),
        ({"required": ["a"]}, "unknown"),
        (
            {
                "type": ["object", "array", "string", "number", "boolean", "null"],
                "properties": {"a": STRING},
            },
            "unknown[] | {a?: string} | string | number | boolean | null",
        ),
    ],
)
def test_a_missing_type_is_inferred_from_structure(schema: Any, expected: str) -> None:
    assert written(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object", "properties": {"a": {"type": "string", "required": True}}}, "{a: string}"),
        ({"type": "object", "properties": {"a": {"type": "string", "required": False}}}, "{a?: string}"),
        ({"type": "object", "properties": {"a": STRING}, "required": ["a"]}, "{a: string}"),
        ({"type": "object", "properties": {"a": STRING}, "required": True}, "{a?: string}"),
    ],
)
def test_required_is_read_in_every_draft(schema: Any, expected: str) -> None:
    assert written(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object", "required": ["a"]}, "{a: unknown, *: unknown}"),
        ({"type": "object", "properties": {"b": STRING}, "required": ["a"]}, "{b?: string, a: unknown}"),
        ({"type": "object", "additionalProperties": STRING, "required": ["a"]}, "{a: string, *: string}"),
        (
            {"type": "object", "patternProperties": {"^a": STRING}, "required": ["a"]},
            "{a: string, *: string}",
        ),
        (
            {"type": "object", "patternProperties": {"^a": STRING, "b": {"type": "null"}}, "required": ["a"]},
            "{a: unknown, *: string | null}",
        ),
        ({"type": "object", "additionalProperties": False, "required": ["a"]}, "{}"),
    ],
)
def test_a_required_property_that_is_not_listed_has_the_type_of_the_others(schema: Any, expected: str) -> None:
    assert written(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "array"}, "unknown[]"),
        ({"type": "array", "items": STRING}, "string[]"),
        ({"type": "array", "items": {"type": ["string", "null"]}}, "(string | null)[]"),
        ({"type": "array", "items": True}, "unknown[]"),
        ({"type": "array", "items": False}, "[]"),
        ({"type": "array", "items": NOTHING}, "[]"),
        ({"type": "array", "maxItems": 0}, "[]"),
        ({"type": "array", "items": [STRING, {"type": "null"}]}, "[string?, null?, ...unknown]"),
        ({"type": "array", "items": [STRING], "additionalItems": False, "minItems": 1}, "[string]"),
        ({"type": "array", "items": [STRING], "additionalItems": {"type": "integer"}}, "[string?, ...integer]"),
        ({"type": "array", "prefixItems": [STRING], "items": False, "minItems": 1.0}, "[string]"),
        ({"type": "array", "prefixItems": [STRING, STRING], "maxItems": 1}, "[string?]"),
        ({"type": "array", "prefixItems": [STRING], "minItems": 7, "items": STRING}, "[string, ...string]"),
        ({"type": "array", "prefixItems": [STRING], "unevaluatedItems": False}, "[string?]"),
        (
            {"type": "array", "prefixItems": [STRING], "unevaluatedItems": False, "contains": {}},
            "[string?, ...unknown]",
        ),
        ({"type": "array", "minItems": 2, "maxItems": 2, "items": STRING}, "string[]"),
    ],
)
def test_arrays_and_tuples_are_read_in_every_draft(schema: Any, expected: str) -> None:
    assert written(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object", "properties": {}}, "{}"),
        ({"type": "object", "properties": []}, "{}"),
        ({"properties": {}, "$schema": "http://json-schema.org/draft-07/schema#"}, "{}"),
        ({"type": "object", "properties": {}, "additionalProperties": True}, "{*: unknown}"),
        ({"type": "object", "properties": {}, "required": ["a"]}, "{a: unknown, *: unknown}"),
        ({"type": "object"}, "{*: unknown}"),
        ({}, "{*: unknown}"),
        (None, "{*: unknown}"),
        ([], "{*: unknown}"),
        ({"type": "string"}, "{*: unknown}"),
        ({"type": ["object", "null"], "properties": {"a": STRING}}, "{a?: string}"),
        ({"anyOf": [{"type": "string"}, {"properties": {"a": STRING}}]}, "{a?: string}"),
        (False, "{*: unknown}"),
    ],
)
def test_an_input_is_an_object_whatever_its_schema(schema: Any, expected: str) -> None:
    assert written_input(schema) == expected
