"""A quick yes is one that the judge would give, too; and simple schemas get one."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.chance import Chance
from toolbridge.schema.compile import compile_schema
from toolbridge.schema.keywords import validate
from toolbridge.schema.validate import ARGUMENT_STEPS, RESULT_STEPS, fast_path

FORECAST = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where", "default": "Oslo"},
        "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "factor": {"type": "number"},
        "extra": {},
        "exact": {"type": ["boolean", "string"]},
    },
    "required": ["city"],
    "additionalProperties": False,
}


def says_yes(schema: Any, value: Any) -> bool:
    fits = fast_path(compile_schema(schema))
    return fits is not None and fits(value)


FITTING: list[Any] = [
    {"city": "Oslo"},
    {"city": "", "days": 3, "factor": 1, "extra": [{}], "exact": True},
    {"city": "Oslo", "days": None, "factor": 0.5, "exact": "yes"},
]


@pytest.mark.parametrize("value", FITTING)
def test_a_flat_object_whose_members_are_of_their_types_surely_fits(value: Any) -> None:
    assert says_yes(FORECAST, value)


@pytest.mark.parametrize(
    "value",
    [
        *({}, {"city": 3}, {"city": "Oslo", "days": 1.0}, {"city": "Oslo", "days": True}, {"city": "Oslo", "other": 1}),
        *([], None, "Oslo", {"city": None}, {"city": "Oslo", "factor": False}, {"days": 3}),
    ],
)
def test_whatever_else_is_left_to_the_judge(value: Any) -> None:
    assert not says_yes(FORECAST, value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        *(({"type": "string"}, "x"), ({"type": "number"}, 1), ({"type": ["integer", "null"]}, None), ({}, [1])),
        *((True, {}), ({"type": "object", "additionalProperties": True}, {"a": object()}), ({"type": "array"}, [1])),
    ],
)
def test_values_without_members_to_look_at_surely_fit_their_type(schema: Any, value: Any) -> None:
    assert says_yes(schema, value)


NOT_SIMPLE: list[Any] = [
    *({"type": "string", "maxLength": 3}, {"enum": ["a"]}, {"type": "array", "items": {"type": "string"}}, False),
    *({"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "object", "required": ["a"]}),
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}, "additionalProperties": False},
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
    {"anyOf": [{"type": "string"}] * 6},
    {
        "type": "object",
        "properties": {str(number): {} for number in range(201)},
        "additionalProperties": False,
    },
]


@pytest.mark.parametrize("schema", NOT_SIMPLE)
def test_of_schemas_that_say_more_nothing_is_sure(schema: Any) -> None:
    assert fast_path(compile_schema(schema)) is None


@pytest.mark.parametrize("hundred", range(10))
def test_on_schemas_by_chance_a_yes_is_the_judges(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        chance = Chance(seed)
        for schema in (chance.schema(), {"type": "object", "additionalProperties": False, **chance.schema()}):
            clean = compile_schema(schema)
            fits = fast_path(clean)
            for value in (chance.value() for _ in range(20)):
                if fits is not None and fits(value):
                    for steps in (ARGUMENT_STEPS, RESULT_STEPS):
                        verdict = validate(clean, value, steps=steps)
                        assert (verdict.violations, verdict.complete) == ((), True), (schema, value)


def test_the_largest_object_that_surely_fits_is_one_that_the_judge_looks_at_as_a_whole() -> None:
    choices = {"anyOf": [{"type": kind} for kind in ("array", "boolean", "object", "string", "null")]}
    schema = {
        "type": "object",
        "properties": {str(number): choices for number in range(200)},
        "additionalProperties": False,
    }
    value = {str(number): None for number in range(200)}
    assert says_yes(schema, value)
    assert validate(compile_schema(schema), value, steps=RESULT_STEPS).complete
