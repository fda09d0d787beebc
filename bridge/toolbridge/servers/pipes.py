"""The three pipes of a child process, and our ends of them: read and written without ever blocking.

They are our own, not the event loop's: what a dead process left in its pipe can be read to the last byte even while
another holds it open, a line is written without a task, and closing them leaves nothing behind.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

import anyio

_CHUNK = 65536


class Pipes:
    """Our ends: `stdin` to write, `stdout` and `stderr` to read; the child's ends until it has them."""

    def __init__(self) -> None:
        """Open all three.

        Raises:
            OSError: there are no descriptors left.
        """
        with ExitStack() as undo:
            ends: list[int] = []
            for _ in range(3):
                pair = os.pipe()
                for end in pair:
                    undo.callback(os.close, end)
                ends += pair
            self.child_stdin, self.stdin, self.stdout, self.child_stdout, self.stderr, self.child_stderr = ends
            for end in (self.stdin, self.stdout, self.stderr):
                os.set_blocking(end, False)
            undo.pop_all()
        self._open = set(ends)

    def close(self, *ends: int) -> None:
        """Close some, or all of them; again is fine. Whoever waits for one is woken with `ClosedResourceError`."""
        for end in ends or tuple(self._open):
            if end in self._open:
                self._open.remove(end)
                if end in (self.stdin, self.stdout, self.stderr):
                    anyio.notify_closing(end)
                os.close(end)

    def close_child_ends(self) -> None:
        """The child has them now, and ours would keep its streams from ending."""
        self.close(self.child_stdin, self.child_stdout, self.child_stderr)

    async def read(self, end: int) -> bytes:
        """The next bytes; none at the end."""
        while True:
            if end not in self._open:
                return b""
            try:
                await anyio.wait_readable(end)
                return os.read(end, _CHUNK)
            except BlockingIOError:
                continue
            except (OSError, anyio.ClosedResourceError):
                return b""

    def read_nowait(self, end: int) -> bytes:
        """What is there; none when there is nothing, or no more."""
        try:
            return os.read(end, _CHUNK) if end in self._open else b""
        except OSError:
            return b""

    def write_nowait(self, data: bytes | memoryview) -> int:
        """How much of it the pipe took.

        Raises:
            OSError: nobody reads any more.
        """
        if self.stdin not in self._open:
            raise BrokenPipeError
        try:
            return os.write(self.stdin, data)
        except BlockingIOError:
            return 0

    async def wait_until_writable(self) -> None:
        """Until the pipe may take something.

        Raises:
            OSError: it is closed.
        """
        try:
            if self.stdin in self._open:
                await anyio.wait_writable(self.stdin)
        except anyio.ClosedResourceError:
            raise BrokenPipeError from None
