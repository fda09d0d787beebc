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

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from toolbridge.trust.text.sanitise import for_error, masked

# SECURITY: a call's arguments as an event shows them, for observers that asked: masked, then cut.


MOST_CHARACTERS = 200
# A character of a secret becomes at most so many in an encoding that is masked: `\ud83d\ude00`, `%F0%9F%98%80`.
_WIDEST_ENCODING = 12


def shown(arguments: Mapping[str, Any], secrets: Collection[str] = ()) -> str:
    """Arguments as JSON on one line, known secrets masked in any common encoding, cut at 200 characters."""
    import json

    try:
        text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"), default=_named)
    except (TypeError, ValueError, RecursionError):  # a key that is no text, a cycle, nested too deeply
        return "(no JSON form)"
    return for_error(_beginning(text, secrets), limit=MOST_CHARACTERS)


def _beginning(text: str, secrets: Collection[str]) -> str:
    """The masked beginning of a text: long enough, and not ending in a part of a secret, which no mask would know."""
    longest = _WIDEST_ENCODING * max(map(len, secrets), default=0)
    enough = 4 * MOST_CHARACTERS + 2 * longest
    if len(text) <= enough:
        return masked(text, secrets)
    beginning = masked(text[:enough], secrets)
    return beginning[: max(0, len(beginning) - longest)] + "…"


def _named(value: object) -> str:
    return f"<{type(value).__name__}>"


# What observers of servers are told.


ServerState: TypeAlias = Literal["idle", "needs_approval", "connecting", "connected", "error", "closed"]

_log = logging.getLogger("toolbridge")


@dataclass(frozen=True, slots=True)
class StateChanged:
    """A server is in another state."""

    server: str
    state: ServerState
    error: str = ""
    reason: str = ""
    """Why, where that is no error: it was closed to make room for another."""


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """A server's listing is not what it was."""

    server: str


@dataclass(frozen=True, slots=True)
class ServerRegistered:
    """A server is there to be used from now on."""

    server: str
    origin: str
    """Where it came from: `user (…/config.json)`, `plugin (acme)`, `section (tools.data)`, `task`, `code`."""
    reason: str = ""
    """Why it is there, if not because it is configured: the task's words, a section."""


@dataclass(frozen=True, slots=True)
class ServerCollided:
    """Two sources have a server of one name: one holds, the other is left out."""

    server: str
    origin: str
    """Of the one that is left out: where it is configured, `task`, `outer task`, `section (…)` or `plugin (…)`."""
    kept: str
    """The origin of the one that holds."""


@dataclass(frozen=True, slots=True)
class ServerIgnored:
    """Something that a source offered is not used."""

    server: str
    """Its name, or its source's where it has none that could be told."""
    origin: str
    reason: str


SourceEvent: TypeAlias = ServerRegistered | ServerCollided | ServerIgnored
ServerEvent: TypeAlias = StateChanged | ToolsChanged | SourceEvent
ServerObserver: TypeAlias = Callable[[ServerEvent], object]


_Event = TypeVar("_Event")


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A program is about to run."""

    run: str
    """Identifies the run in all its events."""
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
    """JSON, secrets masked, cut; empty unless an observer has `wants_arguments`."""


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
"""One fact about a run, a call or a server."""
Observer: TypeAlias = Callable[[Event], object | Awaitable[object]]
"""Called with each event: a plain function at once, on the event loop's thread; an async one in a task of its own."""


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
