"""Who may get tokens for a server now: one at a time, and those who wait may come to wait for a person."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager

import anyio

from toolbridge.servers.pausable_deadline import deadlines_around


class SignInTurns:
    """The turns of one session."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._asking = False
        self._in_line: list[Callable[[], None]] = []
        """What makes the deadlines of each who waits stand still."""

    @asynccontextmanager
    async def taking(self) -> AsyncGenerator[None]:
        """Wait for one's turn, and have it."""
        deadlines = deadlines_around()
        with ExitStack() as pauses:

            def stand_still() -> None:
                for deadline in deadlines:
                    pauses.enter_context(deadline.paused())

            self._in_line.append(stand_still)
            try:
                if self._asking:
                    stand_still()
                await self._lock.acquire()
            finally:
                self._in_line.remove(stand_still)
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def asking(self) -> Generator[None]:
        """Whoever has the turn asks a person. The others wait for the same one, also those who came before that."""
        self._asking = True
        for stand_still in self._in_line:
            stand_still()
        try:
            yield
        finally:
            self._asking = False
