"""From what went wrong on the host to the error that guest code gets: a kind to branch on, words to repair from."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from toolbridge.boundary.host_call import CallFailed
from toolbridge.boundary.wire import ErrorFrame
from toolbridge.errors import (
    ConnectionLimitError,
    ServerClosedError,
    ServerConnectError,
    ServerDisconnectedError,
    ServerEnvironmentError,
    ServerError,
    ServerNotApprovedError,
    ServerRespawnError,
    ServerTimeoutError,
    ToolBlockedError,
    ToolNotFoundError,
)
from toolbridge.trust.sanitise import for_guest_error

if TYPE_CHECKING:
    from toolbridge.servers.manager import ServerManager

# The first that fits. Whatever is in none of these is a failure of the tool.
_KINDS: tuple[tuple[type[ServerError], str], ...] = (
    (ServerNotApprovedError, "denied"),
    (ToolBlockedError, "denied"),
    (ServerTimeoutError, "timeout"),
    (ServerDisconnectedError, "disconnected"),
    (ServerClosedError, "disconnected"),
    (ServerConnectError, "disconnected"),
    (ServerRespawnError, "disconnected"),
    (ServerEnvironmentError, "disconnected"),
    (ConnectionLimitError, "limit"),
)

# These are told in our own words; any other may repeat what the server said: on stderr, in a status, in an error.
_OUR_WORDS = (
    ConnectionLimitError,
    ServerClosedError,
    ServerEnvironmentError,
    ServerNotApprovedError,
    ToolBlockedError,
    ToolNotFoundError,
)


def may_quote(error: ServerError) -> bool:
    """Whether words of the server may be in it (T3, T22)."""
    return not isinstance(error, _OUR_WORDS)


def kind_of(error: ServerError) -> str:
    """The kind of a server's trouble, as guest code knows it."""
    return next((kind for errors, kind in _KINDS if isinstance(error, errors)), "failed")


def call_error(error: ServerError, secrets: Collection[str], keep: Iterable[str] = ()) -> ErrorFrame:
    """A server's trouble, for guest code. `keep`: texts that name paths, of the call and the configuration."""
    return ErrorFrame(kind_of(error), for_guest_error(str(error), secrets, keep=keep))


def import_failed(error: ServerError, server: str, manager: ServerManager) -> CallFailed:
    """The same for a module whose server can't be connected."""
    frame = call_error(error, manager.secrets(server), manager.configured_paths(server))
    return CallFailed(frame._replace(name="ModuleError", server=server))
