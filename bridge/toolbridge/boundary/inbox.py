"""Where one thread waits for what others hand it, until a moment that it names.

Not a `queue.SimpleQueue`: of a wait that is nearly over, that one can make an endless wait (its `get` looks at the
clock between two tries, and takes a time that is over by then for none at all), and a run would outlive its deadline.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")
# The longest that a lock can be waited for at once is not endless, and differs between systems.
_LONGEST_WAIT = 3600.0


class NothingArrivedError(Exception):
    """The time was over first."""


class Inbox(Generic[T]):
    """Items in the order in which they came. Any thread may `put`, one may `take`."""

    __slots__ = ("_arrived", "_items")

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._arrived = threading.Lock()
        """Held, except when something has come since it was last taken: to wait is to take it."""
        self._arrived.acquire()

    def put(self, item: T) -> None:
        """Hands an item over."""
        self._items.append(item)
        if self._arrived.locked():
            with contextlib.suppress(RuntimeError):  # another thread was first
                self._arrived.release()

    def take(self, until: float) -> T:
        """The next item.

        Raises:
            NothingArrivedError: there was none before that time (monotonic clock).
        """
        while True:
            try:
                return self._items.popleft()
            except IndexError:
                left = until - monotonic()
            if left <= 0 or not self._arrived.acquire(timeout=min(left, _LONGEST_WAIT)):
                if self._items or monotonic() < until:
                    continue
                raise NothingArrivedError from None
