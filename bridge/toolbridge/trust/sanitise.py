"""SECURITY: sanitises foreign text for terminals, errors, questions and guest code: inert, redacted, bounded (T20).

Text in stubs is cleaned by `toolbridge_codegen.escaping`, whose table of hidden characters is used here too.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from toolbridge_codegen.escaping import CUT_MARK, HIDDEN, clean_text, written_out

# SECURITY: text that a person decides by. Stricter than `for_terminal`: one line, everything invisible escaped.

_PLAIN = re.compile(r"[ -~]*")
_BARE_WORD = re.compile(r"[A-Za-z0-9_@%+=:,./^~*?\[\]{}#!&-]+")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_MOST_MARKS = 2
"""Accents above one character; more of them would be drawn over other lines."""


def visible(text: str) -> str:
    """The text on one line, with everything invisible, or that a terminal obeys, escaped (`\\x1b`)."""
    return text if _PLAIN.fullmatch(text) else "".join(_shown(text))


def word(text: str) -> str:
    """Quotes and escapes one argument of a command if it isn't plain: two different arguments never look the same."""
    if _BARE_WORD.fullmatch(text):
        return text
    return '"' + "".join(_SHORT.get(piece, piece) for piece in _shown(text)) + '"'


def columns(text: str) -> int:
    """Returns the width of visible text in columns of a terminal."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def wrapped(words: Iterable[str], width: int) -> list[str]:
    """Wraps words to lines of at most this width; a longer word is broken, and its lines but the last end in `\\`."""
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
    """Yields each character, escaped if it is invisible, or an accent above a character that has two already."""
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
    """Breaks a word into pieces of at most this width in columns; each but the last ends in `\\`."""
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
    """Returns the columns of a character: none for an accent, two for a wide one."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


MAX_ERROR = 1_000
MAX_GUEST_ERROR = 4_000
_NO_MESSAGE = "(no message)"

# One selector behind a symbol only says whether it is drawn in colour.
_SHOWN_SYMBOL = re.compile(
    "([\u00a9\u00ae\u203c-\u27ff\u2900-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]|" + HIDDEN.pattern
)


def for_terminal(text: str) -> str:
    """Text that a terminal shows and never obeys: control and invisible characters are escaped (`\\x1b`)."""
    return _SHOWN_SYMBOL.sub(_visible, text.replace("\r\n", "\n"))


def _visible(match: re.Match[str]) -> str:
    return match[0] if match[1] else written_out(match[0])


def for_error(text: str, secrets: Iterable[str] = (), *, limit: int = MAX_ERROR) -> str:
    """Returns a server's text for an error to a person: secrets redacted, no stack frames, one line, cut, inert."""
    text = without_frames(_bounded_and_masked(text, frozenset(secrets), 16 * limit))
    text = " ".join(text.encode("utf-8", "replace").decode().split())
    return _cut(for_terminal(text[: limit + 1]), limit)


def for_guest_error(text: str, secrets: Iterable[str] = (), *, limit: int = MAX_GUEST_ERROR) -> str:
    """Returns a server's text for an error to guest code and the model: its message. Never empty.

    Stack frames are removed, home directories become `~`, secrets and passwords in URLs are redacted, and hidden
    characters removed. Several lines may be left.
    """
    known = frozenset(secrets)
    most = 16 * limit
    text = clean_text(without_frames(_bounded_and_masked(text, known, most)), limit=most)
    # Once more: without the hidden characters in it, a secret may be whole again.
    text = _bounded_and_masked(text, known, 4 * limit)
    text = _home_directories(os.path.expanduser("~")).sub("~", _PASSWORD.sub("***@", text))
    return _cut(text.strip(), limit) or _NO_MESSAGE


def for_form(text: str, secrets: Iterable[str] = (), *, limit: int = MAX_ERROR) -> str:
    """Returns a server's text for a question to a person: secrets redacted, inert, cut. Several lines may be left."""
    text = _bounded_and_masked(text, frozenset(secrets), 16 * limit)
    return _cut(for_terminal(text[: 2 * limit]), limit)  # of two characters, CRLF, one is left


