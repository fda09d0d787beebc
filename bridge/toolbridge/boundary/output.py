"""What a guest prints, kept up to a limit."""

from __future__ import annotations

STDOUT, STDERR = 1, 2


class Output:
    """The two streams of a run, which share one limit. Beyond it text is counted and dropped."""

    __slots__ = ("_dropped", "_kept", "_room")

    def __init__(self, most_bytes: int) -> None:
        # Not a list of what was printed: an object of the host's for each byte of a guest's is what it would like.
        self._kept = {STDOUT: bytearray(), STDERR: bytearray()}
        self._dropped = {STDOUT: 0, STDERR: 0}
        self._room = most_bytes

    @property
    def dropped(self) -> int:
        """Bytes that were not kept."""
        return self._dropped[STDOUT] + self._dropped[STDERR]

    def room(self, stream: int, length: int) -> int:
        """How many of `length` bytes will be kept; the others count as dropped."""
        kept = min(length, self._room)
        self._dropped[_known(stream)] += length - kept
        return kept

    def add(self, stream: int, text: bytes) -> None:
        """Keeps text for which there is room."""
        self._room -= len(text)
        self._kept[_known(stream)] += text

    def text(self, stream: int) -> str:
        """A stream's text; where some was dropped, the end says so."""
        text = self._kept[stream].decode("utf-8", "replace")
        if self._dropped[stream]:
            text += f"\n[output limit reached: {self._dropped[stream]} more bytes were dropped]\n"
        return text


def _known(stream: int) -> int:
    """A stream other than stdout is stderr."""
    return STDOUT if stream == STDOUT else STDERR
