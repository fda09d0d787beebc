"""SECURITY: admission control over HTTP (T27): requests, HTTP sessions and connections, shared among clients.

Without authentication a client is its peer address. A session counts as a client of its own only if we opened it: a
session id that a request merely names is its peer's, and so is every request of 2026-07-28, which has no sessions.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from toolbridge.serve.clients import OPENING, request_key

if TYPE_CHECKING:
    import anyio
    from starlette.datastructures import Headers

    from toolbridge.serve.caller import ClientKey


class Requests:
    """Requests under way: a dynamic threshold. A client has at most as many as are free: alone, half of them.

    However many clients are greedy, each leaves room for one more. Beside that, each session that we opened may always
    have one call under way.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._of: Counter[ClientKey] = Counter()
        self._bodies: OrderedDict[anyio.CancelScope, ClientKey] = OrderedDict()
        self.count = 0

    def has_room(self, client: ClientKey) -> bool:
        """Whether a client may have another one. An older one whose body has yet to arrive makes room for it."""
        return self._of[client] < self._total - self.count or self.shed(client)

    def add(self, client: ClientKey) -> None:
        """One more is under way."""
        self.count += 1
        self._of[client] += 1

    def remove(self, client: ClientKey) -> None:
        """It is over."""
        self.count -= 1
        self._of[client] -= 1
        if not self._of[client]:
            del self._of[client]

    def expect_body(self, client: ClientKey, reading: anyio.CancelScope) -> None:
        """A body has yet to arrive."""
        self._bodies[reading] = client

    def end_body(self, reading: anyio.CancelScope) -> bool:
        """It arrived, or never will. Whether it was shed."""
        return self._bodies.pop(reading, None) is None

    def shed(self, client: ClientKey | None = None) -> bool:
        """Give up the body that is awaited the longest, of this client if there is one."""
        oldest = next((each for each, of in self._bodies.items() if of == client), next(iter(self._bodies), None))
        if oldest is None:
            return False
        del self._bodies[oldest]
        oldest.cancel()
        return True


@dataclass(slots=True)
class HttpSession:
    """One that we opened."""

    owner: tuple[str, str]
    """Peer address and User-Agent. The latter is a hint, and only for whose sessions to evict first."""
    used: float
    requests: int = 0
    calls: int = 0
    """Under way."""
    streams: int = 0


_HANDSHAKE = 1
"""Requests that carry the new session's id before it is put to use: `notifications/initialized`."""


class HttpSessions:
    """The sessions that we opened: segmented LRU. Who has the most loses first; of those, one that was never used."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[str, HttpSession] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, headers: Headers) -> str | None:
        """The session of a request, if it names one that we opened."""
        kind, name = request_key(headers)
        return name if kind == "session" and name in self._known else None

    def opens_one(self, headers: Headers, method: str) -> bool:
        """Whether a request may open a session."""
        return method == "POST" and request_key(headers) == OPENING

    def has_call(self, name: str) -> bool:
        """Whether a call of it is under way."""
        return self._known[name].calls > 0

    def begin(self, name: str, method: str) -> None:
        """A request of it is under way."""
        session = self._known[name]
        session.requests += 1
        self._use(session, method, 1)

    def end(self, name: str, method: str) -> None:
        """It is over."""
        if session := self._known.get(name):
            self._use(session, method, -1)

    def _use(self, session: HttpSession, method: str, change: int) -> None:
        session.used = monotonic()
        if method == "GET":
            session.streams += change
        else:
            session.calls += change

    def add(self, name: str, owner: tuple[str, str]) -> None:
        """It was opened."""
        self._known[name] = HttpSession(owner, monotonic())

    def forget(self, name: str) -> None:
        """It has ended."""
        self._known.pop(name, None)

    def victim(self, *, new: str | None = None) -> str | None:
        """The session to evict for a new one, if there are too many: an idle one, least recently used."""
        if len(self._known) <= self._most:
            return None
        held = Counter(session.owner for session in self._known.values())
        idle = [name for name in self._idle() if name != new]

        def order(name: str) -> tuple[int, bool, float]:
            session = self._known[name]
            return -held[session.owner], session.requests > _HANDSHAKE, session.used

        return min(idle, key=order, default=None)

    def is_full(self) -> bool:
        """Whether there are too many, and none of them is idle."""
        return len(self._known) >= self._most and next(self._idle(), None) is None

    def _idle(self) -> Iterator[str]:
        return (name for name, each in self._known.items() if not each.calls and not each.streams)
