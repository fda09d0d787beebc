"""The canonical form of a tool: the same for equal JSON, another for every change, over the tools of real servers."""

from __future__ import annotations

import json
import math
import random
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbridge.trust.pins.definition import MOST_DEPTH, UnpinnableError, pin_of
from toolbridge_codegen.catalog import ToolDefinition
from trust.pins.definition_changes import changed_definitions, real_tools, rewritten, rewritten_tool

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def tool(schema: Any, **more: Any) -> ToolDefinition:
    return ToolDefinition("t", schema, **more)


def digest(schema: Any, **more: Any) -> str:
    return pin_of(tool(schema, **more)).digest


@pytest.mark.slow
def test_every_single_change_of_a_real_tool_gives_another_digest() -> None:
    changes = 0
    for original in real_tools():
        pinned = pin_of(original).digest
        for what, changed in changed_definitions(original):
            changes += 1
            assert pin_of(changed).digest != pinned, (original.name, what)
    assert changes > 10_000


def test_a_real_tool_that_is_written_otherwise_has_the_same_digest() -> None:
    chance = random.Random(11)
    for original in real_tools():
        assert pin_of(rewritten_tool(original, chance)).digest == pin_of(original).digest, original.name


@given(JSON_VALUES, st.randoms(use_true_random=False))
def test_any_json_that_is_written_otherwise_has_the_same_digest(value: Any, chance: random.Random) -> None:
    assert digest({"x": rewritten(value, chance)}) == digest({"x": value})


@given(JSON_VALUES, JSON_VALUES)
def test_two_values_share_a_digest_only_if_they_are_the_same_json(one: Any, other: Any) -> None:
    same = json.dumps(plain(one), sort_keys=True) == json.dumps(plain(other), sort_keys=True)
    assert (digest({"x": one}) == digest({"x": other})) == same


def plain(value: Any) -> Any:
    """By another way than the code: numbers as exact decimals."""
    from decimal import Decimal

    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = Decimal(repr(value)).normalize()
        return f"number {number + 0 if number == 0 else number}"
    return f"text {value}" if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), (0, -0.0), (100, 1e2), (10**22, 1e22), (10**23, 1e23), (-5, -5.0), (10**300, 1e300)],
)
def test_a_whole_number_is_the_same_with_a_point(one: int, other: float) -> None:
    assert digest({"default": one}) == digest({"default": other})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        (1, "1"),
        (0, None),
        (2**53, 2**53 + 1),
        (0.1, 0.2),
        ([], {}),
        ("", None),
        ("é", "e\u0301"),
        ("a", "a\u200b"),
        (["a", "b"], ["b", "a"]),
    ],
)
def test_what_only_looks_the_same_is_not(one: Any, other: Any) -> None:
    assert digest({"default": one}) != digest({"default": other})


def test_text_does_not_move_from_one_field_to_another() -> None:
    assert digest({}, title="x") != digest({}, description="x")
    assert digest({}, output_schema={}) != digest({})
    assert digest({}, annotations={"title": "x"}) != digest({}, title="x")


def test_other_kinds_of_mappings_and_lists_are_json_as_well() -> None:
    assert digest(MappingProxyType({"a": (1, 2)})) == digest({"a": [1, 2]})


def test_two_surrogates_in_a_row_are_the_character_that_json_makes_of_them() -> None:
    halves = "\ud83d" + "\ude00"
    assert digest({halves: halves, "\uffff": 1}) == digest({"\U0001f600": "\U0001f600", "\uffff": 1})
    assert digest({"x": "\ud83d"}) != digest({"x": "\ude00"})


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"items": value}
    return value


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (nested(MOST_DEPTH + 1), "nested more than 200 levels"),
        (nested(100_000), "nested more than 200 levels"),
        ({"default": math.nan}, "not finite"),
        ({"default": math.inf}, "not finite"),
        ({"default": 10**5000}, "too long"),
        ({1: "x"}, "not text"),
        ({"default": {1, 2}}, "of type set"),
        ({"default": b"x"}, "of type bytes"),
        ({"\ud83d\ude00": 1, "\U0001f600": 2}, "two members of one name"),
    ],
    ids=["deep", "deeper", "nan", "infinite", "long", "key", "set", "bytes", "twins"],
)
def test_what_has_no_exact_form_in_json_can_not_be_pinned(schema: Any, says: str) -> None:
    with pytest.raises(UnpinnableError, match=says):
        pin_of(tool(schema))


def test_what_is_just_not_too_deep_can_be_pinned() -> None:
    assert pin_of(tool(nested(MOST_DEPTH - 1))).digest.startswith("sha256:")
