"""A program's lines: the same as if it had been split, whatever ends them, and without splitting it."""

from __future__ import annotations

import re

from cases import each
from toolbridge.sandbox.outcome import PYTHON_LINE_ENDS, SourceLines, excerpt

_ENDS = re.compile(r"\r\n|[\n\r\u2028\u2029]")


@each("end", ["\n", "\r", "\r\n", "\u2028", "\u2029"])
@each("length", [0, 1, 4094, 4095, 4096, 4097])
def test_a_line_is_found_wherever_it_begins(end: str, length: int) -> None:
    source = "x" * length + end + "é = 1" + end * 5000 + "last line"
    split = _ENDS.split(source)
    for line in (1, 2, 3, len(split) - 1, len(split)):
        shown = excerpt(source, line, None).split("\n")
        marked = next(text for text in shown if text.startswith(">"))
        assert marked.startswith(f"> {line:>{len(str(min(line + 2, len(split))))}} | {split[line - 1][:160]}")
    assert excerpt(source, len(split) + 1, None) == ""


def test_columns_are_counted_in_characters() -> None:
    lines = SourceLines("a\nüü = x")
    assert [lines.character_column(2, byte) for byte in (1, 3, 5, 8)] == [1, 2, 3, 6]


def test_a_column_of_a_line_that_does_not_exist_stays_as_it_is() -> None:
    assert SourceLines("a").character_column(7, 3) == 3


def test_a_separator_in_a_text_of_a_python_program_ends_no_line() -> None:
    source = "a = '\u2028'\n1 / 0"
    assert SourceLines(source, PYTHON_LINE_ENDS).excerpt(2, 1).endswith("> 2 | 1 / 0\n    | ^")
