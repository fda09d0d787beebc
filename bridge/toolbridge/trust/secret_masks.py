"""SECURITY: known secrets in foreign text and data, in whatever common encoding, are masked.

One way for all: the text is read as each decoder would read it (`shadow_text`), the forms of the secrets are looked for
in every reading (`secret_forms`), and where one was found, the characters that it came from are masked.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator

from toolbridge.trust.secret_forms import Forms, byte_forms, small, text_forms
from toolbridge.trust.shadow_text import Span, readings

MASK = "***"

_MOST_NESTED = 2
"""How often base64 or hex is undone to look for what was encoded before: base64 of base64, of a URL, of JSON."""
# Runs of an encoder's letters, in lines too. What is nested is at least twice as long as a short secret.
_LETTERS = "[A-Za-z0-9+/_-]"
_BASE64 = re.compile(rf"{_LETTERS}{{16,}}+(?:(?<={_LETTERS}{{60}})\r?\n{_LETTERS}++)*+")
_HEX = re.compile("[0-9A-Fa-f]{16,}")
_ALIGNED = 4096
"""A longer run is taken to begin where its encoding does."""
_CONTROLS = bytes([*range(9), *range(14, 32)])
_READABLE = bytes([*range(32, 127), 0, 9, 10, 13])


def masked(text: str, secrets: frozenset[str]) -> str:
    """Text in which known secrets are `***`, in any common encoding."""
    forms = text_forms(secrets)
    found = _found(text, forms)
    if as_it_is := next(found):
        # Otherwise it would be found, and traced back to where it came from, in each of the other readings too.
        text = _with(text, as_it_is, _mask)
        found = _found(text, forms)
    spans = [span for each in found for span in each]
    return _with(text, spans, _mask) if spans else text


def _mask(_: int) -> str:
    return MASK


def masked_bytes(data: bytes, secrets: frozenset[str]) -> bytes:
    """Data that is no text, with every known secret in it written over; all else stays where it is."""
    for form in byte_forms(secrets):
        if form in data:
            data = data.replace(form, b"*" * len(form))
    return data


def _found(text: str, forms: dict[str, Forms], nested: int = 0) -> Iterator[list[Span]]:
    """Where secrets are in a text: reading by reading, the text as it is first."""
    seen = ""
    for reading in readings(text):
        spans = list(_spans(reading.text, forms[reading.kind]))
        if reading.kind == "plain" and nested < _MOST_NESTED and reading.text != seen:
            spans += _nested(reading.text, spans, forms, nested + 1)
        seen = reading.text
        yield reading.in_text(spans) if spans else spans


def _spans(text: str, forms: Forms) -> Iterator[Span]:
    for where, looked_for in ((text, forms.exact), (small(text), forms.any_case)):
        for form in looked_for:
            start = where.find(form)
            while start >= 0:
                yield start, start + len(form)
                start = where.find(form, start + len(form))


def _nested(text: str, known: list[Span], forms: dict[str, Forms], nested: int) -> list[Span]:
    """Runs of base64 and hex in which there is a secret that was encoded before. What is known of them is left out."""
    rest = _with(text, known, " ".__mul__) if known else text
    return [
        run.span()
        for run in _BASE64.finditer(rest)
        if any(spans for decoded in _from_letters(run[0]) for spans in _found(decoded, forms, nested))
    ]


def _from_letters(run: str) -> Iterator[str]:
    """What a run may be decoded to."""
    yield from _from_base64(run)
    for digits in _HEX.findall(run):
        yield from _from_hex(digits)


def _from_base64(run: str) -> Iterator[str]:
    letters = "".join(run.split()).replace("-", "+").replace("_", "/")
    for shift in range(4 if len(letters) <= _ALIGNED else 1):
        size = len(letters) - shift
        whole = letters[shift:] if size % 4 != 1 else letters[shift:-1]
        yield from _readable(binascii.a2b_base64(whole + "=" * (-len(whole) % 4)))


def _from_hex(run: str) -> Iterator[str]:
    for shift in (0, 1):
        yield from _readable(bytes.fromhex(run[shift : shift + (len(run) - shift) // 2 * 2]))


def _readable(data: bytes) -> Iterator[str]:
    """What was decoded, if it may have been text: begun at the wrong place, it is noise."""
    if 5 * len(data.translate(None, _CONTROLS)) < 2 * len(data):
        return
    try:
        yield data.decode("utf-8")
    except UnicodeDecodeError:
        if 5 * len(data.translate(None, _READABLE)) < len(data):
            yield data.decode("utf-8", "ignore")


def _with(text: str, spans: list[Span], mask: Callable[[int], str]) -> str:
    """The text with a mask in the place of each span, given its length; spans that overlap are one."""
    pieces: list[str] = []
    place = begin = end = 0
    for start, stop in [*sorted(spans), (len(text) + 1, 0)]:
        if start < end:
            end = max(end, stop)
            continue
        if end > begin:
            pieces += [text[place:begin], mask(end - begin)]
            place = end
        begin, end = start, stop
    return "".join([*pieces, text[place:]])
