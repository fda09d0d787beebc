"""SECURITY: sends HTTP requests for one server: each one checked, whoever made it (T27)."""

from __future__ import annotations

import functools
import os
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import anyio
import httpcore2
import httpx2

from toolbridge.servers.http_addresses import Reach, check_reach, is_this_machine, literal_address
from toolbridge.servers.http_body import ACCEPT_ENCODING, Body
from toolbridge.servers.http_network import CheckedNetwork
from toolbridge.servers.http_rules import HttpRuleError, check_url, same_origin
from toolbridge.version import __version__

PROXY_VARIABLE = "TOOLBRIDGE_PROXY"
"""Proxies of the environment (`HTTPS_PROXY`) are not used: one that resolves names itself undoes the address rules."""

FOR_THE_SERVER = "toolbridge.for_the_server"
"""Marks a request that carries what was configured for the server: it goes to no other origin."""

CLOSE_SECONDS = 1.0
# Servers usually close an idle connection after five seconds; a request sent in that moment would be lost.
_KEEP_ALIVE_SECONDS = 4.0
# The stream of events, sign-in requests, notifications: what is sent beside calls.
_SPARE_CONNECTIONS = 8

# What the libraries below raise. OSError and ssl errors are what a proxy's or a socket's option may let through.
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
    """Sends a request if the rules allow it, whoever made it: us, a redirect, or the SDK's sign-in flow."""

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
        """Send a request.

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
        """Connections are used again with a server that has shown that it keeps them.

        Others close them after each answer without saying so: a call that was sent in that moment would be lost, and
        could not be sent again. What comes first, connecting and listing, can be.
        """
        return self._used_once if self._answers >= 2 and not self._keeps_connections else self._kept

    def _check(self, request: httpx2.Request) -> None:
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
    url: httpx2.URL,
    *,
    secrets: bool,
    connections: int,
    connect_seconds: float,
) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client that sends nothing that `url`'s server should not see, and nothing to where it should not go."""
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
    return httpcore2.Proxy(
        url=httpcore2.URL(
            scheme=proxy.url.raw_scheme, host=proxy.url.raw_host, port=proxy.url.port, target=proxy.url.raw_path
        ),
        auth=proxy.raw_auth,
        headers=proxy.headers.raw,
    )
