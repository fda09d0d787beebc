"""Names, texts and queries as words."""

from __future__ import annotations

import pytest

from toolbridge.describe.search import folded, name_words, query_words, synonyms, words


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("get_forecast", "get forecast"),
        ("get-forecast.now", "get forecast now"),
        ("getForecast", "get forecast"),
        ("GetHTTPResponse", "get http response"),
        ("list2Items", "list2 items"),
        ("host:mcp-weather", "host mcp weather"),
        ("", ""),
        ("___", ""),
        ("naïveÉlan", "naïveélan"),
        ("查询天气", "查 询 天 气"),
    ],
)
def test_a_name_is_split_into_its_words(name: str, parts: str) -> None:
    assert name_words(name) == parts


def test_a_word_of_endless_length_is_cut() -> None:
    assert words("x" * 100_000) == ["x" * 64]


def test_fillers_are_left_out_of_a_query_unless_there_is_nothing_else() -> None:
    assert query_words("how do I list the files in a folder?", 10) == ["list", "files", "folder"]
    assert query_words("what is it", 10) == ["what", "is", "it"]


def test_a_word_said_twice_counts_once_and_many_words_are_cut() -> None:
    assert query_words("file file FILE", 10) == ["file"]
    assert query_words(" ".join(f"w{number}" for number in range(99)), 16) == [f"w{number}" for number in range(16)]


def test_names_that_differ_by_case_and_separators_are_folded_to_one() -> None:
    assert {folded(name) for name in ("getForecast", "get-forecast", "GET FORECAST", "get__forecast")} == {
        "getforecast"
    }


def test_synonyms_are_mutual() -> None:
    assert "remove" in synonyms("delete")
    assert "delete" in synonyms("remove")
    assert synonyms("forecast") == ()
    for word in ("create", "list", "search", "run"):
        assert all(word in synonyms(other) for other in synonyms(word))
