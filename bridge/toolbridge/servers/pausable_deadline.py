"""Deadlines that are a server's, and stand still while a person is asked to sign in.

A request, the call that it belongs to, and the connecting that it is a part of each have one: a person who takes their
time must outlast all of them. Nothing here needs the SDK, which is imported only once a server is approved.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

import anyio


class PausableDeadline:
    """The deadline of one cancel scope. Several may wait for the same person: the last one lets it go on."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope
        self._pauses = 0
        self._left = math.inf

    def lift(self) -> None:
        """There is no hurry any more, and no pause that ends later brings it back."""
        self._scope.deadline = self._left = math.inf

    @contextmanager
    def paused(self) -> Generator[None]:
        """While it stands still."""
        if self._pauses == 0:
            self._left = self._scope.deadline - anyio.current_time()
            self._scope.deadline = math.inf
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0:
                self._scope.deadline = anyio.current_time() + self._left


_deadlines: ContextVar[tuple[PausableDeadline, ...]] = ContextVar("toolbridge_deadlines", default=())


@contextmanager
def pausable(scope: anyio.CancelScope) -> Generator[PausableDeadline]:
    """What is done inside may have to wait for a person, for which this scope's deadline is not meant."""
    deadline = PausableDeadline(scope)
    token = _deadlines.set((*_deadlines.get(), deadline))
    try:
        yield deadline
    finally:
        _deadlines.reset(token)


def deadlines_around() -> tuple[PausableDeadline, ...]:
    """Those inside which this is called."""
    return _deadlines.get()


@contextmanager
def waiting_for_a_person() -> Generator[None]:
    """Every deadline around stands still: they are for the server."""
    with ExitStack() as pauses:
        for deadline in deadlines_around():
            pauses.enter_context(deadline.paused())
        yield
