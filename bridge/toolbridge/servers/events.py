"""What observers of servers are told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

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


def tell(observers: Iterable[Callable[[_Event], object]], event: _Event) -> None:
    """Tell every observer; one that raises is logged, and nobody else notices."""
    for observer in observers:
        try:
            observer(event)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # also a cancellation, which can't be the host's: nothing was awaited
            _log.exception("An observer raised")
