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

from toolbridge.config.server_config import ServerConfig, ServerLimits
from toolbridge.errors import ServerConnectError
from toolbridge.servers.connection import Channel
from toolbridge.servers.jsonrpc import LineDispatcher
from toolbridge.servers.stdio.launch import Launch
from toolbridge.servers.stdio.process import start_process

# The stdio transport: a server as a child process that speaks lines of JSON.


@asynccontextmanager
async def open_stdio(server_name: str, launch: Launch, limits: ServerLimits) -> AsyncGenerator[Channel]:
    """Start a server; it has ended, with everything it started, when the context is left.

    Nothing runs in the background but what the dispatcher's `run` does, so an error in the context comes out as it is.

    Raises:
        ServerConnectError: the process could not be started.
    """
    process = await start_process(server_name, launch)
    dispatcher = LineDispatcher(process, limits.message_bytes)

    def end() -> str:
        said = (process.how_it_ended(), dispatcher.problems.summary(launch.secrets))
        return "; ".join(part for part in said if part)

    try:
        yield Channel(dispatcher, end)
    finally:
        with anyio.CancelScope(shield=True):
            await process.close(limits.close_seconds)


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
