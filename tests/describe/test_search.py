"""Finding tools by words."""

from __future__ import annotations

import gc
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from describe import listings
from describe.listings import catalog, tool
from growth import is_at_most, linear, work_within
from toolbridge.describe import search
from toolbridge.describe.search import (
    SearchHit,
    SearchIndex,
    SearchRow,
    ToolSearch,
    name_words,
)

FILES = catalog(
    files=[
        tool("readTextFile", "Give the content of one file."),
        tool("move_file", "Move a file, or give it another name."),
        tool("searchFiles", "Find files by pattern.", title="Look for files"),
        tool("list-directory", "What a directory holds."),
    ],
    mail=[
        tool("send", "Send a letter to somebody."),
        tool("search", "Find letters."),
        tool("archive", "Put away old letters, with their attached files."),
    ],
)


def found(query: str, limit: int = 10) -> list[str]:
    return [f"{hit.server}/{hit.tool}" for hit in ToolSearch(FILES).find(query, limit)]


def test_a_hit_tells_all_that_is_needed_to_import_and_call_the_tool() -> None:
    (hit,) = ToolSearch(listings.weather()).find("forecast")
    assert hit == SearchHit(
        server="weather",
        tool="get-forecast",
        module="host:mcp-weather",
        identifier="get_forecast",
        summary="Get the weather forecast for a location",
        signature='get_forecast(input: { location: string; days?: number; units?: "metric" | "imperial" }): any',
        score=hit.score,
    )
    assert hit.as_json()["score"] == round(hit.score, 3)


def test_the_signature_is_in_the_language_that_was_asked_for() -> None:
    (hit,) = ToolSearch(listings.weather()).find("forecast", language="python")
    assert hit.signature.startswith("get_forecast(location: str, days: int = ...")


def test_the_signature_says_that_failures_are_returned_if_they_are() -> None:
    search_ = ToolSearch(listings.weather())
    for _ in range(2):  # what was written for one is not given for the other
        assert search_.find("forecast", errors="return")[0].signature.endswith("): any | { error: string }")
        assert search_.find("forecast")[0].signature.endswith("): any")


def test_a_language_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="cobol"):
        ToolSearch(FILES).find("file", language="cobol")  # pyright: ignore[reportArgumentType]


SPELLINGS = """
list-directory list_directory listDirectory LIST_DIRECTORY list_directory() files.list_directory files_list-directory
host:mcp-files.list_directory host.mcp_files.list_directory mcp__files__list-directory
"""


@pytest.mark.parametrize("query", ["list directory", " List  Directory ", *SPELLINGS.split()])
def test_a_tools_own_name_in_any_spelling_finds_that_tool_first(query: str) -> None:
    assert found(query)[0] == "files/list-directory"


def test_a_name_leads_even_where_another_tool_says_the_word_more_often() -> None:
    noisy = catalog(a=[tool("send_all", "Send send send. Sends what there is to send.")], b=[tool("send", "Does it.")])
    assert [hit.server for hit in ToolSearch(noisy).find("send")] == ["b", "a"]


def test_of_names_that_differ_by_separators_only_the_exact_one_leads() -> None:
    twins = catalog(twins=[tool("delete-all", "x"), tool("delete_all", "x"), tool("deleteAll", "x")])
    for name in ("delete-all", "delete_all", "deleteAll"):
        assert ToolSearch(twins).find(name)[0].tool == name


def test_words_of_a_name_count_more_than_those_of_a_description() -> None:
    assert found("file")[-1] == "mail/archive"


@pytest.mark.parametrize("query", ["moving files", "moves", "moved"])
def test_other_forms_of_a_word_are_found(query: str) -> None:
    assert found(query)[0] == "files/move_file"


@pytest.mark.parametrize("query", ["the direct", "direc", "of a directo"])
def test_a_word_that_is_not_typed_to_its_end_is_found(query: str) -> None:
    assert found(query)[0] == "files/list-directory"


@pytest.mark.parametrize("query", ["direktory", "dirctory", "direcotry", "lst directroy"])
def test_a_misspelt_word_is_found(query: str) -> None:
    assert found(query)[0] == "files/list-directory"


def test_nothing_is_guessed_for_a_word_that_is_like_no_other() -> None:
    assert found("zzyzx quux") == []


