"""Finding tools by words: the first step of a model that was not shown all of them."""

from __future__ import annotations

import math
import re
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from toolbridge.describe.modules import (
    GuestLanguage,
    is_deprecated,
    replacements_of,
    shown_name,
    signature_of,
    stub_language,
    summary_of,
)
from toolbridge_codegen.catalog import Catalog, ModuleSpec, ToolSpec, plain_schema
from toolbridge_codegen.emit.compact import CUT
from toolbridge_codegen.escaping import clean_text, is_list, is_object
from toolbridge_codegen.stubs import Errors
from toolbridge_codegen.stubs import Language as StubLanguage

if TYPE_CHECKING:
    import sqlite3


# The words of names, texts and queries, as search sees them.


_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Scripts that are written without spaces: each character is a word.
_UNSPACED = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")

LONGEST_WORD = 64
"""Longer ones are data, not words."""

_FILLERS = """
a an and any are as at be by can could did do does for from had has have how i if in into is it its me my of on or our
please should so some that the their them there these they this those to us want was we were what when where which who
whose why will with would you your
"""
"""Words that say nothing about which tool is meant. `all`, `not`, `new` and the like do."""

_SAME_DEED = (
    "create make new add insert",
    "delete remove drop erase",
    "get read fetch retrieve show view open load",
    "list all every",
    "update edit change modify set",
    "search find lookup query locate",
    "send post publish",
    "move rename",
    "run execute evaluate launch start",
    "check validate verify test",
    "directory folder",
    "task todo",
    "repository repo",
    "close complete finish done",
)
"""What people call one deed, or one thing, and what tools call it."""


def words(text: str) -> list[str]:
    """The words of a text in lower case, split at spaces, punctuation and underscores."""
    return [word[:LONGEST_WORD] for word in _WORD.findall(text.lower())]


def name_words(name: str) -> str:
    """The words of a name with spaces between them, split at the humps of camelCase too."""
    return " ".join(words(_HUMP.sub(" ", name)))


def telling_words(query: str, most: int) -> list[str]:
    """The words of a query that tell something, each once; all of them if none does."""
    every = list(dict.fromkeys(name_words(query).split()))
    return ([word for word in every if word not in _SILENT] or every)[:most]


def squashed(name: str) -> str:
    """A name without what separates its parts: how `getForecast`, `get-forecast` and `get forecast` are one."""
    return _NOT_ALPHANUMERIC.sub("", name).lower()


def relatives(word: str) -> tuple[str, ...]:
    """Other words for the same deed."""
    return _RELATIVES.get(word, ())


def _all_relatives(groups: Iterable[str]) -> dict[str, tuple[str, ...]]:
    related: dict[str, list[str]] = {}
    for group in groups:
        members = group.split()
        for word in members:
            related.setdefault(word, []).extend(other for other in members if other != word)
    return {word: tuple(dict.fromkeys(others)) for word, others in related.items()}


_SILENT = frozenset(_FILLERS.split())
_RELATIVES = _all_relatives(_SAME_DEED)


# What is searched of a tool: its words, bounded, by the place they come from. Nothing of it is ever shown.


_LONGEST_NAME = 200
_LONGEST_DESCRIPTION = 1_000
"""What a tool is for is said at the beginning; what follows are its rules, and the words of other tools."""
_LONGEST_PARAMETERS = 1_500
_PARAMETERS = 60
_LEVELS = 3


@dataclass(frozen=True, slots=True)
class SearchRow:
    """One tool's words, with spaces or punctuation between them."""

    name: str
    title: str
    server: str
    description: str
    parameters: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The texts in the order of `WEIGHTS`."""
        return astuple(self)


WEIGHTS = (10.0, 5.0, 3.0, 2.0, 1.0)
"""How much a word counts in a tool's name, title, server, description and parameters."""


def search_row(module: ModuleSpec, tool: ToolSpec) -> SearchRow:
    """The words of one tool."""
    definition = tool.definition
    return SearchRow(
        name=name_words(definition.name[:_LONGEST_NAME]),
        title=_text_words(definition.title, _LONGEST_NAME),
        server=name_words(f"{module.server} {module.display_name[:_LONGEST_NAME]}"),
        description=_text_words(definition.description, _LONGEST_DESCRIPTION),
        parameters=_text_words(_parameter_text(plain_schema(definition.input_schema)), _LONGEST_PARAMETERS),
    )


def _text_words(text: str, limit: int) -> str:
    """A text whose words the index can tell apart by itself: the quick way for ASCII, which most of them are."""
    text = text[:limit]
    return text if text.isascii() else " ".join(words(clean_text(text)))


def _parameter_text(schema: object) -> str:
    """Names and descriptions of an input's properties, level by level, as far as there is room."""
    texts: list[str] = []
    room = _LONGEST_PARAMETERS
    level: list[object] = [schema]
    for _ in range(_LEVELS):
        deeper: list[object] = []
        for each in level:
            for name, known in _properties(each):
                text = f"{name_words(name[:_LONGEST_NAME])} {_description(known)}"
                texts.append(text)
                room -= len(text)
                deeper.append(known)
                if room <= 0 or len(texts) == _PARAMETERS:
                    return "\n".join(texts)
        level = deeper
    return "\n".join(texts)


def _properties(schema: object) -> list[tuple[str, object]]:
    """The properties of an object, of an array's items, or of the first of some choices."""
    for _ in range(_LEVELS):
        if not is_object(schema):
            return []
        properties = schema.get("properties")
        if is_object(properties):
            return list(islice(properties.items(), _PARAMETERS))
        choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        schema = choices[0] if is_list(choices) and choices else schema.get("items")
    return []


