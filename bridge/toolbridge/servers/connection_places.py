"""SECURITY: the connections there may be at once, and who gives one up when all are taken (T9).

A place is held from before a server is started until everything of it is cleaned up, also by a server that a reload has
taken out of the configuration. When there is none left, the server that was not used for longest is closed, if nobody
waits for it or has a call under way. What it gave up is no respawn: it did not fail.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from toolbridge.errors import ConnectionLimitError
from toolbridge.servers.attempt import Attempt
from toolbridge.servers.slot import Slot

_log = logging.getLogger("toolbridge")


class ConnectionPlaces:
    """Who holds one. Counting and taking are one step: no other task runs between."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._holders: set[Slot] = set()
        self._waiting = 0
        self._news = anyio.Event()

    async def take(self, slot: Slot, attempt: Attempt) -> None:
        """Take one, or wait for one that is about to be given up.

        Raises:
            ConnectionLimitError: all are held, and none can be given up.
        """
        if slot.own_tools is not None:
            return  # there is nothing to hold
        while len(self._holders) >= self._most():
            if not self._one_is_coming():
                idle = self._to_give_up(attempt)
                if idle is not None:
                    _give_up(idle, slot)
                elif attempt.place != "in_turn" or not any(_is_under_way(holder) for holder in self._holders):
                    raise self._refused(slot)
            await self._next_news()
        self._holders.add(slot)

    def give_back(self, slot: Slot) -> None:
        """Nothing of it is left."""
        self._holders.discard(slot)
        self.notice()

    def notice(self) -> None:
        """Something changed that those who wait for a place may have waited for."""
        if self._waiting:
            self._news.set()

    async def _next_news(self) -> None:
        if not self._waiting or self._news.is_set():
            self._news = anyio.Event()
        self._waiting += 1
        try:
            await self._news.wait()
        finally:
            self._waiting -= 1

    def _one_is_coming(self) -> bool:
        """Whether more are being given up than are waited for already."""
        return sum(_is_leaving(holder) for holder in self._holders) > self._waiting

    def _to_give_up(self, attempt: Attempt) -> Slot | None:
        """The idle server that was not used for longest; those that were only asked for their tools come first."""
        if attempt.place == "if_free":
            return None
        idle = [holder for holder in self._holders if _is_idle(holder)]
        if attempt.place == "in_turn" and any(_is_under_way(holder) for holder in self._holders):
            # One of those will be as good in a moment, and what somebody uses stays.
            idle = [holder for holder in idle if not holder.last_used]
        return min(idle, key=lambda holder: (holder.last_used, holder.name), default=None)

    def _refused(self, slot: Slot) -> ConnectionLimitError:
        names = ", ".join(sorted(holder.name for holder in self._holders))
        return ConnectionLimitError(
            slot.name,
            f"can't be connected: {len(self._holders)} servers are connected and in use ({names}), and no more than "
            f"{self._most()} may be. Try again later, close one, or raise `limits.connections`",
        )


def _is_leaving(holder: Slot) -> bool:
    """Whether it was closed, ended or failed, and is being cleaned up."""
    is_settled = holder.attempt is not None and holder.attempt.is_settled
    return holder.closing or (is_settled and (holder.connection is None or holder.connection.ended))


def _is_idle(holder: Slot) -> bool:
    return not holder.users and holder.connection is not None and not _is_leaving(holder)


def _is_under_way(holder: Slot) -> bool:
    """Whether it is on its way to a connection, or away from one, or about to be idle."""
    return holder.connection is None or _is_leaving(holder) or 0 < holder.users == holder.visitors


def _give_up(holder: Slot, wanted_for: Slot) -> None:
    reason = f"closed to make room for server {wanted_for.name!r}"
    _log.info("Server %r was %s.", holder.name, reason)
    holder.started -= 1
    holder.stop(reason)
