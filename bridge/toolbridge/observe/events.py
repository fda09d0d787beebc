"""What observers are told: one event per fact.

    RunStarted
      CallStarted ─ DecisionMade? ─ CallProgressed* ─ CallEnded   calls overlap; they are told apart by (run, call)
    RunEnded
    StateChanged, ToolsChanged                     a server's, at any time, of no run
    ServerRegistered, ServerCollided, ServerIgnored   when a runtime is entered, and when its servers change

An observer is any callable that takes an event. A plain one is called at once, on the event loop's thread: it must not
block for long. An async one gets the events in order, in a task of its own. What either raises is logged and stops
nobody. What it can rely on:

- Every RunStarted is followed by exactly one RunEnded, which is the last event of its run.
- Every CallStarted is followed by exactly one CallEnded of the same run and call, before the RunEnded: whether the
  call succeeded, failed, was denied, timed out, or its run was cancelled or closed under it.
- RunStarted is told in the task that asked for the run, so that the caller's context is the current one.
- No event has source code, a result, or a secret in it. Arguments are in one only if an observer asked for them.
- Names of servers are the configuration's. Names of tools and the error of a StateChanged are a server's words: whoever
  shows them to a terminal sanitises them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from toolbridge.servers.events import ServerEvent


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A program is about to run."""

    run: str
    """Names the run in every event of it; see new_run."""
    language: str
    source_bytes: int
    session: str | None = None
    """Names the session that the run belongs to."""


@dataclass(frozen=True, slots=True)
class CallStarted:
    """Guest code called a tool. The call may yet be denied, or wait for its turn."""

    run: str
    call: int
    """Counts the calls of a run."""
    server: str
    """Empty for a function of the host's own modules."""
    tool: str
    """The server's own name for it, or the host function's."""
    arguments: str = ""
    """Empty unless an observer asked: see wants_arguments and argument_text.shown."""


@dataclass(frozen=True, slots=True)
class DecisionMade:
    """The permission gate let a call pass, or did not."""

    run: str
    call: int
    server: str
    tool: str
    allowed: bool
    rule: str = ""
    """Which rule decided."""


@dataclass(frozen=True, slots=True)
class CallProgressed:
    """A tool says how far a call is. A server that says so too often is not told of each time."""

    run: str
    call: int
    server: str
    tool: str
    done: float
    total: float | None = None
    """What `done` will be in the end, if that is known."""
    message: str = ""
    """The tool's words: masked, cut and without control characters, if they are a server's."""


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call is over, one way or another."""

    run: str
    call: int
    server: str
    tool: str
    outcome: str
    """`ok`, or the kind of error that guest code got (would have got, had it still been there)."""
    seconds: float
    request_bytes: int
    reply_bytes: int


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A program is over, one way or another."""

    run: str
    outcome: str
    """`ok`, or the kind of the failure."""
    seconds: float
    cpu_seconds: float
    calls: int
    """How many were started."""
    servers: tuple[str, ...] = ()
    """Whose words may be in the result."""


RunEvent: TypeAlias = RunStarted | CallStarted | DecisionMade | CallProgressed | CallEnded | RunEnded
Event: TypeAlias = RunEvent | ServerEvent
Observer: TypeAlias = Callable[[Event], object | Awaitable[object]]


def new_run() -> str:
    """A name for a run: short, and no other run's, also among processes that share a log."""
    import os

    return os.urandom(6).hex()


def wants_arguments(observers: Iterable[Observer]) -> bool:
    """Whether an observer asks for arguments, by an attribute `wants_arguments` that is true.

    Asked once for a runtime: if nobody asks, no text is made of anybody's arguments.
    """
    return any(getattr(observer, "wants_arguments", False) is True for observer in observers)


def wants_progress(observers: Iterable[Observer]) -> bool:
    """Whether an observer wants CallProgressed: all but those with an attribute `wants_progress` that is false.

    Asked once for a runtime: if nobody wants it, no server is asked how far its calls are.
    """
    return any(getattr(observer, "wants_progress", True) is not False for observer in observers)
