"""JSON across the boundary: strict in what it takes, exact in what it gives, and fast.

Text that isn't one finite JSON value in UTF-8 is refused; half a surrogate pair becomes U+FFFD.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from toolbridge.compact_json import compact_encoder


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


_pieces = compact_encoder(ascii_only=False)
_ascii_pieces = compact_encoder(ascii_only=True)
_join = "".join


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
