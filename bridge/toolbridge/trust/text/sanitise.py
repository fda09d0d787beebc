"""SECURITY: the only place where foreign text is made harmless.

What is emitted into stubs is cleaned by `toolbridge_codegen.sanitise`, with the same table of hidden characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from toolbridge_codegen.escaping import CUT_MARK, HIDDEN, clean_text, written_out

# SECURITY: text that a person decides by: nothing in it is hidden, obeyed by a terminal, or told apart only by luck.
#
# Stricter than `sanitise.for_terminal`: always one line, and whatever has no shape of its own is written out.


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


__all__ = [
    "MAX_ERROR",
    "MAX_GUEST_ERROR",
    "argument_texts",
    "for_error",
    "for_form",
    "for_guest_error",
    "for_terminal",
    "masked",
    "masked_bytes",
]

# One selector behind a symbol only says whether it is drawn in colour.
_SHOWN_SYMBOL = re.compile(
    "([\u00a9\u00ae\u203c-\u27ff\u2900-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]|" + HIDDEN.pattern
)

MAX_ERROR = 1_000
MAX_GUEST_ERROR = 4_000
_MOST_ARGUMENT_TEXT = 16_384
_NO_MESSAGE = "(no message)"


def for_terminal(text: str) -> str:
    """Text that a terminal shows and never obeys: what can't be seen is written out (`\\x1b`)."""
    return _SHOWN_SYMBOL.sub(_visible, text.replace("\r\n", "\n"))


def _visible(match: re.Match[str]) -> str:
    return match[0] if match[1] else written_out(match[0])


def for_error(text: str, secrets: Iterable[str] = (), *, limit: int = MAX_ERROR) -> str:
    """A server's own words in an error for a person: secrets masked in any common encoding, on one line, cut, inert.

    Of a stack trace the message stays: on one line, nobody could take the frames out of it any more.
    """
    text = _bounded_and_masked(text, frozenset(secrets), 16 * limit)
    if "\n" in text:
        from toolbridge.trust.text.tracebacks import without_traces  # here: every command imports this module

        text = without_traces(text)
    text = " ".join(text.encode("utf-8", "replace").decode().split())
    return _cut(for_terminal(text[: limit + 1]), limit)


def masked(text: str, secrets: Iterable[str]) -> str:
    """Text in which known secrets are `***`, in any common encoding."""
    known = secrets if isinstance(secrets, frozenset) else frozenset(secrets)
    if not known:
        return text
    from toolbridge.trust.text import secrets as secret_masks  # here: most commands know no secrets

    return secret_masks.masked(text, known)


def masked_bytes(data: bytes, secrets: Iterable[str]) -> bytes:
    """Data that is no text, with every known secret in it written over; all else stays where it is."""
    from toolbridge.trust.text import secrets as secret_masks

    return secret_masks.masked_bytes(data, frozenset(secrets))


def for_form(text: str, secrets: Iterable[str] = (), *, limit: int = MAX_ERROR) -> str:
    """A server's own words in a question to a person: secrets masked, inert, cut. Several lines may be left."""
    text = _bounded_and_masked(text, frozenset(secrets), 16 * limit)
    return _cut(for_terminal(text[: 2 * limit]), limit)  # of two characters, CRLF, one is left


def for_guest_error(
    text: str, secrets: Iterable[str] = (), *, keep: Iterable[str] = (), limit: int = MAX_GUEST_ERROR
) -> str:
    """A server's own words in an error for guest code and model: what it says of the failure, and nothing of the host.

    Stack traces lose their frames, and home directories become `~` except in paths that `keep` names: the strings of
    the call's arguments (`argument_texts`) and of the server's configuration. Secrets are masked, hidden characters
    removed. Several lines may be left.
    """
    known = frozenset(secrets)
    most = 16 * limit
    text = _bounded_and_masked(text, known, most)
    from toolbridge.trust.text.tracebacks import without_host_paths, without_traces

    text = clean_text(without_traces(text), limit=most)
    # Once more: without the hidden characters in it, a secret may be whole again.
    text = without_host_paths(_bounded_and_masked(text, known, 4 * limit), keep)
    return _cut(text.strip(), limit) or _NO_MESSAGE


def argument_texts(arguments: object, *, most: int = 200) -> tuple[str, ...]:
    """The strings in a call's arguments, at any depth, that may be paths which an error has to repeat."""
    found: list[str] = []
    waiting: list[object] = [arguments]
    looked = 0
    room = _MOST_ARGUMENT_TEXT
    while waiting and len(found) < most and looked < 50 * most:
        looked += 1
        value = waiting.pop()
        if isinstance(value, str):
            if len(value) <= min(4096, room) and ("/" in value or "\\" in value):
                found.append(value)
                room -= len(value)
        elif isinstance(value, Mapping):
            waiting.extend(cast("Mapping[str, Any]", value).values())
        elif isinstance(value, (list, tuple)):
            waiting.extend(cast("list[Any]", value))
    return tuple(found)


def _bounded_and_masked(text: str, secrets: frozenset[str], most: int) -> str:
    """As much as will be looked at, without secrets: not even the half of one that the cut leaves."""
    if not secrets or len(text) <= most:
        return masked(text[:most], secrets)
    from toolbridge.trust.text.secrets import encodings

    spare = encodings(secrets).longest
    text = masked(text[: most + spare], secrets)
    return text[: len(text) - spare]


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + CUT_MARK
