"""The words of names, texts and queries, as search sees them."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
