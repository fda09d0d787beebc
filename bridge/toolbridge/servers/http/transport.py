"""Remote servers: streamable HTTP, and the older HTTP+SSE transport."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import anyio
import anyio.abc
import httpx2

from toolbridge.config.server_config import ServerConfig, ServerLimits
from toolbridge.errors import ServerConnectError, ServerTimeoutError
from toolbridge.servers.auth.oauth import OAuthSession
from toolbridge.servers.auth.sign_in import SignIn
from toolbridge.servers.auth.tokens import TokenStore, place_of
from toolbridge.servers.connection import ServerChannel
from toolbridge.servers.failures import RequestTimedOutError
from toolbridge.servers.http.answers import EVENT_STREAM
from toolbridge.servers.http.client import HttpClient, busy_delay
from toolbridge.servers.http.network import open_client
from toolbridge.servers.http.sse import SsePipe, check_event_stream
from toolbridge.servers.http.ssrf import HttpRuleError, check_headers, check_url, is_this_machine
from toolbridge.servers.http.streamable import HttpDispatcher, RequestsInFlight, seconds_left
from toolbridge.servers.jsonrpc import LineDispatcher, encode_line

_END_SESSION_SECONDS = 1.0
_AUTHORIZATION = "authorization"


@asynccontextmanager
async def open_http(
    server: ServerConfig,
    headers: Mapping[str, str],
    limits: ServerLimits,
    *,
    sign_in: SignIn | None,
    client_secret: str | None = None,
    store: TokenStore | None = None,
) -> AsyncGenerator[ServerChannel]:
    """Open a channel to a server by streamable HTTP. Nothing is sent before the first request.

    Leaving the context ends the session at the server.

    Args:
        server: its configuration.
        headers: its headers, with references resolved.
        limits: the caps that hold.
        sign_in: asks a person, where the server wants a sign-in; without it, such a server is refused with advice.
        client_secret: OAuth's, with its reference resolved.
        store: where sign-ins are kept, if not in the usual place.

    Raises:
        ServerConnectError: the URL or a header is against the rules.
    """
    async with _open_client(server, headers, limits, sign_in, client_secret=client_secret, store=store) as http:
        dispatcher = HttpDispatcher(http, limits)
        try:
            yield ServerChannel(dispatcher, dispatcher.end_reason, http.tokens, mirrors_headers=True)
        finally:
            with anyio.move_on_after(_END_SESSION_SECONDS, shield=True):
                await dispatcher.end_session()


@asynccontextmanager
async def open_sse(
    server: ServerConfig,
    headers: Mapping[str, str],
    limits: ServerLimits,
    *,
    sign_in: SignIn | None,
    client_secret: str | None = None,
    store: TokenStore | None = None,
) -> AsyncGenerator[ServerChannel]:
    """Open a channel to a server of the older transport; waits for its endpoint. The caller bounds the time.

    A busy server is asked again. For the parameters, see `open_http`.

    Raises:
        ServerConnectError: against the rules, not reached, or no server of this kind.
        ServerDisconnectedError: it broke off.
    """
    async with _open_client(server, headers, limits, sign_in, client_secret=client_secret, store=store) as http:
        wanted = {"accept": EVENT_STREAM, "cache-control": "no-store"}
        # Some answer a post only when they have answered the call in it.
        limits = replace(limits, call_seconds=server.call_timeout or limits.call_seconds)
        for attempts in count(1):
            async with http.send("GET", wanted, may_sign_in=True) as response:
                wait, left = response.headers.get("retry-after"), seconds_left()
                delay = busy_delay(response.status_code, wait, attempts=attempts, seconds_left=left)
                if delay is None:
                    check_event_stream(server.name, response)
                    yield await _sse_channel(http, response, limits)
                    return
            await anyio.sleep(delay)


async def _sse_channel(http: HttpClient, response: httpx2.Response, limits: ServerLimits) -> ServerChannel:
    """Wait for the server's endpoint in the stream, and build the channel. Raises `ServerConnectError` without one."""
    pipe = SsePipe(http, response, limits)
    await pipe.find_endpoint()
    dispatcher = LineDispatcher(pipe, limits.message_bytes)
    pipe.on_failure = dispatcher.fail
    return ServerChannel(dispatcher, lambda: pipe.end_reason, http.tokens)


