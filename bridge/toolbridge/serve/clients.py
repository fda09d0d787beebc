"""Who is connected: one client over stdio, one for each HTTP session; 2026-07-28 over HTTP has no sessions."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import anyio
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolbridge.serve.caller import Client

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from toolbridge.serve.channels import Context

STDIO = "stdio"
HTTP = "http"
"""Every client of 2026-07-28 over HTTP: they are told apart by what only they were given, such as a session's id."""
GONE = "toolbridge.gone"
"""Where an HTTP request's scope has the event of its client's going away."""
_SESSION_HEADER = "mcp-session-id"
_MOST = 10_000

_log = logging.getLogger("toolbridge")


class Clients:
    """The clients that are known, and how each can be told of changes."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[Client, ServerSession]] = OrderedDict()

    def of(self, context: Context) -> Client:
        """The client of a request."""
        key = _key(context)
        if key == HTTP:
            client = Client(key)
            client.least_level = "debug"  # there, each request says what it wants, and the SDK obeys
            return client
        known = self._known.get(key)
        client = known[0] if known else Client(key)
        if not known and context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            client.least_level = "debug"
        self._known[key] = client, context.session
        self._known.move_to_end(key)
        if len(self._known) > _MOST:
            self._known.popitem(last=False)
        return client

    def forget(self, key: str) -> None:
        """It is gone."""
        self._known.pop(key, None)

    async def tell_changed(self) -> None:
        """Tell clients of the handshake's era that the tools changed. The others listen for themselves."""
        for key, (_, session) in list(self._known.items()):
            if session.protocol_version in MODERN_PROTOCOL_VERSIONS:
                continue
            try:
                await session.send_tool_list_changed()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                self.forget(key)


def gone_event(context: Context) -> anyio.Event | None:
    """Set when the client of an HTTP request no longer waits for its answer."""
    request: Any = context.request
    return None if request is None else request.scope.get(GONE)


def _key(context: Context) -> str:
    request: Any = context.request
    if request is None:
        return STDIO
    return request.headers.get(_SESSION_HEADER) or HTTP
