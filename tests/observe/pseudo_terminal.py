"""A real terminal, whose screen a test can read."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
import threading
import time
from collections.abc import Callable
from typing import TextIO


class PseudoTerminal:
    """A terminal device with so many columns; everything written to it is kept."""

    def __init__(self, columns: int = 80, encoding: str = "utf-8") -> None:
        self._controller, device = pty.openpty()
        fcntl.ioctl(device, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream: TextIO = open(device, "w", encoding=encoding)  # noqa: SIM115  # closed by close()
        self._columns = columns
        self._written = bytearray()
        self._news = threading.Condition(threading.RLock())
        # A terminal that nobody reads stops its writers.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def close(self) -> None:
        """Hangs up."""
        self.stream.close()
        self._reader.join(60)
        os.close(self._controller)

    @property
    def written(self) -> str:
        """All that was ever written."""
        with self._news:
            return self._written.decode(errors="replace")

    def wait_until(self, condition: Callable[[str], bool], seconds: float = 60.0) -> None:
        """Returns as soon as what was written fulfils a condition."""
        until = time.monotonic() + seconds
        with self._news:
            while not condition(self.written):
                left = until - time.monotonic()
                assert left > 0, f"not in time; written: {bytes(self._written)!r}"
                self._news.wait(left)

    def wait_for_screen(self, *rows: str) -> None:
        """Returns as soon as this is to be seen, and nothing else."""
        self.wait_until(lambda _: self.screen() == list(rows))

    def screen(self) -> list[str]:
        """The lines that are to be seen, for text of narrow characters without escape sequences."""
        rows: list[list[str]] = [[]]
        column = 0
        for character in self.written.replace("\r\n", "\n"):
            if character == "\r":
                column = 0
            elif character == "\n":
                rows.append([])
                column = 0
            else:
                assert character >= " ", f"a control character: {character!r}"
                if column == self._columns:
                    rows.append([])
                    column = 0
                rows[-1][column : column + 1] = [character]
                column += 1
        return ["".join(row).rstrip() for row in rows]

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._controller, 65536)
            except OSError:  # hung up
                return
            if not data:
                return
            with self._news:
                self._written += data
                self._news.notify_all()
