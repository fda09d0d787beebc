"""SECURITY: what a component passes to a host function, and gets back, in place of addresses in its memory.

A component's strings are copied by Wasmtime, which has checked that they lie in the guest's memory and are UTF-8. The
run's state reads and writes them through this, as it reads and writes the memory of a guest that is no component.
"""

from __future__ import annotations

import ctypes
import hashlib

from toolbridge.boundary.memory import OutOfBoundsError

# Addresses begin here: 0 is no address.
FIRST = 1
# The longest frame that is handed over at once. A guest without memory for one dies of it, in the middle of a call, so
# it is told of a longer one first, and can raise an error that its program can catch.
MOST_AT_ONCE = 65_536


def room_for(frame: bytes) -> int:
    """The bytes of memory that a guest needs to take a frame: a copy of it, and a text made from that.

    Python gives every character of a text as many bytes as its widest character needs.
    """
    if frame.isascii():
        return 2 * len(frame)
    text = frame.decode("utf-8", "replace")
    widest = max(text)
    return len(frame) * 2 + len(text) * (1 if widest < "\u0100" else 2 if widest < "\U00010000" else 4)


class ComponentExchange:
    """One text in, one out, at a time; and the run's random numbers, which follow from what it was begun with."""

    __slots__ = ("_address", "_counter", "_key", "_size", "reply")

    def __init__(self) -> None:
        self._address: int | None = None
        self._size = 0
        self._key = b""
        self._counter = 0
        self.reply = b""

    @property
    def size(self) -> int:
        """Of the guest's memory: the library doesn't tell."""
        return 0

    def begin(self, frame: bytes) -> None:
        """A run begins: its frame holds a seed that nobody can guess, or that was chosen to repeat a run."""
        self._key = hashlib.sha256(frame).digest()
        self._counter = 0

    def receive(self, address: int | None, size: int) -> int:
        """The guest passes a text, which is there until it is answered; its length."""
        self._address = address
        self._size = size
        return size

    def read(self, pointer: int, length: int) -> bytes:
        """`length` bytes of the text.

        Raises:
            OutOfBoundsError: it is not so long.
        """
        start = pointer - FIRST
        if start < 0 or length < 0 or start + length > self._size:
            raise OutOfBoundsError(f"{length} bytes at {pointer}")
        if not length or self._address is None:
            return b""
        return ctypes.string_at(self._address + start, length)

    def write(self, pointer: int, data: bytes) -> None:
        """Puts the answer where the guest will find it."""
        del pointer
        self.reply = data

    def random(self, length: int) -> bytes:
        """The next random bytes of this run."""
        made = bytearray()
        while len(made) < length:
            made += hashlib.sha256(self._key + self._counter.to_bytes(8, "little")).digest()
            self._counter += 1
        return bytes(made[:length])