def masked(text: str, secrets: Iterable[str]) -> str:
    """Redaction: returns the text with `***` for known secrets, plain, truncated or in any common encoding.

    For a long text in a worker thread, raises anyio's cancellation if its call was cancelled.
    """
    known = secrets if isinstance(secrets, frozenset) else frozenset(secrets)
    if not known:
        return text
    from toolbridge.trust import secrets as redaction  # here: most commands know no secrets

    return redaction.masked(text, known)


def masked_bytes(data: bytes, secrets: Iterable[str]) -> bytes:
    """Redaction of binary data: overwrites known secrets of at least eight bytes, byte by byte; all else stays."""
    from toolbridge.trust import secrets as redaction

    return redaction.masked_bytes(data, frozenset(secrets))


def _bounded_and_masked(text: str, secrets: frozenset[str], most: int) -> str:
    """Returns the first `most` characters without secrets: not even the half of one that the cut leaves."""
    if not secrets or len(text) <= most:
        return masked(text[:most], secrets)
    from toolbridge.trust.secrets import encodings

    spare = encodings(secrets).longest
    text = masked(text[: most + spare], secrets)
    return text[: len(text) - spare]


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + CUT_MARK


# Stack traces and home directories: they tell a model the user's name and the layout of the host.

_FRAME = re.compile(r"\s+at \S[^\n]*(?::\d+|:line \d+|\)|<anonymous>|\{)$")
"""A frame of JavaScript, Java or .NET: `    at f (file.js:1:2)`."""
_TRACEBACK = "Traceback (most recent call last):"
_GROUP_BORDER = re.compile(r"\s{0,80}[|+](?:[-+ ]*\d*[-+ ]*$| ?)")

_PASSWORD = re.compile(r"(?<=://)[^/?#@\s]{0,256}:[^/@\s]{1,256}@")
_PART = r"[^\s\"'`<>|*?:;,()\[\]{}\\/]"
_SEPARATOR = r"(?:\\{0,4}/|\\{1,4})"
"""Slashes and backslashes, as JSON may escape them."""


def without_frames(text: str) -> str:
    """Removes the frames of Python's, JavaScript's, Java's and .NET's stack traces; messages stay."""
    if "\n" not in text:
        return text
    is_group = "Exception Group Traceback" in text
    kept: list[str] = []
    is_inside = False
    for each in text.replace("\r\n", "\n").split("\n"):
        line = _GROUP_BORDER.sub("", each, count=1) if is_group else each
        before, traceback, _ = line.partition(_TRACEBACK)
        if traceback:
            is_inside = True
            kept += [before] if before.strip(" |+-") not in ("", "Exception Group") else []
        elif is_inside and (not line.strip() or line[0] in " \t"):
            continue
        elif not _FRAME.match(line):
            is_inside = False
            kept.append(line)
    return "\n".join(kept)


@lru_cache(maxsize=8)
def _home_directories(own: str) -> re.Pattern[str]:
    """Compiles the pattern of home directories: `own`, if it is an absolute path, and those of Unix and Windows."""
    word = rf"{_PART}{{1,64}}"
    unix = rf"(?:\\{{0,4}}/mnt\\{{0,4}}/[a-z])?\\{{0,4}}/(?:home|Users)\\{{0,4}}/{_PART}{{1,255}}"
    windows = rf"[A-Za-z]:{_SEPARATOR}Users{_SEPARATOR}(?:{word}(?: {word}){{1,2}}(?=[\\/])|{word})"
    mine = rf"|{re.escape(own)}(?![\w.-])" if len(own) > 1 and os.path.isabs(own) else ""
    # Not behind a slash, but for `file:///`: `//home/item` is an XPath.
    return re.compile(rf"(?<![\w.~%@\\-])(?<!(?<!file:/)/)(?:{unix}|{windows}{mine})")
