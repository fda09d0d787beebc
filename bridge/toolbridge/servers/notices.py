"""Notifications of a server that wait to be handled: a flood of them costs neither memory nor a change."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

_CHANGED = "/list_changed"

_LOGGER = logging.getLogger("toolbridge")


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification, and what is to be done about it."""

    method: str
    size: int
    """Of the line it came in."""
    handle: Callable[[], Awaitable[None]]

    @property
    def says_only_that(self) -> bool:
        """Whether a second one in line would say nothing new, while losing the only one would lose a change."""
        return self.method.endswith(_CHANGED)


class Notices:
    """Handled one by one, in order. When they come faster than that, the newest are dropped."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._waiting: deque[Notice] = deque()
        self._bytes = 0
        self._filled = anyio.Event()

    def add(self, notice: Notice) -> int:
        """Put one in line; how many were lost by that."""
        lost = 0
        if notice.says_only_that:
            if any(waiting.method == notice.method for waiting in self._waiting):
                return 0
            while self._waiting and not self._has_room(notice.size):
                self._take()
                lost += 1
        elif self._waiting and not self._has_room(notice.size):
            return 1
        self._waiting.append(notice)
        self._bytes += notice.size
        self._filled.set()
        return lost

    async def handle_all(self) -> None:
        """Handle what comes, for as long as the channel is open."""
        while True:
            if not self._waiting:
                self._filled = anyio.Event()
                await self._filled.wait()
            notice = self._take()
            try:
                await notice.handle()
            except Exception:
                _LOGGER.exception("Handling a server's %r failed", notice.method)

    def _has_room(self, size: int) -> bool:
        return len(self._waiting) < self._most and self._bytes + size <= self._most_bytes

    def _take(self) -> Notice:
        notice = self._waiting.popleft()
        self._bytes -= notice.size
        return notice
