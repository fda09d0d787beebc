"""Nothing is left behind: not by requests that fail, not by a channel that is closed at any moment."""

from __future__ import annotations

import gc
import os
import sys

import anyio
import pytest
from anyio.abc import SocketStream

from servers.http_servers import EVENTS_HEAD, Received, chunk, hang_up, never, raw_server, reply, result, session
from toolbridge.errors import ServerError
from toolbridge.servers.failures import BadAnswerError, RequestTimedOutError
from toolbridge.servers.http.streamable import HttpDispatcher

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="descriptors are counted in /proc"),
]


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


async def settled(most: int) -> int:
    """The number of open descriptors, once it is no more than that, or has not become so."""
    for _ in range(200):
        if descriptors() <= most:
            break
        await anyio.sleep(0.02)
    return descriptors()


async def test_requests_that_fail_in_every_way_leave_no_descriptor_open() -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        how = request.message.get("params", {}).get("how")
        if how == "never":
            await never(request, stream)
        elif how == "half":
            await stream.send(EVENTS_HEAD + chunk(b"data: {"))
            hang_up()
        elif how == "endless":
            await stream.send(EVENTS_HEAD)
            while True:
                await stream.send(chunk(b": x\n" * 100))
                await anyio.sleep(0.001)
        else:
            await stream.send(reply(result(request)) if "id" in request.message else reply(status="202 Accepted"))

    async with raw_server(answer) as server, session(server.url()) as running:
        await running.ask("ping")
        before = descriptors()
        for n in range(40):
            how = ("never", "half", "endless")[n % 3]
            with pytest.raises((RequestTimedOutError, BadAnswerError, ServerError)):
                await running.ask("tools/call", {"how": how}, timeout=0.05)
        assert await running.ask("ping") == {"ok": True}
        assert await settled(before + 4) <= before + 4
        assert isinstance(running.dispatcher, HttpDispatcher)
        assert running.dispatcher._in_flight._scopes == set()


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_channel_that_is_cancelled_at_any_moment_leaves_nothing_open(transport: str) -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        await anyio.sleep(0.003)
        if request.method == "GET" and transport == "sse":
            await stream.send(EVENTS_HEAD + chunk(b"event: endpoint\ndata: /post\n\n"))
            await never(request, stream)
        elif request.method == "GET":
            await stream.send(EVENTS_HEAD)
            await never(request, stream)
        elif "id" in request.message:
            await stream.send(reply(result(request), headers={"mcp-session-id": "s1"}))
        else:
            await stream.send(reply(status="202 Accepted"))

    async def use(url: str) -> None:
        async with session(url, transport=transport) as running:
            await running.ask("initialize")
            await running.dispatcher.notify("notifications/initialized", None)
            await running.ask()

    async with raw_server(answer) as server:
        with anyio.move_on_after(0.2):
            await use(server.url())
        before = descriptors()
        for n in range(60):
            with anyio.move_on_after(0.0007 * n):
                await use(server.url())
        assert await settled(before + 2) <= before + 2


async def test_a_handshake_that_nobody_waits_for_any_more_is_closed() -> None:
    async with raw_server(never) as server:  # which never says hello
        url = server.url().replace("http:", "https:")
        before = descriptors()
        for _ in range(10):
            with anyio.move_on_after(0.05):
                async with session(url) as running:
                    await running.ask()
        assert await settled(before + 1) <= before + 1
