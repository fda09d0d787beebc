"""SECURITY: a text as whoever decodes it would read it, with the way back to the characters that it came from.

A known secret is looked for in these readings. Each is made from the one before it by one rule, in time that is in
proportion to its length, and none is ever shown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

from toolbridge_codegen.hidden_characters import HIDDEN

Span = tuple[int, int]

_MOST_DECODINGS = 4
"""How many encodings upon each other are undone: URLs within URLs, JSON within JSON."""

# What can't be seen, or hardly: a secret with it between its letters looks as it is. Accents are taken off both.
_UNSEEN = HIDDEN.pattern[1:-1] + "\u0300-\u036f\ue000-\uf8ff\U000f0000-\U0010ffff"
_BLANKS = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_HEX = "[0-9A-Fa-f]"


def _utf8(mark: str) -> str:
    """One character in UTF-8, each byte of it written as `mark` and two digits; the first mark was read already."""
    more = rf"{mark}[89ABab]{_HEX}"
    return rf"(?:[C-Dc-d]{_HEX}{more}|[Ee]{_HEX}(?:{more}){{2}}|[Ff][0-4](?:{more}){{3}}|{_HEX}{{2}})"


_IN_URLS = _utf8("%")
_IN_STRINGS = _utf8(r"\\+x")

# All begin with one of a few characters, which makes looking for them ten times as fast.
_ENCODED = re.compile(
    rf"[%&\\{_BLANKS}{_UNSEEN}](?:"
    rf"(?<=%)(?P<percent>{_IN_URLS})"
    rf"|(?<=&)(?:\#0{{0,9}}(?P<decimal>[0-9]{{1,7}});|\#[Xx]0{{0,9}}(?P<hexadecimal>{_HEX}{{1,6}});|(?P<entity>[A-Za-z]{{2,8}};))"
    # Any number of backslashes: JSON in JSON has two for one. Python's and JavaScript's escapes beside JSON's.
    r"|(?<=\\)\\*+(?:"
    rf"u(?P<pair>[Dd][89ABab]{_HEX}{{2}}\\+u[Dd][C-Fc-f]{_HEX}{{2}})"
    rf"|u(?P<unit>{_HEX}{{4}})|u\{{(?P<point>{_HEX}{{1,6}})\}}|U(?P<long>{_HEX}{{8}})"
    rf"|x(?P<bytes>{_IN_STRINGS})|(?P<octal>[0-3][0-7]{{2}})|(?P<short>[bfnrt]))?"
    # A terminal's colours.
    r"|(?<=[\x1b\x9b])(?:(?<=\x9b)|\[)[0-?]{0,64}[ -/]{0,16}[@-~]?"
    r")?"
)
_DIGITS = re.compile(f"{_HEX}{{2}}")
_MEANT_FOR_MORE = "%&\\\x1b\x9b"
"""These stay where they stand alone: they may be the beginning of something once the next character is decoded."""
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def _decoded(match: re.Match[str]) -> str:  # noqa: PLR0911  # one line for each way of writing
    """What a decoder makes of it. Of several backslashes one is left: it is never known how many of them were meant."""
    match match.lastgroup:
        case "percent" | "bytes":
            digits = match[match.lastgroup]
            return chr(int(digits, 16)) if len(digits) == 2 else _characters(digits)
        case "entity":
            return _named(match[0])
        case "pair":
            high, low = match["pair"][:4], match["pair"][-4:]
            return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
        case "unit" | "point" | "long" | "hexadecimal":
            return _numbered(match[match.lastgroup], 16)
        case "octal":
            return _numbered(match["octal"], 8)
        case "decimal":
            return _numbered(match["decimal"], 10)
        case "short":
            return _SHORT[match["short"]]
        case _:
            first = match[0][0]
            if first == "\\" or match[0] in _MEANT_FOR_MORE:
                return first
            return " " if first.isspace() else ""


def _numbered(digits: str, base: int) -> str:
    code = int(digits, base)
    return chr(code) if code < 0x110000 else ""


def _named(entity: str) -> str:
    import html  # here: it has a table of 2,000 names

    return html.unescape(entity)


def _characters(digits: str) -> str:
    data = bytes.fromhex("".join(_DIGITS.findall(digits)))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _nothing(_: re.Match[str]) -> str:
    return ""


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    written: Callable[[re.Match[str]], str]
    quickly: Callable[[str], str]
    """The same as substituting."""


def _without(*pieces: str) -> Callable[[str], str]:
    def quickly(text: str) -> str:
        for piece in pieces:
            text = text.replace(piece, "")
        return text

    return quickly


def _decoded_quickly(text: str) -> str:
    if text.isascii() and len(text.encode().translate(None, _MARKS)) == len(text):
        return text  # most texts
    return _ENCODED.sub(_decoded, text)


def _bare_quickly(text: str) -> str:
    return text.translate(_NO_PUNCTUATION)


_MARKS = bytes([*range(9), *range(11, 32), 127, *b"%&\\"])
_PUNCTUATION = "".join(chr(code) for code in range(128) if not chr(code).isalnum())
_NO_PUNCTUATION = dict.fromkeys(map(ord, _PUNCTUATION))
_DECODED = _Rule(_ENCODED, _decoded, _decoded_quickly)
_JOINED = _Rule(re.compile(r"[ \t\n]+"), _nothing, _without(" ", "\t", "\n"))
_NO_REST = _Rule(re.compile(r"[\\\x1b\x9b]+"), _nothing, _without("\\", "\x1b", "\x9b"))
_NO_PREFIX = _Rule(re.compile("0x"), _nothing, _without("0x"))
_BARE = _Rule(re.compile(f"[{re.escape(_PUNCTUATION)}]+"), _nothing, _bare_quickly)


class Reading(NamedTuple):
    """A text in one of its readings."""

    text: str
    kind: str
    """`plain`: decoded. `joined`: and without white space. `bare`: nothing but letters and digits."""
    rules: tuple[_Rule, ...]
    sources: tuple[str, ...]
    """What each of the rules was applied to: the first is the text itself."""

    def in_text(self, spans: list[Span]) -> list[Span]:
        """Places in this reading as places in the text itself."""
        for rule, source in zip(reversed(self.rules), reversed(self.sources), strict=True):
            spans = _in_source(rule, source, spans)
        return spans

    def read_by(self, rule: _Rule, kind: str) -> Reading:
        """What a rule makes of it."""
        text = rule.quickly(self.text)
        if text == self.text:
            return self._replace(kind=kind)
        return Reading(text, kind, (*self.rules, rule), (*self.sources, self.text))


def readings(text: str) -> Iterator[Reading]:
    """The text as it is, and all that it may be decoded to."""
    reading = Reading(text, "plain", (), ())
    yield reading
    yield from _decodings(reading)
    # From the beginning: a line may have been broken within what stands for a character.
    reading = reading.read_by(_JOINED, "joined")
    yield reading
    reading = yield from _decodings(reading, _JOINED)
    yield reading.read_by(_NO_PREFIX, "bare").read_by(_BARE, "bare")


def _decodings(reading: Reading, *others: _Rule) -> Generator[Reading, None, Reading]:
    """What it is decoded to, again and again, by other rules in between; returns what can't be decoded any more."""
    for _ in range(_MOST_DECODINGS):
        decoded = reading.read_by(_DECODED, reading.kind)
        for rule in others:
            decoded = decoded.read_by(rule, reading.kind)
        if decoded.text == reading.text:
            break
        reading = decoded
        yield reading
    without = reading.read_by(_NO_REST, reading.kind)
    if without.text != reading.text:
        yield without
    return reading


def _in_source(rule: _Rule, source: str, spans: list[Span]) -> list[Span]:
    """Places in what a rule made of a text, as places in that text. What is made of one character is not divided."""
    starts: list[int] = []  # of each piece, in what was made
    pieces: list[tuple[int, int, bool]] = []  # from where to where it came, and whether it is as it was
    size = place = 0
    for match in rule.pattern.finditer(source):
        if match.start() > place:
            starts.append(size)
            pieces.append((place, match.start(), True))
            size += match.start() - place
        written = rule.written(match)
        if written:
            starts.append(size)
            pieces.append((match.start(), match.end(), False))
            size += len(written)
        place = match.end()
    if place < len(source):
        starts.append(size)
        pieces.append((place, len(source), True))
    found: list[Span] = []
    for start, end in spans:
        first = bisect_right(starts, start) - 1
        last = bisect_right(starts, end - 1) - 1
        begin, _, is_same = pieces[first]
        begin += start - starts[first] if is_same else 0
        last_begin, stop, is_same = pieces[last]
        found.append((begin, last_begin + end - starts[last] if is_same else stop))
    return found
