"""The tables of docs/save-tokens.md and docs/find-tools.md are what is measured, and good enough."""

from __future__ import annotations

import re

import pytest

from describe import documents, listings
from describe.search_queries import HELD_OUT, QUESTIONS
from toolbridge.describe.search import ToolSearch
from toolbridge.describe.system_prompt import system_prompt

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@pytest.mark.parametrize("name", documents.TABLES)
def test_a_table_is_what_is_measured_now(name: str) -> None:
    """Within two in a hundred: small changes of the stubs should not make every document stale."""
    said, made = documents.written(name), documents.TABLES[name][1]()
    advice = f"the table has changed; renew it with: {documents.HOW}"
    assert NUMBER.sub("#", said) == NUMBER.sub("#", made), advice
    for old, new in zip(NUMBER.findall(said), NUMBER.findall(made), strict=True):
        numbers = [float(text.replace(",", "")) for text in (old, new)]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.02, abs=0.021), advice


def test_there_are_enough_questions_and_each_has_an_answer() -> None:
    tools = {f"{tool.server}/{tool.name}" for tool in listings.real().tools}
    assert len(QUESTIONS) >= 60
    assert len({question.query for question in QUESTIONS}) == len(QUESTIONS)
    for question in QUESTIONS:
        for answer in question.answers:
            assert sum(tool.endswith(answer) for tool in tools) == 1, answer


def test_the_search_is_as_good_as_it_was() -> None:
    found = documents.quality(ToolSearch(listings.real()), QUESTIONS)
    assert found.first >= 0.66
    assert found.among_five >= 0.86
    assert found.reciprocal_rank >= 0.76


def test_the_search_is_good_on_questions_that_it_was_not_tuned_on() -> None:
    found = documents.quality(ToolSearch(listings.real()), HELD_OUT)
    assert found.first >= 0.55
    assert found.among_five >= 0.8


def test_the_search_prompt_is_at_most_three_hundredths_of_the_definitions_of_twenty_servers() -> None:
    raw, _, _, search_form = documents.sizes(
        listings.real(), [documents.definitions(each.listing) for each in documents.corpus.real_listings()]
    )
    assert search_form.tokens <= 0.03 * raw.tokens
    assert system_prompt(listings.real()).form == "search"
