"""Servers in this process: no child, no pipe, the same protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.runner import modern_on_request
from mcp.shared.direct_dispatcher import create_direct_dispatcher_pair
from mcp.shared.dispatcher import CallOptions, Dispatcher

from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import ServerConnectError
from toolbridge.servers.channel import Channel


@asynccontextmanager
async def open_in_process(server: ServerConfig) -> AsyncGenerator[Channel]:
    """Run a server object of the SDK beside us."""
    lowlevel = _lowlevel(server)
    client_side, server_side = create_direct_dispatcher_pair(raise_handler_exceptions=False)
    async with lowlevel.lifespan(lowlevel) as state, anyio.create_task_group() as tasks:
        await tasks.start(server_side.run, modern_on_request(lowlevel, state), _ignore)
        try:
            yield Channel(_Untimed(client_side))
        finally:
            server_side.close()
            tasks.cancel_scope.cancel()


class _Untimed(Dispatcher[Any]):
    """The time of a call is kept by the connection: the SDK's own error for it looks like one of the server's."""

    def __init__(self, inner: Dispatcher[Any]) -> None:
        self._inner = inner
        self.run = inner.run
        self.notify = inner.notify

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request and await its result."""
        untimed: CallOptions = {**(opts or {})}
        untimed.pop("timeout", None)
        return await self._inner.send_raw_request(method, params, untimed)


def _lowlevel(server: ServerConfig) -> Server[Any]:
    found: object = server.server
    if isinstance(found, MCPServer):
        found = cast("Any", found)._lowlevel_server  # the SDK has no public way yet
    if not isinstance(found, Server):
        kind = type(found).__name__
        raise ServerConnectError(server.name, f"is of type {kind}: expected an `mcp.server` Server or MCPServer")
    return cast("Server[Any]", found)


async def _ignore(_context: object, _method: str, _params: Mapping[str, Any] | None) -> None:
    """A client of this protocol era sends no notifications."""
