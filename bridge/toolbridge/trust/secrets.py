"""SECURITY: redaction: known secrets in foreign text and data become `***`, plain, truncated or encoded (T4).

The secret encodings that software writes by itself are computed once and searched for as substrings, so that the time
is linear in the text. A text is searched in pieces: between two of them a worker thread releases the GIL, and stops if
its call was cancelled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

MASK = "***"

_LEAST = 4
"""A shorter encoding would mask parts of ordinary words."""
_LEAST_ANY_CASE = 8
"""From this length on, no other text differs from it by case alone."""
_LEAST_LIST = 8
_LEAST_IN_BINARY = 8
"""Shorter ones are in every image by chance."""
_LEAST_LINE = 16
"""A server may show a single line of a key of many lines."""
_LEAST_TRUNCATED = 24
"""Of a secret of this length, its first or last two thirds are masked by themselves."""
_PIECE = 2**18

# Left as they are by JavaScript's encodeURIComponent and encodeURI; Python's `quote` escapes them.
_URI_SAFE = ("", "/", "!'()*", "!'()*;,/?:@&=+$#")
_PERCENT = re.compile("%..")
# HTML escaping of Python, PHP, Java, Go and Handlebars.
_HTML_ESCAPES = tuple(
    str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", **others})
    for others in (
        {},
        {'"': "&quot;"},
        {'"': "&quot;", "'": "&#39;"},
        {'"': "&quot;", "'": "&#x27;"},
        {'"': "&#34;", "'": "&#39;", "+": "&#43;"},
        {'"': "&quot;", "'": "&#x27;", "`": "&#x60;", "=": "&#x3D;"},
    )
)

Span = tuple[int, int]


class Encodings(NamedTuple):
    """The substrings to search for."""

    exact: tuple[str, ...]
    any_case: tuple[str, ...]
    """In lower case, for a text in lower case."""
    truncated: tuple[str, ...]
    """Long secrets, in lower case: also their first or last two thirds are searched for."""
    shortest: int
    longest: int


def masked(text: str, secrets: frozenset[str]) -> str:
    """Redaction: returns the text with `***` for known secrets, plain, truncated or encoded.

    Forms shorter than four characters are left. For a long text in a worker thread, raises anyio's cancellation if its
    call was cancelled.
    """
    found = encodings(secrets)
    if len(text) < found.shortest:
        return text
    pieces: list[str] = []
    place = 0
    for begin, end in _merged(sorted(_spans(text, found))):
        pieces += [text[place:begin], MASK]
        place = end
    return "".join([*pieces, text[place:]]) if pieces else text


def masked_bytes(data: bytes, secrets: frozenset[str]) -> bytes:
    """Redaction of binary data: overwrites known secrets with as many `*`; all else stays in place.

    Forms shorter than eight bytes are left.
    """
    for encoding in byte_encodings(secrets):
        if encoding in data:
            data = data.replace(encoding, b"*" * len(encoding))
    return data


@lru_cache(maxsize=256)
def encodings(secrets: frozenset[str]) -> Encodings:
    """Returns the encodings of these secrets to search a text for; cached."""
    exact: set[str] = set()
    any_case: set[str] = set()
    truncated: set[str] = set()
    for part in {part for secret in secrets for part in _parts(secret)}:
        if len(part) >= _LEAST_TRUNCATED:
            truncated.add(_lower(part))
        for form in _encoded(part):
            if len(form) >= _LEAST_ANY_CASE:
                any_case.add(_lower(form))
            # A capital sigma in lower case depends on its neighbours: what is not ASCII is searched for as it is too.
            if len(form) >= _LEAST and (len(form) < _LEAST_ANY_CASE or not form.isascii()):
                exact.add(form)
    sizes = [len(each) for each in (*exact, *any_case)]
    any_case -= truncated  # found by their first two thirds
    shortest = min([*sizes, *(_two_thirds(each) for each in truncated)], default=0)
    return Encodings(tuple(exact), tuple(any_case), tuple(truncated), shortest, max(sizes, default=0))


@lru_cache(maxsize=256)
def byte_encodings(secrets: frozenset[str]) -> tuple[bytes, ...]:
    """Returns the encodings of these secrets to search binary data for, the longest first; cached."""
    parts = {part for secret in secrets for part in _parts(secret)}
    found = {form.encode("utf-8", "surrogatepass") for part in parts for form in _encoded(part)}
    found |= {secret.encode(encoding, "surrogatepass") for secret in secrets for encoding in ("utf-16-le", "utf-16-be")}
    return tuple(sorted((form for form in found if len(form) >= _LEAST_IN_BINARY), key=lambda form: (-len(form), form)))


# ---- searching


def _spans(text: str, found: Encodings) -> Iterator[Span]:
    """Yields the places of encodings, piece by piece; pieces overlap, so that none hides between two."""
    for start in range(0, len(text), _PIECE):
        if start:
            _stop_if_cancelled()
        begin = max(0, start - found.longest)
        piece = text[begin : start + _PIECE + found.longest]
        lower = _lower(piece)
        for searched, wanted in ((piece, found.exact), (lower, found.any_case)):
            for each in wanted:
                for place in _places(searched, each):
                    yield begin + place, begin + place + len(each)
        for secret in found.truncated:
            size = _two_thirds(secret)
            for place in _places(lower, secret[:size]):
                yield begin + place, begin + place + _common(lower[place : place + len(secret)], secret)
            for place in _places(lower, secret[-size:]):
                end = place + size
                before = lower[max(0, end - len(secret)) : end]
                yield begin + end - _common(before[::-1], secret[::-1]), begin + end


def _places(text: str, wanted: str) -> Iterator[int]:
    """Yields where the wanted text begins in another, without overlaps."""
    place = text.find(wanted)
    while place >= 0:
        yield place
        place = text.find(wanted, place + len(wanted))


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    """Joins overlapping spans of a sorted sequence."""
    begin = end = 0
    for start, stop in spans:
        if start < end:
            end = max(end, stop)
            continue
        if end:
            yield begin, end
        begin, end = start, stop
    if end:
        yield begin, end


def _stop_if_cancelled() -> None:
    """Raises anyio's cancellation if this is a worker thread whose call was cancelled."""
    from anyio.from_thread import check_cancelled  # here: most texts are of one piece

    with suppress(RuntimeError):  # in no worker thread
        check_cancelled()


