"""Which programs run: so many at a time, of one client no more than half of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Hashable
from contextlib import contextmanager

import anyio


def share_of(total: int) -> int:
    """What one client may have of something that all share: half, so that others get through, but at least one."""
    return max(1, total // 2)


class Turns:
    """The places for programs that run. Whoever finds none waits in line, first for the client's own, then for any."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._all = anyio.Semaphore(total, fast_acquire=True)
        self._of: dict[Hashable, anyio.Semaphore] = {}
        self._users: Counter[Hashable] = Counter()

    async def acquire(self, owner: Hashable) -> None:
        """Wait for a place. With None for an owner, there is nobody whom it could keep from one."""
        if owner is None:
            await self._all.acquire()
            return
        own = self._of.setdefault(owner, anyio.Semaphore(share_of(self._total), fast_acquire=True))
        self._users[owner] += 1
        try:
            await own.acquire()
            try:
                await self._all.acquire()
            except BaseException:
                own.release()
                raise
        except BaseException:
            self._leave(owner)
            raise

    def release(self, owner: Hashable) -> None:
        """Give a place back."""
        self._all.release()
        if owner is not None:
            self._of[owner].release()
            self._leave(owner)

    def _leave(self, owner: Hashable) -> None:
        self._users[owner] -= 1
        if not self._users[owner]:
            del self._users[owner], self._of[owner]


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
