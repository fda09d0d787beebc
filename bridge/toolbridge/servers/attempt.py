"""One try to connect a server: who waits for it, who may say yes to it, and what it came to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import anyio

from toolbridge.errors import ServerError

if TYPE_CHECKING:
    from toolbridge.servers.connected import Connected
    from toolbridge.servers.start import Start

Place: TypeAlias = Literal["if_free", "make_room", "in_turn"]
"""How much one of the connections there may be is wanted: one that is free, one that an idle server gives up, or one
that others are still on their way to, too."""
_ORDER: tuple[Place, ...] = get_args(Place)


class Attempt:
    """One try to connect, for which any number of tasks may wait.

    It runs in the context of the task that began it, and so does its question whether the server may be connected. Who
    joins it with somebody else to ask does so: the first yes holds for all, and a no for whoever got it.
    """

    def __init__(self, place: Place = "make_room", *, asker: object = None, start: Start | None = None) -> None:
        self.asker = asker
        """Who is asked by the task that began it: see `AsksSomebody`."""
        self.place: Place = place
        self.start = start
        """What may be opened: None until somebody has said so."""
        self.over = anyio.Event()
        """Set when its task has ended, with everything cleaned up."""
        self.decided = anyio.Event()
        """Set when it is known whether the server may be connected: nobody is asked any more."""
        self._askings: set[anyio.CancelScope] = set()
        self._done = anyio.Event()
        self._connection: Connected | None = None
        self._error: ServerError | None = None
        if start is not None:
            self.decided.set()

    @property
    def is_settled(self) -> bool:
        """Whether its outcome is known."""
        return self._done.is_set()

    @property
    def succeeded(self) -> bool:
        """Whether it led to a connection."""
        return self._connection is not None

    def want(self, place: Place) -> None:
        """Somebody joins who wants a connection this much."""
        if _ORDER.index(place) > _ORDER.index(self.place):
            self.place = place

    async def ask(self, question: Callable[[], Awaitable[Start]]) -> Start | None:
        """What a question is answered with; None when somebody else has said yes meanwhile.

        Raises:
            ServerError: whatever the question raises, for the one who asked.
        """
        with anyio.CancelScope() as asking:
            self._askings.add(asking)
            try:
                return await question()
            except ServerError:
                if self.start is None:
                    raise
            finally:
                self._askings.discard(asking)
        return None

    def approve(self, start: Start) -> None:
        """Somebody said yes: the others need not answer any more."""
        if self.start is None:
            self.start = start
            self.decided.set()
            for asking in self._askings:
                asking.cancel()

    def succeed(self, connection: Connected) -> None:
        """Give the connection to those who wait."""
        self._connection = connection
        self._settle()

    def fail(self, error: ServerError) -> None:
        """Give an error to those who wait; too late after a success."""
        if not self.is_settled:
            self._error = error
            self._settle()

    def _settle(self) -> None:
        self.decided.set()
        self._done.set()

    async def outcome(self) -> Connected:
        """Wait for the connection.

        Raises:
            ServerError: the attempt failed.
        """
        await self._done.wait()
        if self._connection is None:
            assert self._error is not None
            raise self._error.with_traceback(None)  # not with the last waiter's
        return self._connection
