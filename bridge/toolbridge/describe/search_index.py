"""An index of tools' words that ranks them for a query: SQLite's FTS5 in memory, or plain counting without it."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from toolbridge.describe.search_rows import WEIGHTS, SearchRow
from toolbridge.describe.search_words import words

if TYPE_CHECKING:
    import sqlite3

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
