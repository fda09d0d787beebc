"""SECURITY: errors of servers and tool calls as guest code gets them: a kind to branch on, a sanitised message."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING

from toolbridge.boundary.host_call import CallFailed
from toolbridge.boundary.wire import ErrorFrame
from toolbridge.errors import (
    ConnectionLimitError,
    MisuseError,
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

# A call that failed with one of these was not sent.
NOT_SENT = (
    ConnectionLimitError,
    MisuseError,
    ServerConnectError,
    ServerEnvironmentError,
    ServerNotApprovedError,
    ServerRespawnError,
    ToolBlockedError,
    ToolNotFoundError,
)

# The first match counts; any other error is a failure of the tool.
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

# Their messages are ours; any other error may quote the server: its stderr, a status, an error.
_OUR_WORDS = (
    ConnectionLimitError,
    ServerClosedError,
    ServerEnvironmentError,
    ServerNotApprovedError,
    ToolBlockedError,
    ToolNotFoundError,
)


def may_quote(error: ServerError) -> bool:
    """Returns whether the error's message may contain text of the server: its stderr, a status, an error (T3, T22)."""
    return not isinstance(error, _OUR_WORDS)


def kind_of(error: ServerError) -> str:
    """Maps a server error to the `kind` that guest code branches on; `failed` if no other fits."""
    return next((kind for errors, kind in _KINDS if isinstance(error, errors)), "failed")


def call_error(error: ServerError, secrets: Collection[str]) -> ErrorFrame:
    """Converts a server error to the error frame for guest code: its kind, and its sanitised message."""
    return ErrorFrame(kind_of(error), for_guest_error(str(error), secrets))


def import_failed(error: ServerError, server: str, manager: ServerManager) -> CallFailed:
    """Makes (doesn't raise) the `ModuleError` that guest code gets for a server that can't be connected."""
    frame = call_error(error, manager.secrets(server))
    return CallFailed(frame._replace(name="ModuleError", server=server))


@lru_cache(maxsize=256)
def error_notes(message: str) -> tuple[str, ...]:
    """Audits an error message, which a model may read (T3); returns a note for each grave finding. Cached."""
    from toolbridge.trust.audit.detector import findings_in  # its rules are compiled for those who need them

    grave = [found.rule for found in findings_in(message) if found.severity == "high"]
    return tuple(f"The audit finds {rule.id} in the error's text: it {rule.why}" for rule in grave)
