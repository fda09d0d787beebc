"""Every failure of a server as one typed error that names the server and says what helps."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_PARAMS, REQUEST_TIMEOUT
from pydantic import ValidationError

from toolbridge.errors import (
    ServerConnectError,
    ServerDisconnectedError,
    ServerError,
    ServerProtocolError,
    ServerTimeoutError,
    ToolRefusedError,
)
from toolbridge.json_codec import NotJsonError, compact_text
from toolbridge.trust.sanitise import for_error

_MAX_MISMATCHES = 3
# Members in which servers put a stack trace.
_TRACES = frozenset({"stack", "stacktrace", "stack_trace", "trace", "traceback"})


class ChannelClosedError(MCPError):
    """The channel closed. A server can send the same code, but never this class."""

    def __init__(self, message: str = "Connection closed", *, sent: bool = True) -> None:
        self.sent = sent
        """False when the request surely never reached the server."""
        super().__init__(CONNECTION_CLOSED, message)


class RequestTimedOutError(MCPError):
    """No answer came within the request's own timeout. A server can send the same code, but never this class."""

    def __init__(self, method: str, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(REQUEST_TIMEOUT, f"No answer to {method} within {seconds:g} s")


class UnsendableError(MCPError):
    """The host's arguments can't be encoded as JSON: nothing was sent."""

    def __init__(self, problem: str) -> None:
        super().__init__(INVALID_PARAMS, problem)


class BadAnswerError(MCPError):
    """A malformed answer: too long, not JSON, or without a result."""

    def __init__(self, problem: str, *, too_deep: bytes = b"") -> None:
        self.too_deep = too_deep
        """The message, if it is nested deeper than the JSON parser goes: parts of it can still be read."""
        super().__init__(INTERNAL_ERROR, problem)


class EndedAtProbeError(Exception):
    """The server ended when it was probed for the newer protocol: it may speak the older one."""


def connect_failure(server: str, error: BaseException, *, end: str, secrets: Collection[str]) -> ServerError:
    """Build, not raise, the typed error of a failed connection, with the server's last output; secrets are masked."""
    error = innermost(error)
    if isinstance(error, ServerError):
        return error
    kind, problem = ServerConnectError, f"could not be reached: {for_error(_message(error), secrets)}"
    if isinstance(error, ChannelClosedError):
        problem = "ended before it was connected"
    elif isinstance(error, (RequestTimedOutError, TimeoutError)):
        kind, problem = ServerTimeoutError, "did not answer in time while connecting"
    elif isinstance(error, BadAnswerError):
        kind, problem = ServerProtocolError, f"does not speak MCP as expected: {for_error(_message(error), secrets)}"
    elif isinstance(error, MCPError):
        message = for_error(error.error.message, secrets)
        problem = f"refused the connection: {message} (code {error.error.code})"
    elif isinstance(error, (ValueError, TypeError, KeyError, RecursionError, RuntimeError)):
        message = for_error(_message(error), secrets, limit=300)
        kind, problem = ServerProtocolError, f"does not speak MCP as expected: {message}"
    return kind(server, problem + _end_suffix(end, secrets))


def call_failure(
    server: str, tool: str, error: BaseException, *, seconds: float, end: str, secrets: Collection[str]
) -> ServerError:
    """Build, not raise, the typed error of a call that has no result; secrets are masked. `ServerError` is kept."""
    error = innermost(error)
    if isinstance(error, ServerError):
        return error
    if isinstance(error, ChannelClosedError):
        problem = f"ended before it answered the call of {tool!r}, which may have taken effect"
        return ServerDisconnectedError(server, problem + _end_suffix(end, secrets))
    if isinstance(error, (RequestTimedOutError, TimeoutError)):
        problem = f"did not answer the call of {tool!r} within {seconds:g} s; it may still take effect"
        return ServerTimeoutError(server, problem)
    if isinstance(error, MCPError) and not isinstance(error, BadAnswerError):
        return ToolRefusedError(server, tool, error.error.code, for_error(_message_and_data(error), secrets))
    message = for_error(_message(error), secrets, limit=300)
    return ServerProtocolError(server, f"gave no usable answer to the call of {tool!r}: {message}")


def innermost(error: BaseException) -> BaseException:
    """Return the error inside nested exception groups, as task groups raise them; of several, the first."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _end_suffix(end: str, secrets: Collection[str]) -> str:
    return f": {for_error(end, secrets, limit=300)}" if end else ""


def _message_and_data(error: MCPError) -> str:
    """Return an error's message and its data: some servers describe the problem only in the data."""
    message, details = error.error.message, _details(error.error.data)
    return f"{message}: {details}" if details and details not in message else message


def _details(data: Any) -> str:
    """Render an error's data as text, without members that hold stack traces; empty if there is nothing to say."""
    if isinstance(data, str):
        return data.strip()
    if isinstance(data, dict):
        members = cast("dict[Any, Any]", data).items()
        data = {key: value for key, value in members if str(key).lower() not in _TRACES}
    if not isinstance(data, (dict, list)) or not data:
        return ""
    try:
        return compact_text(cast("object", data))
    except NotJsonError:
        return ""


def _message(error: BaseException) -> str:
    """Return an error's text, or its type; of a validation error, the first mismatches without their values."""
    if not isinstance(error, ValidationError):
        return str(error) or type(error).__name__
    found = error.errors(include_url=False, include_input=False, include_context=False)
    texts = [f"{'.'.join(map(str, each['loc'])) or error.title}: {each['msg']}" for each in found[:_MAX_MISMATCHES]]
    return "; ".join(texts) + (f"; and {len(found) - len(texts)} more" if len(found) > len(texts) else "")
