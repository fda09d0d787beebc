"""Writes the tables of docs/save-tokens.md and docs/find-tools.md from the listings of real servers.

cd tests && ../.venv/bin/python -m describe.documents
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean, median

from codegen import corpus
from describe import listings
from describe.search_queries import HELD_OUT, QUESTIONS, TUNED_ON, Question
from toolbridge.describe.modules import GuestLanguage
from toolbridge.describe.search import ToolSearch
from toolbridge.describe.system_prompt import PromptForm, count_tokens, system_prompt
from toolbridge_codegen.catalog import Catalog, ServerListing, build_catalog
from toolbridge_codegen.stubs import generate

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
HOW = "cd tests && ../.venv/bin/python -m describe.documents"
_LANGUAGES: dict[GuestLanguage, str] = {"typescript": "TypeScript", "python": "Python"}
_FORMS: tuple[PromptForm, ...] = ("full", "compact", "search")


@dataclass(frozen=True, slots=True)
class Size:
    """What a text costs."""

    characters: int
    tokens: int

    @classmethod
    def of(cls, text: str) -> Size:
        return cls(len(text), count_tokens(text))

    def __str__(self) -> str:
        return f"{self.characters:,} / {self.tokens:,}"


def definitions(listing: ServerListing) -> str:
    """A server's tools as a client gives them to a model: without output schemas, which no model is given."""
    tools = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in listing.tools
    ]
    return json.dumps(tools, ensure_ascii=False, separators=(",", ":"))


def sizes(known: Catalog, raw: Iterable[str], language: GuestLanguage = "typescript") -> list[Size]:
    """Of the definitions, and of the prompt in each form."""
    prompts = [system_prompt(known, language=language, form=form) for form in _FORMS]
    sent = [Size.of(text) for text in raw]
    total = Size(sum(size.characters for size in sent), sum(size.tokens for size in sent))
    return [total, *(Size(prompt.characters, prompt.tokens) for prompt in prompts)]


@cache
def token_table() -> str:
    """Characters and estimated tokens, server by server and all together."""
    real = corpus.real_listings()
    rows = [
        [each.listing.server, str(len(each.listing.tools)), *map(str, sizes(build_catalog([each.listing]), [raw]))]
        for each in real
        for raw in [definitions(each.listing)]
    ]
    everything = [definitions(each.listing) for each in real]
    for language, name in _LANGUAGES.items():
        measured = sizes(listings.real(), everything, language)
        rows.append([f"**all together, {name}**", str(len(listings.real().tools)), *map(str, measured)])
        shares = [f"{size.tokens / measured[0].tokens:.1%}" for size in measured]
        rows.append(["share of the tokens", "", *shares])
    return table(["server", "tools", "tool definitions", "full prompt", "compact prompt", "search prompt"], rows)


@cache
def search_cost() -> str:
    """What looking for a tool adds to the search form."""
    search = ToolSearch(listings.real())
    stubs = generate(listings.real(), language="typescript").files
    answers: list[int] = []
    described: list[int] = []
    for question in QUESTIONS:
        hits = search.find(question.query, 5)
        answers.append(count_tokens(json.dumps([hit.as_json() for hit in hits], ensure_ascii=False)))
        described += [count_tokens(stubs[f"mcp-{hits[0].server}.d.ts"])] if hits else []
    rows = [
        ["a search that gives 5 tools, with their signatures", f"{mean(answers):,.0f}", f"{max(answers):,}"],
        ["the stub of the module of the first of them", f"{median(described):,.0f}", f"{max(described):,}"],
    ]
    return table(["step", "tokens, usually", "at most"], rows)


@dataclass(frozen=True, slots=True)
class Quality:
    """How good the answers to some questions are."""

    first: float
    """Share of questions whose first hit is an answer."""
    among_five: float
    reciprocal_rank: float
    """Mean of one over the rank of the first answer among ten hits."""


def quality(search: ToolSearch, questions: Sequence[Question]) -> Quality:
    ranks: list[int | None] = []
    for question in questions:
        hits = search.find(question.query, 10)
        ranks.append(next((rank for rank, hit in enumerate(hits, 1) if question.accepts(hit.server, hit.tool)), None))
    return Quality(
        mean(rank == 1 for rank in ranks),
        mean(rank is not None and rank <= 5 for rank in ranks),
        mean(1 / rank if rank else 0.0 for rank in ranks),
    )


@cache
def quality_table() -> str:
    """The evaluation of the search."""
    search = ToolSearch(listings.real())
    rows: list[list[str]] = []
    for name, questions in (("the half tuned on", TUNED_ON), ("the half held out", HELD_OUT), ("all", QUESTIONS)):
        found = quality(search, questions)
        numbers = [f"{value:.2f}" for value in (found.first, found.among_five, found.reciprocal_rank)]
        rows.append([name, str(len(questions)), *numbers])
    return table(["questions", "number", "hit@1", "hit@5", "MRR"], rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; every column but the first is of numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "tokens": ("save-tokens.md", token_table),
    "search-cost": ("save-tokens.md", search_cost),
    "quality": ("find-tools.md", quality_table),
}


def written(name: str) -> str:
    """A table as its document has it."""
    found = _place(name).search((DOCS / TABLES[name][0]).read_text("utf-8"))
    assert found is not None, f"docs/{TABLES[name][0]} has no place for the table {name!r}"
    return found[2]


def _place(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- table: {name} -->\n\n)(.*?)(\n<!-- end -->)", re.DOTALL)


def main() -> None:
    """Write all tables."""
    for name, (file, make) in TABLES.items():
        path = DOCS / file
        made = make()
        text, count = _place(name).subn(lambda found, made=made: found[1] + made + found[3], path.read_text("utf-8"))
        assert count == 1, (file, name)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
