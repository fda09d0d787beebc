"""One line on a terminal that is written again and again, and erased in the end.

Only carriage returns and spaces are used: every terminal knows them. The cursor waits at the line's beginning, so that
whatever else is printed (a log message, the result) writes over it.
"""

from __future__ import annotations

import os
import unicodedata
from typing import TextIO


class TerminalLine:
    """A line of a terminal. Not safe from several threads."""

    def __init__(self, stream: TextIO) -> None:
        # Past the stream's own buffer: a thread that holds its lock would disturb the end of the process.
        self._descriptor = stream.fileno()
        self._encoding = stream.encoding or "utf-8"
        self._ellipsis = "…" if _has(self._encoding, "…") else "..."
        self._shown = 0

    def show(self, text: str) -> None:
        """Replaces the line's text; what does not fit is cut. The text is one line, and sanitised.

        Raises:
            OSError: the terminal is gone.
        """
        text = text.encode(self._encoding, "backslashreplace").decode(self._encoding)
        # In the last column some terminals would already begin the next line.
        text = fitted(text, self._columns() - 1, self._ellipsis)
        cells = sum(map(cell_width, text))
        self._write(text + " " * (self._shown - cells) + "\r")
        self._shown = cells

    def erase(self) -> None:
        """Leaves nothing of it.

        Raises:
            OSError: the terminal is gone.
        """
        if self._shown:
            # After a narrowing of the window, more spaces than it has columns would make a new line.
            self._write(" " * min(self._shown, self._columns() - 1) + "\r")
            self._shown = 0

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._descriptor).columns or 80
        except OSError:
            return 80

    def _write(self, text: str) -> None:
        data = text.encode(self._encoding)
        while data:
            data = data[os.write(self._descriptor, data) :]


def line_of(stream: TextIO | None) -> TerminalLine | None:
    """A line of the stream's terminal; None if it is none, or one that can't go back to a line's beginning."""
    try:
        if stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb":
            return None
        return TerminalLine(stream)
    except (OSError, ValueError):  # it is closed, or has no descriptor
        return None


def fitted(text: str, cells: int, ellipsis: str = "…") -> str:
    """The text, or its beginning and an ellipsis, in at most so many cells."""
    if sum(map(cell_width, text)) <= cells:
        return text
    room = cells - len(ellipsis)
    if room < 1:
        return ""
    for index, character in enumerate(text):
        room -= cell_width(character)
        if room < 0:
            return text[:index] + ellipsis
    raise AssertionError("a text that is too wide has a character that is too much")


def cell_width(character: str) -> int:
    """How many cells a terminal uses for a character; in doubt, more."""
    if character < "\x7f":
        return 1
    if character == "\ufe0f":  # asks for the wide form of what stands before it
        return 1
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _has(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
