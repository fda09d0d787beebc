"""JSON of results and of the boundary: a strict decoder and a compact encoder.

Refuses text that isn't one finite JSON value in UTF-8. Half a surrogate pair becomes U+FFFD.
"""

from __future__ import annotations

import json
import json.encoder
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

# The encoder of compact JSON text, made once: `json.dumps` makes one for every value.


def _compact_encoder(*, ascii_only: bool) -> Callable[[object, int], Iterable[str]]:
    """Makes a function that yields a value's compact JSON text in pieces; its second argument is the level of nesting.

    It raises the errors of `json.dumps`, and RecursionError for a circular value.
    """
    slow = json.JSONEncoder(ensure_ascii=ascii_only, allow_nan=False, check_circular=False, separators=(",", ":"))
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return lambda value, _level: (slow.encode(value),)
    text = json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring
    return make(None, slow.default, text, None, ":", ",", False, False, False)


# JSON of results: compact when written, strict when read, exact about integers beyond 2^53.


LARGEST_EXACT = 2**53 - 1
"""Beyond this, a JavaScript number is no longer every integer."""

NOT_UTF8 = "toolbridge/not-utf8"
"""Key in a result's `_meta`: bytes of the message were replaced by U+FFFD."""

_pieces = _compact_encoder(ascii_only=False)
_ascii_pieces = _compact_encoder(ascii_only=True)
_join = "".join

# Looking for long numbers: with every digit the same, a search for a fixed text finds them, at a tenth of the cost
# of an expression. Most of what it finds are parts of strings, such as hashes: a look at what is before tells.
_ONE_DIGIT = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x65 if byte == 0x45 else byte for byte in range(256))
_SIXTEEN_DIGITS = b"0" * 16
_TWO_HUNDRED_DIGITS = b"0" * 200
"""A shorter number, with an exponent of two digits at most, is finite."""
_LONG_EXPONENTS = (b"0e000", b"0e+000")
_BEFORE_A_NUMBER = frozenset(b":,[ \t\r\n")
_DIGITS = frozenset(b"0123456789")
_DIGITS_AND_POINT = _DIGITS | frozenset(b".")
_MOST_LOOKS = 20_000


class NotJsonError(ValueError):
    """A value has no JSON form, or a text is not JSON. The message has no foreign text."""


def is_marked_not_utf8(result: Mapping[str, Any]) -> bool:
    """Returns whether bytes of a result were replaced. A server that forges the mark only adds a note."""
    meta = result.get("_meta")
    return isinstance(meta, dict) and NOT_UTF8 in meta


def compact_text(value: object) -> str:
    """Encodes a value as compact JSON text; lone surrogates are kept.

    Raises:
        NotJsonError: it has no JSON form: NaN, a foreign type, nested too deeply, circular.
    """
    try:
        return _join(_pieces(value, 0))
    except RecursionError:
        raise NotJsonError("it is nested too deeply") from None
    except (TypeError, ValueError):
        raise NotJsonError("it holds a value that JSON can't") from None


