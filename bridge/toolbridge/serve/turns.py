"""Run concurrency: a semaphore that clients share fairly, by a dynamic threshold and in round-robin order."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from contextlib import contextmanager

import anyio

from toolbridge.serve.shares import Holder, Shares


class Turns:
    """A fair semaphore: clients hold their shares; addresses that wait take turns, and so do the clients of each."""

    def __init__(self, total: int) -> None:
        self._shares = Shares(total)
        self._waiting: dict[str, dict[Holder | None, deque[anyio.Event]]] = {}

    async def acquire(self, owner: Holder | None) -> None:
        """Wait for a place. None as an owner may hold all of them: there is nobody else."""
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
        """Give a place back."""
        self._shares.give_back(owner or _ALONE)
        self._grant()

    def _grant(self) -> None:
        """Each waiting owner gets a place in turn, while it may have one."""
        while self._shares.free and (found := self._next()):
            (owner,) = found
            peer, waiter = _peer(owner), self._waiting[_peer(owner)][owner][0]
            self._leave(owner, waiter)
            if peer in self._waiting:  # to the end: others are next
                owners = self._waiting[peer] = self._waiting.pop(peer)
                if owner in owners:
                    owners[owner] = owners.pop(owner)
            self._shares.take(owner or _ALONE)
            waiter.set()

    def _next(self) -> tuple[Holder | None] | None:
        owners = (owner for waiting in self._waiting.values() for owner in waiting)
        return next(((owner,) for owner in owners if owner is None or self._shares.may_take(owner)), None)

    def _leave(self, owner: Holder | None, waiter: anyio.Event) -> None:
        peer = _peer(owner)
        owners = self._waiting[peer]
        owners[owner].remove(waiter)
        if not owners[owner]:
            del owners[owner]
        if not owners:
            del self._waiting[peer]


_ALONE = Holder("", ("", ""))
"""Whose places those of no owner are."""


def _peer(owner: Holder | None) -> str:
    return "" if owner is None else owner.peer


class Turn:
    """One program's place. It is given up while a person thinks: others may run meanwhile."""

    def __init__(self, turns: Turns, owner: Holder | None) -> None:
        self._turns = turns
        self._owner = owner
        self._is_held = False
        self._is_over = False
        self._questions = 0
        self._taking = anyio.Lock()

    async def take(self) -> None:
        """Wait for it, unless it is held, or a question is open: whoever asked that takes it afterwards."""
        async with self._taking:
            if self._is_held or self._questions or self._is_over:
                return
            await self._turns.acquire(self._owner)
            self._is_held = True
            if self._questions or self._is_over:
                self._give_up()

    def end(self) -> None:
        """The program is over."""
        self._is_over = True
        self._give_up()

    @contextmanager
    def given_up(self) -> Generator[None]:
        """While a question is open; `take` takes it back. A program may have several questions at once."""
        self._questions += 1
        self._give_up()
        try:
            yield
        finally:
            self._questions -= 1

    def _give_up(self) -> None:
        if self._is_held:
            self._is_held = False
            self._turns.release(self._owner)
