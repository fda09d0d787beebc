"""The part of the TypeScript stubs that a program can have to do with: a server may have hundreds of tools.

What is left out, and the comments, are not even empty lines: every character is read by every check. Which line of the
whole stub a line was is kept beside it. A function that is left out stays as a name, of any type. Stubs are of our own
making: their layout is enough to find their declarations, once the comments are gone, which are the servers'.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from toolbridge.check.stub_comments import without_comments

_DECLARATION = re.compile(r"^ (?:export )?(function|interface|type|class|const) ([\w$]+)")
_WORD = re.compile(r"[\w$]+")
_MOST_KEPT = 64
_ALWAYS = ("Require", "Sync", "twin")  # `require`, and what an /async module is made of


class NeededStub(NamedTuple):
    """What is needed of a file of stubs."""

    text: str
    lines: tuple[int, ...]
    """For each line of the text: which line of the whole file it was, counted from 1."""


class _Line(NamedTuple):
    number: int
    text: str


class _Piece(NamedTuple):
    """Lines of a stub that are needed together."""

    lines: tuple[_Line, ...]
    name: str | None
    """What is declared; None for what is always needed."""
    is_function: bool = False


class _Stub(NamedTuple):
    """A file of stubs, read."""

    pieces: tuple[_Piece, ...]
    uses: Mapping[str, frozenset[str]]
    """By declared name: the declared names that are in its declarations."""


def needed_stubs(stubs: Mapping[str, str], source: str) -> dict[str, NeededStub]:
    """The stubs with what a program's words lead to, and nothing else."""
    words = {*_WORD.findall(source), *_ALWAYS}
    return {name: _needed(_read(text), words) for name, text in stubs.items()}


def _needed(stub: _Stub, words: set[str]) -> NeededStub:
    needed = _reachable(stub.uses, words)
    lines: list[_Line] = []
    only_named: dict[str, int] = {}
    for piece in stub.pieces:
        if piece.name is None and only_named:  # the end of their module is near
            lines += _names(only_named)
            only_named = {}
        if piece.name is None or piece.name in needed:
            lines += piece.lines
        elif piece.is_function:
            only_named.setdefault(piece.name, piece.lines[0].number)  # overloads are one
    return NeededStub("\n".join(line.text for line in lines), tuple(line.number for line in lines))


def _names(functions: Mapping[str, int]) -> Iterable[_Line]:
    """Functions of which no more than their names is needed, each on a line of its own."""
    *_, last = functions
    yield _Line(0, " export const")
    for name, number in functions.items():
        yield _Line(number, f"{name}: any" + (";" if name == last else ","))


@lru_cache(maxsize=_MOST_KEPT)
def _read(text: str) -> _Stub:
    """Once for as long as the tools don't change."""
    bare = [line.rstrip() for line in without_comments(text).split("\n")]
    pieces: list[_Piece] = []
    words: dict[str, set[str]] = {}
    at = 0
    while at < len(bare):
        match = _DECLARATION.match(bare[at])
        last = at if match is None else _last_line(bare, at)
        lines = tuple(_Line(number + 1, bare[number]) for number in range(at, last + 1) if bare[number])
        if match is not None:
            pieces.append(_Piece(lines, match[2], match[1] == "function"))
            words.setdefault(match[2], set()).update(_WORD.findall("\n".join(line.text for line in lines)))
        elif lines:
            pieces.append(_Piece(lines, None))
        at = last + 1
    uses = {name: frozenset(found & words.keys()) for name, found in words.items()}
    return _Stub(tuple(pieces), uses)


def _last_line(bare: list[str], first: int) -> int:
    """Where a declaration ends."""
    last = first
    for at in range(first + 1, len(bare)):
        if not bare[at]:
            continue
        if not bare[at].startswith(("  ", " }")):
            break
        last = at
    return last


def _reachable(uses: Mapping[str, frozenset[str]], words: set[str]) -> set[str]:
    """The names that some words lead to, from declaration to declaration."""
    needed: set[str] = set()
    found = list(words & uses.keys())
    while found:
        name = found.pop()
        if name not in needed:
            needed.add(name)
            found.extend(uses[name])
    return needed
