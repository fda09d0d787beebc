"""SECURITY: one question to the person at a terminal. No terminal, no question.

What was typed before the question was shown is thrown away: it was no answer to it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import TextIO

import anyio
import anyio.to_thread

_MOST_BYTES = 4096
_WIDEST = 100


class Terminal:
    """The terminal that this program was started from: reads from stdin, writes to stderr."""

    @property
    def is_there(self) -> bool:
        """Whether somebody can read a question and answer it."""
        return _is_terminal(sys.stdin) and _is_terminal(sys.stderr)

    @property
    def columns(self) -> int:
        """How wide a prompt may be; not more than is pleasant to read."""
        return min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)

    async def ask(self, text: str, question: str) -> str:
        """Show a text and a question, and give the line that is typed; empty at the end of input."""
        _write(f"{text}\n")
        if sys.platform == "win32":
            _forget_typed_keys()
            _write(question)
            return await anyio.to_thread.run_sync(sys.stdin.readline, _MOST_BYTES, abandon_on_cancel=True)
        import termios

        descriptor = sys.stdin.fileno()
        with contextlib.suppress(termios.error):
            termios.tcflush(descriptor, termios.TCIFLUSH)
        _write(question)
        # A terminal gives whole lines; until there is one, this can be cancelled.
        await anyio.wait_readable(descriptor)
        try:
            line = os.read(descriptor, _MOST_BYTES)
        except OSError:  # the terminal is gone
            line = b""
        if not line.endswith(b"\n"):
            _write("\n")
        return line.decode("utf-8", "replace")


def _forget_typed_keys() -> None:
    if sys.platform == "win32":
        import msvcrt

        while msvcrt.kbhit():
            msvcrt.getwch()


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def _write(text: str) -> None:
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stderr.flush()
