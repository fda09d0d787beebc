"""What a transport gives to a connection: the SDK's dispatcher, and why it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from mcp.shared.dispatcher import Dispatcher
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_PARAMS, REQUEST_TIMEOUT


class ChannelClosedError(MCPError):
    """The channel really ended. A server can send the same code, but never this class."""

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
    """What the host passed can't be written as JSON: nothing was sent."""

    def __init__(self, problem: str) -> None:
        super().__init__(INVALID_PARAMS, problem)


class BadAnswerError(MCPError):
    """A request was answered with something that is no answer: too long, not JSON, or without a result."""

    def __init__(self, problem: str, *, too_deep: bytes = b"") -> None:
        self.too_deep = too_deep
        """The message, where it is nested deeper than the JSON parser goes: parts of it can still be read."""
        super().__init__(INTERNAL_ERROR, problem)


class ChannelEnd(Protocol):
    """Tells how a channel fares, for error messages."""

    def __call__(self) -> str:
        """How it ended and what it said ("exited with status 1; …"), or an empty string. Not sanitised.

        While the channel is open: what has been odd about it so far.
        """
        ...


def _no_reason() -> str:
    return ""


def _no_secrets() -> frozenset[str]:
    return frozenset()


@dataclass(frozen=True, slots=True)
class Channel:
    """An open way to a server. The dispatcher is run by the connection, which also closes the channel."""

    dispatcher: Dispatcher[Any]
    end: ChannelEnd = field(default=_no_reason)
    secrets: Callable[[], frozenset[str]] = field(default=_no_secrets)
    """What it came to know and must not be shown, as of now: the tokens of a sign-in."""
    mirrors_headers: bool = False
    """Whether arguments marked `x-mcp-header` are repeated as HTTP headers."""
