"""The answer to a line that is no message of the protocol: without one, its sender would wait for ever."""

from __future__ import annotations

import json
from typing import Any, cast

from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError


def refusal_of(line: bytes) -> JSONRPCError | None:
    """What to say of it; None where nobody expects an answer, as to a notification, or to a bad answer of theirs."""
    try:
        message = json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return refusal("it is no JSON", PARSE_ERROR)
    if not isinstance(message, dict):
        return refusal("it is no JSON object")
    fields = cast("dict[str, Any]", message)
    if "method" not in fields or "id" not in fields:
        return None if fields.keys() & {"method", "result", "error"} else refusal("it has no method", of=fields)
    if _has_half(fields):
        return refusal("a text in it is not Unicode, such as half a surrogate pair", PARSE_ERROR, of=fields)
    return refusal("its fields are not those of JSON-RPC 2.0", of=fields)


def refusal(problem: str, code: int = INVALID_REQUEST, *, of: dict[str, Any] | None = None) -> JSONRPCError:
    """An error for a request, as far as it can be told for which."""
    identity = (of or {}).get("id")
    if isinstance(identity, bool) or not isinstance(identity, (int, str)) or _has_half(identity):
        identity = None
    return JSONRPCError(
        jsonrpc="2.0", id=identity, error=ErrorData(code=code, message=f"The request can't be read: {problem}.")
    )


def _has_half(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except RecursionError:
        pass
    return False
