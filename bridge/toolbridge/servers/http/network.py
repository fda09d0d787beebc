"""SECURITY: HTTP for one server: checked connections, bounded bodies, no secrets in logs (T27)."""

from __future__ import annotations

import functools
import ipaddress
import logging
import os
import socket
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import anyio
import httpcore2
import httpx2

from toolbridge import __version__
from toolbridge.servers.failures import BadAnswerError
from toolbridge.servers.http.ssrf import (
    Address,
    AddressRefusedError,
    HttpRuleError,
    Reach,
    check_host_name,
    check_reach,
    check_url,
    is_this_machine,
    literal_address,
    same_origin,
)

ACCEPT_ENCODING = "gzip, deflate"
_PIECE = 256 * 1024
_BODY = "toolbridge.body"


class Body(httpx2.AsyncByteStream):
    """The raw bytes of an answer. Not httpx's iterators: trio wants nested generators closed by hand."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response
        self._chunks: Any = None

    async def next_chunk(self) -> bytes | None:
        """Wait, without a timeout, for the next raw bytes as sent: still compressed; None at the end."""
        if self._chunks is None:
            self._chunks = self._response.aiter_stream()
        return await anext(self._chunks, None)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (chunk := await self.next_chunk()) is not None:
            yield chunk

    async def aclose(self) -> None:
        """Release the connection to its pool."""
        if self._chunks is not None:
            await self._chunks.aclose()
        await self._response.aclose()

    def marked(self) -> dict[str, Any]:
        """The response extension by which `BodyReader` finds the body."""
        return {_BODY: self}


class BodyReader:
    """Reads and decompresses the body of one answer in bounded memory."""

    def __init__(self, response: httpx2.Response) -> None:
        self._body: Body = response.extensions[_BODY]
        self._unpack = _unpacker(response.headers.get("content-encoding", ""))
        self._pieces: Iterator[bytes] = iter(())

    async def next_piece(self) -> bytes | None:
        """Wait for the next decompressed bytes, at most 256 KiB; None at the end.

        Raises:
            BadAnswerError: its compression is unknown or broken.
        """
        while True:
            try:
                for piece in self._pieces:
                    return piece
            except zlib.error:
                raise BadAnswerError("The answer is said to be compressed, but is not") from None
            chunk = await self._body.next_chunk()
            if chunk is None:
                return None
            self._pieces = self._unpack(chunk)


async def read_body(response: httpx2.Response, most_bytes: int) -> bytes:
    """Read the whole body of an answer.

    Raises:
        BadAnswerError: it is too long, or can't be decompressed.
    """
    reader = BodyReader(response)
    body = bytearray()
    while (piece := await reader.next_piece()) is not None:
        body += piece
        if len(body) > most_bytes:
            raise BadAnswerError(f"The answer is too long: more than {most_bytes} bytes")
    return bytes(body)


def content_type(response: httpx2.Response) -> str:
    """The media type of an answer."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


class _Inflater:
    """Decompresses in bounded pieces, against decompression bombs."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._inflate = zlib.decompressobj(window)
        self._begun = False

    def __call__(self, chunk: bytes) -> Iterator[bytes]:
        """Decompress a chunk lazily in bounded pieces; raises `zlib.error` while iterating if it is broken."""
        rest = chunk
        while rest:
            try:
                piece = self._inflate.decompress(rest, _PIECE)
            except zlib.error:
                if self._begun or self._window != zlib.MAX_WBITS:
                    raise
                # Some servers send deflate without its zlib header.
                self._inflate, self._begun = zlib.decompressobj(-zlib.MAX_WBITS), True
                continue
            self._begun = True
            rest = self._inflate.unconsumed_tail
            if piece:
                yield piece


def _as_it_is(chunk: bytes) -> Iterator[bytes]:
    return iter((chunk,))


def _unpacker(encoding: str) -> Callable[[bytes], Iterator[bytes]]:
    """Return a decompressor for a `Content-Encoding`. Raises `BadAnswerError` if it is not gzip or deflate."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return _as_it_is
    if encoding in ("gzip", "x-gzip"):
        return _Inflater(zlib.MAX_WBITS | 16)
    if encoding == "deflate":
        return _Inflater(zlib.MAX_WBITS)
    raise BadAnswerError("The answer is compressed in a way that was not asked for")


