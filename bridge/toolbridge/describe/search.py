"""Finding tools by words: the first step of a model that was not shown all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from toolbridge.describe.search_index import Scores, SearchIndex, make_index
from toolbridge.describe.search_rows import SearchRow, search_row
from toolbridge.describe.search_words import relatives, squashed, telling_words, words
from toolbridge.describe.signatures import GuestLanguage, signature_of, stub_language
from toolbridge.describe.spelling import Spelling
from toolbridge.describe.summaries import is_deprecated, replacements_of, shown_name, summary_of
from toolbridge_codegen.catalog import Catalog, ModuleSpec, ToolSpec
from toolbridge_codegen.emit_compact import CUT
from toolbridge_codegen.stubs import Errors
from toolbridge_codegen.stubs import Language as StubLanguage

MOST_HITS = 100
_LONGEST_QUERY = 500
_MOST_WORDS = 16
_SIGNATURE_SECONDS = 2.0
"""For writing the signatures of one answer. Ordinary ones take a thousandth each; a hundred hostile ones would not."""
_BEGINNING = 0.5
"""What a word counts that only begins like the last one of a query, which may not be typed to its end."""
_RELATIVE = 0.5
"""What another word for the same deed counts."""
_GUESS = 0.7
"""What a word counts that a misspelt one may be meant for."""
_EVERY_WORD = 1.0
"""What a tool gains that has every word of a query: BM25 alone would prefer one rare word to two common ones."""
_DEPRECATED = 0.25
"""What remains of a deprecated tool's score: it sinks below live tools that fit nearly as well."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One tool that was found."""

    server: str
    tool: str
    """Its original name, exactly: hostile text. `as_json` has it cleaned."""
    module: str
    """The specifier of its module."""
    identifier: str
    summary: str
    signature: str
    score: float
    """Greater is better; only to be compared with others of the same query."""
    deprecated: bool = False

    def as_json(self) -> dict[str, Any]:
        """For a model or a program to read."""
        return {
            "server": self.server,
            "tool": shown_name(self.tool),
            "module": self.module,
            "identifier": self.identifier,
            "summary": self.summary,
            "signature": self.signature,
            "score": round(self.score, 3),
            **({"deprecated": True} if self.deprecated else {}),
        }


class _Writing(NamedTuple):
    """How signatures are written."""

    language: StubLanguage
    errors: Errors


