"""The judge against the `jsonschema` package: what that one takes is never refused, what it refuses seldom taken."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema.validators import validator_for

from codegen import corpus
from codegen.chance import Chance
from codegen.hypothesis_instances import instances_of
from codegen.random_schemas import RandomSchema, random_schemas
from toolbridge.schema.compile import compile_schema
from toolbridge.schema.keywords import validate
from toolbridge_codegen.escaping import is_list, is_object

STEPS = 100_000


def takes(schema: Any, value: Any) -> bool:
    return not validate(compile_schema(schema), value, steps=STEPS).violations


def judged_by(draft: Any, schema: Any, value: Any) -> bool:
    return draft(schema).is_valid(value)


def has(schema: Any, *keywords: str) -> bool:
    text = json.dumps(schema)
    return any(f'"{keyword}"' in text for keyword in keywords)


@pytest.mark.parametrize("hundred", range(8))
def test_on_schemas_by_chance_both_agree(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        _agree(Chance(seed))


def _agree(chance: Chance) -> None:
    schema = {"properties": {"v": chance.schema()}, "$defs": {"p": chance.schema(2), "q": chance.schema(2)}}
    value = {"v": chance.value()}
    try:
        theirs = judged_by(jsonschema.Draft202012Validator, schema, value)
    except RecursionError:
        theirs = True
    ours = takes(schema, value)
    assert theirs <= ours
    if not has(schema, "oneOf", "nullable"):
        assert ours == theirs


# For each keyword that is understood, values on both sides of it.
KEYWORDS: list[dict[str, Any]] = [
    *({"minimum": 2}, {"maximum": 2}, {"exclusiveMinimum": 2}, {"exclusiveMaximum": 2}, {"multipleOf": 2}),
    *({"minLength": 2}, {"maxLength": 2}, {"pattern": "^a+$"}, {"pattern": "b"}, {"minItems": 2}, {"maxItems": 2}),
    *({"uniqueItems": True}, {"minProperties": 2}, {"maxProperties": 1}, {"propertyNames": {"maxLength": 1}}),
    *({"propertyNames": False}, {"contains": {"type": "string"}}, {"contains": {"const": 2}, "minContains": 2}),
    *({"contains": False, "minContains": 0}, {"prefixItems": [{"type": "string"}], "items": False}),
    *(
        {"patternProperties": {"^a": {"type": "string"}}},
        {"patternProperties": {"^a": True}, "additionalProperties": False},
    ),
    {
        "properties": {"a": True},
        "patternProperties": {"b$": {"type": "null"}},
        "additionalProperties": {"type": "string"},
    },
    *(
        {"dependentRequired": {"a": ["b"]}},
        {"dependentSchemas": {"a": {"required": ["b"]}}},
        {"not": {"type": "string"}},
    ),
    *(
        {"not": {"required": ["a"]}},
        {"not": {"enum": [1, "a"]}},
        {"not": {"properties": {"a": {"const": 1}}}},
        {"not": {}},
    ),
    {
        "if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
        "then": {"required": ["b"]},
        "else": {"maxProperties": 1},
    },
    *(
        {"if": {"type": "string"}, "then": {"minLength": 2}},
        {"if": True, "else": False},
        {"if": False, "else": {"type": "null"}},
    ),
    *({"enum": [1, True, "a", None, [1], {"a": 1}]}, {"const": 1}, {"const": True}, {"const": 0}, {"const": False}),
    *(
        {"const": 1.0},
        {"const": [True]},
        {"type": ["integer", "null"]},
        {"type": "number"},
        {"allOf": [{"minLength": 1}, {"maxLength": 1}]},
    ),
    *(
        {"anyOf": [{"type": "string"}, {"minimum": 2}]},
        {"items": {"type": "integer"}},
        {"items": False},
        {"required": ["a"]},
    ),
]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, 4, -2, 1.0, 1.5, 2.5, 1e300, "", "a", "aa", "aab", "b", "ü", [], [1], [1, 1]),
    *([1, 2], [2, 2], [1, 2, 3], ["a"], ["a", 2], ["a", "a"], [[1], [1]], [True], [True, 1], {}, {"a": 1}, {"a": "x"}),
    *({"b": None}, {"a": 1, "b": 2}),
    *({"ab": None}, {"a": True}, {"c": "x"}, {"c": 1, "ab": 1}, {"a": [], "b": [], "c": []}),
]  # fmt: skip


@pytest.mark.parametrize("schema", KEYWORDS, ids=json.dumps)
def test_each_keyword_means_what_it_means_to_the_other(schema: dict[str, Any]) -> None:
    assert not compile_schema(schema).notes
    both = [
        (value, takes(schema, value), judged_by(jsonschema.Draft202012Validator, schema, value)) for value in VALUES
    ]
    assert [(value, ours) for value, ours, _ in both] == [(value, theirs) for value, _, theirs in both]


def test_the_keywords_tell_values_apart() -> None:
    for schema in KEYWORDS:
        if schema not in ({"contains": False, "minContains": 0}, {"not": {}}, {"if": True, "else": False}):
            assert {takes(schema, value) for value in VALUES} == {True, False}, schema


@pytest.mark.parametrize(
    ("old", "draft"),
    [
        ({"minimum": 2, "exclusiveMinimum": True}, jsonschema.Draft4Validator),
        ({"maximum": 2, "exclusiveMaximum": False}, jsonschema.Draft4Validator),
        ({"items": [{"type": "string"}], "additionalItems": {"type": "null"}}, jsonschema.Draft7Validator),
        ({"items": [{"type": "string"}, True], "additionalItems": False}, jsonschema.Draft7Validator),
        ({"dependencies": {"a": ["b"], "c": {"maxProperties": 1}}}, jsonschema.Draft7Validator),
        ({"$ref": "#/definitions/s", "minItems": 2, "definitions": {"s": {"maxItems": 2}}}, jsonschema.Draft6Validator),
        ({"$ref": "#/$defs/s", "minLength": 2, "$defs": {"s": {"type": "string"}}}, jsonschema.Draft202012Validator),
        ({"$ref": "#s", "$defs": {"s": {"$anchor": "s", "type": "string"}}}, jsonschema.Draft202012Validator),
        (
            {"$id": "http://x.invalid/a", "$ref": "b", "$defs": {"s": {"$id": "b", "type": "null"}}},
            jsonschema.Draft201909Validator,
        ),
    ],
    ids=lambda case: json.dumps(case) if isinstance(case, dict) else case.__name__,
)  # fmt: skip
def test_older_drafts_are_understood(old: dict[str, Any], draft: Any) -> None:
    schema = {"$schema": draft.META_SCHEMA["$schema"], **old}
    for value in VALUES:
        assert takes(schema, value) == judged_by(draft, schema, value), value


@given(random_schemas().flatmap(lambda case: st.tuples(st.just(case), instances_of(case.inlined))))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_what_is_valid_is_taken(case: tuple[RandomSchema, Any]) -> None:
    schema, value = case
    assert takes(schema.schema, value)


def _mutated(value: Any, chance: Random) -> Any:
    """A value with something else in one place."""
    if is_object(value) and value and chance.random() < 0.8:
        name = chance.choice(sorted(value))
        if chance.random() < 0.2:
            return {key: member for key, member in value.items() if key != name}
        return {**value, name: _mutated(value[name], chance)}
    if is_list(value) and value and chance.random() < 0.8:
        return [_mutated(value[0], chance), *value[1:]]
    return chance.choice([None, 1, "x", [], {}, True, 1.5, {"x": 1}, ["x"]])


@pytest.mark.parametrize("side", ["input", "output"])
def test_on_the_schemas_of_real_servers_nothing_valid_is_refused_and_most_of_the_rest_is(side: str) -> None:
    both = missed = 0
    for real in corpus.real_listings():
        for tool in real.listing.tools:
            schema: Any = tool.input_schema if side == "input" else tool.output_schema
            if schema is None:
                continue
            draft = validator_for(schema, jsonschema.Draft202012Validator)
            chance = Random(tool.name)
            value: Any = dict.fromkeys(schema.get("properties", {}), "x")
            for _ in range(60):
                value = _mutated(value, chance)
                if not is_object(value):
                    value = dict.fromkeys(schema.get("required", []), 1)
                theirs = judged_by(draft, schema, value)
                ours = takes(schema, value)
                assert theirs <= ours, (tool.name, value)
                both += 1
                missed += ours != theirs
    assert both > 500
    assert missed / both < 0.01
