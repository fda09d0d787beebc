"""SECURITY: decodes one JSON-RPC message of a server. All of it is hostile; nothing here raises but `ValueError`.

Decoding is lenient, so that one odd byte costs no answer: bytes that aren't UTF-8 become U+FFFD, `NaN` and `Infinity`
are accepted as Python reads them, an integer of more digits than Python converts is infinite, and lone surrogates
written as escapes stay in their strings. Later layers decide.
"""

from __future__ import annotations

import gc
import json
import re
import secrets
from collections.abc import Mapping
from typing import Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, RequestId

from toolbridge.servers.channel import BadAnswerError, UnsendableError
from toolbridge.servers.exact_json import NOT_UTF8
from toolbridge.servers.line_reader import Line

_LARGEST_CODE = 2**31
_COLLECTED_BYTES = 65_536
"""Up to here, garbage is collected while a line is parsed."""


def _as_json(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    raise TypeError(f"{type(value).__name__} is no JSON type")


# ASCII only, so that a lone surrogate or a line separator in an argument can't break the line or its encoding.
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_as_json).encode

# Where the two usual serialisations have the id, anchored so that an "id" inside a result is never taken for it.
_ID_AT_HEAD = re.compile(
    rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"?(\d{1,18})"?\s*,\s*"(?:result|error)"\s*:'
)
_ID_AT_TAIL = re.compile(rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"?(\d{1,18})"?\s*\}\s*\Z')
_RESULT_AT_HEAD = re.compile(rb'\s*\{\s*"(?:result|error)"\s*:')


def encode_line(message: dict[str, Any]) -> bytes:
    """One message of ours as a line.

    Raises:
        UnsendableError: it can't be written as JSON.
    """
    try:
        return _encode(message).encode("ascii") + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise UnsendableError(f"can't be written as JSON: {error}") from None


TOO_DEEP = f"nested too deeply ({secrets.token_hex(8)})"
"""Stands in a pruned message for each part that was nested too deeply. No server can foresee it."""

_DEEPEST = 200
_STRING_OR_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


class TooDeepError(ValueError):
    """A message is nested deeper than the JSON parser goes."""


def parse_line(line: Line) -> Any:
    """Parses a line as JSON, in which bytes that aren't UTF-8 are replaced and a result is marked so (`NOT_UTF8`).

    Raises:
        ValueError: it is not JSON.
        TooDeepError: it is nested too deeply.
    """
    try:
        text, is_utf8 = str(line, "utf-8"), True
    except UnicodeDecodeError:
        text, is_utf8 = str(line, "utf-8", "replace"), False
    # Of a megabyte of lists, two thirds of the time would go into collections that find nothing: all are in use.
    pause = len(line) > _COLLECTED_BYTES and gc.isenabled()
    if pause:
        gc.disable()
    try:
        message: Any = _parsed(text.removeprefix("\ufeff"))
    except RecursionError:
        raise TooDeepError("it is nested too deeply") from None
    finally:
        if pause:
            gc.enable()
    if not is_utf8:
        for each in cast("list[Any]", message) if isinstance(message, list) else [message]:
            _mark_not_utf8(each)
    return cast("Any", message)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # an integer beyond `sys.get_int_max_str_digits`
        return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _mark_not_utf8(message: Any) -> None:
    result = cast("dict[str, Any]", message).get("result") if isinstance(message, dict) else None
    if isinstance(result, dict):
        fields = cast("dict[str, Any]", result)
        meta = fields.get("_meta")
        fields["_meta"] = {**(cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}), NOT_UTF8: True}


def parse_pruned(line: bytes) -> Any:
    """Parses a message with `TOO_DEEP` in place of each part below a fixed depth. Takes time for many brackets.

    Raises:
        ValueError: it is not JSON.
    """
    pieces: list[bytes] = []
    depth = kept = 0
    for token in _STRING_OR_BRACKET.finditer(line):
        if token[0] in b"[{":
            depth += 1
            if depth == _DEEPEST:
                pieces += line[kept : token.start()], f'"{TOO_DEEP}"'.encode()
        elif token[0] in b"]}":
            if depth == _DEEPEST:
                kept = token.end()
            depth -= 1
    if depth >= _DEEPEST:
        raise ValueError("it is nested too deeply, and cut short")
    return parse_line(b"".join((*pieces, line[kept:])))


def request_key(wire_id: object) -> RequestId | None:
    """The key under which a request is kept: an id as we sent it, or the same integer as a string.

    None for whatever else: in Python `True` and `1.0` are equal to 1, in JSON-RPC they are no ids of ours.
    """
    if type(wire_id) is int:
        return wire_id
    if type(wire_id) is str:
        is_integer = len(wire_id) < 19 and wire_id.isascii() and wire_id.isdigit() and str(int(wire_id)) == wire_id
        return int(wire_id) if is_integer else wire_id
    return None


def answered_request(head: Line, tail: Line) -> int | None:
    """Which request a line that could not be read was the answer to, from its two ends; None when in doubt."""
    found = _ID_AT_HEAD.match(head) or (_RESULT_AT_HEAD.match(head) and _ID_AT_TAIL.search(tail))
    return int(found[1]) if found else None


def outcome_of(answer: dict[str, Any]) -> dict[str, Any] | MCPError:
    """The result that an answer carries, or the error to raise."""
    error = answer.get("error")
    if error is not None:
        return _error_of(error)
    result = answer.get("result")
    if isinstance(result, dict):
        return cast("dict[str, Any]", result)
    if "result" in answer:
        return BadAnswerError("The answer's result is not an object")
    return BadAnswerError("The answer has neither a result nor an error")


def number_of(value: object) -> float | None:
    """A number that fits, or None."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _error_of(error: object) -> MCPError:
    if not isinstance(error, dict):
        return BadAnswerError("The answer's error is not an object")
    fields = cast("dict[str, Any]", error)
    code, message = fields.get("code"), fields.get("message")
    # The SDK's model refuses what follows, and would raise its own error in place of the server's.
    if type(code) is not int or abs(code) > _LARGEST_CODE:
        code = INTERNAL_ERROR
    if not isinstance(message, str) or not message.strip():
        message = "The server gave no message"
    return MCPError(code, message.encode("utf-8", "replace").decode(), fields.get("data"))
