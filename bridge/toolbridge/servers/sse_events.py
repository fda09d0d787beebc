"""SECURITY: bytes of a server into server-sent events, in bounded memory whatever it sends."""

from __future__ import annotations

from dataclasses import dataclass

from toolbridge.servers.line_reader import EDGE_BYTES, LineReader, OverlongLine

_MOST_ID = 1024
_MOST_NAME = 100
_MOST_RETRY_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Event:
    """One event."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class OverlongEvent:
    """An event that was dropped while it came in."""

    head: bytes
    tail: bytes
    size: int


class EventReader:
    """Reads one stream; `last_id` and `retry_seconds` are what the server has said so far.

    An event that the end of the stream cuts off is none.
    """

    def __init__(self, most_bytes: int) -> None:
        self.last_id = ""
        self.retry_seconds: float | None = None
        self._most_bytes = most_bytes
        # Room for the field's name: whether the event is too long is decided by its data.
        self._lines = LineReader(most_bytes + EDGE_BYTES)
        self._begun = False
        self._after_return = False
        self._name = ""
        self._id: str | None = None
        """Counts once its event is complete: what is asked for again is what comes after that."""
        self._data = bytearray()
        self._has_data = False
        self._overlong: OverlongEvent | None = None

    def feed(self, chunk: bytes) -> list[Event | OverlongEvent]:
        """The events that these bytes complete."""
        if not self._begun and chunk:
            self._begun = True
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        if self._after_return:
            # The line ended with the carriage return already.
            chunk = chunk.removeprefix(b"\n")
        self._after_return = chunk.endswith(b"\r")
        events: list[Event | OverlongEvent] = []
        for line in self._lines.feed(chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")):
            if isinstance(line, OverlongLine):
                self._drop(line.head.removeprefix(b"data:"), line.tail, line.size)
            elif line:
                self._take(bytes(line))
            elif (event := self._complete()) is not None:
                events.append(event)
        return events

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            if self._has_data:
                self._data += b"\n"
            self._has_data = True
            if self._overlong is None:
                self._data += value
                if len(self._data) > self._most_bytes:
                    self._drop(bytes(self._data[:EDGE_BYTES]), bytes(self._data[-EDGE_BYTES:]), len(self._data))
            else:
                self._drop(b"", value[-EDGE_BYTES:], len(value))
        elif field == b"event":
            self._name = value[:_MOST_NAME].decode("utf-8", "replace")
        elif field == b"id":
            # It is sent back in a header, so it has to be one.
            if len(value) <= _MOST_ID and value.isascii() and value.decode().isprintable():
                self._id = value.decode().strip()
        elif field == b"retry" and value.isdigit() and len(value) <= _MOST_RETRY_DIGITS:
            self.retry_seconds = int(value) / 1000

    def _drop(self, head: bytes, tail: bytes, size: int) -> None:
        if self._overlong is not None:
            head, size = self._overlong.head, self._overlong.size + size
        self._overlong = OverlongEvent(head.lstrip(), tail, size)
        self._data.clear()

    def _complete(self) -> Event | OverlongEvent | None:
        event: Event | OverlongEvent | None = self._overlong
        if event is None and self._has_data:
            event = Event(self._name or "message", bytes(self._data))
        if self._id is not None:
            self.last_id = self._id
        self._name, self._id, self._has_data, self._overlong = "", None, False, None
        self._data.clear()
        return event
