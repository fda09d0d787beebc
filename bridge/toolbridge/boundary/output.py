"""What a guest prints, kept up to a limit."""

from __future__ import annotations

STDOUT, STDERR = 1, 2


class Output:
    """The two streams of a run. Beyond the limit text is counted and dropped."""

    __slots__ = ("_chunks", "_room", "dropped")

    def __init__(self, most_bytes: int) -> None:
        self._chunks: dict[int, list[bytes]] = {STDOUT: [], STDERR: []}
        self._room = most_bytes
        self.dropped = 0

    def room(self, length: int) -> int:
        """How many of `length` bytes will be kept; the others count as dropped."""
        kept = min(length, self._room)
        self.dropped += length - kept
        return kept

    def add(self, stream: int, text: bytes) -> None:
        """Keeps text for which there is room. A stream other than stdout is stderr."""
        self._room -= len(text)
        self._chunks[STDOUT if stream == STDOUT else STDERR].append(text)

    def text(self, stream: int) -> str:
        """A stream's text; when something was dropped, the end says so."""
        text = b"".join(self._chunks[stream]).decode("utf-8", "replace")
        if self.dropped and (stream == STDERR or not self._chunks[STDERR]):
            text += f"\n[output limit reached: {self.dropped} more bytes were dropped]\n"
        return text
