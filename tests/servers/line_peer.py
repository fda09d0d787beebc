"""The two ends of a dispatcher's pipe: the dispatcher has one, the test has the server's."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.shared.dispatcher import DispatchContext, OnNotifyIntercept
from mcp.shared.transport_context import TransportContext

from toolbridge.servers.jsonrpc import LineDispatcher
from toolbridge.servers.stdio.process import Pipes

Answer = Callable[[DispatchContext[TransportContext], str, Any], Awaitable[dict[str, Any]]]


class LinePeer:
    """Real pipes without a process: what the test says is what a server would have written."""

    def __init__(self) -> None:
        self.pipes = Pipes()
        self._gone = anyio.Event()
        self._heard = b""

    # ---- the dispatcher's side

    async def receive(self) -> bytes:
        return await self.pipes.read(self.pipes.stdout)

    def receive_nowait(self) -> bytes:
        return self.pipes.read_nowait(self.pipes.stdout)

    def send_nowait(self, data: bytes | memoryview) -> int:
        return self.pipes.write_nowait(data)

    async def wait_until_sendable(self) -> None:
        await self.pipes.wait_until_writable()

    async def attend(self) -> None:
        await self._gone.wait()

    # ---- the test's side

    def say(self, *messages: Any) -> None:
        """Write messages, or bytes as they are."""
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            os.write(self.pipes.child_stdout, line)

    async def say_all(self, data: bytes) -> None:
        """Write more than the pipe holds."""
        os.set_blocking(self.pipes.child_stdout, False)
        rest = memoryview(data)
        while rest:
            await anyio.wait_writable(self.pipes.child_stdout)
            rest = rest[os.write(self.pipes.child_stdout, rest) :]

    async def hear(self) -> dict[str, Any]:
        """The next message that the dispatcher sent."""
        while b"\n" not in self._heard:
            await anyio.wait_readable(self.pipes.child_stdin)
            self._heard += os.read(self.pipes.child_stdin, 65536)
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)

    async def hears_nothing(self) -> bool:
        """Whether nothing is on its way."""
        with anyio.move_on_after(0.05):
            await self.hear()
            return False
        return True

    def close_stdout(self) -> None:
        self.pipes.close(self.pipes.child_stdout)

    def close_stdin(self) -> None:
        self.pipes.close(self.pipes.child_stdin)

    def go(self) -> None:
        """End, though others may hold the pipes."""
        self._gone.set()


class Talk:
    """A dispatcher that runs, and its peer."""

    def __init__(self, peer: LinePeer, dispatcher: LineDispatcher) -> None:
        self.peer = peer
        self.dispatcher = dispatcher
        self.notifications: list[tuple[str, Any]] = []
        self.noticed = anyio.Event()
        self.ended = anyio.Event()

    async def until_noticed(self, count: int) -> None:
        """Until so many notifications have been handled."""
        while len(self.notifications) < count:
            self.noticed = anyio.Event()
            await self.noticed.wait()

    async def on_notify(self, _context: DispatchContext[TransportContext], method: str, params: Any) -> None:
        self.notifications.append((method, params))
        self.noticed.set()


async def decline(_context: DispatchContext[TransportContext], method: str, _params: Any) -> dict[str, Any]:
    return {"method": method}


@asynccontextmanager
async def talk(
    *,
    message_bytes: int = 1024 * 1024,
    on_request: Answer = decline,
    on_notify: Callable[..., Awaitable[None]] | None = None,
    intercept: OnNotifyIntercept | None = None,
) -> AsyncGenerator[Talk]:
    """A running dispatcher with a peer; nothing here may take longer than five seconds."""
    peer = LinePeer()
    session = Talk(peer, LineDispatcher(peer, message_bytes))

    async def run(*, task_status: Any) -> None:
        await session.dispatcher.run(on_request, on_notify or session.on_notify, intercept, task_status=task_status)
        session.ended.set()

    try:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                await tasks.start(run)
                yield session
                tasks.cancel_scope.cancel()
    finally:
        peer.pipes.close()
