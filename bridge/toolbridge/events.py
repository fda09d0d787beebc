"""Events that observers receive.

    RunStarted
      CallStarted ─ DecisionMade? ─ CallProgressed* ─ CallEnded   calls overlap; (run, call) identifies one
    RunEnded
    StateChanged, ToolsChanged                     of a server, at any time, outside of runs
    ServerRegistered, ServerCollided, ServerIgnored   when a runtime is entered, and when its servers change

An observer is any callable that takes an event. A plain one is called at once, on the event loop's thread, and must not
block; an async one receives the events in order, in its own task. Exceptions of observers are logged. Guarantees:

- Every RunStarted is followed by exactly one RunEnded, which is the last event of its run.
- Every CallStarted is followed by exactly one CallEnded of the same run and call, before the RunEnded: whether the
  call succeeded, failed, was denied, timed out, or its run was cancelled or closed under it.
- RunStarted is sent in the task that started the run, in the caller's context.
- No event contains source code, a result, or a secret; CallStarted has arguments only if an observer asks for them.
- Names of servers are the configuration's. Names of tools and the error of a StateChanged are untrusted text from a
  server: sanitise them before they are printed to a terminal.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from toolbridge.trust.sanitise import for_error, masked

# SECURITY: a call's arguments in an event, for observers that ask: secrets redacted, then truncated.


MOST_CHARACTERS = 200
# The longest encoding of a character in a redacted secret: `\ud83d\ude00`, `%F0%9F%98%80`.
_WIDEST_ENCODING = 12


def shown(arguments: Mapping[str, Any], secrets: Collection[str] = ()) -> str:
    """Formats arguments as one line of JSON, known secrets redacted in any common encoding; at most 200 characters.

    Never raises: `(no JSON form)` stands for arguments without one.
    """
    import json

    try:
        text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"), default=_named)
    except (TypeError, ValueError, RecursionError):  # a key that is no text, a cycle, nested too deeply
        return "(no JSON form)"
    return for_error(_beginning(text, secrets), limit=MOST_CHARACTERS)


def _beginning(text: str, secrets: Collection[str]) -> str:
    """Redacts the beginning of a text; never ends within a secret, of which a part would not be recognised."""
    longest = _WIDEST_ENCODING * max(map(len, secrets), default=0)
    enough = 4 * MOST_CHARACTERS + 2 * longest
    if len(text) <= enough:
        return masked(text, secrets)
    beginning = masked(text[:enough], secrets)
    return beginning[: max(0, len(beginning) - longest)] + "…"


def _named(value: object) -> str:
    """Stands in for a value without a JSON form: `<type>`."""
    return f"<{type(value).__name__}>"


# Events of servers.


ServerState: TypeAlias = Literal["idle", "needs_approval", "connecting", "connected", "error", "closed"]

_log = logging.getLogger("toolbridge")


@dataclass(frozen=True, slots=True)
class StateChanged:
    """A server changed its state."""

    server: str
    state: ServerState
    error: str = ""
    reason: str = ""
    """The reason, if it is no error: LRU eviction from the connection pool."""


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """A server's listing changed."""

    server: str


@dataclass(frozen=True, slots=True)
class ServerRegistered:
    """A server was added."""

    server: str
    origin: str
    """Its source: `user (…/config.json)`, `plugin (acme)`, `section (tools.data)`, `task`, `code`."""
    reason: str = ""
    """Why it was added, unless it is configured: the words of the task, a section."""


@dataclass(frozen=True, slots=True)
class ServerCollided:
    """Two sources have a server of one name: one is used, the other left out."""

    server: str
    origin: str
    """The source of the server that is left out: a file, `task`, `outer task`, `section (…)` or `plugin (…)`."""
    kept: str
    """The source of the server that is used."""


@dataclass(frozen=True, slots=True)
class ServerIgnored:
    """A server that a source offers is not used."""

    server: str
    """Its name, or its source's if it has none."""
    origin: str
    reason: str


SourceEvent: TypeAlias = ServerRegistered | ServerCollided | ServerIgnored
ServerEvent: TypeAlias = StateChanged | ToolsChanged | SourceEvent
ServerObserver: TypeAlias = Callable[[ServerEvent], object]


_Event = TypeVar("_Event")


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run started."""

    run: str
    """Identifies the run in all its events."""
    language: str
    source_bytes: int
    session: str | None = None
    """The identifier of the run's session."""


@dataclass(frozen=True, slots=True)
class CallStarted:
    """Guest code called a tool. The call may still be denied or queued."""

    run: str
    call: int
    """The number of the call within its run."""
    server: str
    """Empty for a function of a host module."""
    tool: str
    """The server's own name for it, or the host function's."""
    arguments: str = ""
    """JSON, secrets masked, cut; empty unless an observer has `wants_arguments`."""


@dataclass(frozen=True, slots=True)
class DecisionMade:
    """The permission gate allowed or denied a call."""

    run: str
    call: int
    server: str
    tool: str
    allowed: bool
    rule: str = ""
    """The rule that decided."""


@dataclass(frozen=True, slots=True)
class CallProgressed:
    """A progress notification of a tool; rate-limited."""

    run: str
    call: int
    server: str
    tool: str
    done: float
    total: float | None = None
    """The final value of `done`, if known."""
    message: str = ""
    """Text from the tool; from a server it is redacted, truncated and sanitised."""


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call ended, whatever its outcome."""

    run: str
    call: int
    server: str
    tool: str
    outcome: str
    """`ok`, or the kind of the error for guest code."""
    seconds: float
    request_bytes: int
    reply_bytes: int


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run ended, whatever its outcome."""

    run: str
    outcome: str
    """`ok`, or the kind of the failure."""
    seconds: float
    cpu_seconds: float
    calls: int
    """The number of calls that were started."""
    servers: tuple[str, ...] = ()
    """Servers whose text may be in the result."""


RunEvent: TypeAlias = RunStarted | CallStarted | DecisionMade | CallProgressed | CallEnded | RunEnded
Event: TypeAlias = RunEvent | ServerEvent
"""One fact about a run, a call or a server."""
Observer: TypeAlias = Callable[[Event], object | Awaitable[object]]
"""Called with each event: a plain function at once, on the event loop's thread; an async one in a task of its own."""


def wants_arguments(observers: Iterable[Observer]) -> bool:
    """Returns whether an observer has a true attribute `wants_arguments`; evaluated once per runtime."""
    return any(getattr(observer, "wants_arguments", False) is True for observer in observers)


def wants_progress(observers: Iterable[Observer]) -> bool:
    """Returns whether an observer lacks a false attribute `wants_progress`; evaluated once per runtime.

    If none does, servers are not asked for progress notifications.
    """
    return any(getattr(observer, "wants_progress", True) is not False for observer in observers)
