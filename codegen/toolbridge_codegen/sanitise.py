"""SECURITY: the one place where a server's text is cleaned before it is written into a stub.

What is left is plain text that a person and a model read alike. It is not yet escaped for a language: that
depends on where it is written, and is the emitters' work.
"""

from __future__ import annotations

import re

from toolbridge_codegen.hidden_characters import ESCAPE_SEQUENCES, HIDDEN

LONGEST_TEXT = 2000
CUT_MARK = "…"

_LINE_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SPACES = re.compile(r"[^\S\n]+")
_AROUND_BREAKS = re.compile(r" ?\n ?")
_MANY_BREAKS = re.compile(r"\n{3,}")
_WHITESPACE = re.compile(r"\s+")


def clean_text(text: str, *, limit: int = LONGEST_TEXT) -> str:
    """Text of several lines, without what can't be seen or would be obeyed, cut with a visible mark."""
    if _is_clean(text, limit):
        return text.strip()
    text, shortened = _bounded(text, limit)
    if not text.isascii() or not text.isprintable():
        text = _without_hidden(text)
    text = _SPACES.sub(" ", text)
    if "\n" in text:
        text = _MANY_BREAKS.sub("\n\n", _AROUND_BREAKS.sub("\n", text))
    return _cut(text.strip(), limit, shortened=shortened)


def clean_line(text: str, *, limit: int = LONGEST_TEXT) -> str:
    """The same on one line."""
    if _is_clean(text, limit):
        return text.strip()
    text, shortened = _bounded(text, limit)
    if not text.isascii() or not text.isprintable():
        text = _without_hidden(text)
    return _cut(_WHITESPACE.sub(" ", text).strip(), limit, shortened=shortened)


def _is_clean(text: str, limit: int) -> bool:
    """Whether nothing but spaces around it has to go: most text is so, and this is quickly seen."""
    return len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text


def characters_read(limit: int = LONGEST_TEXT) -> int:
    """How much of a text is looked at: nothing after that is ever written anywhere."""
    return limit * 2 + 1000


def _bounded(text: str, limit: int) -> tuple[str, bool]:
    """A megabyte of text costs no more than what may be shown of it, even if most of that is hidden."""
    most = characters_read(limit)
    return (text[:most], True) if len(text) > most else (text, False)


def _without_hidden(text: str) -> str:
    text = _LINE_BREAKS.sub("\n", ESCAPE_SEQUENCES.sub("", text))
    text = _SPACES.sub(" ", HIDDEN.sub("", text))
    if text.replace("\n", "").isprintable():
        return text
    # Code points that mean nothing (yet), or what somebody's font makes of them.
    return "".join([character for character in text if character.isprintable() or character == "\n"])


def _cut(text: str, limit: int, *, shortened: bool) -> str:
    if len(text) > limit:
        return text[: max(limit - 1, 0)].rstrip() + CUT_MARK
    return text + CUT_MARK if shortened and not text.endswith(CUT_MARK) else text
