"""Types from schemas: as exact as possible, and never too narrow for a valid value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from codegen.acceptance import accepts
from codegen.chance import Chance
from codegen.closed_rule import is_valid
from codegen.notation import build, problems, result_model, show, written, written_input
from toolbridge_codegen.catalog import Reading, ToolDefinition
from toolbridge_codegen.model import (
    Declaration,
    Docs,
    LiteralType,
    MapType,
    NamedType,
    ObjectType,
    Property,
    ScalarType,
    UnionType,
    UnknownType,
)
from toolbridge_codegen.read.notes import NO_DOCS

STRING = {"type": "string"}
NOTHING: dict[str, Any] = {"not": {}}
INTEGER = {"type": "integer"}
NULL = {"type": "null"}


def with_a(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, **more}


def test_a_tool_becomes_a_function_with_named_types() -> None:
    tool = ToolDefinition(
        "get-forecast",
        {"type": "object", "properties": {"location": {**STRING, "description": "Where"}}, "required": ["location"]},
        description="Get the forecast",
        output_schema={"type": "object", "properties": {"celsius": {"type": "number"}}},
    )
    model, diagnostics = build(tool)
    location = Property("location", ScalarType("string"), required=True, docs=Docs("Where"))
    assert model.declarations == (
        Declaration("GetForecastInput", ObjectType((location,), None)),
        Declaration(
            "GetForecastOutput", ObjectType((Property("celsius", ScalarType("number"), required=False),), None)
        ),
    )
    (function,) = model.functions
    assert (function.tool.identifier, function.tool.name) == ("get_forecast", "get-forecast")
    assert (function.input, function.output) == (NamedType("GetForecastInput"), NamedType("GetForecastOutput"))
    assert (function.input_required, function.docs) == (True, Docs("Get the forecast"))
    assert diagnostics == ()


def test_a_tool_without_an_output_schema_has_an_unknown_result() -> None:
    model, _ = build(ToolDefinition("tool", {"type": "object"}))
    assert model.functions[0].output == NamedType("ToolOutput")
    assert model.by_name["ToolOutput"] == Declaration("ToolOutput", UnknownType(), NO_DOCS, inline=False)
    assert model.functions[0].input == MapType(UnknownType())


def test_the_configuration_describes_the_output_of_a_tool_that_does_not() -> None:
    own = ToolDefinition("own", {"type": "object"}, output_schema=with_a(STRING))
    other = ToolDefinition("other", {"type": "object"})
    model, _ = build(own, other, output_schemas={"own": with_a(INTEGER), "other": with_a(NULL)})
    outputs = {function.tool.name: show(model, function.output) for function in model.functions}
    assert outputs == {"own": "{a?: string}", "other": "{a?: null}"}


@pytest.mark.parametrize(
    ("schema", "required"),
    [
        ({"type": "object"}, False),
        (with_a(STRING), False),
        (with_a(STRING, required=["a"]), True),
        (with_a(STRING, minProperties=1), True),
        (with_a(STRING, anyOf=[{"required": ["a"]}, {"required": ["b"]}]), True),
        (with_a(STRING, anyOf=[{"required": ["a"]}, {"not": {"required": ["b"]}}]), False),
        ({"anyOf": [with_a(STRING, required=["a"]), with_a(INTEGER)]}, False),
        ({"anyOf": [with_a(STRING, required=["a"]), with_a(INTEGER, required=["a"])]}, True),
    ],
)
def test_an_input_may_be_left_out_if_an_empty_one_is_valid(schema: Any, required: bool) -> None:
    model, _ = build(ToolDefinition("tool", schema))
    assert model.functions[0].input_required is required


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": "a"}, '"a"'),
        ({"const": None}, "null"),
        ({"const": 1.0}, "1.0"),
        ({"type": "number", "const": 1.0}, "1.0"),
        ({"type": "integer", "const": 1.0}, "1"),
        ({"const": 1e300}, "number"),
        ({"type": "number", "const": 1e300}, "number"),
        ({"type": "integer", "const": 1e300}, "number"),
        ({"type": "number", "enum": [1e300, 1]}, "number"),
        ({"enum": ["a", "b", "a"]}, '"a" | "b"'),
        ({"enum": [1, 1.0, True]}, "1.0 | true"),
        ({"enum": [1.0, 1, 2]}, "1.0 | 2"),
        ({"enum": [True, False]}, "boolean"),
        ({"enum": ["a", True, False, None]}, '"a" | boolean | null'),
        ({"type": "string", "enum": ["a", 1, None]}, '"a"'),
        ({"type": ["string", "null"], "enum": ["a", None]}, '"a" | null'),
        ({"type": "integer", "enum": ["1", "2"]}, '"1" | "2"'),
        ({"type": "number", "enum": [1, 2.5]}, "1 | 2.5"),
        ({"enum": ["a"], "const": "a"}, '"a"'),
        ({"enum": ["a"], "const": "b"}, "never"),
        ({"const": {"a": 1}}, "{*: unknown}"),
        ({"const": [1]}, "unknown[]"),
        ({"const": {"a": 1}, "properties": {"z": INTEGER}}, "{*: unknown}"),
        ({"enum": [{"a": 1}, "b"]}, '"b" | {*: unknown}'),
        ({"const": 2**60}, "integer"),
        ({"const": 10**5000}, "integer"),
        ({"const": float("inf")}, "number"),
        ({"enum": [float("nan"), 1]}, "number"),
        ({"const": "x" * 501}, "string"),
        ({"allOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]}, '"b"'),
        ({"allOf": [{"enum": [{"a": 1, "b": 2}]}, {"const": {"b": 2, "a": 1.0}}]}, "{*: unknown}"),
    ],
)
def test_constants_are_literals_where_a_language_can_write_them(schema: Any, expected: str) -> None:
    assert written(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"anyOf": [STRING, INTEGER]}, "string | integer"),
        ({"oneOf": [STRING, STRING]}, "string"),
        ({"anyOf": [NULL, STRING]}, "string | null"),
        ({"anyOf": [{"const": "a"}, {"enum": ["b", None]}]}, '"a" | "b" | null'),
        ({"anyOf": [{"const": "a"}, STRING]}, "string"),
        ({"anyOf": [INTEGER, {"type": "number"}]}, "number"),
        ({"anyOf": [STRING, {}]}, "unknown"),
        ({"anyOf": [STRING, False]}, "string"),
        ({"anyOf": [NOTHING, STRING]}, "string"),
        ({"anyOf": [{"not": True}, STRING, NULL]}, "string | null"),
        ({"anyOf": [NOTHING, {}]}, "unknown"),
        ({"anyOf": [NOTHING, NOTHING]}, "never"),
        (with_a({"anyOf": [NOTHING, STRING]}), "{a?: string}"),
        (with_a(STRING, anyOf=[NOTHING, {"required": ["a"]}]), "{a: string}"),
        ({"anyOf": [{"anyOf": [STRING, INTEGER]}, NULL]}, "string | integer | null"),
        ({"type": "string", "anyOf": [{"format": "date"}, {"format": "time"}]}, "string"),
        ({"type": "string", "anyOf": [STRING, INTEGER]}, "string"),
        ({"type": ["string", "null"], "anyOf": [{"type": ["string", "integer", "null"]}]}, "string | null"),
        ({"anyOf": [STRING, INTEGER], "oneOf": [INTEGER, NULL]}, "integer"),
        ({"anyOf": [with_a(STRING), with_a(INTEGER)]}, "{a?: string} | {a?: integer}"),
        (
            with_a(STRING, anyOf=[{"properties": {"b": STRING}}, {"properties": {"c": STRING}}]),
            "{a?: string, b?: string, c?: string} | {a?: string, c?: string, b?: string}",
        ),
        (
            with_a(STRING, oneOf=[{"required": ["a"]}, {"properties": {"b": INTEGER}, "required": ["b"]}]),
            "{a: string} | {a?: string, b: integer}",
        ),
        (with_a(STRING, oneOf=[{"required": ["a"]}, {"required": ["b"]}]), "{a?: string, b?: unknown}"),
        (
            with_a({"enum": ["x", "y"]}, oneOf=[with_a({"const": "x"}), with_a({"const": "y"})]),
            '{a?: "x"} | {a?: "y"}',
        ),
    ],
)
def test_choices_are_unions_with_what_stands_beside_them(schema: Any, expected: str) -> None:
    assert written(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"allOf": [STRING]}, "string"),
        ({"allOf": [STRING, INTEGER]}, "never"),
        ({"allOf": [{"type": ["string", "null"]}, {"type": ["null", "integer"]}]}, "null"),
        ({"allOf": [{"type": "number"}, INTEGER]}, "integer"),
        ({"allOf": [STRING, {"minLength": 1}]}, "string"),
        ({"allOf": [STRING, {"enum": ["a"]}]}, '"a"'),
        ({"allOf": [with_a(STRING), {"properties": {"b": INTEGER}}]}, "{a?: string, b?: integer}"),
        ({"allOf": [with_a(STRING), {"required": ["a"]}]}, "{a: string}"),
        ({"allOf": [with_a({"type": ["string", "null"]}), with_a(STRING)]}, "{a?: string}"),
        ({"allOf": [with_a(with_a(STRING)), with_a({"properties": {"b": STRING}})]}, "{a?: {a?: string, b?: string}}"),
        ({"allOf": [with_a(STRING), {"type": "object", "additionalProperties": True}]}, "{a?: string, *: unknown}"),
        (
            {"allOf": [with_a(STRING), {"type": "object", "additionalProperties": {"type": ["string", "null"]}}]},
            "{a?: string, *: string | null}",
        ),
        (
            {"allOf": [with_a(STRING), {"properties": {"b": STRING}, "additionalProperties": False}]},
            "{b?: string}",
        ),
        (
            {"allOf": [with_a(STRING, required=["a"]), {"properties": {"b": STRING}, "additionalProperties": False}]},
            "{a: string, b?: string}",
        ),
        (
            {"allOf": [{"type": "array", "items": STRING}, {"type": "array", "items": {"enum": ["a"]}}]},
            '"a"[]',
        ),
        (
            {"allOf": [{"type": "array", "prefixItems": [STRING]}, {"items": {"type": ["string", "integer"]}}]},
            "[string?, ...string | integer]",
        ),
        ({"allOf": [{"anyOf": [STRING, INTEGER]}, {"anyOf": [INTEGER, NULL]}]}, "integer"),
        ({"allOf": [with_a(STRING), {"anyOf": [with_a(STRING), NULL]}]}, "{a?: string}"),
        ({"allOf": [{"type": "null"}, {"nullable": True, "allOf": [INTEGER]}]}, "null"),
    ],
)
def test_all_of_is_one_type(schema: Any, expected: str) -> None:
    assert written(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (with_a(False), "{}"),
        (with_a(NOTHING), "{}"),
        (with_a(NOTHING, required=["a"]), "never"),
        (with_a(False, additionalProperties=True), "{a?: never, *: unknown}"),
        (with_a(False, required=["a"]), "never"),
        ({"anyOf": [with_a(False, required=["a"]), with_a(STRING)]}, "{a?: string}"),
        (with_a(True), "{a?: unknown}"),
    ],
)
def test_boolean_schemas_of_properties(schema: Any, expected: str) -> None:
    assert written(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            with_a(STRING, **{"if": with_a({"const": "x"}), "then": {"properties": {"b": INTEGER}, "required": ["b"]}}),
            "{a?: string, b?: integer}",
        ),
        (
            with_a(STRING, **{"if": {"properties": {"b": {"const": 1}}}, "then": {}, "else": {"required": ["a"]}}),
            "{a?: string, b?: unknown}",
        ),
        (
            with_a(STRING, **{"then": {"properties": {"b": INTEGER}}, "else": {"properties": {"b": STRING}}}),
            "{a?: string, b?: string | integer}",
        ),
        (with_a(STRING, dependentSchemas={"a": {"properties": {"b": INTEGER}}}), "{a?: string, b?: integer}"),
        (with_a(STRING, dependencies={"a": {"properties": {"b": INTEGER}}, "c": ["a"]}), "{a?: string, b?: integer}"),
        (
            with_a(STRING, additionalProperties=False, then={"properties": {"b": INTEGER}}),
            "{a?: string}",
        ),
        (
            with_a(
                STRING,
                unevaluatedProperties=False,
                anyOf=[{"properties": {"b": INTEGER}}, {"properties": {"c": INTEGER}}],
            ),
            "{a?: string, b?: integer, c?: integer} | {a?: string, c?: integer, b?: integer}",
        ),
    ],
)
def test_properties_that_only_a_condition_lists_stay_possible(schema: Any, expected: str) -> None:
    assert written(schema) == expected


@pytest.mark.parametrize(
    "condition",
    [
        {"dependentRequired": {"a": ["b"]}},
        {"dependencies": {"a": ["b"]}},
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
        {"if": {"required": ["b"]}, "then": {"required": ["a"]}},
        {"else": {"allOf": [{"if": {"required": ["a"]}, "then": {"required": ["b"]}}]}},
        {"dependentSchemas": {"a": {"anyOf": [{"required": ["b"]}, {"required": ["a"]}]}}},
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    ],
)
def test_properties_that_only_a_condition_requires_stay_possible(condition: dict[str, Any]) -> None:
    schema = with_a(STRING, **condition)
    assert written(schema) == "{a?: string, b?: unknown}"
    assert [message for _, message in problems(schema)] == ["'b' is required by a condition but not described"]
    assert written({**schema, "unevaluatedProperties": False}) == "{a?: string}"
    assert written({**schema, "additionalProperties": False}) == "{a?: string}"


def test_a_bad_tool_costs_that_tool_only() -> None:
    good = ToolDefinition("good", with_a(STRING, required=["a"]))
    alone, _ = build(good)
    bad: list[Any] = [None, 5, "x", [], {"$ref": "#/nowhere"}, {"type": {}}, {"properties": {"a": 5}}]
    tools = [ToolDefinition(f"bad{index}", schema) for index, schema in enumerate(bad)]
    model, diagnostics = build(good, *tools)
    assert len(model.functions) == 8
    assert [
        replace(function, tool=alone.functions[0].tool) for function in model.functions if function.tool.name == "good"
    ] == [*alone.functions]
    assert {item.tool for item in diagnostics} <= {f"bad{index}" for index in range(7)}


def test_unions_in_the_model_are_flat_and_end_in_null() -> None:
    model, _ = result_model({"anyOf": [NULL, {"anyOf": [STRING, {"enum": ["a", 1]}]}, {"type": ["boolean", "null"]}]})
    assert model.declarations[0].type == UnionType(
        (ScalarType("string"), LiteralType((1,)), ScalarType("boolean"), ScalarType("null"))
    )


def test_diagnostics_name_server_tool_and_place() -> None:
    schema = with_a({"anyOf": [STRING, {"properties": {"x/y~": {"type": "dat\u202ee"}}}]})
    assert problems(schema) == [
        (
            "/outputSchema/properties/a/anyOf/1/properties/x~1y~0/type",
            "'type' is no type of JSON Schema: 'dat\\u202ee'",
        )
    ]


# ---- readings


@pytest.mark.parametrize(
    ("schema", "intended", "literal"),
    [
        (with_a(STRING), "{a?: string}", "{a?: string, *: unknown}"),
        (with_a(STRING, additionalProperties=False), "{a?: string}", "{a?: string}"),
        (
            {"type": "object", "patternProperties": {"^x-": STRING}},
            "{*: string}",
            "{*: unknown}",
        ),
        ({"properties": {"a": STRING}, "type": ["object"]}, "{a?: string}", "{a?: string, *: unknown}"),
        ({"items": STRING}, "string[]", "string[] | {*: unknown} | string | number | boolean | null"),
        (with_a(STRING, unevaluatedProperties=False), "{a?: string}", "{a?: string}"),
    ],
)
def test_the_literal_reading_refuses_only_excluded_values(schema: Any, intended: str, literal: str) -> None:
    assert (written(schema), written(schema, reading="literal")) == (intended, literal)


def test_in_the_literal_reading_a_tool_without_parameters_takes_any() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    assert (written_input(schema), written_input(schema, reading="literal")) == ("{}", "{*: unknown}")


# ---- no valid value is ever refused


@settings(max_examples=300, derandomize=True, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_valid_value_is_refused(seed: int) -> None:
    refuses_no_valid_value(Chance(seed), "intended", is_valid)


@settings(max_examples=600, derandomize=True, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_value_that_is_valid_to_the_letter_is_refused_if_schemas_are_read_so(seed: int) -> None:
    refuses_no_valid_value(Chance(seed, odd=True), "literal", is_valid_to_the_letter)


def is_valid_to_the_letter(schema: dict[str, Any], value: Any) -> bool:
    validator: Any = Draft202012Validator(schema)
    return validator.is_valid(value)


def refuses_no_valid_value(chance: Chance, reading: Reading, is_valid: Callable[[dict[str, Any], Any], bool]) -> None:
    schema = chance.document()
    model, _ = result_model(schema, reading=reading)
    for _ in range(10):
        value = chance.value()
        try:
            valid = is_valid(schema, value)
        except RecursionError:  # a reference to itself: validators don't end
            return
        assert not valid or accepts(model, model.functions[0].output, value), (schema, value)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_any_json_at_all_is_a_schema(seed: int) -> None:
    chance = Chance(seed)
    model, _ = build(ToolDefinition("tool", chance.anything(), output_schema=chance.anything()))
    assert len(model.functions) == 1
