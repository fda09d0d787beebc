"""`typing.TypedDict` in the hints of a host's function means the same on every Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, Required, TypedDict

import pytest

from toolbridge import Config, create_server, run_sync, tool
from toolbridge.tools.binding import readable


class Day(TypedDict):
    """One day."""

    sky: Literal["sun", "rain"]
    low: NotRequired[float]


class Week(TypedDict, total=False):
    days: Required[list[Day]]
    note: Annotated[str, "free"]


def definition_of(schema: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    assert schema is not None
    return schema["$defs"][name]


@pytest.mark.parametrize(
    "hint", [Day, list[Day], Day | None, list[Day] | int, dict[str, list[Day]], tuple[Day, ...], Annotated[Day, 1]]
)
def test_what_is_taken_and_given_has_its_properties(hint: Any) -> None:
    def act(value: Any) -> Any:
        return value

    act.__annotations__ = {"value": hint, "return": list[hint]}
    made = tool(act)
    for schema in (made.definition.input_schema, made.definition.output_schema):
        day = definition_of(schema, "Day")
        assert (day["description"], day["required"]) == ("One day.", ["sky"])
        assert day["properties"] == {"sky": {"type": "string", "enum": ["sun", "rain"]}, "low": {"type": "number"}}


def test_those_within_others_and_what_may_be_absent_are_kept() -> None:
    @tool
    def summary(week: Week) -> Week:
        return week

    week = definition_of(summary.definition.input_schema, "Week")
    assert week["required"] == ["days"]
    assert week["properties"]["days"] == {"type": "array", "items": {"$ref": "#/$defs/Day"}}
    result = run_sync(
        Config.of(create_server("own", [summary])),
        'require("host:mcp-own").summary({ week: { days: [{ sky: "sun" }] } }).days[0].sky',
        pins="none",
    )
    assert result.value == "sun", result.failure


@pytest.mark.parametrize("hint", [int, list[int], Literal["a"], str | None, dict[str, Any]])
def test_other_hints_are_left_as_they_are(hint: Any) -> None:
    assert readable(hint) is hint
