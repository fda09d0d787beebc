"""The HTTP server: /mcp, /healthz and /metrics."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import resource
import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import h11
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolbridge.errors import ToolbridgeError
from toolbridge.serve.clients import GONE, SESSION_HEADER, peer_at, peer_of
from toolbridge.serve.fairness import Holder, Shares
from toolbridge.serve.http_guard import BodyError, Guard, HttpSessions, Refused, Replay, Requests, read_body

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from toolbridge.serve.service import CodeModeServer, Service


_LATER = ((b"retry-after", b"1"), (b"connection", b"close"))
_BUSY = Refused(503, "Too many requests are under way: of one client, or of all.", _LATER)
_FULL = Refused(503, "Too many sessions are open, and all of them in use.", _LATER)
_ENDING = Refused(503, "This server is about to end.", ((b"connection", b"close"),))
_ENDED = {"DELETE": (200, 404), "GET": (404,), "POST": (404,)}
"""Response statuses of an ended session."""
_NOT_FOUND = Refused(404, "There is /mcp here, and /healthz.")
_NOT_ALLOWED = Refused(405, "Use GET, POST or DELETE.", ((b"allow", b"GET, POST, DELETE"),))


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits per client and in total."""

    body_bytes: int = 4 * 2**20
    body_seconds: float = 10.0
    header_seconds: float = 10.0
    send_seconds: float = 30.0
    """Time for a client to read the next part of its response; else it is disconnected."""
    requests: int = 512
    """Concurrent requests, open streams included, besides one call of each client: see `Shares`."""
    clients: int = 1_000
    """HTTP sessions; above that, LRU eviction of idle ones."""
    client_idle_seconds: float = 1800.0
    shutdown_seconds: float = 5.0
    """Grace period for calls in progress at shutdown."""

    @property
    def connections(self) -> int:
        """Returns the cap on connections: two per request, bounded by the limit on file descriptors."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return 2 * self.requests if soft == resource.RLIM_INFINITY else min(2 * self.requests, soft * 3 // 4)


class HttpApp:
    """The ASGI application. Serve within `async with manager.run()`."""

    def __init__(
        self, server: CodeModeServer, service: Service, guard: Guard, limits: HttpLimits, *, metrics: bool
    ) -> None:
        self.manager = StreamableHTTPSessionManager(
            server,
            max_request_body_size=limits.body_bytes,
            session_idle_timeout=limits.client_idle_seconds,
            max_sessions=limits.clients + limits.requests,  # a backstop: we evict
        )
        self._service = service
        self._guard = guard
        self._limits = limits
        self._has_metrics = metrics
        self.requests = Requests(limits.connections // 2)
        self.sessions = HttpSessions(limits.clients)
        self._refused = 0
        self.calls = 0
        """Calls in progress."""
        self.is_ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one HTTP request, or answers why it is refused; ignores other kinds of connections."""
        if scope["type"] != "http":
            return
        refused = await self._served(scope, receive, send)
        if refused is not None:
            self._refused += 1
            await _answer(send, refused.status, refused.words + "\n", "text/plain", refused.headers)

    async def _served(self, scope: Scope, receive: Receive, send: Send) -> Refused | None:
        """Serves a request; returns a refusal that is still to be sent, or None."""
        path, method = scope["path"], scope["method"]
        if path == "/healthz" and method in ("GET", "HEAD"):
            await _answer(send, 503 if self.is_ending else 200, json.dumps({"ok": not self.is_ending}) + "\n")
            return None
        refused = self._guard.refusal(scope)
        if refused is None and path == "/metrics" and self._has_metrics and method == "GET":
            await _answer(send, 200, _metrics(self._facts()), "text/plain; version=0.0.4")
            return None
        headers = Headers(scope=scope)
        session = self.sessions.of(headers)
        client = Holder(peer_of(scope), ("session", session) if session else ("peer", ""))
        refused = refused or self._refusal(path, method, client, headers)
        if refused is not None:
            return refused
        with ExitStack() as under_way:
            is_only_call = self._begin(under_way, client, method)
            reading = anyio.CancelScope(deadline=anyio.current_time() + self._limits.body_seconds)
            with self.requests.awaiting_body(client, reading, is_only_call=is_only_call):
                body = await self._body(scope, receive, reading)
            if isinstance(body, Refused):
                return body
            if body is not None:
                await self._passed_on(scope, Replay(body, receive), send, client, under_way)
            return None

    def _begin(self, under_way: ExitStack, client: Holder, method: str) -> bool:
        """Counts a request until `under_way` closes; returns whether it is its client's free call."""
        is_only_call = under_way.enter_context(self.requests.under_way(client, is_call=method != "GET"))
        if method == "POST":
            self.calls += 1
            under_way.callback(self._end_call)
        kind, name = client.key
        if kind == "session":
            self.sessions.begin(name, method)
            under_way.callback(self.sessions.end, name, method)
        return is_only_call

    def _end_call(self) -> None:
        self.calls -= 1

    def _refusal(self, path: str, method: str, client: Holder, headers: Headers) -> Refused | None:
        """Returns why a request is refused before its body is read, or None. May shed another body for room."""
        if path != "/mcp":
            return _NOT_FOUND
        if method not in ("GET", "POST", "DELETE"):
            return _NOT_ALLOWED
        if self.is_ending:
            return _ENDING
        if self.sessions.opens_one(headers, method) and self.sessions.is_full():
            return _FULL
        return None if self.requests.has_room(client, is_call=method != "GET") else _BUSY

    async def _body(self, scope: Scope, receive: Receive, reading: anyio.CancelScope) -> bytes | Refused | None:
        """Reads the body; returns a refusal if it is too long, too slow or shed, None if its sender disconnected."""
        limits = self._limits
        try:
            body = await read_body(scope, receive, most=limits.body_bytes, within=reading)
        except BodyError as error:
            return error.refused
        if body is None:
            return _BUSY if anyio.current_time() < reading.deadline else _too_slow(limits.body_seconds)
        return body

    async def _passed_on(self, scope: Scope, replay: Replay, send: Send, client: Holder, under_way: ExitStack) -> None:
        """Has the SDK answer a request.

        Closes `under_way` once the answer is sent; sets its disconnect event at the end.
        """
        scope[GONE] = replay.gone

        async def watched(message: Message) -> None:
            """Sends a message on, and notes sessions that it opens or ends."""
            if message["type"] == "http.response.start":
                await self._note_session(scope, client, message)
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                under_way.close()  # at once: the client may send its next request before this one is cleaned up

        try:
            await self.manager.handle_request(scope, replay, watched)
        finally:
            replay.gone.set()

    async def _note_session(self, scope: Scope, client: Holder, answer: Message) -> None:
        """Registers a session that an answer opens, and evicts others above the cap; forgets one that it ends."""
        method, status = scope["method"], answer["status"]
        kind, name = client.key
        if kind == "session":  # only known sessions, or any client could end those of others
            if status in _ENDED[method]:
                self._forget(name)
            return
        new = Headers(raw=answer["headers"]).get(SESSION_HEADER)
        if new is None or method != "POST" or status >= 400:
            return
        self.sessions.add(new, (client.peer, Headers(scope=scope).get("user-agent", "")))
        while (victim := self.sessions.victim(new=new)) is not None:
            await self._evict(victim)

    async def _evict(self, session: str) -> None:
        """Forgets a session and ends it in the SDK with a DELETE, as its client would."""
        self._forget(session)
        headers = [(SESSION_HEADER.encode(), session.encode())]
        scope = {"type": "http", "method": "DELETE", "path": "/mcp", "query_string": b"", "headers": headers}

        async def nothing(_message: Message) -> None:
            return None

        await self.manager.handle_request(scope, Replay(b"", anyio.sleep_forever), nothing)  # pyright: ignore[reportArgumentType]

    def _forget(self, session: str) -> None:
        self.sessions.forget(session)
        self._service.forget(("session", session))

    def _facts(self) -> Mapping[str, Any]:
        """Returns counters and gauges for /metrics."""
        return {
            **self._service.facts(),
            "http_requests_active": self.requests.count,
            "http_sessions": len(self.sessions),
            "http_requests_refused_total": self._refused,
        }