def _lower(text: str) -> str:
    """In lower case, each character in its place: one would become two."""
    return text.replace("\u0130", "i").lower()


def _two_thirds(secret: str) -> int:
    return -(-2 * len(secret) // 3)


def _common(one: str, other: str) -> int:
    """Returns how many characters two texts begin with alike."""
    if one == other:
        return len(one)
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))


# ---- encoding


def _parts(secret: str) -> Iterator[str]:
    """Yields a secret, and of one with several lines also each long line, and the whole with CRLF."""
    yield secret
    lines = secret.split("\n")
    if len(lines) > 1:
        yield from (line for line in map(str.strip, lines) if len(line) >= _LEAST_LINE and not line.startswith("-----"))
        yield "\r\n".join(lines)


def _encoded(secret: str) -> set[str]:
    """Returns a secret plain, in URL, HTML, hex, base64, UTF-16, as a list of bytes; each in JSON, once and twice."""
    import json
    from urllib.parse import quote, quote_plus

    raw = secret.encode("utf-8", "surrogatepass")
    urls = {*(quote(raw, safe=safe) for safe in _URI_SAFE), quote_plus(raw), "".join(f"%{byte:02X}" for byte in raw)}
    urls |= {_PERCENT.sub(lambda match: match[0].lower(), url) for url in urls}
    forms = {secret, *urls, *(secret.translate(escapes) for escapes in _HTML_ESCAPES)}
    forms |= {json.dumps(secret)[1:-1], "\0".join(secret)}
    if len(raw) >= _LEAST:
        wide = secret.encode("utf-16-le", "surrogatepass")
        # Without its last byte it is part of UTF-16 in either byte order.
        forms |= {raw.hex(), raw.hex().upper(), *_in_base64(raw), *_in_base64(wide[:-1])}
    if len(raw) >= _LEAST_LIST:
        forms |= {separator.join(map(str, raw)) for separator in (",", ", ")}  # as Node writes a Buffer
    for _ in range(2):
        forms |= {json.dumps(form, ensure_ascii=False)[1:-1] for form in forms}
    return forms | {form.replace("/", "\\/") for form in forms}


def _in_base64(raw: bytes) -> Iterator[str]:
    """Yields base64 of a secret anywhere in longer data: without the characters that depend on its neighbours."""
    import base64
    from urllib.parse import quote

    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw).decode()
        middle = encoded[-(-8 * shift // 6) : 8 * (shift + len(raw)) // 6]
        yield from (middle, middle.replace("+", "-").replace("/", "_"), quote(middle, safe=""))