class ToolSearch:
    """Search over one catalog. The index is made by the first query; several threads may ask."""

    def __init__(self, catalog: Catalog) -> None:
        self._tools: list[tuple[ModuleSpec, ToolSpec]] = [
            (module, tool) for module in catalog.modules for tool in module.tools
        ]
        self._making = threading.Lock()
        self._lines: dict[tuple[int, _Writing], tuple[str, str]] = {}
        """Summaries and signatures that were already asked for."""

    def find(
        self, query: str, limit: int = 10, *, language: GuestLanguage = "typescript", errors: Errors = "raise"
    ) -> tuple[SearchHit, ...]:
        """The tools that fit a query best, best first; without a query, the first ones of the catalog.

        A query is words, not syntax: punctuation separates, and means nothing. A tool's own name finds that tool first.

        Raises:
            ValueError: there is no such language.
        """
        writing = _Writing(stub_language(language), errors)
        most = max(1, min(limit, MOST_HITS))
        query = query[:_LONGEST_QUERY]
        ranked = self._ranked(query) if squashed(query) else dict.fromkeys(range(len(self._tools)), 0.0)
        # By score, then in the catalog's order.
        best = sorted(ranked, key=lambda number: (-round(ranked[number], 9), number))[:most]
        deadline = time.monotonic() + _SIGNATURE_SECONDS
        return tuple(self._hit(number, ranked[number], writing, deadline) for number in best)

    def _ranked(self, query: str) -> Scores:
        index = self._index()
        words = telling_words(query, _MOST_WORDS)
        ranked: Scores = {}
        matched: dict[int, int] = {}
        for word in words:
            own = self._own_scores(index, word, is_last=word == words[-1])
            for number in own:
                matched[number] = matched.get(number, 0) + 1
            for other in relatives(word):
                _raise_to(own, index.scores(other), _RELATIVE)
            for number, score in own.items():
                ranked[number] = ranked.get(number, 0.0) + score
        for number in ranked:
            ranked[number] *= 1 + _EVERY_WORD * matched.get(number, 0) / len(words)
        for number in ranked.keys() & self._successors.keys():
            score = ranked[number]
            ranked[number] = _DEPRECATED * score
            _raise_to(ranked, dict.fromkeys(self._successors[number], score), 1.0)
        top = max(ranked.values(), default=0.0)
        for nearness, number in self._named(query):
            ranked[number] = top + nearness
        return ranked

    def _own_scores(self, index: SearchIndex, word: str, *, is_last: bool) -> Scores:
        """The tools that have a word, or if none has it, those that have one much like it."""
        scores = index.scores(word)
        if is_last and len(word) > 1:
            _raise_to(scores, index.scores(word, as_beginning=True), _BEGINNING)
        if not scores:
            for guess in self._spelling.nearest(word):
                _raise_to(scores, index.scores(guess), _GUESS)
        return scores

    def _named(self, query: str) -> Iterator[tuple[float, int]]:
        """The tools that a query names, exactly or but for case and separators, and by how much they are to lead.

        A deprecated one leads only if it is named exactly: `read file` is what it does, `read_file` its name. Else its
        successor does.
        """
        written = query.strip()
        for number in self._by_name.get(squashed(query), ()):
            names = _names(*self._tools[number])
            # One tool's identifier may be another's short name: the one that guest code would call leads.
            if written in names:
                yield len(names) - names.index(written) + 1.0, number
            else:
                yield from ((1.0, each) for each in self._successors.get(number, (number,)))

    def _index(self) -> SearchIndex:
        with self._making:
            return self._made_index

    @cached_property
    def _rows(self) -> list[SearchRow]:
        return [search_row(module, tool) for module, tool in self._tools]

    @cached_property
    def _made_index(self) -> SearchIndex:
        return make_index(self._rows)

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, (module, tool) in enumerate(self._tools):
            for name in {squashed(name) for name in _names(module, tool)}:
                found.setdefault(name, []).append(number)
        return found

    @cached_property
    def _successors(self) -> dict[int, tuple[int, ...]]:
        """The deprecated tools, each with the live ones of its server that it names as its replacement."""
        deprecated = {number for number, (_, tool) in enumerate(self._tools) if is_deprecated(tool)}
        return {number: tuple(self._replacing(number, deprecated)) for number in deprecated}

    def _replacing(self, number: int, deprecated: set[int]) -> Iterator[int]:
        module, tool = self._tools[number]
        for name in replacements_of(tool):
            for other in self._by_name.get(squashed(name), ()):
                if self._tools[other][0] is module and other not in deprecated:
                    yield other

    @cached_property
    def _spelling(self) -> Spelling:
        return Spelling(word for place in range(5) for row in self._rows for word in words(row.columns[place]))

    def _hit(self, number: int, score: float, writing: _Writing, deadline: float) -> SearchHit:
        module, tool = self._tools[number]
        lines = self._lines.get((number, writing))
        if lines is None and time.monotonic() > deadline:
            lines = summary_of(tool), f"{tool.identifier}({CUT})"
        elif lines is None:
            signature = signature_of(module, tool, writing.language, errors=writing.errors)
            lines = self._lines[number, writing] = summary_of(tool), signature
        return SearchHit(
            tool.server, tool.name, module.specifier, tool.identifier, *lines, score, number in self._successors
        )


def _raise_to(scores: Scores, others: Scores, factor: float) -> None:
    """Let rows have what another word gives them, if that is more."""
    for number, score in others.items():
        scores[number] = max(scores.get(number, 0.0), factor * score)


def _names(module: ModuleSpec, tool: ToolSpec) -> tuple[str, ...]:
    """Everything that a tool is called in code, configuration and logs; what a query most likely means comes first."""
    return (
        tool.identifier,
        tool.name[:_LONGEST_QUERY],
        tool.qualified_name,
        tool.short_name,
        f"mcp:{tool.short_name}",
        f"{tool.server}.{tool.identifier}",
        f"{module.specifier}.{tool.identifier}",
        f"{module.python_module}.{tool.identifier}",
    )