def _too_slow(seconds: float) -> Refused:
    return Refused(408, f"The request took more than {seconds:g} seconds to arrive.", ((b"connection", b"close"),))


async def _answer(
    send: Send,
    status: int,
    text: str,
    kind: str = "application/json",
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    """Sends a whole response that caches don't keep."""
    body = text.encode()
    own = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": body})


def _metrics(facts: Mapping[str, Any]) -> str:
    """Formats metrics for Prometheus: names that end with `_total` are counters, all others gauges."""
    lines: list[str] = []
    for name, value in facts.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# TYPE toolbridge_{name} {kind}", f"toolbridge_{name} {value}"]
    return "\n".join(lines) + "\n"


# From the listening socket to graceful shutdown.


_BACKLOG = 256


def open_socket(host: str, port: int) -> socket.socket:
    """Opens a listening TCP socket.

    Raises:
        ToolbridgeError: the address can't be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=_BACKLOG)
    except OSError as error:
        words = error.strerror or str(error)
        # A port may be in use or privileged; any other error is the host's.
        option = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        raise ToolbridgeError(
            f"Nothing can be served at {host} port {port}: {words}. Choose another {option}."
        ) from None


async def serve_http(
    app: HttpApp, listening: socket.socket, limits: HttpLimits, *, ready: Callable[[], None], stop: anyio.Event
) -> None:
    """Serves until `stop`, then waits for calls in progress, `shutdown_seconds` at most. Calls `ready` at first.

    Sets `stop` if the server ends by itself. Cancelling ends all at once.
    """
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
        """Runs uvicorn until it ends, and sets `stop`."""
        with anyio.CancelScope(shield=True):  # ends by `should_exit`
            await server.serve(sockets=[listening])
        stop.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        try:
            async with app.manager.run():
                ready()
                await stop.wait()
                await _finish_calls(app, limits.shutdown_seconds)
        finally:  # open streams have ended with the manager
            server.should_exit = True


async def _finish_calls(app: HttpApp, seconds: float) -> None:
    """Refuses new requests from now on, and waits at most `seconds` for calls in progress."""
    app.is_ending = True
    with anyio.move_on_after(seconds):
        while app.calls:  # noqa: ASYNC110  # a moment, once
            await anyio.sleep(0.02)


class _Server(uvicorn.Server):
    """Leaves signals to the command, which also closes servers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Installs no signal handlers."""
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
        """Admits a new connection, or aborts it if its address has no room and none of it can be evicted."""
        peer = peer_at(connection.client[0] if connection.client else "")
        holder = Holder(peer, ("connection", str(id(connection))))
        if not self._shares.may_take(holder) and not self._make_room(peer):
            connection.transport.abort()
            return
        self._shares.take(holder)
        self._open[connection] = holder
        self._idle[connection] = peer

    def _make_room(self, peer: str) -> bool:
        """Ends one idle connection, or one that owes a body; returns whether there was one."""
        if self._evict_idle(peer) or self._shed(peer):
            return True
        is_new = not self._shares.held_by(peer)
        return is_new and not self._shares.free and self._evict_idle(self._shares.greediest())

    def _evict_idle(self, peer: str) -> bool:
        """Aborts the oldest idle connection of an address; returns whether there was one."""
        for waiting in (self._idle, self._kept_alive):
            oldest = next((each for each, of in waiting.items() if of == peer), None)
            if oldest is not None:
                self.remove(oldest)
                oldest.transport.abort()
                return True
        return False

    def use(self, connection: H11Protocol) -> None:
        """Marks a connection as busy: it isn't evicted."""
        self._idle.pop(connection, None)
        self._kept_alive.pop(connection, None)

    def keep_alive(self, connection: H11Protocol) -> None:
        """Marks a connection as kept alive: it may be evicted. Ignores unknown ones."""
        if connection in self._open:
            self._kept_alive[connection] = self._open[connection].peer

    def remove(self, connection: H11Protocol) -> None:
        """Forgets a closed connection and frees its share; ignores unknown ones."""
        self.use(connection)
        if (holder := self._open.pop(connection, None)) is not None:
            self._shares.give_back(holder)


def _protocol(limits: HttpLimits, connections: Connections) -> type[asyncio.Protocol]:
    """Makes uvicorn's HTTP protocol with a cap on connections, and with timeouts for headers and reading responses."""

    class BoundedProtocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None
        _stalled: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            """Admits the connection and starts the timeout for headers."""
            super().connection_made(transport)
            connections.add(self)
            self._expect_headers()

        def data_received(self, data: bytes) -> None:
            """Passes data on; restarts the timeout for headers, or ends it once they are complete."""
            super().data_received(data)
            if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
                self._expect_headers()
            else:
                self._stop_waiting()
                if self._has_request():
                    connections.use(self)

        def on_response_complete(self) -> None:
            """Marks the connection as idle, or busy with a pipelined request."""
            connections.keep_alive(self)
            super().on_response_complete()
            if self._has_request():  # a pipelined request
                connections.use(self)

        def connection_lost(self, exc: Exception | None) -> None:
            """Stops all timeouts and frees the connection's share."""
            self._stop_waiting()
            self._stop_stalling()
            connections.remove(self)
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            """Starts the timeout for reading, as the client reads more slowly than we write."""
            if self._stalled is None:
                self._expect_reading()
            super().pause_writing()

        def resume_writing(self) -> None:
            self._stop_stalling()
            super().resume_writing()

        def _expect_reading(self) -> None:
            """Starts the timeout after which a client that reads too slowly, and holds its request open, is aborted."""
            unread: int = self.transport.get_write_buffer_size()
            self._stalled = self.loop.call_later(limits.send_seconds, self._abort_unless_read, unread)

        def _abort_unless_read(self, unread: int) -> None:
            """Aborts the connection if its client read too little of the `unread` bytes; else waits again."""
            if unread - self.transport.get_write_buffer_size() < _LEAST_READ:
                self.transport.abort()
            else:
                self._expect_reading()

        def _has_request(self) -> bool:
            # There is no cycle before the first request.
            return not getattr(self.cycle, "response_complete", True)

        def _expect_headers(self) -> None:
            """Starts the timeout that closes the connection, unless it runs."""
            if self._deadline is None:
                self._deadline = self.loop.call_later(limits.header_seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            """Stops the timeout for headers."""
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _stop_stalling(self) -> None:
            """Stops the timeout for reading."""
            if self._stalled is not None:
                self._stalled.cancel()
                self._stalled = None

    return BoundedProtocol
