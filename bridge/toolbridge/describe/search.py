"""Full-text search over tools: BM25 by SQLite's FTS5, with synonyms, spelling correction and successors."""

from __future__ import annotations

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
from typing import Any, NamedTuple

from toolbridge.describe.modules import (
    GuestLanguage,
    is_deprecated,
    replacements_of,
    shown_name,
    signature_of,
    stub_language,
    summary_of,
)
from toolbridge.errors import ToolbridgeError
from toolbridge_codegen.catalog import Catalog, ModuleSpec, ToolSpec, plain_schema
from toolbridge_codegen.emit.compact import CUT
from toolbridge_codegen.escaping import clean_text, is_list, is_object
from toolbridge_codegen.stubs import Errors
from toolbridge_codegen.stubs import Language as StubLanguage

# ── tokenizing ───────────────────────────────────────────────────────────────────────────────────────────────────

_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Scripts written without spaces: each character is a word.
_UNSPACED = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")

LONGEST_WORD = 64
"""Longer ones are data, not words."""

_STOP_WORDS_TEXT = """
a an and any are as at be by can could did do does for from had has have how i if in into is it its me my of on or our
please should so some that the their them there these they this those to us want was we were what when where which who
whose why will with would you your
"""
"""Stop words. `all`, `not`, `new` and the like are none: they tell tools apart."""