@pytest.mark.parametrize("query", ["erase a letter", "mail everybody"])
def test_what_can_be_matched_of_a_query_is_enough(query: str) -> None:
    assert all(name.startswith("mail/") for name in found(query))
    assert found(query)


def test_a_server_is_found_by_its_name() -> None:
    assert found("search mail")[0] == "mail/search"


def test_parameters_are_searched_down_to_nested_ones() -> None:
    nested = {"type": "array", "items": {"type": "object", "properties": {"zipCode": {"description": "of the parcel"}}}}
    schema = {"type": "object", "properties": {"recipients": nested}}
    search_ = ToolSearch(catalog(post=[tool("ship", input_schema=schema), tool("track")]))
    for query in ("recipient", "zip code", "parcel"):
        assert [hit.tool for hit in search_.find(query)] == ["ship"]


def test_accents_and_case_make_no_difference() -> None:
    search_ = ToolSearch(catalog(a=[tool("x", "Größe und Café"), tool("y", "nichts")]))
    for query in ("CAFE", "café", "grosse GRÖSSE", "große größe"):
        assert search_.find(query)[0].tool == "x", query


def test_text_without_spaces_between_words_is_found_by_a_part_of_it() -> None:
    search_ = ToolSearch(catalog(a=[tool("x", "天気予報を取得します"), tool("y", "予定を作成します")]))
    assert search_.find("天気")[0].tool == "x"


@pytest.mark.parametrize("query", ["", "   ", "?!", "***", '"', "\0", "\u200b", "\ud800"])
def test_a_query_without_words_gives_the_first_tools_in_order(query: str) -> None:
    assert found(query, 3) == ["files/list-directory", "files/move_file", "files/readTextFile"]


SYNTAX = """
file"|file*|^file|file OR mail|file AND NOT mail|name:file|NEAR(file move, 2)|(file|{name}: file|file' --|-file|+file|
'; DROP TABLE tools; --|tools MATCH 1|file/*|"file" "mail|file""
"""


@each("query", ['"', "file \0 move", "file\ud800", *SYNTAX.strip().split("|")])
def test_punctuation_and_syntax_in_a_query_mean_nothing(query: str) -> None:
    search_ = ToolSearch(FILES)
    assert search_.find(query) == search_.find(name_words(query))
    assert search_.find("list-directory")[0].tool == "list-directory", "the index is as it was"


@given(st.text(max_size=60))
def test_no_query_breaks_the_search(query: str) -> None:
    hits = _SHARED.find(query, 5)
    assert len(hits) <= 5
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


_SHARED = ToolSearch(FILES)


@pytest.mark.parametrize(("limit", "count"), [(-5, 1), (0, 1), (1, 1), (7, 7), (100, 100), (101, 100), (10**9, 100)])
def test_the_limit_is_kept_within_reason(limit: int, count: int) -> None:
    assert len(ToolSearch(listings.large(1, 150)).find("invoice order payment report note", limit)) <= count
    assert len(ToolSearch(listings.large(1, 150)).find("", limit)) == count


def test_ties_are_in_the_order_of_the_catalog_every_time() -> None:
    same = catalog(**{f"s{number}": [tool(f"t{number}", "the same words")] for number in range(8)})
    expected = [f"s{number}" for number in range(8)]
    for _ in range(3):
        assert [hit.server for hit in ToolSearch(same).find("same words")] == expected


def test_a_catalog_without_tools_gives_nothing() -> None:
    for empty in (catalog(), catalog(nothing=[])):
        for query in ("", "file"):
            assert ToolSearch(empty).find(query) == ()


def test_a_query_of_twenty_megabytes_is_cut() -> None:
    search_ = ToolSearch(FILES)
    search_.find("file")
    query = "readFile " * 2_200_000
    with work_within(0.5):
        assert search_.find(query)


