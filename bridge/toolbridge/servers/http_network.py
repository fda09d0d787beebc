"""SECURITY: connects to checked addresses only (T27).

A host is resolved here, each address is checked, and the connection is made to the very address that was checked: there
is no second resolution in which the answer could change. TLS and the `Host` header still use the name.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Iterable, Sequence
from typing import Any

import anyio
import httpcore2

from toolbridge.servers.http_addresses import (
    Address,
    AddressRefusedError,
    Reach,
    check_host_name,
    check_reach,
    is_this_machine,
    literal_address,
)

_HEAD_START = 0.25
"""How long one address of a host may take to answer before the next one is tried beside it."""
_MOST_ADDRESSES = 8
_CLOSE_SECONDS = 1.0


class CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """The network as one server's client may use it. Unix sockets are no part of it."""

    def __init__(self, configured_host: str, *, proxy_host: str | None = None) -> None:
        self.connections = 0
        """How many have been opened."""
        self._configured_host = configured_host
        self._proxy_host = proxy_host
        self._reach: Reach | None = None
        """How near the configured host turned out to be. It may move away from us, never towards us."""
        self._backend: Any = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the interface is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to an address of a host that may be reached.

        Raises:
            AddressRefusedError: none of its addresses may be.
        """
        del local_address, socket_options
        try:
            with anyio.fail_after(timeout):
                return await self._first_to_answer(await self._checked_addresses(host, port), port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"{host} did not accept a connection in time") from None

    async def _checked_addresses(self, host: str, port: int) -> list[Address]:
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
        """How near a host may be: what the configuration says of its own host, what that one is for all others."""
        if host != self._configured_host:
            return Reach.PUBLIC if self._reach is None else self._reach
        if self._reach is not None:
            return self._reach
        return Reach.LOOPBACK if is_this_machine(host) else Reach.PRIVATE

    async def _first_to_answer(self, addresses: Sequence[Address], port: int) -> httpcore2.AsyncNetworkStream:
        """The connection to whichever address answers first, the earlier ones having a head start."""
        answered: list[httpcore2.AsyncNetworkStream] = []
        failures: list[Exception] = []

        async def attempt(address: Address, done: anyio.Event) -> None:
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
            # Whoever came too late, and everybody when nobody waits any more.
            for stream in answered:
                await _close(stream)


class _ClosedWhenCancelled(httpcore2.AsyncNetworkStream):
    """A connection that a cancelled handshake does not leave open."""

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
    """Every address of a host.

    Raises:
        httpcore2.ConnectError: it has none.
    """
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
