"""SECURITY: what of a sentence is weighed: its words, two that follow each other, two with one or two between.

A word counts as it stands and by its stem, so that "sends" and "sending" have something in common. Of an address, a
path, a name or a figure it counts only that it is one. In scripts without spaces it is each one, two and three
characters. Each place is looked at a fixed number of times (T16).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from toolbridge.trust.audit_concepts import without_accents

_TOKEN = re.compile(
    r"https?://[^\s<>()`'\"]{1,300}|`[^`\n]{1,80}`|(?<![\w/])[~.]{0,2}/[\w.~/*-]{2,80}"
    r"|[^\W_]+(?:[-_'][^\W_]+)*(?:@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4})?"
)
_JOINED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LONGEST_JOINED = 3
_FURTHEST = 3
_ENDINGS = ("'s", "ing", "edly", "ed", "es", "ly", "s", "e")
_SHORTEST_STEM = 3
_LONGEST_STEM = 8
_LONGEST_FOREIGN_STEM = 6
_SPELLED_OUT = {"can't": ("can", "not"), "cannot": ("can", "not"), "won't": ("will", "not")}


def features(sentence: str) -> Iterator[tuple[str, str]]:
    """What is weighed in a sentence (in lower case), each with the words that it stands for there.

    `tell`, `tell user` and `tell … user` are stems, `tells.` is a word as it stands, `~告诉` is characters,
    `URL` and such are kinds of things.
    """
    tokens: list[tuple[str, str]] = []
    for token in _TOKEN.findall(without_accents(sentence).replace("’", "'")):
        if _JOINED.search(token):
            for length in range(1, _LONGEST_JOINED + 1):
                for start in range(len(token) - length + 1):
                    part = token[start : start + length]
                    yield f"~{part}", part
            tokens.append(("~", "…"))
        else:
            tokens += _stems(token)
    for stem, written in tokens:
        yield stem, written
        if stem != written:
            yield f"{written}.", written
    for distance in range(1, _FURTHEST + 1):
        between = " " if distance == 1 else " … "
        for (one, shown_one), (two, shown_two) in zip(tokens, tokens[distance:], strict=False):
            yield one + between + two, shown_one + between + shown_two


@lru_cache(maxsize=20_000)
def _stems(written: str) -> tuple[tuple[str, str], ...]:
    """What a word counts as, with the word; contractions are two words."""
    kind = _kind(written)
    if kind:
        return ((kind, kind.lower()),)
    if written in _SPELLED_OUT:
        return tuple((word, word) for word in _SPELLED_OUT[written])
    if written.endswith("n't"):
        return (written[:-3], written[:-3]), ("not", "not")
    return ((_stem(written), written),)


def _kind(written: str) -> str:
    if written.startswith(("http://", "https://")):
        return "URL"
    if written[0] in "/~.":
        return "PATH"
    if "@" in written:
        return "MAIL"
    if written[0] == "`" or "_" in written:
        return "NAME"
    return "NUMBER" if any(character.isdecimal() for character in written) else ""


def _stem(word: str) -> str:
    if not word.isascii():
        return word[:_LONGEST_FOREIGN_STEM]
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            word = word[: -len(ending)]
            break
    return word[:_LONGEST_STEM]
