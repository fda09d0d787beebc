"""Who is connected: one client over stdio, one for each HTTP session; 2026-07-28 over HTTP has no sessions."""

from __future__ import annotations

import ipaddress
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import anyio
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from toolbridge.serve.caller import Client, ClientKey
from toolbridge.serve.shares import LOOPBACK

if TYPE_CHECKING:
    from mcp.server.session import ServerSession
    from starlette.datastructures import Headers
    from starlette.types import Scope

    from toolbridge.serve.channels import Context

STDIO: ClientKey = ("stdio", "")
HTTP: ClientKey = ("http", "")
"""Every client of 2026-07-28 over HTTP: they are told apart by what only they were given, such as a session's id."""
OPENING: ClientKey = ("opening", "")
"""Requests that come before there is a session."""
GONE = "toolbridge.gone"
"""Where an HTTP request's scope has the event of its client's going away."""
SESSION_HEADER = "mcp-session-id"
_VERSION_HEADER = "mcp-protocol-version"
_MOST = 10_000

_log = logging.getLogger("toolbridge")


class Clients:
    """The clients that are known, and how each can be told of changes."""

    def __init__(self) -> None:
        self._known: OrderedDict[ClientKey, tuple[Client, ServerSession]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, context: Context) -> Client:
        """The client of a request."""
        request: Any = context.request
        key, peer = (STDIO, "") if request is None else (request_key(request.headers), peer_of(request.scope))
        if key == HTTP:
            client = Client(key, peer)
            client.least_level = "debug"  # there, each request says what it wants, and the SDK obeys
            return client
        known = self._known.get(key)
        client = known[0] if known else Client(key, peer)
        if not known and context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            client.least_level = "debug"
        self._known[key] = client, context.session
        self._known.move_to_end(key)
        if len(self._known) > _MOST:
            self._known.popitem(last=False)
        return client

    def forget(self, key: ClientKey) -> None:
        """It is gone."""
        self._known.pop(key, None)

    async def tell_changed(self) -> None:
        """Tell clients of the handshake's era that the tools changed. The others listen for themselves."""
        for key, (_, session) in list(self._known.items()):
            if session.protocol_version in MODERN_PROTOCOL_VERSIONS:
                continue
            try:
                await session.send_tool_list_changed()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                self.forget(key)


def gone_event(context: Context) -> anyio.Event | None:
    """Set when the client of an HTTP request no longer waits for its answer."""
    request: Any = context.request
    return None if request is None else request.scope.get(GONE)


def request_key(headers: Headers) -> ClientKey:
    """Whose an HTTP request says it is, by the header that the SDK tells the eras apart by.

    The SDK refuses a session that it did not open, or that has ended.
    """
    version = headers.get(_VERSION_HEADER)
    if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
        return HTTP  # there are no sessions in 2026-07-28: whoever names one there has made it up
    session = headers.get(SESSION_HEADER)
    return ("session", session) if session else OPENING


def peer_of(scope: Scope) -> str:
    """The address that a request comes from."""
    client: tuple[str, int] | None = scope.get("client")
    return peer_at(client[0] if client else "")


def peer_at(host: str) -> str:
    """The peer at an address: of IPv6 the /64, since one host has all of those, and one for all of loopback."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return LOOPBACK
    is_one_host = isinstance(address, ipaddress.IPv4Address)
    return str(address if is_one_host else ipaddress.ip_network((address, 64), strict=False))