_SYNONYM_GROUPS = (
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


def words(text: str) -> list[str]:
    """Splits a text into lower-case words, at spaces, punctuation and underscores."""
    return [word[:LONGEST_WORD] for word in _WORD.findall(text.lower())]


def name_words(name: str) -> str:
    """Splits an identifier, camelCase included; returns the words joined by spaces."""
    return " ".join(words(_CAMEL_CASE.sub(" ", name)))


def query_words(query: str, most: int) -> list[str]:
    """Returns the first `most` distinct words of a query without stop words; with them if there is no other word."""
    every = list(dict.fromkeys(name_words(query).split()))
    return ([word for word in every if word not in _STOP_WORDS] or every)[:most]


def folded(name: str) -> str:
    """Folds a name for comparison: `getForecast`, `get-forecast` and `get forecast` are equal."""
    return _NOT_ALPHANUMERIC.sub("", name).lower()


def synonyms(word: str) -> tuple[str, ...]:
    """Returns other words with the same meaning in names of tools."""
    return _SYNONYMS.get(word, ())


def _synonyms_of(groups: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Maps each word of the groups to the other words of its groups."""
    related: dict[str, list[str]] = {}
    for group in groups:
        members = group.split()
        for word in members:
            related.setdefault(word, []).extend(other for other in members if other != word)
    return {word: tuple(dict.fromkeys(others)) for word, others in related.items()}


_STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())
_SYNONYMS = _synonyms_of(_SYNONYM_GROUPS)


# ── the rows of the index: a tool's words by field, bounded; never shown ─────────────────────────────────────────

_LONGEST_NAME = 200
_LONGEST_DESCRIPTION = 1_000
"""Characters. The purpose comes first; rules and names of other tools follow."""
_LONGEST_PARAMETERS = 1_500
_PARAMETERS = 60
_LEVELS = 3


@dataclass(frozen=True, slots=True)
class SearchRow:
    """The indexed text of one tool."""

    name: str
    title: str
    server: str
    description: str
    parameters: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Returns the texts in the order of `WEIGHTS`."""
        return astuple(self)


WEIGHTS = (10.0, 5.0, 3.0, 2.0, 1.0)
"""BM25 weights of a tool's name, title, server, description and parameters."""


def search_row(module: ModuleSpec, tool: ToolSpec) -> SearchRow:
    """Extracts the indexed text of one tool, bounded and never shown."""
    definition = tool.definition
    return SearchRow(
        name=name_words(definition.name[:_LONGEST_NAME]),
        title=_text_words(definition.title, _LONGEST_NAME),
        server=name_words(f"{module.server} {module.display_name[:_LONGEST_NAME]}"),
        description=_text_words(definition.description, _LONGEST_DESCRIPTION),
        parameters=_text_words(_parameter_text(plain_schema(definition.input_schema)), _LONGEST_PARAMETERS),
    )


def _text_words(text: str, limit: int) -> str:
    """Truncates a text for FTS5 to tokenize as we do: ASCII as it is (the fast path), else tokenized here."""
    text = text[:limit]
    return text if text.isascii() else " ".join(words(clean_text(text)))


def _parameter_text(schema: object) -> str:
    """Joins names and descriptions of an input schema's properties, breadth first, bounded."""
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
    """Lists the properties of an object, of an array's items, or of the first alternative."""
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


# ── the index ─────────────────────────────────────────────────────────────────────────────────────────────────────

Scores = dict[int, float]
"""Row → score, greater is better. Rows without a match are absent."""


class SearchIndex:
    """BM25 ranking by SQLite's FTS5 in memory, stemmed and accent-insensitive. Thread-safe.

    Raises:
        ToolbridgeError: this Python's SQLite has no FTS5.
    """

    def __init__(self, rows: Sequence[SearchRow]) -> None:
        try:
            import sqlite3
        except ImportError:
            raise ToolbridgeError(_NO_FULL_TEXT) from None

        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        weakref.finalize(self, self._connection.close)
        try:
            self._connection.execute(_CREATE)
        except sqlite3.OperationalError:
            raise ToolbridgeError(_NO_FULL_TEXT) from None
        self._connection.execute("BEGIN")
        numbered = ((number, *row.columns) for number, row in enumerate(rows))
        self._connection.executemany(
            "INSERT INTO tools(rowid, name, title, server, description, parameters) VALUES (?, ?, ?, ?, ?, ?)", numbered
        )
        self._connection.execute("COMMIT")

    def scores(self, word: str, *, is_prefix: bool = False) -> Scores:
        """Scores the rows that contain a word in any inflection, or a word with this prefix: row → score."""
        # SECURITY: the word is quoted, so a query can't inject FTS5 syntax.
        term = '"{}"'.format(word.replace('"', '""').replace("\0", "")) + ("*" if is_prefix else "")
        weights = ", ".join(map(str, WEIGHTS))
        query = f"SELECT rowid, -bm25(tools, {weights}) FROM tools WHERE tools MATCH ?"  # noqa: S608  # our numbers only
        with self._lock:
            found = self._connection.execute(query, (term,)).fetchall()
        return {int(row): float(score) for row, score in found}


_CREATE = (
    "CREATE VIRTUAL TABLE tools USING fts5(name, title, server, description, parameters, "
    "tokenize = 'porter unicode61 remove_diacritics 2', content = '')"
)
_NO_FULL_TEXT = (
    "Searching tools needs SQLite with FTS5, which this Python was built without. "
    "Use a Python from python.org, your distribution or uv."
)

# ── spelling correction ───────────────────────────────────────────────────────────────────────────────────────────

_MAX_VOCABULARY = 20_000
_CANDIDATES = 40
_ALIKE = 0.72
_AS_GOOD = 0.08
"""How much lower than the best similarity another suggestion may be."""


class Spelling:
    """Spelling correction: a vocabulary indexed by bigrams, ranked by similarity."""

    def __init__(self, known: Iterable[str]) -> None:
        # Names come first: a vocabulary that is too large loses words of descriptions.
        self._words = list(islice(dict.fromkeys(word for word in known if 3 <= len(word) <= 30), _MAX_VOCABULARY))
        self._by_bigram: dict[str, list[int]] = {}
        for number, word in enumerate(self._words):
            for bigram in _bigrams(word):
                self._by_bigram.setdefault(bigram, []).append(number)

    def nearest(self, word: str, most: int = 2) -> tuple[str, ...]:
        """Returns at most `most` known words similar to a misspelt one, the best first; none if none is close."""
        if len(word) < 3:
            return ()
        shared = Counter(number for bigram in _bigrams(word) for number in self._by_bigram.get(bigram, ()))
        # Candidates of similar length first: long words share bigrams with everything.
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


def _bigrams(word: str) -> set[str]:
    edged = f" {word} "
    return {edged[start : start + 2] for start in range(len(edged) - 1)}


# ── searching ────────────────────────────────────────────────────────────────────────────────────────────────────

MOST_HITS = 100
_LONGEST_QUERY = 500
_MOST_WORDS = 16
_SIGNATURE_SECONDS = 2.0
"""Time budget for the signatures of one answer: an ordinary one takes 1 ms, a hostile one may not."""
_PREFIX = 0.5
"""Weight of a prefix match with the last word of a query, which may be incomplete."""
_SYNONYM = 0.5
"""Weight of a synonym."""
_CORRECTION = 0.7
"""Weight of a corrected spelling."""
_EVERY_WORD = 1.0
"""Bonus for matching every word of a query: BM25 alone prefers one rare word to two common ones."""
_DEPRECATED = 0.25
"""Factor on a deprecated tool's score: it ranks below live tools that match nearly as well."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A search result."""

    server: str
    tool: str
    """Its original name, unsanitised: hostile text. `as_json` sanitises it."""
    module: str
    """The specifier of its module."""
    identifier: str
    summary: str
    signature: str
    score: float
    """Greater is better; comparable within one query only."""
    deprecated: bool = False

    def as_json(self) -> dict[str, Any]:
        """Returns the hit as JSON, names sanitised, for a model or a program."""
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


class _SignatureStyle(NamedTuple):
    """Language and error style of signatures."""

    language: StubLanguage
    errors: Errors


class ToolSearch:
    """Search over one catalog. The first query builds the index. Thread-safe."""

    def __init__(self, catalog: Catalog) -> None:
        self._tools: list[tuple[ModuleSpec, ToolSpec]] = [
            (module, tool) for module in catalog.modules for tool in module.tools
        ]
        self._build_lock = threading.Lock()
        self._lines: dict[tuple[int, _SignatureStyle], tuple[str, str]] = {}
        """Cached summaries and signatures."""

    def find(
        self, query: str, limit: int = 10, *, language: GuestLanguage = "typescript", errors: Errors = "raise"
    ) -> tuple[SearchHit, ...]:
        """Returns the best matches, best first; for an empty query, the first tools of the catalog.

        The first call builds
        the index, and blocks. A query is words without syntax. A tool's own name ranks that tool first.

        Raises:
            ValueError: there is no such language.
            ToolbridgeError: this Python's SQLite has no FTS5.
        """
        style = _SignatureStyle(stub_language(language), errors)
        most = max(1, min(limit, MOST_HITS))
        query = query[:_LONGEST_QUERY]
        ranked = self._ranked(query) if folded(query) else dict.fromkeys(range(len(self._tools)), 0.0)
        # Ties: in the catalog's order.
        best = sorted(ranked, key=lambda number: (-round(ranked[number], 9), number))[:most]
        deadline = time.monotonic() + _SIGNATURE_SECONDS
        return tuple(self._hit(number, ranked[number], style, deadline) for number in best)

    def _ranked(self, query: str) -> Scores:
        """Scores every tool that matches a query: tool number → score."""
        index = self._index()
        words = query_words(query, _MOST_WORDS)
        ranked: Scores = {}
        matched: dict[int, int] = {}
        for word in words:
            own = self._own_scores(index, word, is_last=word == words[-1])
            for number in own:
                matched[number] = matched.get(number, 0) + 1
            for other in synonyms(word):
                _raise_to(own, index.scores(other), _SYNONYM)
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
            ranked[number] = max(ranked.get(number, 0.0), top + nearness)
        return ranked

    def _own_scores(self, index: SearchIndex, word: str, *, is_last: bool) -> Scores:
        """Returns the scores of a word; of its corrected spelling if nothing matches."""
        scores = index.scores(word)
        if is_last and len(word) > 1:
            _raise_to(scores, index.scores(word, is_prefix=True), _PREFIX)
        if not scores:
            for guess in self._spelling.nearest(word):
                _raise_to(scores, index.scores(guess), _CORRECTION)
        return scores

    def _named(self, query: str) -> Iterator[tuple[float, int]]:
        """Yields (bonus, tool) for each tool whose whole name the query is: exactly, or ignoring case and separators.

        For a deprecated tool that isn't named exactly, yields its successors if it has any. May yield a tool twice.
        """
        written = query.strip()
        for number in self._by_name.get(folded(query), ()):
            names = _names(*self._tools[number])
            # One tool's identifier may be another's short name: the identifier ranks first.
            if written in names:
                yield len(names) - names.index(written) + 1.0, number
            else:
                yield from ((1.0, each) for each in self._successors.get(number, (number,)))

    def _index(self) -> SearchIndex:
        with self._build_lock:
            return self._made_index

    @cached_property
    def _rows(self) -> list[SearchRow]:
        return [search_row(module, tool) for module, tool in self._tools]

    @cached_property
    def _made_index(self) -> SearchIndex:
        return SearchIndex(self._rows)

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        """Maps each folded name to the tools that have it."""
        found: dict[str, list[int]] = {}
        for number, (module, tool) in enumerate(self._tools):
            for name in {folded(name) for name in _names(module, tool)}:
                found.setdefault(name, []).append(number)
        return found

    @cached_property
    def _successors(self) -> dict[int, tuple[int, ...]]:
        """Maps each deprecated tool to the live tools of its server that its description names as replacements."""
        deprecated = {number for number, (_, tool) in enumerate(self._tools) if is_deprecated(tool)}
        return {number: tuple(self._replacing(number, deprecated)) for number in deprecated}

    def _replacing(self, number: int, deprecated: set[int]) -> Iterator[int]:
        """Yields the live tools of the same server that a deprecated tool's description names."""
        module, tool = self._tools[number]
        for name in replacements_of(tool):
            for other in self._by_name.get(folded(name), ()):
                if self._tools[other][0] is module and other not in deprecated:
                    yield other

    @cached_property
    def _spelling(self) -> Spelling:
        return Spelling(word for place in range(5) for row in self._rows for word in words(row.columns[place]))

    def _hit(self, number: int, score: float, style: _SignatureStyle, deadline: float) -> SearchHit:
        """Makes a hit; after the deadline without the signature, unless that is cached."""
        module, tool = self._tools[number]
        lines = self._lines.get((number, style))
        if lines is None and time.monotonic() > deadline:
            lines = summary_of(tool), f"{tool.identifier}({CUT})"
        elif lines is None:
            signature = signature_of(module, tool, style.language, errors=style.errors)
            lines = self._lines[number, style] = summary_of(tool), signature
        return SearchHit(
            tool.server, tool.name, module.specifier, tool.identifier, *lines, score, number in self._successors
        )


def _raise_to(scores: Scores, others: Scores, factor: float) -> None:
    """Raises `scores`, in place, to those of another word times `factor`, where these are greater."""
    for number, score in others.items():
        scores[number] = max(scores.get(number, 0.0), factor * score)


def _names(module: ModuleSpec, tool: ToolSpec) -> tuple[str, ...]:
    """Lists the names of a tool in code, configuration and logs, the likeliest first."""
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
