"""SECURITY: the forms in which known secrets are looked for.

What only escapes characters (JSON, URLs, HTML) is not among them: a text is read as a decoder would (`shadow_text`).
What writes a secret in other letters (base64, base32, hex) is: part of a longer text, it can't be decoded for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from toolbridge.trust.shadow_text import readings

LEAST_CHARACTERS = 4
"""A shorter form would mask parts of ordinary words."""
# Of a key of many lines, a server may show just one: the whole would not be found in it.
_LEAST_LINE = 16
# From here on, nobody writes it by chance in capitals, or backwards.
_LEAST_ANY_CASE = 8
# What is looked for without white space has to be longer: words that follow each other must not become a secret.
_LEAST_JOINED_WORD = 16
_LEAST_JOINED = 8
_LEAST_BARE_WORD = 24
_LEAST_BARE = 12
_LEAST_IN_BINARY = 8
"""Shorter ones are in every image by chance."""


class Forms(NamedTuple):
    """What to look for in one kind of reading, the longest first."""

    exact: tuple[str, ...]
    any_case: tuple[str, ...]
    """In small letters, for a reading in small letters."""


@lru_cache(maxsize=256)
def text_forms(secrets: frozenset[str]) -> dict[str, Forms]:
    """What to look for in a text, by the kind of reading."""
    exact: dict[str, set[str]] = {"plain": set(), "joined": set(), "bare": set()}
    any_case: dict[str, set[str]] = {"plain": set(), "joined": set(), "bare": set()}
    for part in {part for secret in secrets for part in _parts(secret)}:
        for form in (part, part.replace(" ", "+")):  # as in a form of HTML
            for reading in readings(form):
                kind, text = reading.kind, reading.text
                if not _is_enough(kind, text):
                    continue
                if len(text) < _LEAST_ANY_CASE:
                    exact[kind].add(text)
                else:
                    any_case[kind] |= {small(text), small(text[::-1])}
        if _is_enough("bare", _bare(part)):  # with signs between its own, nothing in it is decoded
            any_case["bare"].add(small(_bare(part)))
        raw = part.encode("utf-8", "surrogatepass")
        for kind in exact if len(raw) >= LEAST_CHARACTERS else ():
            least = LEAST_CHARACTERS if kind == "plain" else _LEAST_JOINED
            written = _bare if kind == "bare" else str
            exact[kind] |= {form for form in map(written, _in_base64s(raw)) if len(form) >= least}
            any_case[kind] |= {form for form in map(written, _in_any_case(raw)) if len(form) >= least}
    return {kind: Forms(_by_length(exact[kind]), _by_length(any_case[kind])) for kind in exact}


def small(text: str) -> str:
    """In small letters, each where it was: there is one letter that would become two."""
    return text.replace("\u0130", "i").lower()


def longest_form(secrets: Iterable[str]) -> int:
    """How long a text must be so that no secret at its beginning is only half in it."""
    longest = max(map(len, secrets), default=0)
    return 12 * longest


@lru_cache(maxsize=256)
def byte_forms(secrets: frozenset[str]) -> tuple[bytes, ...]:
    """What to look for in binary data, which is not read in any other way."""
    found = {
        form.encode("utf-8", "surrogatepass")
        for secret in secrets
        for part in _parts(secret)
        for form in _encoded(part)
    }
    found |= {secret.encode(encoding, "surrogatepass") for secret in secrets for encoding in ("utf-16-le", "utf-16-be")}
    return tuple(sorted((form for form in found if len(form) >= _LEAST_IN_BINARY), key=lambda form: (-len(form), form)))


def _by_length(forms: set[str]) -> tuple[str, ...]:
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _is_enough(kind: str, text: str) -> bool:
    """Whether it is long enough not to be there by chance. A word is sooner than what has digits and signs in it."""
    is_word = text.isalpha() or text.isdigit()
    match kind:
        case "plain":
            return len(text) >= LEAST_CHARACTERS
        case "joined":
            return len(text) >= (_LEAST_JOINED_WORD if is_word else _LEAST_JOINED)
        case _:
            return len(text) >= (_LEAST_BARE_WORD if is_word else _LEAST_BARE)


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _parts(secret: str) -> Iterator[str]:
    yield secret
    lines = secret.split("\n")
    if len(lines) > 1:
        yield from (line for line in map(str.strip, lines) if len(line) >= _LEAST_LINE and not line.startswith("-----"))
        yield "\r\n".join(lines)


def _in_base64s(raw: bytes) -> Iterator[str]:
    """Bytes in base64, wherever in it they stand."""
    yield from _in_base64(raw)
    wide = raw.decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass")
    yield from _in_base64(wide[:-1])  # without its last byte it is part of UTF-16 in either order


def _in_any_case(raw: bytes) -> Iterator[str]:
    """Bytes in hex and base32, in small letters, and as a list of numbers."""
    yield raw.hex()
    yield raw.hex(":")
    yield from _in_base32(raw)
    if len(raw) >= _LEAST_JOINED:
        yield ",".join(map(str, raw))


def _encoded(secret: str) -> Iterator[str]:
    """A secret as it is, and escaped for JSON and URLs, in hex and base64."""
    import json
    import urllib.parse

    raw = secret.encode("utf-8", "surrogatepass")
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield urllib.parse.quote(raw, safe="")
    if len(raw) >= LEAST_CHARACTERS:
        yield from (raw.hex(), raw.hex().upper())
        yield from _in_base64s(raw)


def _in_base64(raw: bytes) -> Iterator[str]:
    import base64

    for shift in range(3):
        # The first and last characters of the encoding also depend on what stood before and after.
        encoded = base64.b64encode(b"\0" * shift + raw).decode()
        middle = encoded[-(-8 * shift // 6) : 8 * (shift + len(raw)) // 6]
        yield middle
        yield middle.replace("+", "-").replace("/", "_")


def _in_base32(raw: bytes) -> Iterator[str]:
    import base64

    for shift in range(5):
        encoded = base64.b32encode(b"\0" * shift + raw).decode()
        yield encoded[-(-8 * shift // 5) : 8 * (shift + len(raw)) // 5].lower()
