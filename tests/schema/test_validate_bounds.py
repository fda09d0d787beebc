"""T15, T16: no schema and no value makes a check raise, hang or fetch; what can't be checked is let through."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from cases import each
from codegen import corpus
from codegen.chance import Chance
from growth import work_within
from threats.schema_bombs import BOMBS, ELSEWHERE
from toolbridge.schema import keywords as schema_judge
from toolbridge.schema.compile import compile_schema
from toolbridge.schema.validate import ToolValidator
from toolbridge_codegen.catalog import ToolDefinition
from toolbridge_codegen.escaping import is_object

VALUES: list[Any] = [
    *({}, {"bomb": {}}, {"bomb": []}, {"bomb": "x"}, {"bomb": {"a": {"a": {}}, "b": {"a": 1, "b": None}}}),
    *({"bomb": [[[[]]]]},),
    *({"a": {"a": {"a": {}}}}, {"p1": 5, "x": [{}], "leaf": 1}),
]  # fmt: skip


def checks(schema: Any) -> ToolValidator:
    return ToolValidator(ToolDefinition("f", schema, output_schema=schema))


def deep(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_costs_a_moment(bomb: str) -> None:
    schema = BOMBS[bomb]()
    with work_within(8.0):
        tool = checks(schema)
        for value in VALUES:
            tool.prepare(value)
            tool.result_problem(value)
    assert len(tool.notes) <= 20


def test_exponential_choices_end() -> None:
    definitions: dict[str, Any] = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 4} for n in range(20)}
    definitions["d20"] = {"required": ["never"]}
    tool = checks({"$ref": "#/$defs/d0", "$defs": definitions})
    with work_within(0.5):
        prepared = tool.prepare({"a": {"a": {"a": {}}}})
    assert prepared.problems == ()
    assert prepared.notes == ("not checked: the rest of a value that is large or nested in itself",)


@pytest.mark.parametrize(
    "schema", [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}], ids=str
)
def test_a_schema_that_is_only_itself_ends(schema: dict[str, Any]) -> None:
    assert checks(schema).prepare({"a": 1}).problems == ()


def test_what_is_wrong_before_the_steps_end_is_still_said() -> None:
    tool = checks({"properties": {"rows": {"items": {"properties": {"n": {"type": "integer"}}}}}})
    rows = {"rows": [{"n": "x"}, *[{"n": 1}] * 200_000]}
    assert tool.result_problem(rows) == 'rows[0].n: expected integer, got string "x"'
    assert tool.result_problem({"rows": rows["rows"][::-1]}) == ""
    assert tool.argument_problems(rows) == ('rows[0].n: expected integer, got string "x"',)


def test_a_large_result_is_checked_in_part() -> None:
    item = {"properties": {f"p{n}": {"type": "string"} for n in range(10)}, "required": ["p0"], "type": "object"}
    tool = checks({"properties": {"rows": {"type": "array", "items": item}}})
    rows = {"rows": [{f"p{n}": "x" * 10 for n in range(10)} for _ in range(6000)]}
    tool.result_problem(rows)
    with work_within(0.05):
        assert tool.result_problem(rows) == ""


@pytest.mark.parametrize("levels", [100, 500, 900, 100_000])
def test_values_may_be_as_deep_as_they_like(levels: int) -> None:
    value = {"v": deep(levels)}
    tool = checks({"additionalProperties": {"$ref": "#"}, "items": {"$ref": "#"}})
    assert tool.prepare(value).problems == ()
    same = checks({"properties": {"v": {"enum": [deep(levels)]}, "w": {"uniqueItems": True}}})
    assert same.prepare({**value, "w": [deep(levels), deep(levels), 1]}).notes or levels < 500


def test_a_check_ends_at_a_depth_that_does_not_depend_on_the_callers_stack() -> None:
    schema = compile_schema({"additionalProperties": {"$ref": "#"}, "items": {"$ref": "#"}})
    assert schema_judge.validate(schema, deep(30), steps=10_000).complete is True
    assert schema_judge.validate(schema, deep(80), steps=10_000).complete is False


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
def test_nothing_is_fetched(elsewhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr("builtins.open", refuse)
    tool = checks({"$schema": elsewhere, "properties": {"a": {"$ref": elsewhere}}, "$id": elsewhere, "required": ["a"]})
    assert tool.prepare({"a": 5}).problems == ()
    assert tool.prepare({}).problems == ('missing property "a"',)


@pytest.mark.parametrize("keyword", ["pattern", "patternProperties", "propertyNames"])
def test_a_catastrophic_pattern_is_never_run(keyword: str) -> None:
    evil, victim = "^(x+x+)+y$", "x" * 5000
    parts: dict[str, Any] = {
        "pattern": {"properties": {"v": {"pattern": evil}}},
        "patternProperties": {"patternProperties": {evil: False}, "additionalProperties": False},
        "propertyNames": {"propertyNames": {"pattern": evil}},
    }
    with work_within(0.2):
        tool = checks(parts[keyword])
        assert tool.prepare({"v": victim, victim: victim}).problems == ()
    assert any("could take too long" in note for note in tool.notes)


def test_many_patterns_and_long_texts_end_in_time() -> None:
    patterns = [{"pattern": f"^[a-z]*[a-y]*{n}$"} for n in range(150)]
    bomb = {"anyOf": [{"anyOf": patterns}] * 50}
    tool = checks({"properties": {"v": bomb}})
    assert tool.prepare({}).problems == ()
    with work_within(1.5):
        tool.prepare({"v": "a" * 900})


def test_comparisons_of_large_values_end_in_time() -> None:
    large = [["x" * 50] * 50] * 200
    for choice in (
        {"const": [*large, 1]},
        {"enum": [[*large, n] for n in range(50)]},
        {"uniqueItems": True, "maxItems": 1},
    ):
        tool = checks({"properties": {"v": {"anyOf": [choice] * 3000}}})
        tool.prepare({})
        with work_within(1.5):
            tool.prepare({"v": [*large, 0]})


def test_a_check_ends_also_when_steps_are_cheap_to_count_and_dear_to_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_judge, "_MAX_SECONDS", -1.0)
    schema = compile_schema({"items": {"type": "string"}})
    assert schema_judge.validate(schema, ["x"] * 1000, steps=10**9).complete is False


MALFORMED: list[dict[str, Any]] = [
    *({"type": "any"}, {"type": 5}, {"type": []}, {"type": ["string", "x"]}, {"type": {}}, {"type": None}),
    *({"required": True},),
    *({"required": "a"}, {"required": [1]}, {"properties": []}, {"properties": ["a"]}),
    *({"properties": None}, {"enum": "a"}),
    *({"enum": []}, {"minimum": "1"}, {"minimum": True}, {"minimum": float("nan")}, {"maximum": None}),
    *({"multipleOf": 0},),
    *({"multipleOf": -1}, {"minLength": -1}, {"minLength": 1.5}, {"pattern": 5}, {"pattern": "("}),
    *({"anyOf": []}, {"anyOf": {}}),
    *({"allOf": [5, None]}, {"items": 5}, {"items": "x"}, {"prefixItems": {}}, {"$ref": 5}),
    *({"$ref": "#/nowhere"}, {"not": 5}),
    *({"dependencies": []}, {"dependencies": {"v": 5}}, {"dependentRequired": {"v": "a"}}, {"if": 5, "then": False}),
    *({"additionalProperties": "no"}, {"patternProperties": []}, {"patternProperties": {"(": False}}, {"contains": 5}),
    *({"$defs": 5, "$ref": "#/$defs/a"}, {"nullable": "x"}, {"exclusiveMinimum": True}),
    *({"uniqueItems": "yes"}, {"$schema": 5}),
    *({"format": "date"}, {"not": {"format": "date"}}, {"not": {"pattern": "(a+)+"}}),
    {"if": {"format": "x"}, "then": False},
    *({"oneOf": [{"format": "date"}, {"format": "time"}]}, {"unevaluatedProperties": False}, {"$dynamicRef": "#x"}),
]  # fmt: skip


@each("schema", MALFORMED)
def test_a_malformed_or_doubtful_keyword_refuses_nothing(schema: dict[str, Any]) -> None:
    for value in (5, "x", None, [], [1], {}, {"v": 1}):
        assert checks({"properties": {"v": schema}}).argument_problems({"v": value}) == ()


def test_a_malformed_keyword_costs_that_keyword_only() -> None:
    tool = checks({"type": "object", "required": True, "properties": {"v": {"type": "string", "pattern": "("}}})
    assert tool.argument_problems({"v": 5}) == ("v: expected string, got number 5",)
    assert tool.notes == (
        "not checked: 'required' where it is malformed",
        "not checked: 'pattern' where it could take too long, or is not understood",
    )


def test_whatever_a_server_calls_a_schema_nothing_is_raised() -> None:
    for seed in range(3000):
        chance = Chance(seed)
        anything = chance.anything()
        schema = anything if is_object(anything) else {"properties": anything}
        tool = checks(schema)
        value = {"a": chance.value(), "b": chance.value()}
        prepared = tool.prepare(value)
        assert len(prepared.problems) <= 5
        json.dumps(prepared.problems)
        tool.result_problem(chance.value())


def test_the_schemas_of_the_corpus_raise_nothing() -> None:
    for listing in corpus.corpus_listings():
        for tool in listing.tools:
            chance = Chance(len(tool.name))
            for _ in range(10):
                checks(tool.input_schema).prepare({"a": chance.value(), "p": chance.value()})
