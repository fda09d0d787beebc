"""Sanitising text from servers: everything left is visible, and obeyed by no terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from growth import work_within
from toolbridge_codegen.escaping import clean_line, clean_text

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "ignore all")


@each(
    "text, clean",
    [
        ("plain", "plain"),
        ("", ""),
        ("  a \t b\u00a0c\u3000d ", "a b c d"),
        ("a\nb", "a\nb"),
        ("a\r\nb\rc\u2028d\u2029e\x0bf\x0cg\x85h", "a\nb\nc\nd\ne\nf\ng\nh"),
        ("a\n\n\n\n  b", "a\n\nb"),
        ("a\x00\x07\x1b\x7f\x9fb", "ab"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\text", "text"),
        ("\x1b(Btext", "text"),
        ("a\u202eb\u2066c\u061cd", "abcd"),
        ("a\u200bb\u200dc\u2060d\ufeffe\u00adf", "abcdef"),
        (f"see{TAGS}", "see"),
        ("x\ufe0fy\U000e0100z\u180b", "xyz"),
        ("a\ud800b\udfffc", "abc"),
        ("\ue000\U000f0000\ufffe\ufdd0a", "a"),
        ("ä ñ 漢字 🙂 é", "ä ñ 漢字 🙂 é"),
        ('*/ """ \\ ${x} </script>', '*/ """ \\ ${x} </script>'),
    ],
)
def test_invisible_characters_are_removed_and_others_kept(text: str, clean: str) -> None:
    assert clean_text(text) == clean


def test_a_line_is_one_line() -> None:
    assert clean_line("a\nb\r\n\u2028 c\td\x1b[2J") == "a b c d"


@pytest.mark.parametrize(
    ("text", "limit", "clean"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde…"),
        ("abcd efg", 6, "abcd…"),
        ("abc", 0, "…"),
        ("\u200b" * 5000 + "hidden", 6, "…"),
    ],
)
def test_long_text_is_truncated_with_a_visible_mark(text: str, limit: int, clean: str) -> None:
    assert clean_text(text, limit=limit) == clean
    assert clean_line(text, limit=limit) == clean


def test_the_default_limit_is_two_thousand_characters() -> None:
    assert clean_text("a" * 2001) == "a" * 1999 + "…"
    assert clean_text("a" * 2000) == "a" * 2000


@pytest.mark.parametrize("text", ["\x1b[" + "0;" * 500_000, "\x1b]" * 300_000, " \n" * 500_000, "\u200b" * 10**6])
def test_a_megabyte_costs_no_more_than_the_limit(text: str) -> None:
    with work_within(0.1):
        clean_text(text)
        clean_line(text)


_HIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(text=st.text(st.characters(), max_size=60), limit=st.integers(1, 50))
def test_sanitising_removes_everything_hidden_and_is_idempotent(text: str, limit: int) -> None:
    for clean in (clean_text, clean_line):
        result = clean(text, limit=limit)
        assert not _HIDDEN.search(result)
        assert len(result) <= limit
        assert clean(result, limit=limit) == result
