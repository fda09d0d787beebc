"""The stdio transport: a server as a child process that speaks lines of JSON."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from toolbridge.config.server_limits import ServerLimits
from toolbridge.servers.channel import Channel
from toolbridge.servers.launch import Launch
from toolbridge.servers.line_dispatcher import LineDispatcher
from toolbridge.servers.process import start_process


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
