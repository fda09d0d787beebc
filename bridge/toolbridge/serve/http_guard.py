"""SECURITY: HTTP access control (T27): Host, Origin and bearer token, checked before a request's body is read.

A web page in the user's browser can reach loopback. It can't choose its Origin, nor the Host that its name was bound
to, so both are compared: with the addresses that we serve at, and what the operator added.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import anyio

from toolbridge.serve.clients import OPENING, request_key
from toolbridge.serve.fairness import Holder, Shares

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import Message, Receive, Scope


# SECURITY: admission control (T27): requests, HTTP sessions and connections, shared among clients.
# #
# # Without authentication a client is its peer address. A session counts as one of its clients only if we opened it: an
# # unknown session id counts for its peer, and so does every request of 2026-07-28, which has no sessions.


class Requests:
    """Requests in progress: one call per client for free, all else by its share."""

    def __init__(self, total: int) -> None:
        self._shares = Shares(total)
        self._calling: set[Holder] = set()
        """Clients with their free call in progress; bounded by the cap on connections."""
        self._bodies: dict[anyio.CancelScope, tuple[Holder, bool]] = {}
        """Bodies being read, oldest first: the client, and whether in its free call."""
        self.count = 0

    def has_room(self, client: Holder, *, is_call: bool) -> bool:
        """Returns whether a client may start a request. May shed an unread body of it or its address to make room."""
        return self._is_only_call(client, is_call) or self._shares.may_take(client) or self._shed_for(client)

    @contextmanager
    def under_way(self, client: Holder, *, is_call: bool) -> Generator[bool]:
        """Counts a request while it lasts; yields whether it is its client's free call.

        Refuses none: see `has_room`.
        """
        is_only_call = self._is_only_call(client, is_call)
        self.count += 1
        if is_only_call:
            self._calling.add(client)
        else:
            self._shares.take(client)
        try:
            yield is_only_call
        finally:
            self.count -= 1
            if is_only_call:
                self._calling.discard(client)
            else:
                self._shares.give_back(client)

    @contextmanager
    def awaiting_body(self, client: Holder, reading: anyio.CancelScope, *, is_only_call: bool) -> Generator[None]:
        """Registers a body while it is read: shedding it cancels the scope `reading`."""
        self._bodies[reading] = client, is_only_call
        try:
            yield
        finally:
            self._bodies.pop(reading, None)

    def shed(self, peer: str) -> bool:
        """Stops reading the oldest unread body of an address and closes its connection; False if there is none."""
        return self._give_up(lambda client, _: client.peer == peer)

    def _shed_for(self, client: Holder) -> bool:
        """Sheds an unread body of the client, else of its address, but never a free call; False if there is none."""
        return self._give_up(lambda owes, is_only_call: owes == client and not is_only_call) or self._give_up(
            lambda owes, is_only_call: owes.peer == client.peer and not is_only_call
        )

    def _give_up(self, is_meant: Callable[[Holder, bool], bool]) -> bool:
        """Cancels and forgets the oldest body being read that `is_meant(client, is_only_call)` takes; False if none."""
        oldest = next((reading for reading, owed in self._bodies.items() if is_meant(*owed)), None)
        if oldest is None:
            return False
        del self._bodies[oldest]
        oldest.cancel()
        return True

    def _is_only_call(self, client: Holder, is_call: bool) -> bool:
        return is_call and client not in self._calling


@dataclass(slots=True)
class HttpSession:
    """A session that we opened."""

    owner: tuple[str, str]
    """Peer address and User-Agent. The latter is only a hint for eviction."""
    used: float
    requests: int = 0
    calls: int = 0
    """In progress."""
    streams: int = 0


_HANDSHAKE = 1
"""Requests with the new session's id before its first use: `notifications/initialized`."""


