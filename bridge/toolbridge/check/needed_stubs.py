"""The part of the TypeScript stubs that a program can have to do with: a server may have hundreds of tools.

What is left out becomes empty lines, so that a stub's line stays where it is; a function that is left out stays as a
name, which takes and gives anything. Stubs are of our own making: their layout is enough to find their declarations,
once the comments are gone, which are the servers'.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from toolbridge.check.stub_comments import without_comments

_DECLARATION = re.compile(r"^ (?:export )?(function|interface|type|class|const) ([\w$]+)")
_WORD = re.compile(r"[\w$]+")
_MOST_KEPT = 64
_ALWAYS = ("Require", "Sync", "twin")  # `require`, and what an /async module is made of


class _Declaration(NamedTuple):
    first: int
    """The line it begins on, its comment not counted."""
    last: int
    name: str
    is_function: bool


class _Stub(NamedTuple):
    """A file of stubs, read."""

    lines: tuple[str, ...]
    bare: tuple[str, ...]
    """The same lines without comments."""
    declarations: tuple[_Declaration, ...]
    uses: Mapping[str, frozenset[str]]
    """By declared name: the declared names that are in its declarations."""


def needed_stubs(stubs: Mapping[str, str], source: str) -> dict[str, str]:
    """The stubs with what a program's words lead to, and nothing else."""
    words = {*_WORD.findall(source), *_ALWAYS}
    return {name: _needed(text, words) for name, text in stubs.items()}


def _needed(text: str, words: set[str]) -> str:
    stub = _read(text)
    lines = list(stub.lines)
    needed = _reachable(stub.uses, words)
    after_previous = 0
    for declaration in stub.declarations:
        first, last, name, is_function = declaration
        if name not in needed:
            for at in range(after_previous, last + 1):
                if stub.bare[at][:1] in ("", " "):  # and so within its module
                    lines[at] = ""
            if is_function:
                lines[first] = f" export function {name}(input?: any): any;"
        after_previous = last + 1
    return "\n".join(lines)


@lru_cache(maxsize=_MOST_KEPT)
def _read(text: str) -> _Stub:
    """Once for as long as the tools don't change."""
    bare = without_comments(text).split("\n")
    declarations = _declarations(bare)
    words: dict[str, set[str]] = {}
    for first, last, name, _ in declarations:
        words.setdefault(name, set()).update(_WORD.findall("\n".join(bare[first : last + 1])))
    uses = {name: frozenset(found & words.keys()) for name, found in words.items()}
    return _Stub(tuple(text.split("\n")), tuple(bare), tuple(declarations), uses)


def _declarations(bare: list[str]) -> list[_Declaration]:
    found: list[_Declaration] = []
    for first, line in enumerate(bare):
        match = _DECLARATION.match(line)
        if match is not None:
            found.append(_Declaration(first, _last_line(bare, first), match[2], match[1] == "function"))
    return found


def _last_line(bare: list[str], first: int) -> int:
    """Where a declaration ends. A comment inside is part of it; the one after it is the next declaration's."""
    last = first
    for at in range(first + 1, len(bare)):
        if not bare[at].strip():
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