# SECURITY: keeps secrets out of other libraries' logs (T4). httpx logs whole URLs, httpcore all headers of an answer,
# the SDK's sign-in flow whole errors of a server: their records are dropped while they work for us.
_LOGGERS = (
    "httpx2",
    "httpcore2.connection",
    "httpcore2.http11",
    "httpcore2.http2",
    "httpcore2.proxy",
    "httpcore2.socks",
    "mcp.client.auth.oauth2",
    "mcp.client.auth.utils",
)
_for_us: ContextVar[bool] = ContextVar("toolbridge_http", default=False)


def _is_not_ours(_record: logging.LogRecord) -> bool:
    return not _for_us.get()


@contextmanager
def unlogged() -> Generator[None]:
    """Drop these libraries' log records within the context, for this task and its children only."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_not_ours)  # adding it again changes nothing
    token = _for_us.set(True)
    try:
        yield
    finally:
        _for_us.reset(token)


_HEAD_START = 0.25
"""How long one address of a host may take to answer before the next one is tried beside it."""
_MOST_ADDRESSES = 8
_CLOSE_SECONDS = 1.0


class CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """SECURITY: connects to checked addresses only: a host is resolved once, so that DNS rebinding finds no gap (T27).

    TLS and the `Host` header still use the name. Unix sockets are not supported.
    """

    def __init__(self, configured_host: str, *, proxy_host: str | None = None) -> None:
        self.connections = 0
        """Connections opened so far."""
        self._configured_host = configured_host
        self._proxy_host = proxy_host
        self._reach: Reach | None = None
        """The reach of the configured host at its first connection. It may get farther later, never nearer."""
        self._backend: Any = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the interface is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve a host and connect to the first address that may be reached and answers, within `timeout`.

        Raises:
            AddressRefusedError: none of its addresses may be reached.
            httpcore2.ConnectError: it has no address, or none answers. ConnectTimeout: not in time.
        """
        del local_address, socket_options
        try:
            with anyio.fail_after(timeout):
                return await self._first_to_answer(await self._checked_addresses(host, port), port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"{host} did not accept a connection in time") from None

    async def _checked_addresses(self, host: str, port: int) -> list[Address]:
        """Resolve a host to the addresses that may be reached, or raise; fixes the configured host's reach."""
        if host == self._proxy_host:
            # The operator named it; it resolves and reaches what is asked of it by rules of its own.
            return list(await _resolve(host, port))
        check_host_name(host)
        nearest = self._nearest(host)
        allowed: list[tuple[Address, Reach]] = []
        refusal: AddressRefusedError | None = None
        for address in await _resolve(host, port):
            try:
                allowed.append((address, check_reach(host, address, nearest=nearest)))
            except AddressRefusedError as error:
                refusal = refusal or error
        if not allowed:
            raise refusal or httpcore2.ConnectError(f"{host} has no address")
        if host == self._configured_host:
            self._reach = min(reach for _, reach in allowed)
            # A name with addresses of both kinds is what rebinding looks like: the farther kind is used.
            allowed = [(address, reach) for address, reach in allowed if reach is self._reach]
        return [address for address, _ in allowed]

    def _nearest(self, host: str) -> Reach:
        """Return the nearest reach allowed to a host: no host may be nearer than the configured one, once connected."""
        if host != self._configured_host:
            return Reach.PUBLIC if self._reach is None else self._reach
        if self._reach is not None:
            return self._reach
        return Reach.LOOPBACK if is_this_machine(host) else Reach.PRIVATE

    async def _first_to_answer(self, addresses: Sequence[Address], port: int) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address to answer (Happy Eyeballs: each has a head start); closes late connections."""
        answered: list[httpcore2.AsyncNetworkStream] = []
        failures: list[Exception] = []

        async def attempt(address: Address, done: anyio.Event) -> None:
            """Connect to one address and record the stream or the failure; a success cancels the other attempts."""
            try:
                stream: httpcore2.AsyncNetworkStream = await self._backend.connect_tcp(str(address), port)
            except Exception as error:
                failures.append(error)
            else:
                answered.append(stream)
                attempts.cancel_scope.cancel()
            finally:
                done.set()

        try:
            async with anyio.create_task_group() as attempts:
                for address in addresses[:_MOST_ADDRESSES]:
                    done = anyio.Event()
                    attempts.start_soon(attempt, address, done)
                    with anyio.move_on_after(_HEAD_START):
                        await done.wait()
            if not answered:
                raise httpcore2.ConnectError(f"no connection: {failures[0]}")
            self.connections += 1
            return _ClosedWhenCancelled(answered.pop(0))
        finally:
            # Late connections, and all when the caller is cancelled.
            for stream in answered:
                await _close(stream)


class _ClosedWhenCancelled(httpcore2.AsyncNetworkStream):
    """A connection that is closed if its TLS handshake is cancelled."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        """Do the TLS handshake; close the connection if that fails or is cancelled."""
        try:
            return await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            await _close(self._stream)
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


async def _close(stream: httpcore2.AsyncNetworkStream) -> None:
    with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
        await stream.aclose()


async def _resolve(host: str, port: int) -> Sequence[Address]:
    """Resolve a host to all of its addresses; a literal needs no DNS. Raises `httpcore2.ConnectError` without any."""
    literal = literal_address(host)
    if literal is not None:
        return [literal]
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore2.ConnectError(f"{host} can't be resolved: {error}") from None
    # A scope (`fe80::1%eth0`) only ever belongs to a link-local address.
    texts = dict.fromkeys(str(each[4][0]).partition("%")[0] for each in found)
    return [ipaddress.ip_address(text) for text in texts]


PROXY_VARIABLE = "TOOLBRIDGE_PROXY"
"""Proxies of the environment (`HTTPS_PROXY`) are not used: one that resolves names itself undoes the address rules."""

FOR_THE_SERVER = "toolbridge.for_the_server"
"""Marks a request that carries what was configured for the server: it goes to no other origin."""

CLOSE_SECONDS = 1.0
# Servers usually close an idle connection after five seconds; a request sent in that moment would be lost.
_KEEP_ALIVE_SECONDS = 4.0
# The stream of events, sign-in requests, notifications: what is sent beside calls.
_SPARE_CONNECTIONS = 8

# Errors of the HTTP libraries; OSError also from a proxy's or a socket's option.
NETWORK_ERRORS = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.TimeoutException,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
    httpcore2.ConnectionNotAvailable,
    httpx2.HTTPError,
    httpx2.StreamError,
    httpx2.InvalidURL,
    OSError,
)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends a request if the SSRF rules allow it, be it ours, a redirect, or of the SDK's sign-in flow."""

    def __init__(self, url: httpx2.URL, *, secrets: bool, connections: int, proxy: str | None = None) -> None:
        self._url = url
        self._secrets = secrets
        host = url.raw_host.decode("ascii")
        # A proxy is for elsewhere: it would look for this machine on its own.
        self._proxy = None if proxy is None or is_this_machine(host) else httpx2.Proxy(proxy)
        proxy_host = None if self._proxy is None else self._proxy.url.raw_host.decode("ascii")
        self._network = CheckedNetwork(host, proxy_host=proxy_host)
        self._answers = 0
        self._keeps_connections = False
        tls = _tls() if url.scheme == "https" else None
        through = None if self._proxy is None else _pool_proxy(self._proxy)

        def pool(kept: int) -> httpcore2.AsyncConnectionPool:
            """Build a pool that keeps up to `kept` idle connections alive."""
            return httpcore2.AsyncConnectionPool(
                ssl_context=tls,
                proxy=through,
                max_connections=connections,
                max_keepalive_connections=kept,
                keepalive_expiry=_KEEP_ALIVE_SECONDS,
                network_backend=self._network,
            )

        self._kept, self._used_once = pool(connections), pool(0)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request that the rules allow, and return the answer with its body unread.

        Raises:
            HttpRuleError, AddressRefusedError: it is not sent.
        """
        self._check(request)
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        opened = self._network.connections
        response = await self._pool().handle_async_request(sent)
        self._answers += 1
        self._keeps_connections |= self._network.connections == opened
        body = Body(response)
        return httpx2.Response(response.status, headers=response.headers, stream=body, extensions=body.marked())

    async def aclose(self) -> None:
        """Close every connection."""
        await self._kept.aclose()
        await self._used_once.aclose()

    def _pool(self) -> httpcore2.AsyncConnectionPool:
        """Return the pool to use: connections are reused only with a server that has kept one alive.

        Others close them after each answer without saying so: a call that was sent in that moment would be lost, and
        could not be sent again. What comes first, connecting and listing, can be.
        """
        return self._used_once if self._answers >= 2 and not self._keeps_connections else self._kept

    def _check(self, request: httpx2.Request) -> None:
        """Raise if a request breaks the SSRF rules: another origin, an unsafe URL, or a refused literal address."""
        if request.extensions.get(FOR_THE_SERVER):
            if not same_origin(self._url, request.url):
                raise HttpRuleError("A request that was meant for the server would have gone elsewhere")
            check_url(str(request.url), secrets=self._secrets or "authorization" in request.headers)
            return
        # Made by the sign-in flow from what the server said: it carries codes and tokens, wherever it goes.
        check_url(str(request.url), secrets=True)
        host = request.url.raw_host.decode("ascii")
        literal = literal_address(host)
        if self._proxy is not None and literal is not None:
            check_reach(host, literal, nearest=Reach.PUBLIC)


@asynccontextmanager
async def open_client(
    url: httpx2.URL, *, secrets: bool, connections: int, connect_seconds: float
) -> AsyncGenerator[httpx2.AsyncClient]:
    """Open an HTTP client for one server, guarded by the SSRF rules: no redirects, no cookies, no total timeout."""
    transport = GuardedTransport(
        url,
        secrets=secrets,
        connections=connections + _SPARE_CONNECTIONS,
        proxy=os.environ.get(PROXY_VARIABLE) or None,
    )
    client = httpx2.AsyncClient(
        transport=transport,
        trust_env=False,
        follow_redirects=False,
        headers={"User-Agent": f"toolbridge/{__version__}", "Accept-Encoding": ACCEPT_ENCODING},
        # No answer is waited for without a deadline of its own: see `RequestsInFlight`.
        timeout=httpx2.Timeout(None, connect=connect_seconds),
        # A server's cookies would be one more secret to keep apart, and one more thing that grows.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
    )
    try:
        yield client
    finally:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await client.aclose()


@functools.cache
def _tls() -> ssl.SSLContext:
    # SSL_CERT_FILE and SSL_CERT_DIR are honoured: they are how a company's own authority is made known.
    return httpx2.create_ssl_context(trust_env=True)


def _pool_proxy(proxy: httpx2.Proxy) -> Any:
    """Convert a proxy of httpx to one of httpcore."""
    return httpcore2.Proxy(
        url=httpcore2.URL(
            scheme=proxy.url.raw_scheme, host=proxy.url.raw_host, port=proxy.url.port, target=proxy.url.raw_path
        ),
        auth=proxy.raw_auth,
        headers=proxy.headers.raw,
    )