def test_nothing_is_indexed_before_the_first_query(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[SearchIndex] = []

    def make_index(rows: Sequence[SearchRow]) -> SearchIndex:
        made.append(SearchIndex(rows))
        return made[-1]

    monkeypatch.setattr(search, "SearchIndex", make_index)
    search_ = ToolSearch(FILES)
    assert not made
    search_.find("file")
    search_.find("mail")
    assert len(made) == 1


def test_several_threads_may_search_at_once() -> None:
    search_ = ToolSearch(listings.large(2, 100))
    expected = [hit.tool for hit in ToolSearch(listings.large(2, 100)).find("delete invoice")]
    results: list[list[str]] = []

    def ask() -> None:
        results.extend([hit.tool for hit in search_.find("delete invoice")] for _ in range(20))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 120


def test_a_search_that_is_forgotten_closes_its_connection() -> None:
    search_ = ToolSearch(FILES)
    index = search_._index()
    connection = index._connection
    del search_, index
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_indexing_takes_time_in_proportion_and_a_query_a_fraction_of_it() -> None:
    linear(lambda tools: ToolSearch(tools)._index(), lambda count: listings.large(1, count), 500)
    search_ = ToolSearch(listings.large(1, 500))
    search_.find("delete a customer")
    tools = listings.large(1, 500)
    assert is_at_most(0.2, lambda: search_.find("delete a customer"), lambda: ToolSearch(tools)._index())


MARKS = """
DEPRECATED: Use read_text_file instead.
[deprecated] Read a file.
Read the complete contents of a file as text. DEPRECATED: Use read_text_file instead.
Read a file (Deprecated).
Deprecated - use read_text_file.
**Deprecated**: use read_text_file.
Deprecated. Use read_text_file.
Read a file. This tool is now deprecated.
Deprecated in favour of read_text_file
"""
NO_MARKS = """
Deprecated packages of a project.
List deprecated APIs and what replaced them.
Find calls of functions that are deprecated.
Read a file. Deprecated encodings are converted.
"""


def readers(description: str) -> list[str]:
    tools = [
        tool("read_file", description),
        tool("read_text_file", "Read a file as text."),
        tool("write_file", "Write."),
    ]
    return [hit.tool for hit in ToolSearch(catalog(files=tools)).find("read file")]


@pytest.mark.parametrize("description", MARKS.strip().splitlines())
def test_a_deprecated_tool_sinks_and_says_so(description: str) -> None:
    assert readers(description).index("read_text_file") == 0
    tools = catalog(files=[tool("read_file", description), tool("read_text_file", "Read a file as text.")])
    hits = {hit.tool: hit for hit in ToolSearch(tools).find("read file")}
    assert hits["read_file"].deprecated
    assert "deprecated" in hits["read_file"].summary.lower()
    assert not hits["read_text_file"].deprecated
    assert ToolSearch(tools).find("read_file")[0].tool == "read_file"  # it is named


def test_a_deprecated_tools_place_is_its_successors() -> None:
    """As the filesystem server has them: its shortest names and texts are those of the wrong tools."""
    tools = catalog(
        files=[
            tool("read_file", "Read the complete contents of a file as text. DEPRECATED: Use read_text_file instead."),
            tool("read_text_file", "Read the contents of a file from the file system as text. " + "Many. " * 60),
            tool("read_media_file", "Read a file and return it as base64."),
            tool("read_multiple_files", "Read files."),
        ],
        # What another server calls the same is not meant, nor is a word that only happens to be a tool's name.
        other=[tool("read_text_file", "Something else."), tool("instead", "Nothing of this.")],
    )
    for query in ("read file", "Read File", "read-file", "complete contents"):
        first, *others = ToolSearch(tools).find(query)
        assert (first.server, first.tool) == ("files", "read_text_file"), query
        assert "read_file" in [hit.tool for hit in others]
    assert ToolSearch(tools).find("read_file")[0].tool == "read_file"


@pytest.mark.parametrize("description", NO_MARKS.strip().splitlines())
def test_a_tool_that_speaks_of_deprecation_is_not_deprecated(description: str) -> None:
    assert readers(description)[0] == "read_file"


def test_an_annotation_or_a_schema_marks_a_tool_as_deprecated() -> None:
    marked = tool("read_file", "Read a file.", input_schema={"type": "object", "deprecated": True})
    assert ToolSearch(catalog(files=[marked])).find("read")[0].summary == "Deprecated. Read a file"
    marked = replace(tool("read_file", "Read a file."), annotations={"deprecated": True})
    assert ToolSearch(catalog(files=[marked])).find("read")[0].deprecated
