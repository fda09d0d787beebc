"""Run concurrency: a per-client fair semaphore, with a dynamic threshold and fair scheduling in round-robin order."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import anyio

if TYPE_CHECKING:
    from toolbridge.serve.clients import ClientKey


# SECURITY: shares of a limited resource: a dynamic threshold in two levels, addresses and their clients (T27).


LOOPBACK = "loopback"
"""The peer of every local client: any local program can connect from all of 127.0.0.0/8."""


class Holder(NamedTuple):
    """One client of an address."""

    peer: str
    key: ClientKey


class Shares:
    """Dynamic threshold: an address holds at most as much as is free (alone: half).

    A client of it holds at most as much as its address may still take (alone: a quarter of all). However many are
    greedy, each leaves room for one more. Loopback is the whole machine: there, each client has an address's threshold.
    """

    def __init__(self, total: int) -> None:
        self.free = total
        self._of: Counter[Holder] = Counter()
        self._of_peer: Counter[str] = Counter()

    def may_take(self, holder: Holder) -> bool:
        """Returns whether a client may take one more; takes nothing."""
        room = self.free if holder.peer == LOOPBACK else (self.free - self._of_peer[holder.peer] + 1) // 2
        return self._of[holder] < room

    def held_by(self, peer: str) -> int:
        """Returns how much an address holds."""
        return self._of_peer[peer]

    def greediest(self) -> str:
        """Returns the address that holds the most; empty if none holds any."""
        return max(self._of_peer, key=self._of_peer.__getitem__, default="")

    def take(self, holder: Holder) -> None:
        """Takes one share for a client, without checking `may_take`."""
        self.free -= 1
        self._of[holder] += 1
        self._of_peer[holder.peer] += 1

    def give_back(self, holder: Holder) -> None:
        """Gives one share of a client back."""
        self.free += 1
        self._of[holder] -= 1
        self._of_peer[holder.peer] -= 1
        if not self._of[holder]:
            del self._of[holder]
        if not self._of_peer[holder.peer]:
            del self._of_peer[holder.peer]


class RunPermits:
    """Per-client fair semaphore: waiting addresses are served in turn, and so are the clients of each."""

    def __init__(self, total: int) -> None:
        self._shares = Shares(total)
        self._waiting: dict[str, dict[Holder | None, deque[anyio.Event]]] = {}

    async def acquire(self, owner: Holder | None) -> None:
        """Waits for a permit within the owner's share. An owner of None may hold all of them: it is the only client."""
        waiter = anyio.Event()
        self._waiting.setdefault(_peer(owner), {}).setdefault(owner, deque()).append(waiter)
        self._grant()
        try:
            await waiter.wait()
        except BaseException:
            if waiter.is_set():
                self.release(owner)
            else:
                self._leave(owner, waiter)
            raise

    def release(self, owner: Holder | None) -> None:
        """Releases a permit of an owner, and grants free ones to waiters that may have them."""
        self._shares.give_back(owner or _ALONE)
        self._grant()

    def _grant(self) -> None:
        """Grants free permits in round-robin order to waiters whose share allows it."""
        while self._shares.free and (found := self._next()):
            (owner,) = found
            peer, waiter = _peer(owner), self._waiting[_peer(owner)][owner][0]
            self._leave(owner, waiter)
            if peer in self._waiting:  # to the end of the queue
                owners = self._waiting[peer] = self._waiting.pop(peer)
                if owner in owners:
                    owners[owner] = owners.pop(owner)
            self._shares.take(owner or _ALONE)
            waiter.set()

    def _next(self) -> tuple[Holder | None] | None:
        """Returns the next owner that may have a permit, in a tuple as None is an owner; None if there is none."""
        owners = (owner for waiting in self._waiting.values() for owner in waiting)
        return next(((owner,) for owner in owners if owner is None or self._shares.may_take(owner)), None)

    def _leave(self, owner: Holder | None, waiter: anyio.Event) -> None:
        """Removes a waiter of an owner from the queue."""
        peer = _peer(owner)
        owners = self._waiting[peer]
        owners[owner].remove(waiter)
        if not owners[owner]:
            del owners[owner]
        if not owners:
            del self._waiting[peer]


_ALONE = Holder("", ("", ""))
"""The holder of permits without an owner."""


def _peer(owner: Holder | None) -> str:
    """Returns the address of an owner; empty for none."""
    return "" if owner is None else owner.peer


class RunPermit:
    """A program's run permit, released while a person thinks."""

    def __init__(self, permits: RunPermits, owner: Holder | None) -> None:
        self._permits = permits
        self._owner = owner
        self._is_held = False
        self._is_over = False
        self._questions = 0
        self._taking = anyio.Lock()

    async def take(self) -> None:
        """Waits for the permit; returns without it if a question is open or the program is over.

        Does nothing if it is held. The task that asked a question takes the permit again afterwards.
        """
        async with self._taking:
            if self._is_held or self._questions or self._is_over:
                return
            await self._permits.acquire(self._owner)
            self._is_held = True
            if self._questions or self._is_over:
                self._release()

    def end(self) -> None:
        """Releases the permit for good: later calls of `take` do nothing."""
        self._is_over = True
        self._release()

    @contextmanager
    def released(self) -> Generator[None]:
        """Releases the permit while a question is open; `take` acquires it again afterwards. Questions may overlap."""
        self._questions += 1
        self._release()
        try:
            yield
        finally:
            self._questions -= 1

    def _release(self) -> None:
        """Releases the permit if it is held."""
        if self._is_held:
            self._is_held = False
            self._permits.release(self._owner)
