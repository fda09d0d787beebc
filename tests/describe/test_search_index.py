"""The two indexes: what holds for one holds for the other."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import pytest

from toolbridge.describe import search as search_index
from toolbridge.describe.search import FullTextIndex, PlainIndex, SearchIndex, SearchRow, make_index

ROWS = (
    SearchRow("get forecast", "Weather", "weather", "The forecast for a place", "location days"),
    SearchRow("list stations", "", "weather", "Where it is measured. Forecasts need them.", "country"),
    SearchRow("send", "", "mail", "Send a letter", "recipient"),
)


@pytest.fixture(params=[FullTextIndex, PlainIndex])
def index(request: pytest.FixtureRequest) -> SearchIndex:
    return request.param(ROWS)


def best_first(index: SearchIndex, word: str, *, as_beginning: bool = False) -> list[int]:
    scores = index.scores(word, as_beginning=as_beginning)
    assert all(score > 0 for score in scores.values())
    return sorted(scores, key=lambda number: -scores[number])


def test_a_word_in_a_name_ranks_above_one_in_a_description(index: SearchIndex) -> None:
    assert best_first(index, "forecast") == [0, 1]


def test_every_column_is_searched(index: SearchIndex) -> None:
    for word, rows in {"weather": [0, 1], "country": [1], "letter": [2], "mail": [2], "recipients": [2]}.items():
        assert sorted(best_first(index, word)) == rows, word


def test_a_beginning_is_enough_where_one_is_asked_for(index: SearchIndex) -> None:
    assert best_first(index, "recip", as_beginning=True) == [2]
    assert best_first(index, "xyz", as_beginning=True) == []


@pytest.mark.parametrize(
    "word", ["", '"', '""', "*", "a*", "send OR get", "name : send", "\0", "send\0", "-", "(", "'"]
)
def test_no_word_is_taken_for_syntax(index: SearchIndex, word: str) -> None:
    assert set(index.scores(word)) <= {0, 1, 2}
    assert set(index.scores(word, as_beginning=True)) <= {0, 1, 2}


def test_an_index_may_be_empty() -> None:
    for made in (FullTextIndex(()), PlainIndex(())):
        assert made.scores("send") == {}


def test_without_full_text_search_in_sqlite_words_are_still_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(connection: sqlite3.Connection, rows: Sequence[SearchRow]) -> None:
        connection.execute("CREATE VIRTUAL TABLE tools USING fts_that_is_not_there(name)")

    assert isinstance(make_index(ROWS), FullTextIndex)
    monkeypatch.setattr(search_index, "_fill", missing)
    made = make_index(ROWS)
    assert isinstance(made, PlainIndex)
    assert best_first(made, "forecasts") == [0, 1]
