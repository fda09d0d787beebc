"""Lines on their way to a server that may read slowly, or never. Sending never waits, and never cuts a line in two."""

from __future__ import annotations

from collections import deque
from typing import Protocol

import anyio


class SendPipe(Protocol):
    """Where lines go."""

    def send_nowait(self, data: bytes | memoryview) -> int:
        """How many of the bytes there was room for.

        Raises:
            OSError: nobody reads any more.
        """
        ...

    async def wait_until_sendable(self) -> None:
        """Until there may be room."""
        ...


class WaitingLine:
    """A line for which the pipe had no room yet."""

    __slots__ = ("data", "sent")

    def __init__(self, data: bytes, sent: int) -> None:
        self.data = data
        self.sent = sent


class Outbox:
    """Writes at once where the pipe has room, which costs one system call and no task; keeps the rest in line."""

    def __init__(self, pipe: SendPipe, most_waiting_bytes: int) -> None:
        self._pipe = pipe
        self._most_waiting_bytes = most_waiting_bytes
        self._waiting: deque[WaitingLine] = deque()
        self._waiting_bytes = 0
        self._filled = anyio.Event()

    @property
    def is_full(self) -> bool:
        """Whether nothing should be added that nobody waits for."""
        return self._waiting_bytes > self._most_waiting_bytes

    def send(self, data: bytes) -> WaitingLine | None:
        """Send a line; what is returned still waits, and can be withdrawn.

        Raises:
            OSError: nobody reads any more.
        """
        sent = 0 if self._waiting else self._pipe.send_nowait(data)
        if sent == len(data):
            return None
        line = WaitingLine(data, sent)
        self._waiting.append(line)
        self._waiting_bytes += len(data)
        self._filled.set()
        return line

    def withdraw(self, line: WaitingLine) -> bool:
        """Take back a line of which the server has seen nothing. So what waits is bounded by who waits for it."""
        if line.sent or line not in self._waiting:
            return False
        self._remove(line)
        return True

    async def write_waiting(self) -> None:
        """Write what waits, for as long as the channel is open.

        Raises:
            OSError: nobody reads any more.
        """
        while True:
            if not self._waiting:
                self._filled = anyio.Event()
                await self._filled.wait()
            await self._pipe.wait_until_sendable()
            if self._waiting:
                line = self._waiting[0]
                line.sent += self._pipe.send_nowait(memoryview(line.data)[line.sent :])
                if line.sent == len(line.data):
                    self._remove(line)

    def _remove(self, line: WaitingLine) -> None:
        self._waiting.remove(line)
        self._waiting_bytes -= len(line.data)
