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
from toolbridge.serve.clients import peer_at
from toolbridge.serve.http_app import HttpApp, HttpLimits
from toolbridge.serve.shares import Holder, Shares

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
        http=_protocol(limits, Connections(limits.connections, app.requests.shed)),
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


_LEAST_READ = 2**14
"""Bytes of a response that a client has to read in each `send_seconds`."""


class Connections:
    """SECURITY: a cap on connections, shared among addresses, with LRU eviction of idle ones (T27).

    Those that never sent a request go first, then those that are kept alive, then one that owes a request's body: of
    the address that wants one more or, where none is free and it has none yet, of the address with the most.
    """

    def __init__(self, most: int, shed: Callable[[str], bool]) -> None:
        self._shares = Shares(most)
        self._shed = shed
        self._open: dict[H11Protocol, Holder] = {}
        self._idle: dict[H11Protocol, str] = {}
        self._kept_alive: dict[H11Protocol, str] = {}

    def add(self, connection: H11Protocol) -> None:
        """A client connected. If its address has no room for it, it is hung up on."""
        peer = peer_at(connection.client[0] if connection.client else "")
        holder = Holder(peer, ("connection", str(id(connection))))
        if not self._shares.may_take(holder) and not self._make_room(peer):
            connection.transport.abort()
            return
        self._shares.take(holder)
        self._open[connection] = holder
        self._idle[connection] = peer

    def _make_room(self, peer: str) -> bool:
        if self._evict_idle(peer) or self._shed(peer):
            return True
        is_new = not self._shares.held_by(peer)
        return is_new and not self._shares.free and self._evict_idle(self._shares.greediest())

    def _evict_idle(self, peer: str) -> bool:
        for waiting in (self._idle, self._kept_alive):
            oldest = next((each for each, of in waiting.items() if of == peer), None)
            if oldest is not None:
                self.remove(oldest)
                oldest.transport.abort()
                return True
        return False

    def use(self, connection: H11Protocol) -> None:
        """A request is under way."""
        self._idle.pop(connection, None)
        self._kept_alive.pop(connection, None)

    def keep_alive(self, connection: H11Protocol) -> None:
        """Its request is over."""
        if connection in self._open:
            self._kept_alive[connection] = self._open[connection].peer

    def remove(self, connection: H11Protocol) -> None:
        """It is closed."""
        self.use(connection)
        if (holder := self._open.pop(connection, None)) is not None:
            self._shares.give_back(holder)


def _protocol(limits: HttpLimits, connections: Connections) -> type[asyncio.Protocol]:
    """HTTP with limits on connections, and on how long headers and a response's way may take: uvicorn has none."""

    class BoundedProtocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None
        _stalled: asyncio.TimerHandle | None = None

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
            self._stop_stalling()
            connections.remove(self)
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            if self._stalled is None:
                self._expect_reading()
            super().pause_writing()

        def resume_writing(self) -> None:
            self._stop_stalling()
            super().resume_writing()

        def _expect_reading(self) -> None:
            """Abort a client that reads too little: its request would be under way for as long as it likes."""
            unread: int = self.transport.get_write_buffer_size()
            self._stalled = self.loop.call_later(limits.send_seconds, self._abort_unless_read, unread)

        def _abort_unless_read(self, unread: int) -> None:
            if unread - self.transport.get_write_buffer_size() < _LEAST_READ:
                self.transport.abort()
            else:
                self._expect_reading()

        def _has_request(self) -> bool:
            # There is no cycle before the first request.
            return not getattr(self.cycle, "response_complete", True)

        def _expect_headers(self) -> None:
            if self._deadline is None:
                self._deadline = self.loop.call_later(limits.header_seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _stop_stalling(self) -> None:
            if self._stalled is not None:
                self._stalled.cancel()
                self._stalled = None

    return BoundedProtocol
