"""SECURITY: text that a person decides by: nothing in it is hidden, obeyed by a terminal, or told apart only by luck.

Stricter than `sanitise.for_terminal`: always one line, and whatever has no shape of its own is written out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from toolbridge_codegen.hidden_characters import HIDDEN, written_out

_PLAIN = re.compile(r"[ -~]*")
_BARE_WORD = re.compile(r"[A-Za-z0-9_@%+=:,./^~*?\[\]{}#!&-]+")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_MOST_MARKS = 2
"""Accents above one character; more of them would be drawn over other lines."""


def visible(text: str) -> str:
    """The text on one line, with everything that is invisible, or that a terminal obeys, written out (`\\x1b`)."""
    return text if _PLAIN.fullmatch(text) else "".join(_shown(text))


def word(text: str) -> str:
    """One argument of a command: bare where it is plain, else in quotes, where a backslash is written as two.

    Two different arguments never look the same, and one never looks like two.
    """
    if _BARE_WORD.fullmatch(text):
        return text
    return '"' + "".join(_SHORT.get(piece, piece) for piece in _shown(text)) + '"'


def columns(text: str) -> int:
    """How many columns of a terminal visible text takes."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def wrapped(words: Iterable[str], width: int) -> list[str]:
    """Words on lines of at most this width. One that is longer than a line is broken, which a `\\` at the end shows."""
    lines: list[str] = []
    line, used = "", 0
    for each in words:
        size = columns(each)
        if line and used + 1 + size <= width:
            line, used = f"{line} {each}", used + 1 + size
            continue
        if line:
            lines.append(line)
        *whole, line = _broken(each, width)
        lines += whole
        used = columns(line)
    return [*lines, line] if line else lines


def _shown(text: str) -> Iterator[str]:
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category[0] == "M" else 0
        if (
            category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
            or (category == "Zs" and character != " ")
            or marks > _MOST_MARKS
            # Some are blank, or change how their neighbour is drawn, though they are letters or marks by category.
            or HIDDEN.match(character)
        ):
            yield _SHORT.get(character) or written_out(character)
        else:
            yield character


def _broken(text: str, width: int) -> list[str]:
    if columns(text) <= width:
        return [text]
    pieces: list[str] = []
    piece: list[str] = []
    used = 0
    for character in text:
        size = _width(character)
        if used + size > width - 1:
            pieces.append("".join(piece) + "\\")
            piece, used = [], 0
        piece.append(character)
        used += size
    return [*pieces, "".join(piece)]


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
