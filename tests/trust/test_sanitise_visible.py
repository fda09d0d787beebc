"""Text that a person decides by: on one line, inert, unambiguous, and never wider than it should be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbridge.trust.sanitise import columns, visible, word, wrapped

ANY = st.text(max_size=40)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("abc\u202egpj.exe", "abc\\u202egpj.exe"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("no\u00a0break", "no\\xa0break"),
        ("\u2028\u2029\u0085", "\\u2028\\u2029\\x85"),
        ("filler\u3164\u115f\u2800", "filler\\u3164\\u115f\\u2800"),
        ("variation\ufe0f", "variation\\ufe0f"),
        ("\ud800", "\\ud800"),
        ("\ue000", "\\ue000"),
        ("e\u0301", "e\u0301"),
        ("z" + "\u0301" * 5, "z\u0301\u0301\\u0301\\u0301\\u0301"),
        ("日本語 é", "日本語 é"),
    ],
)
def test_what_is_hidden_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("--flag=/usr/x", "--flag=/usr/x"),
        ("", '""'),
        ("a b", '"a b"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("C:\\x", '"C:\\\\x"'),
        ("\x1b", '"\\x1b"'),
        ("\\x1b", '"\\\\x1b"'),
        ("a\nb", '"a\\nb"'),
        ("é", '"é"'),
        ("$(rm)", '"$(rm)"'),
    ],
)
def test_an_argument_is_one_word(text: str, shown: str) -> None:
    assert word(text) == shown


@given(ANY, ANY)
def test_two_arguments_never_look_the_same(one: str, other: str) -> None:
    assert (word(one) == word(other)) == (one == other)


@given(ANY)
def test_what_is_shown_is_printable_and_on_one_line(text: str) -> None:
    for shown in (visible(text), word(text)):
        assert len(shown.splitlines()) <= 1
        assert all(each == " " or each.isprintable() for each in shown)


@given(st.lists(ANY.map(word), max_size=12), st.integers(12, 80))
def test_lines_are_never_too_wide_and_nothing_is_lost(words: list[str], width: int) -> None:
    lines = wrapped(words, width)
    assert all(columns(line) <= width for line in lines)
    joined = ""
    for line in lines:
        broken = line.endswith("\\") and columns(line) >= width - 1
        joined += line[:-1] if broken else f"{line} "
    assert "".join(joined.split()) == "".join("".join(words).split()) or any(each.endswith("\\") for each in words)


def test_a_word_that_is_longer_than_a_line_is_broken_visibly() -> None:
    assert wrapped(["ab", "x" * 25, "cd"], 10) == ["ab", "x" * 9 + "\\", "x" * 9 + "\\", "x" * 7 + " cd"]


def test_wide_characters_take_two_columns() -> None:
    assert columns("日本") == 4
    assert columns("e\u0301") == 1
    assert wrapped(["日" * 6], 7) == ["日日日\\", "日日日"]
