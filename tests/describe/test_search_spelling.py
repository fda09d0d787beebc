"""What a misspelt word may be meant for."""

from __future__ import annotations

import pytest

from growth import work_within
from toolbridge.describe.search import Spelling

WORDS = Spelling(["screenshot", "screencast", "repository", "request", "pull", "calendar", "at", "id"])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("screnshot", "screenshot"),
        ("screenshoot", "screenshot"),
        ("repositry", "repository"),
        ("reposiotry", "repository"),
        ("reqest", "request"),
        ("calender", "calendar"),
        ("pul", "pull"),
    ],
)
def test_the_word_that_was_meant_is_found(written: str, meant: str) -> None:
    assert WORDS.nearest(written) == (meant,)


@pytest.mark.parametrize("written", ["", "a", "ad", "xyzzy", "q" * 5_000])
def test_nothing_is_found_for_what_is_like_no_word_or_too_short_to_tell(written: str) -> None:
    assert WORDS.nearest(written) == ()


def test_an_endless_vocabulary_is_cut_and_quick() -> None:
    with work_within(5):
        spelling = Spelling(f"word{number}" for number in range(1_000_000))
        assert spelling.nearest("word19x")
    assert not spelling.nearest("999999")