def utf8(text: str, value: object) -> bytes:
    """Encodes `text`, the JSON text of `value`, in UTF-8; lone surrogates, which have no UTF-8, become escapes."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return _join(_ascii_pieces(value, 0)).encode("ascii")


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    """Parses a number.

    Raises:
        ValueError: it is too large for a float.
    """
    value = float(text)
    if value - value != 0.0:
        raise ValueError(f"{text} is too large")
    return value


_fast_decoder = json.JSONDecoder(parse_constant=_refuse_constant)
_decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
_scan: Callable[[str, int], tuple[Any, int]] = cast("Any", _decoder).scan_once


def strict_json(text: str) -> Any:
    """Parses a text that is one finite JSON value.

    Raises:
        NotJsonError: it is not, or nested too deeply.
    """
    try:
        value = _fast_decoder.decode(text)
        # `1e999` would be infinite: only texts with long exponents or digits are decoded again, more slowly.
        if _may_be_infinite(text.encode("utf-8", "replace")):
            value = _decoder.decode(text)
    except RecursionError:
        raise NotJsonError("it is nested too deeply") from None
    except ValueError:
        raise NotJsonError("it is no JSON") from None
    return value


def _may_be_infinite(data: bytes) -> bool:
    """Returns whether JSON may have a number too large for a float; never wrong when False."""
    same = data.translate(_ONE_DIGIT)
    return _TWO_HUNDRED_DIGITS in same or any(
        _some_number_has(same, exponent, _DIGITS_AND_POINT) for exponent in _LONG_EXPONENTS
    )


def has_long_integer(data: bytes) -> bool:
    """Returns whether JSON may hold an integer beyond 2^53; never wrong when False."""
    same = data.translate(_ONE_DIGIT)
    return _SIXTEEN_DIGITS in same and _some_number_has(same, _SIXTEEN_DIGITS, _DIGITS)


def _some_number_has(data: bytes, wanted: bytes, head: frozenset[int]) -> bool:
    """Returns whether JSON may have a number of characters of `head` followed by `wanted`; never wrong when False."""
    at = data.find(wanted)
    for _ in range(_MOST_LOOKS):
        if at < 0:
            return False
        before = at - 1
        while before >= 0 and data[before] in head and at - before < 250:
            before -= 1
        if before >= 0 and data[before] == 0x2D:  # a minus
            before -= 1
        if before < 0 or data[before] in _BEFORE_A_NUMBER or at - before >= 250:
            return True
        at = data.find(wanted, at + len(wanted))
    return True


def without_large_integers(value: Any) -> tuple[Any, int]:
    """Copies a value with integers beyond ±(2^53-1) as strings of their digits; returns the copy and their number.

    Raises:
        NotJsonError: it is nested too deeply.
    """
    found = 0

    def change(scalar: Any) -> Any:
        nonlocal found
        if type(scalar) is int and not -LARGEST_EXACT <= scalar <= LARGEST_EXACT:
            found += 1
            return str(scalar)
        return scalar

    return mapped(value, change), found


def without_infinite_numbers(value: Any) -> tuple[Any, int]:
    """Copies a value with null for NaN and infinities; returns the copy and their number.

    Raises:
        NotJsonError: it is nested too deeply.
    """
    found = 0

    def change(scalar: Any) -> Any:
        nonlocal found
        if isinstance(scalar, float) and scalar - scalar != 0.0:
            found += 1
            return None
        return scalar

    return mapped(value, change), found


def mapped(
    value: Any,
    change: Callable[[Any], Any],
    change_key: Callable[[str], str] | None = None,
    change_list: Callable[[list[Any]], Any] | None = None,
) -> Any:
    """Copies a value with `change` applied to each scalar, and the other functions to each key and copied list.

    Tuples become lists, too.

    Raises:
        NotJsonError: it is nested too deeply.
    """

    def copy(item: Any) -> Any:
        if isinstance(item, dict):
            members = cast("dict[str, Any]", item)
            if change_key is None:
                return {key: copy(member) for key, member in members.items()}
            return {change_key(key): copy(member) for key, member in members.items()}
        if isinstance(item, (list, tuple)):
            items = [copy(member) for member in cast("list[Any]", item)]
            return items if change_list is None else change_list(items)
        return change(item)

    try:
        return copy(value)
    except RecursionError:
        raise NotJsonError("it is nested too deeply") from None


class WireError(Exception):
    """A malformed frame. Never raised to the host."""


class TooDeepError(WireError, ValueError):
    """JSON that is nested deeper than the decoder goes."""

    def __init__(self) -> None:
        super().__init__("nested too deeply")


def json_text(value: object) -> str:
    """Encodes a value as compact JSON text; raises the errors of `json.dumps` if it has none."""
    return _join(_pieces(value, 0))


def scan_json(text: str, at: int) -> tuple[Any, int]:
    """Parses the JSON value that begins at a position; returns it and its end.

    Raises:
        WireError: there is none, or it is nested too deeply.
    """
    try:
        return _scan(text, at)
    except RecursionError:
        raise TooDeepError from None
    except (ValueError, StopIteration) as error:
        raise WireError(f"not JSON: {type(error).__name__}") from None


def scan_whole(text: str) -> Any:
    """Parses a text that is one JSON value.

    Raises:
        WireError: it is not.
    """
    value, end = scan_json(text, 0)
    if end != len(text):
        raise WireError("not JSON: text after the value")
    return value


# Escapes in JSON text: a whole surrogate pair, half of one, or anything else.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def without_lone_surrogates(text: str) -> str:
    """Replaces escapes of lone surrogates in JSON text by U+FFFD: half a pair can't be encoded."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda match: "\\ufffd" if match[1] else match[0], text)


def decode_json(data: bytes) -> Any:
    """Parses one JSON value in UTF-8; lone surrogates become U+FFFD.

    Raises:
        WireError: it is not one JSON value in UTF-8, or too deep.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise WireError("not UTF-8") from None
    return scan_whole(without_lone_surrogates(text))


def encode_json(value: object, before: str = "", after: str = "") -> bytes:
    """Encodes a value as JSON in UTF-8, between the texts `before` and `after`; lone surrogates become escapes.

    Raises:
        WireError: it has no JSON form (a set, NaN, a cycle).
    """
    try:
        return _join((before, *_pieces(value, 0), after)).encode("utf-8")
    except UnicodeEncodeError:
        return _join((before, *_ascii_pieces(value, 0), after)).encode("ascii")
    except Exception as error:  # also what the value's own methods raise
        reason = "nested too deeply or circular" if isinstance(error, RecursionError) else str(error)
        raise WireError(reason) from None
