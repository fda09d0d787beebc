"""What a person is shown of a call: one short line that no server and no guest can turn into something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbridge.trust.gate import MOST_DETAIL, ToolUse, detail_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
)


def test_a_call_is_its_tool_and_its_arguments_as_json() -> None:
    assert detail_of("send", {"to": ["a"], "n": 1, "é": None}) == 'send {"to": ["a"], "n": 1, "é": null}'
    assert detail_of("send", {}) == "send {}"


def test_a_long_call_is_cut_at_200_characters() -> None:
    shown = detail_of("send", {"text": "x" * 1_000_000})
    assert (len(shown), shown[:20], shown[-1]) == (200, 'send {"text": "xxxxx', "…")
    assert len(detail_of("send", {"t": "x" * 182})) < len(detail_of("send", {"t": "x" * 300})) == 200


def test_a_long_name_leaves_room_for_the_arguments() -> None:
    assert '… {"to": "me"}' in detail_of("send" * 100, {"to": "me"})


def test_nothing_in_a_name_or_an_argument_is_obeyed_by_a_terminal() -> None:
    shown = detail_of("send\x1b[2J\r\nsafe", {"\u202eto": "\x1b]52;c;x\x07\u200b\x9b31m\u2028"})
    assert shown.isprintable()
    assert "\\x1b[2J safe" in shown


@given(st.text(max_size=300), st.dictionaries(st.text(max_size=300), JSON, max_size=5))
def test_whatever_is_called_is_one_printable_line(tool: str, arguments: dict[str, Any]) -> None:
    shown = detail_of(tool, arguments)
    assert len(shown) <= MOST_DETAIL
    assert "\n" not in shown
    shown.encode()


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [deep(100_000), {1: 2}, {(1,): 2}, b"bytes", object(), 10**5000, float("nan"), "\ud800"], ids=lambda _: ""
)
def test_arguments_that_are_hardly_json_are_shown_as_far_as_they_go(value: Any) -> None:
    shown = detail_of("send", {"first": 1, "odd": value})
    assert shown.startswith('send {"first": 1, "odd": ')
    assert len(shown) <= MOST_DETAIL


class Counted(list[int]):
    """Knows how many of its items were looked at."""

    looked = 0

    def __iter__(self) -> Iterator[int]:
        for item in super().__iter__():
            self.looked += 1
            yield item


def test_of_long_arguments_only_the_beginning_is_looked_at() -> None:
    items = Counted(range(1_000_000))
    assert len(detail_of("send", {"items": items})) == MOST_DETAIL
    assert 0 < items.looked < 300


def test_arguments_are_not_part_of_what_a_log_would_show() -> None:
    assert "secret" not in repr(ToolUse("mail", "send", {"password": "secret"}))
