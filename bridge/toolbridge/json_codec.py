"""JSON across the boundary: strict in what it takes, exact in what it gives, and fast.

Text that isn't one finite JSON value in UTF-8 is refused; half a surrogate pair becomes U+FFFD.
"""

from __future__ import annotations

import json
import json.encoder
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

# The encoder of compact JSON text, made once: the library's own function makes one for every value.


def compact_encoder(*, ascii_only: bool) -> Callable[[object, int], Iterable[str]]:
    """What gives the compact JSON text of a value in pieces, at a level of nesting.

    It raises what `json.dumps` does; for a value that holds itself that is a RecursionError.
    """
    slow = json.JSONEncoder(ensure_ascii=ascii_only, allow_nan=False, check_circular=False, separators=(",", ":"))
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return lambda value, _level: (slow.encode(value),)
    text = json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring
    return make(None, slow.default, text, None, ":", ",", False, False, False)


# JSON as results have it: compact when written, strict when read, exact about what a number can hold.


LARGEST_EXACT = 2**53 - 1
"""Beyond this, a JavaScript number is no longer every integer."""

NOT_UTF8 = "toolbridge/not-utf8"
"""In a result's `_meta`: bytes of the message were replaced by U+FFFD."""

_pieces = compact_encoder(ascii_only=False)
_ascii_pieces = compact_encoder(ascii_only=True)
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
    """What JSON can't hold, or what is no JSON. Says so in a few words of ours."""


def is_marked_not_utf8(result: Mapping[str, Any]) -> bool:
    """Tells whether bytes of a result were replaced. A server that sets the mark itself gains a note."""
    meta = result.get("_meta")
    return isinstance(meta, dict) and NOT_UTF8 in meta


def compact_text(value: object) -> str:
    """A value as compact JSON text.

    Raises:
        NotJsonError: it has no JSON form: NaN, a foreign type, nested too deeply, circular.
    """
    try:
        return _join(_pieces(value, 0))
    except RecursionError:
        raise NotJsonError("it is nested too deeply") from None
    except (TypeError, ValueError):
        raise NotJsonError("it holds what JSON can't") from None


def utf8(text: str, value: object) -> bytes:
    """The bytes of a value's JSON text; half a surrogate pair, which has none, is written as an escape."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return _join(_ascii_pieces(value, 0)).encode("ascii")


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _finite_number(text: str) -> float:
    number = float(text)
    if number - number != 0.0:
        raise ValueError(f"{text} is too large")
    return number


_quick = json.JSONDecoder(parse_constant=_refuse)
_careful = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite_number)


def strict_json(text: str) -> Any:
    """The value of a text that is one finite JSON value.

    Raises:
        NotJsonError: it is not, or nested too deeply.
    """
    try:
        value = _quick.decode(text)
        # `1e999` is a number without a value: only few texts have to be read with an eye to that.
        if _may_be_infinite(text.encode("utf-8", "replace")):
            value = _careful.decode(text)
    except RecursionError:
        raise NotJsonError("it is nested too deeply") from None
    except ValueError:
        raise NotJsonError("it is no JSON") from None
    return value


def _may_be_infinite(data: bytes) -> bool:
    same = data.translate(_ONE_DIGIT)
    return _TWO_HUNDRED_DIGITS in same or any(
        _some_number_has(same, exponent, _DIGITS_AND_POINT) for exponent in _LONG_EXPONENTS
    )


def has_long_integer(data: bytes) -> bool:
    """Whether JSON may hold an integer that a JavaScript number can't. Sometimes so when it doesn't."""
    same = data.translate(_ONE_DIGIT)
    return _SIXTEEN_DIGITS in same and _some_number_has(same, _SIXTEEN_DIGITS, _DIGITS)


def _some_number_has(data: bytes, wanted: bytes, head: frozenset[int]) -> bool:
    """Whether JSON has a number that begins with characters of `head` and goes on with `wanted`. In doubt, it has."""
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
    """A value in which integers beyond ±(2^53-1) are strings of their digits; how many there were."""
    found = 0

    def change(scalar: Any) -> Any:
        nonlocal found
        if type(scalar) is int and not -LARGEST_EXACT <= scalar <= LARGEST_EXACT:
            found += 1
            return str(scalar)
        return scalar

    return mapped(value, change), found


def without_infinite_numbers(value: Any) -> tuple[Any, int]:
    """A value in which NaN and infinities, which JSON doesn't have, are null; how many there were."""
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
    """A copy of a value with each scalar changed, and each key and list if so told.

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
    """A frame that the wire doesn't allow. Never leaves the boundary and the code that drives it."""


class TooDeepError(WireError):
    """JSON that is nested deeper than the host reads."""

    def __init__(self) -> None:
        super().__init__("nested too deeply")


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0.0:
        raise ValueError(f"{text} is too large")
    return value


_decoder: Any = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
_scan: Callable[[str, int], tuple[Any, int]] = _decoder.scan_once


def json_text(value: object) -> str:
    """`value`, which has a JSON form, as compact JSON text."""
    return _join(_pieces(value, 0))


def scan_json(text: str, at: int) -> tuple[Any, int]:
    """The JSON value that begins at a position, and where it ends."""
    try:
        return _scan(text, at)
    except RecursionError:
        raise TooDeepError from None
    except (ValueError, StopIteration) as error:
        raise WireError(f"not JSON: {type(error).__name__}") from None


def scan_whole(text: str) -> Any:
    """The JSON value that is all of a text."""
    value, end = scan_json(text, 0)
    if end != len(text):
        raise WireError("not JSON: text after the value")
    return value


# Escapes in JSON text: a whole surrogate pair, half of one, or anything else.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def without_lone_surrogates(text: str) -> str:
    """JSON text in which half a surrogate pair, which is no character and can't be printed, is U+FFFD."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda match: "\\ufffd" if match[1] else match[0], text)


def decode_json(data: bytes) -> Any:
    """The value that `data` holds.

    Raises:
        WireError: it is not one JSON value in UTF-8, or too deep.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise WireError("not UTF-8") from None
    return scan_whole(without_lone_surrogates(text))


def encode_json(value: object, before: str = "", after: str = "") -> bytes:
    """`value` as JSON in UTF-8, between two texts; lone surrogates are escaped.

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
