"""Serving over HTTP, from the socket to a graceful end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Generator
from typing import Any

import anyio
import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolbridge.errors import ToolbridgeError
from toolbridge.serve.http_app import HttpApp, HttpLimits

_BACKLOG = 256


def open_socket(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        ToolbridgeError: the address can't be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=_BACKLOG)
    except OSError as error:
        words = error.strerror or str(error)
        # A port may be taken, or not be ours to take; whatever else it is, it is the address.
        option = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        raise ToolbridgeError(
            f"Nothing can be served at {host} port {port}: {words}. Choose another {option}."
        ) from None


async def serve_http(
    app: HttpApp, listening: socket.socket, limits: HttpLimits, *, ready: Callable[[], None], stop: anyio.Event
) -> None:
    """Serve until `stop`; then let calls that are under way end, for a while. Cancelling ends everything at once."""
    config = uvicorn.Config(
        app,
        http=_protocol(limits.header_seconds, Connections(limits.connections, app.requests.shed)),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=64 * 1024,
    )
    server = _Server(config)

    async def run() -> None:
        with anyio.CancelScope(shield=True):  # it ends when it is told to
            await server.serve(sockets=[listening])
        stop.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        try:
            async with app.manager.run():
                ready()
                await stop.wait()
                await _finish_calls(app, limits.shutdown_seconds)
        finally:  # streams that wait for news have ended with the manager
            server.should_exit = True


async def _finish_calls(app: HttpApp, seconds: float) -> None:
    """No new calls, and a while for those that are under way."""
    app.is_ending = True
    with anyio.move_on_after(seconds):
        while app.calls:  # noqa: ASYNC110  # a moment, once
            await anyio.sleep(0.02)


class _Server(uvicorn.Server):
    """Leaves signals to the command, which closes servers, too."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """No signals."""
        yield


class Connections:
    """SECURITY: a cap on connections, with LRU eviction of idle ones (T27): those that never sent a request first."""

    def __init__(self, most: int, shed: Callable[[], bool]) -> None:
        self._most = most
        self._shed = shed
        self._open: set[H11Protocol] = set()
        self._idle: dict[H11Protocol, None] = {}
        self._kept_alive: dict[H11Protocol, None] = {}

    def add(self, connection: H11Protocol) -> None:
        """Somebody connected. If nobody can make room, they are hung up on."""
        if len(self._open) >= self._most:
            oldest = next(iter(self._idle), None) or next(iter(self._kept_alive), None)
            if oldest is not None:
                self.remove(oldest)
                oldest.transport.abort()
            elif not self._shed():
                connection.transport.abort()
                return
        self._open.add(connection)
        self._idle[connection] = None

    def use(self, connection: H11Protocol) -> None:
        """A request is under way."""
        self._idle.pop(connection, None)
        self._kept_alive.pop(connection, None)

    def keep_alive(self, connection: H11Protocol) -> None:
        """Its request is over."""
        if connection in self._open:
            self._kept_alive[connection] = None

    def remove(self, connection: H11Protocol) -> None:
        """It is closed."""
        self.use(connection)
        self._open.discard(connection)


def _protocol(header_seconds: float, connections: Connections) -> type[asyncio.Protocol]:
    """HTTP with limits on connections, and on how long a request's headers may take: uvicorn has none."""

    class BoundedProtocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            connections.add(self)
            self._expect_headers()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
                self._expect_headers()
            else:
                self._stop_waiting()
                if self._has_request():
                    connections.use(self)

        def on_response_complete(self) -> None:
            connections.keep_alive(self)
            super().on_response_complete()
            if self._has_request():  # the next one was pipelined
                connections.use(self)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            connections.remove(self)
            super().connection_lost(exc)

        def _has_request(self) -> bool:
            # There is no cycle before the first request.
            return not getattr(self.cycle, "response_complete", True)

        def _expect_headers(self) -> None:
            if self._deadline is None:
                self._deadline = self.loop.call_later(header_seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return BoundedProtocol