async def sign_in_to(
    server: ServerConfig,
    headers: Mapping[str, str],
    limits: ServerLimits,
    *,
    sign_in: SignIn,
    client_secret: str | None = None,
    store: TokenStore | None = None,
) -> bool:
    """Have a person sign in to a server now, by sending it a harmless request; false if no sign-in was wanted.

    The server's own time is bounded, the person's is not.

    Raises:
        ServerError: nobody signed in, or the server was not reached.
    """
    sent: dict[str, Any] = {"headers": {"accept": EVENT_STREAM}}
    if server.transport == "http":
        kinds = {"accept": f"application/json, {EVENT_STREAM}", "content-type": "application/json"}
        sent = {"headers": kinds, "content": encode_line({"jsonrpc": "2.0", "id": 1, "method": "ping"})}
    method = "POST" if "content" in sent else "GET"
    seconds = server.connect_timeout or limits.connect_seconds
    signed_in = False
    async with _open_client(server, headers, limits, sign_in, client_secret=client_secret, store=store) as http:
        try:
            # Not `fail_after`: the time that a person takes does not count.
            with RequestsInFlight().waiting(method, 1, {"timeout": seconds}):
                async with http.send(method, **sent, may_sign_in=True):
                    signed_in = http.is_signed_in
        except RequestTimedOutError:
            raise ServerTimeoutError(server.name, f"did not answer within {seconds:g} s") from None
    return signed_in


async def sign_out(server: ServerConfig, *, store: TokenStore | None = None) -> bool:
    """Delete the stored sign-in to a server; False if there was none."""
    url = _checked_url(server, secrets=False)
    return await (store or TokenStore()).remove(server.name, place_of(server, url))


@asynccontextmanager
async def _open_client(
    server: ServerConfig,
    headers: Mapping[str, str],
    limits: ServerLimits,
    sign_in: SignIn | None,
    *,
    client_secret: str | None,
    store: TokenStore | None,
) -> AsyncGenerator[HttpClient]:
    """Open a client for one server within the context, with OAuth unless it has an Authorization header or plain http.

    Raises:
        ServerConnectError: a header or the URL is against the rules.
    """
    try:
        secrets = check_headers(headers)
    except HttpRuleError as error:
        raise ServerConnectError(server.name, f"was not reached: {error}") from None
    url = _checked_url(server, secrets=secrets or server.oauth is not None)
    connect_seconds = server.connect_timeout or limits.connect_seconds
    opening = open_client(url, secrets=secrets, connections=limits.calls_in_flight, connect_seconds=connect_seconds)
    async with opening as client:
        if _AUTHORIZATION in (name.lower() for name in headers):
            yield HttpClient(server.name, url, headers, client, unauthorized="it refuses the Authorization header")
        elif url.scheme == "http" and not is_this_machine(url.raw_host.decode("ascii")):
            refused = "it wants a sign-in, whose tokens are not sent unencrypted: use https"
            yield HttpClient(server.name, url, headers, client, unauthorized=refused)
        else:
            async with _tasks_beside() as tasks:
                session = OAuthSession(
                    server.name,
                    place_of(server, url),
                    url,
                    client,
                    options=server.oauth,
                    client_secret=client_secret,
                    store=store or TokenStore(),
                    sign_in=sign_in,
                    tasks=tasks,
                )
                try:
                    yield HttpClient(server.name, url, headers, client, session=session)
                finally:
                    session.close()


@asynccontextmanager
async def _tasks_beside() -> AsyncGenerator[anyio.abc.TaskGroup]:
    """Open a task group whose tasks must not fail: an error of the context's body is raised unwrapped."""
    try:
        async with anyio.create_task_group() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        (error,) = group.exceptions
        raise error from error.__cause__


def _checked_url(server: ServerConfig, *, secrets: bool) -> httpx2.URL:
    """Return the server's URL if requests may go to it. Raises `ServerConnectError` otherwise."""
    try:
        return check_url(server.url or "", secrets=secrets)
    except HttpRuleError as error:
        raise ServerConnectError(server.name, f"was not reached: {error}") from None