def _description(schema: object) -> str:
    description = schema.get("description") if is_object(schema) else None
    return description[:_LONGEST_NAME] if isinstance(description, str) else ""


# An index of tools' words that ranks them for a query: SQLite's FTS5 in memory, or plain counting without it.


Scores = dict[int, float]
"""Number of a row → its score; more is better, and a row that has none of the words is not there."""


class SearchIndex(Protocol):
    """Finds rows by words."""

    def scores(self, word: str, *, as_beginning: bool = False) -> Scores:
        """The rows that have this word in any of its forms, or one that begins with it."""
        ...


def make_index(rows: Sequence[SearchRow]) -> SearchIndex:
    """The best index that this Python can have: a few are built with an SQLite that has no full text search."""
    try:
        import sqlite3
    except ImportError:
        return PlainIndex(rows)
    try:
        return FullTextIndex(rows)
    except sqlite3.OperationalError:
        return PlainIndex(rows)


class FullTextIndex:
    """BM25 by FTS5, with stems and without accents. Safe to use from several threads."""

    def __init__(self, rows: Sequence[SearchRow]) -> None:
        import sqlite3

        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self._finalizer = weakref.finalize(self, self._connection.close)
        try:
            _fill(self._connection, rows)
        except sqlite3.OperationalError:
            self._finalizer()
            raise

    def scores(self, word: str, *, as_beginning: bool = False) -> Scores:
        """The rows that have this word in any of its forms, or one that begins with it."""
        # SECURITY: the word is quoted, so nothing in a query is taken for FTS5's own syntax.
        term = '"{}"'.format(word.replace('"', '""').replace("\0", "")) + ("*" if as_beginning else "")
        weights = ", ".join(map(str, WEIGHTS))
        query = f"SELECT rowid, -bm25(tools, {weights}) FROM tools WHERE tools MATCH ?"  # noqa: S608  # our numbers only
        with self._lock:
            found = self._connection.execute(query, (term,)).fetchall()
        return {int(row): float(score) for row, score in found}


def _fill(connection: sqlite3.Connection, rows: Sequence[SearchRow]) -> None:
    connection.execute(
        "CREATE VIRTUAL TABLE tools USING fts5(name, title, server, description, parameters, "
        "tokenize = 'porter unicode61 remove_diacritics 2', content = '')"
    )
    numbered = ((number, *row.columns) for number, row in enumerate(rows))
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO tools(rowid, name, title, server, description, parameters) VALUES (?, ?, ?, ?, ?, ?)", numbered
    )
    connection.execute("COMMIT")


class PlainIndex:
    """Words compared by their beginnings, rare ones counting more: worse than FTS5, and always there."""

    _SHORTEST_STEM = 4

    def __init__(self, rows: Sequence[SearchRow]) -> None:
        self._rows = [[frozenset(words(column)) for column in row.columns] for row in rows]

    def scores(self, word: str, *, as_beginning: bool = False) -> Scores:
        """The rows that have this word in any of its forms, or one that begins with it."""
        stem = word if as_beginning else word[: max(self._SHORTEST_STEM, len(word) - 3)]
        found = {number: score for number, row in enumerate(self._rows) if (score := _score(row, stem))}
        rarity = math.log(1 + len(self._rows) / (1 + len(found)))
        return {number: score * rarity for number, score in found.items()}


def _score(row: Sequence[frozenset[str]], stem: str) -> float:
    return sum(
        weight
        for weight, column in zip(WEIGHTS, row, strict=True)
        if stem in column or any(word.startswith(stem) for word in column)
    )


# Which known words a misspelt one may be meant for.


_MOST_KNOWN_WORDS = 20_000
_CANDIDATES = 40
_ALIKE = 0.72
_AS_GOOD = 0.08
"""How much less alike than the best another word may be."""


class Spelling:
    """Known words by the pairs of letters that they are made of."""

    def __init__(self, known: Iterable[str]) -> None:
        # Names come first: when there are too many words, it is descriptions that are left out.
        self._words = list(islice(dict.fromkeys(word for word in known if 3 <= len(word) <= 30), _MOST_KNOWN_WORDS))
        self._by_pair: dict[str, list[int]] = {}
        for number, word in enumerate(self._words):
            for pair in _pairs(word):
                self._by_pair.setdefault(pair, []).append(number)

    def nearest(self, word: str, most: int = 2) -> tuple[str, ...]:
        """The known words that are most like this one, if any is."""
        if len(word) < 3:
            return ()
        shared = Counter(number for pair in _pairs(word) for number in self._by_pair.get(pair, ()))
        # Those of about the same length first: long words share pairs with everything.
        likely = sorted(shared, key=lambda number: (abs(len(self._words[number]) - len(word)) - shared[number], number))
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(word)
        alike: list[tuple[float, int]] = []
        for number in likely[:_CANDIDATES]:
            matcher.set_seq1(self._words[number])
            if (ratio := matcher.ratio()) >= _ALIKE:
                alike.append((-ratio, number))
        alike.sort()
        return tuple(self._words[number] for distance, number in alike[:most] if distance <= alike[0][0] + _AS_GOOD)


def _pairs(word: str) -> set[str]:
    edged = f" {word} "
    return {edged[start : start + 2] for start in range(len(edged) - 1)}


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
