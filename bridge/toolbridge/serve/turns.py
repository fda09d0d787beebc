"""Run concurrency: a semaphore that clients share fairly, by a dynamic threshold and in round-robin order."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Hashable
from contextlib import contextmanager

import anyio


class Turns:
    """A fair semaphore: an owner holds at most as many places as are free (alone: half); waiting owners take turns."""

    def __init__(self, total: int) -> None:
        self._free = total
        self._held: Counter[Hashable] = Counter()
        self._waiting: dict[Hashable, deque[anyio.Event]] = {}

    async def acquire(self, owner: Hashable) -> None:
        """Wait for a place. None as an owner may hold all of them: there is nobody else."""
        waiter = anyio.Event()
        self._waiting.setdefault(owner, deque()).append(waiter)
        self._grant()
        try:
            await waiter.wait()
        except BaseException:
            if waiter.is_set():
                self.release(owner)
            else:
                self._leave(owner, waiter)
            raise

    def release(self, owner: Hashable) -> None:
        """Give a place back."""
        self._free += 1
        self._held[owner] -= 1
        if not self._held[owner]:
            del self._held[owner]
        self._grant()

    def _grant(self) -> None:
        """Each waiting owner gets a place in turn, while it may have one."""
        while self._free and (owner := next(filter(self._may_hold_more, self._waiting), self)) is not self:
            waiter = self._waiting[owner][0]
            self._leave(owner, waiter)
            if owner in self._waiting:
                self._waiting[owner] = self._waiting.pop(owner)  # to the end: others are next
            self._free -= 1
            self._held[owner] += 1
            waiter.set()

    def _may_hold_more(self, owner: Hashable) -> bool:
        return owner is None or self._held[owner] < self._free

    def _leave(self, owner: Hashable, waiter: anyio.Event) -> None:
        self._waiting[owner].remove(waiter)
        if not self._waiting[owner]:
            del self._waiting[owner]


class Turn:
    """One program's place. It is given up while a person thinks: others may run meanwhile."""

    def __init__(self, turns: Turns, owner: Hashable) -> None:
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
