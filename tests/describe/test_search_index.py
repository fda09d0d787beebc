"""The index of tools: SQLite's FTS5 in memory."""

from __future__ import annotations

import pytest

from toolbridge import ToolbridgeError
from toolbridge.describe import search
from toolbridge.describe.search import SearchIndex, SearchRow

ROWS = (
    SearchRow("get forecast", "Weather", "weather", "The forecast for a place", "location days"),
    SearchRow("list stations", "", "weather", "Where it is measured. Forecasts need them.", "country"),
    SearchRow("send", "", "mail", "Send a letter", "recipient"),
)


@pytest.fixture
def index() -> SearchIndex:
    return SearchIndex(ROWS)


def best_first(index: SearchIndex, word: str, *, is_prefix: bool = False) -> list[int]:
    scores = index.scores(word, is_prefix=is_prefix)
    assert all(score > 0 for score in scores.values())
    return sorted(scores, key=lambda number: -scores[number])


def test_a_word_in_a_name_ranks_above_one_in_a_description(index: SearchIndex) -> None:
    assert best_first(index, "forecast") == [0, 1]


def test_every_column_is_searched(index: SearchIndex) -> None:
    for word, rows in {"weather": [0, 1], "country": [1], "letter": [2], "mail": [2], "recipients": [2]}.items():
        assert sorted(best_first(index, word)) == rows, word


def test_a_beginning_is_enough_where_one_is_asked_for(index: SearchIndex) -> None:
    assert best_first(index, "recip", is_prefix=True) == [2]
    assert best_first(index, "xyz", is_prefix=True) == []


@pytest.mark.parametrize(
    "word", ["", '"', '""', "*", "a*", "send OR get", "name : send", "\0", "send\0", "-", "(", "'"]
)
def test_no_word_is_taken_for_syntax(index: SearchIndex, word: str) -> None:
    assert set(index.scores(word)) <= {0, 1, 2}
    assert set(index.scores(word, is_prefix=True)) <= {0, 1, 2}


def test_an_index_may_be_empty() -> None:
    assert SearchIndex(()).scores("send") == {}


def test_without_fts5_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_CREATE", "CREATE VIRTUAL TABLE tools USING fts_that_is_not_there(name)")
    with pytest.raises(ToolbridgeError, match="SQLite with FTS5"):
        SearchIndex(ROWS)