class HttpSessions:
    """The sessions that we opened: segmented LRU eviction, from the address with the most.

    Of its sessions: those of a User-Agent with more than half of all, then those that were never used, then the least
    recently used. A User-Agent can be made up, so a few of the same are held against no client.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[str, HttpSession] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, headers: Headers) -> str | None:
        """Returns the session id of a request, if we opened that session; else None."""
        kind, name = request_key(headers)
        return name if kind == "session" and name in self._known else None

    def opens_one(self, headers: Headers, method: str) -> bool:
        """Returns whether a request may open a session: a POST without a session id."""
        return method == "POST" and request_key(headers) == OPENING

    def begin(self, name: str, method: str) -> None:
        """Counts a request of a session, which has to be known: it is not evicted until `end`."""
        session = self._known[name]
        session.requests += 1
        self._use(session, method, 1)

    def end(self, name: str, method: str) -> None:
        """Uncounts a request of a session; ignores unknown ones."""
        if session := self._known.get(name):
            self._use(session, method, -1)

    def _use(self, session: HttpSession, method: str, change: int) -> None:
        """Changes the count of streams (GET) or calls of a session, and marks it as used now."""
        session.used = monotonic()
        if method == "GET":
            session.streams += change
        else:
            session.calls += change

    def add(self, name: str, owner: tuple[str, str]) -> None:
        """Registers a session, without checking the cap: see `victim`."""
        self._known[name] = HttpSession(owner, monotonic())

    def forget(self, name: str) -> None:
        """Removes a session, if it is known."""
        self._known.pop(name, None)

    def victim(self, *, new: str | None = None) -> str | None:
        """Returns the idle session to evict, never `new`; None up to the cap, or if all are in use. Removes nothing."""
        if len(self._known) <= self._most:
            return None
        held = Counter(session.owner for session in self._known.values())
        of_peer = Counter(session.owner[0] for session in self._known.values())
        idle = [name for name in self._idle() if name != new]

        def order(name: str) -> tuple[int, bool, bool, float]:
            """Sorts sessions to be evicted first to the front."""
            session = self._known[name]
            is_greedy = held[session.owner] > self._most // 2
            return -of_peer[session.owner[0]], not is_greedy, session.requests > _HANDSHAKE, session.used

        return min(idle, key=order, default=None)

    def is_full(self) -> bool:
        """Returns whether the cap is reached and no session is idle."""
        return len(self._known) >= self._most and next(self._idle(), None) is None

    def _idle(self) -> Iterator[str]:
        return (name for name, each in self._known.items() if not each.calls and not each.streams)


LEAST_TOKEN = 16


class Refused(NamedTuple):
    """An HTTP refusal."""

    status: int
    words: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Guard:
    """The access rules."""

    hosts: frozenset[str]
    """Accepted values of Host, in lower case, with the port."""
    origins: frozenset[str]
    """Accepted values of Origin. Requests without one are not a browser's."""
    token: str | None = None

    def refusal(self, scope: Scope) -> Refused | None:
        """Returns why a request is refused, by its Host, Origin and token; None if it is accepted."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or _text(hosts[0]).lower() not in self.hosts:
            return Refused(421, "This is not the host that you asked for. --allow-host adds names.")
        for value in (value for name, value in headers if name == b"origin"):
            if _text(value).lower() not in self.origins:
                return Refused(403, "Pages of this origin may not use this server. --allow-origin adds one.")
        if self.token is not None and not _has_token(headers, self.token):
            return Refused(401, "A bearer token is needed.", ((b"www-authenticate", b'Bearer realm="toolbridge"'),))
        return None


def guard_of(
    host: str, port: int, *, more_hosts: tuple[str, ...] = (), origins: tuple[str, ...] = (), token: str | None = None
) -> Guard:
    """Makes the access rules of a listening address; `more_hosts` without a port are accepted with it, too."""
    names: set[str] = set() if is_everywhere(host) else {_bracketed(host).lower()}
    if is_loopback(host):
        names |= {"127.0.0.1", "localhost", "[::1]"}
    own = {f"{name}:{port}" for name in names}
    if port == 80:
        own |= names
    given = {each.lower() for each in more_hosts}
    with_port = {f"{each}:{port}" for each in given if ":" not in each}
    own_origins = {f"http://{each}" for each in own}
    return Guard(
        frozenset(own | given | with_port),
        frozenset(own_origins | {each.lower().rstrip("/") for each in origins}),
        token,
    )


def is_loopback(host: str) -> bool:
    """Returns whether a host is `localhost` or a loopback address; False for other names."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_everywhere(host: str) -> bool:
    """Returns whether a host is the unspecified address: all interfaces. False for names."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def _has_token(headers: list[tuple[bytes, bytes]], token: str) -> bool:
    """Returns whether exactly one Authorization header has this bearer token; compares in constant time."""
    given = [value for name, value in headers if name == b"authorization"]
    if len(given) != 1:
        return False
    scheme, _, value = given[0].partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(value.strip(), token.encode())


def _bracketed(host: str) -> str:
    """Puts an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _text(value: bytes) -> str:
    return value.decode("latin-1")


# SECURITY: request bodies, bounded in size and time (T27).


_BREAK = ((b"connection", b"close"),)


class BodyError(Exception):
    """A body that can't be read to its end."""

    def __init__(self, refused: Refused | None) -> None:
        self.refused = refused
        """None if the client disconnected."""


async def read_body(scope: Scope, receive: Receive, *, most: int, within: anyio.CancelScope) -> bytes | None:
    """Reads the whole body of at most `most` bytes; None if `within` was cancelled before its end.

    Raises:
        BodyError: it is too long, or its sender disconnected.
    """
    for name, value in scope["headers"]:
        if name == b"content-length" and (not value.isdigit() or int(value[:20]) > most):
            raise BodyError(_too_long(most))
    body = bytearray()
    with within:
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise BodyError(None)
            body += message.get("body", b"")
            if len(body) > most:
                raise BodyError(_too_long(most))
            if not message.get("more_body", False):
                return bytes(body)
    return None


class Replay:
    """An ASGI `receive` that replays a body that was read. Sets `gone` when the client disconnects."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive
        self.gone = anyio.Event()

    async def __call__(self) -> Message:
        """Returns the body first, then what the client sends; sets `gone` on a disconnect."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.gone.set()
        return message


def _too_long(most: int) -> Refused:
    return Refused(413, f"The request has more than {most:,} bytes.", _BREAK)
