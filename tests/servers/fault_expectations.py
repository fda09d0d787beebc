"""What must become of a server with a fault: the words that the tables of modes are written in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolbridge.errors import (
    ServerConnectError,
    ServerDisconnectedError,
    ServerError,
    ServerProtocolError,
    ServerTimeoutError,
    ToolNotFoundError,
    ToolRefusedError,
)

TEXT = "Grüße – 你好"
"""What is asked of `echo` and `faulty`, with a number after it."""


@dataclass(frozen=True)
class Gives:
    """An answer, and what holds for it; by default it is the text that was asked for."""

    holds: Callable[[dict[str, Any]], bool] | None = None


@dataclass(frozen=True)
class Fails:
    """A typed error, and a regular expression for its message."""

    kinds: tuple[type[ServerError], ...]
    says: str = ""


@dataclass(frozen=True)
class Either:
    """Several outcomes are right."""

    outcomes: tuple[Gives | Fails, ...]


Outcome: TypeAlias = Gives | Fails | Either

ECHOES = Gives()
TIMED_OUT = Fails((ServerTimeoutError,))
ENDED = Fails((ServerDisconnectedError,))
NOT_MCP = Fails((ServerProtocolError,))
REFUSED = Fails((ToolRefusedError,))
NOT_EXPOSED = Fails((ToolNotFoundError,))
NOT_CONNECTED = Fails((ServerConnectError,))
ANY_ERROR = Fails((ServerTimeoutError, ServerDisconnectedError, ServerProtocolError, ToolRefusedError))


@dataclass(frozen=True)
class Fault:
    """One mode of a fault server."""

    mode: str
    connect: Outcome = ECHOES
    """Gives: it is connected, with `echo` and `faulty` among its tools."""
    call: Outcome = ECHOES
    """Of the tool `faulty`."""
    after: Outcome = ECHOES
    """Of a call of `echo` after that: on the same connection, or a new one."""
    problem: str = ""
    """A regular expression for a problem that must be among the listing's."""
    modern: bool = False
    """Whether the server speaks 2026-07-28."""
    text: str = TEXT
    connect_seconds: float | None = None
    """How long it may take to connect, where it matters."""
    beside: bool = True
    """Whether `echo` is also called at the same time as `faulty`."""
    ends_late: bool = False
    """Whether it ends after the call has its outcome: the next call may meet the end, and only the one after it not."""
    may_leave: bool = False
    """Whether it may leave a process behind."""
    alone: bool = False
    """Whether it takes so much of the machine that others would be late for no fault of theirs."""

    @property
    def name(self) -> str:
        """The test's name."""
        return f"{self.mode}{'-modern' if self.modern else ''}"


def may_time_out(*outcomes: Outcome) -> bool:
    """Whether a timeout is among what may be: then it should be a short one."""
    return any(
        ServerTimeoutError in outcome.kinds
        for expected in outcomes
        for outcome in (expected.outcomes if isinstance(expected, Either) else (expected,))
        if isinstance(outcome, Fails)
    )


def text_of(result: dict[str, Any]) -> str:
    """The text of a result's first content block."""
    return result["content"][0]["text"]


def gives_text(text: str) -> Gives:
    """Exactly this text."""
    return Gives(lambda result: text_of(result) == text)


def says(outcome: Fails, pattern: str) -> Fails:
    """The same failure, with a message like this."""
    return Fails(outcome.kinds, pattern)
