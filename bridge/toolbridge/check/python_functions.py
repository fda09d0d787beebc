"""The functions of a Python program, read as text: where their parts stand. Whatever looks unusual is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from toolbridge.check.python_text import end_of_bracket, one_line_each

_HEADER = re.compile(r"([ \t]*)(async[ \t]+)?def[ \t]+(\w+)[ \t]*(?=\()")
_BLOCK = re.compile(r"[ \t]*(?:(?:async[ \t]+)?def|class)\b")
_AFTER_PARAMETERS = re.compile(r"[ \t]*(->[^:\n]*?)?[ \t]*:")
_MOST_FUNCTIONS = 100


class Line(NamedTuple):
    """A line with whatever belongs to it: all of a bracket, all of a string."""

    start: int
    """Where it begins, after its indentation."""
    end: int
    indent: int
    text: str
    """Without its strings, in one line."""


@dataclass(frozen=True, slots=True)
class OwnFunction:
    """A function that a program defines."""

    name: str
    start: int
    """Where `def` or `async` stands."""
    is_async: bool
    is_decorated: bool
    parameters: tuple[int, int]
    """The brackets."""
    returned: tuple[int, int] | None
    """The arrow and what is said to be returned."""
    colon: int
    lines: list[Line] = field(default_factory=list[Line])
    """Its lines, without those of the functions and classes in it."""
    end: int = 0
    """Where its last line ends; before its first, if it has none of its own."""


def logical_lines(code: str) -> list[Line]:
    """The lines of a text without strings, those that are nothing but space left out."""
    found: list[Line] = []
    start = 0
    for text in one_line_each(code).split("\n"):
        plain = text.lstrip(" \t")
        if plain.strip():
            indent = len(text) - len(plain)
            found.append(Line(start + indent, start + len(text.rstrip()), len(text[:indent].expandtabs()), plain))
        start += len(text) + 1
    return found


def own_functions(code: str) -> list[OwnFunction]:
    """The functions with a block of lines, in a text without strings."""
    return list(islice(_functions(code, logical_lines(code)), _MOST_FUNCTIONS))


def _functions(code: str, lines: list[Line]) -> Iterator[OwnFunction]:
    for number, line in enumerate(lines):
        header = _HEADER.match(code, line.start)
        if header is None:
            continue
        closed = end_of_bracket(code, header.end())
        rest = None if closed is None else _AFTER_PARAMETERS.match(code, closed)
        if closed is None or rest is None or rest.end() < line.end:
            continue  # written in one line with its body, or otherwise than usual
        last, own = _block(lines, number)
        if own:
            before = lines[number - 1].text if number else ""
            yield OwnFunction(
                name=header[3],
                start=line.start,
                is_async=header[2] is not None,
                is_decorated=before.startswith("@"),
                parameters=(header.end(), closed),
                returned=rest.span(1) if rest[1] else None,
                colon=rest.end() - 1,
                lines=own,
                end=last.end,
            )


def _block(lines: list[Line], header: int) -> tuple[Line, list[Line]]:
    """The last line of a block, and the lines that belong to no function or class in it."""
    own: list[Line] = []
    last = lines[header]
    inner: int | None = None
    for line in lines[header + 1 :]:
        if line.indent <= lines[header].indent:
            break
        last = line
        if inner is not None and line.indent > inner:
            continue
        inner = line.indent if _BLOCK.match(line.text) else None
        if inner is None:
            own.append(line)
    return last, own
