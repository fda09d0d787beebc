"""HTTP servers for tests: real ones of the SDK on uvicorn, and one that says exactly what a test tells it to."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import anyio.abc
import uvicorn
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.tls import TLSListener
from mcp.shared.dispatcher import Dispatcher
from mcp.shared.exceptions import MCPError

from toolbridge.config.server_config import OAuth, ServerConfig, ServerLimits, checked_server
from toolbridge.servers.auth.sign_in import SignIn
from toolbridge.servers.auth.tokens import TokenStore, place_of
from toolbridge.servers.connection import ServerChannel
from toolbridge.servers.http.ssrf import check_url
from toolbridge.servers.http.transport import open_http, open_sse

LIMITS = ServerLimits()


@dataclass(frozen=True)
class Received:
    """A request as it came in."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        return json.loads(self.body) if self.body else {}

    @property
    def rpc(self) -> str:
        return self.message.get("method", "")


Answer = Callable[[Received, SocketStream], Awaitable[None]]


@dataclass
class RawServer:
    """Reads requests, and leaves it to the test what is sent back."""

    port: int
    host: str = "127.0.0.1"
    scheme: str = "http"
    received: list[Received] = field(default_factory=list[Received])

    def url(self, path: str = "/mcp") -> str:
        return f"{self.scheme}://{self.host}:{self.port}{path}"

    def methods(self) -> list[str]:
        return [each.rpc or each.method for each in self.received]


@asynccontextmanager
async def raw_server(answer: Answer, *, tls: ssl.SSLContext | None = None) -> AsyncGenerator[RawServer]:
    """A server on loopback; a connection takes any number of requests."""
    listener: Any = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port: int = listener.extra(SocketAttribute.local_port)
    if tls is not None:
        listener = TLSListener(listener, tls, standard_compatible=False)
    server = RawServer(port, scheme="https" if tls else "http")

    async def handle(stream: SocketStream) -> None:
        async with stream:
            try:
                while (request := await _read(stream)) is not None:
                    server.received.append(request)
                    await answer(request, stream)
                    if request.headers.get("connection") == "close":
                        return
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, _HangUpError):
                pass

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, handle)
            yield server
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await listener.aclose()


class _HangUpError(Exception):
    pass


def hang_up() -> None:
    """Close the connection instead of answering."""
    raise _HangUpError


async def _read(stream: SocketStream) -> Received | None:
    data = b""
    while b"\r\n\r\n" not in data:
        try:
            data += await stream.receive()
        except anyio.EndOfStream:
            return None
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive()
    method, target, _ = first.split(" ", 2)
    return Received(method, target, headers, body)


def reply(
    body: bytes | str | object = b"",
    *,
    status: str = "200 OK",
    kind: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """The bytes of an answer."""
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    given = {"content-type": kind, "content-length": str(len(data)), **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode("latin-1") + data


def result(request: Received, value: object = None) -> dict[str, Any]:
    """A good answer to a request."""
    return {"jsonrpc": "2.0", "id": request.message.get("id"), "result": {"ok": True} if value is None else value}


def events(*messages: object, ids: bool = False) -> bytes:
    """Messages as server-sent events."""
    lines: list[bytes] = []
    for number, message in enumerate(messages, 1):
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        lines += [f"id: {number}\n".encode() if ids else b"", b"event: message\ndata: ", data, b"\n\n"]
    return b"".join(lines)


EVENTS_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """A piece of a chunked body; an empty one ends it."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def config(
    url: str,
    *,
    transport: str = "http",
    name: str = "weather",
    oauth: OAuth | None = None,
    call_timeout: float | None = None,
) -> ServerConfig:
    """Not validated: what is refused at construction is refused again before it is sent."""
    return checked_server(name=name, transport=transport, url=url, oauth=oauth, call_timeout=call_timeout)


def place(url: str, name: str = "weather") -> str:
    """Where the sign-in of such a server is kept."""
    return place_of(config(url, name=name), check_url(url, secrets=False))


@dataclass
class Session:
    """A running dispatcher, and what the server said on its own."""

    dispatcher: Dispatcher[Any]
    channel: ServerChannel
    notifications: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    requests: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    ended: anyio.Event = field(default_factory=anyio.Event)
    stuck: bool = False
    """Whether the host's handlers never return."""

    async def ask(self, method: str = "tools/call", params: Mapping[str, Any] | None = None, **options: Any) -> Any:
        options.setdefault("timeout", 5.0)
        return await self.dispatcher.send_raw_request(method, params, cast("Any", options))

    async def error(self, method: str = "tools/call", **options: Any) -> MCPError:
        """The error that a request ends with."""
        try:
            value = await self.ask(method, **options)
        except MCPError as error:
            return error
        raise AssertionError(f"it was answered: {value!r}")


@asynccontextmanager
async def session(
    url: str,
    *,
    transport: str = "http",
    name: str = "weather",
    headers: Mapping[str, str] | None = None,
    limits: ServerLimits = LIMITS,
    oauth: OAuth | None = None,
    sign_in: SignIn | None = None,
    client_secret: str | None = None,
    store: TokenStore | None = None,
    call_timeout: float | None = None,
) -> AsyncGenerator[Session]:
    """Open a channel and run its dispatcher."""
    opened = open_http if transport == "http" else open_sse
    server = config(url, transport=transport, name=name, oauth=oauth, call_timeout=call_timeout)
    opening = opened(
        server,
        headers or {},
        limits,
        sign_in=sign_in,
        client_secret=client_secret,
        store=store or TokenStore("/nonexistent/toolbridge/tokens", use_keyring=False),
    )
    async with opening as channel, anyio.create_task_group() as tasks:
        running = Session(channel.dispatcher, channel)

        async def on_request(_context: Any, method: str, params: Any) -> dict[str, Any]:
            running.requests.append((method, params))
            if running.stuck:
                await anyio.sleep_forever()
            return {"answered": method}

        async def on_notify(_context: Any, method: str, params: Any) -> None:
            running.notifications.append((method, params))
            if running.stuck:
                await anyio.sleep_forever()

        async def run(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            await channel.dispatcher.run(on_request, on_notify, task_status=task_status)
            running.ended.set()

        await tasks.start(run)
        yield running
        tasks.cancel_scope.cancel()


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for something that nothing announces."""
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.01)


def answered(make: Callable[[Received], bytes]) -> Answer:
    """Answers `tools/call` with what a function makes, and everything else properly."""

    async def answer(request: Received, stream: SocketStream) -> None:
        await stream.send(make(request) if request.rpc == "tools/call" else reply(result(request)))

    return answer


async def never(_request: Received, stream: SocketStream) -> None:
    """Never answers, but notices when nobody waits any more."""
    while True:
        await stream.receive()


def reserved_port() -> socket.socket:
    """A socket on a port of loopback that nobody else gets."""
    # Said to be TCP, so that asyncio sends small pieces at once.
    place = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    place.bind(("127.0.0.1", 0))
    return place


@contextmanager
def uvicorn_server(app: Any, sock: socket.socket | None = None) -> Generator[int]:
    """An ASGI application on a real port of loopback, in a thread of its own."""
    sock = sock or reserved_port()
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    try:
        while not server.started:
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.01)
        yield sock.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(60)
        sock.close()
