"""What a connection's own task is woken for."""

from __future__ import annotations

import anyio


class News:
    """Set by whoever notices something; waited for by one task."""

    def __init__(self) -> None:
        self.is_changed = False
        self.is_doubted = False
        self._event = anyio.Event()

    def change(self) -> None:
        """The server says that its tools changed."""
        self.is_changed = True
        self._event.set()

    def doubt(self) -> None:
        """A call got no answer in time."""
        self.is_doubted = True
        self._event.set()

    async def wait_or(self, end: anyio.Event) -> None:
        """Until there is news, or the end."""
        if self._event.is_set() and not (self.is_changed or self.is_doubted):
            self._event = anyio.Event()
        event = self._event
        async with anyio.create_task_group() as tasks:

            async def first(wanted: anyio.Event) -> None:
                await wanted.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(first, event)
            tasks.start_soon(first, end)
