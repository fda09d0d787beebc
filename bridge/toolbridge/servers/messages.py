"""SECURITY: what one line of a server says. Everything here is hostile, and nothing in it raises but `ValueError`.

Numbers that JSON does not have (`NaN`, `Infinity`) are accepted as Python reads them, and lone surrogates written as
escapes stay in their strings: a message is not lost for them, and later layers decide what becomes of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, RequestId

from toolbridge.servers.channel import BadAnswerError, UnsendableError
from toolbridge.servers.line_reader import Line

_LARGEST_CODE = 2**31


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


def parse_line(line: Line) -> Any:
    """The JSON value of a line.

    Raises:
        ValueError: it is not JSON, or not UTF-8, or nested too deeply.
    """
    text = str(line, "utf-8")
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


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
