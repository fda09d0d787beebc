"""SECURITY: bytes of a server into lines, in bounded memory whatever it sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Line: TypeAlias = bytes | bytearray

EDGE_BYTES = 1024
"""What is kept of each end of a line that is too long."""


@dataclass(frozen=True, slots=True)
class OverlongLine:
    """A line that was dropped while it came in."""

    head: bytes
    tail: bytes
    size: int


class LineReader:
    """Splits at newlines only: U+2028, a form feed or a carriage return inside a line is a part of it."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._begun = bytearray()
        """The line that has no end yet. One growing array: a server may write byte by byte."""
        self._overlong_head: bytes | None = None
        self._overlong_size = 0

    def feed(self, chunk: bytes) -> list[Line | OverlongLine]:
        """The lines that these bytes complete."""
        *ends, begun = chunk.split(b"\n")
        lines: list[Line | OverlongLine] = []
        for end in ends:
            if self._begun or self._overlong_head is not None or len(end) > self._most_bytes:
                self._add(end)
                lines.append(self._take())
            else:
                lines.append(end)
        if begun:
            self._add(begun)
        return lines

    def rest(self) -> Line | OverlongLine:
        """What came after the last newline: all there is when the stream has ended."""
        return self._take()

    def _add(self, piece: bytes) -> None:
        if self._overlong_head is not None:
            self._overlong_size += len(piece)
            # From here on the array holds the end only.
            self._begun += piece[-EDGE_BYTES:]
            del self._begun[:-EDGE_BYTES]
            return
        self._begun += piece
        if len(self._begun) > self._most_bytes:
            self._overlong_head = bytes(self._begun[:EDGE_BYTES])
            self._overlong_size = len(self._begun)
            self._begun = self._begun[-EDGE_BYTES:]

    def _take(self) -> Line | OverlongLine:
        begun, self._begun = self._begun, bytearray()
        if self._overlong_head is None:
            return begun
        line = OverlongLine(self._overlong_head, bytes(begun), self._overlong_size)
        self._overlong_head = None
        return line
