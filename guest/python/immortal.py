"""Makes the objects of the Python image immortal (PEP 683), so that CPython doesn't count references to them.

Reference counting writes to every object that a program touches, and so copies its page in each instance. The image has
a list of its objects (_toolbridge/image_memory.py), made just before it was finished; each one that is still there gets
the reference count of immortal objects.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from bake import OP_END, OP_I32_CONST, SECTION_DATA, read_unsigned
from python._toolbridge.image_memory import MARK

_TWICE = MARK * 2
# _Py_IMMORTAL_INITIAL_REFCNT where a pointer has 32 bits.
_IMMORTAL = 5 << 28
# An object that is no longer there has 0 or, for the next free one, an address in place of its count. Addresses begin
# behind the stack, which has a megabyte. Immortal counts are above it, too.
_MOST_REFERENCES = 1 << 20
_CORE_MODULE = 1
_HEADER = 8
_WORD = 4


class Segment(NamedTuple):
    """A data segment: its address in memory, and its position in the image."""

    address: int
    position: int
    length: int


def make_immortal(image: bytes) -> tuple[bytes, int]:
    """Returns the image with its objects immortal, and their count.

    Raises:
        ValueError: the image has no list of its objects, or data segments at computed addresses.
    """
    memory = _Memory(image)
    position = image.find(_TWICE)
    if position < 0 or image.find(_TWICE, position + 1) >= 0:
        raise ValueError("expected one list of the image's objects")
    objects, end = _listed(image, position + len(_TWICE))
    count = 0
    for address, kind in objects:
        if 0 < memory.word(address) < _MOST_REFERENCES and memory.word(address + _WORD) == kind:
            memory.set_word(address, _IMMORTAL)
            count += 1
    memory.image[position:end] = bytes(end - position)
    return bytes(memory.image), count


def _listed(image: bytes, at: int) -> tuple[list[tuple[int, int]], int]:
    """Reads the list of objects: each one's address and its type's, and the position where the list ends."""
    (count,) = struct.unpack_from("<I", image, at)
    words = struct.unpack_from(f"<{count}I", image, at + _WORD)
    return list(zip(words[::2], words[1::2], strict=True)), at + _WORD * (count + 1)


class _Memory:
    """The guest's initial memory."""

    def __init__(self, image: bytes) -> None:
        self.image = bytearray(image)
        self._segments = sorted(_segments(image))
        self._starts = [segment.address for segment in self._segments]

    def word(self, address: int) -> int:
        """Reads a word; 0 outside the data segments."""
        position = self._position(address)
        return 0 if position is None else struct.unpack_from("<I", self.image, position)[0]

    def set_word(self, address: int, value: int) -> None:
        """Overwrites a word, which must lie in a data segment."""
        position = self._position(address)
        assert position is not None, "only what isn't 0 is replaced"
        struct.pack_into("<I", self.image, position, value)

    def _position(self, address: int) -> int | None:
        """Returns the position of an address in the image; None outside the data segments."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        segment = self._segments[index]
        offset = address - segment.address
        return segment.position + offset if offset + _WORD <= segment.length else None


def _sections(image: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yields number, begin and end of each section of a component or module."""
    at += _HEADER
    while at < end:
        section = image[at]
        length, at = read_unsigned(image, at + 1)
        yield section, at, at + length
        at += length


def _segments(image: bytes) -> Iterator[Segment]:
    """Yields the data segments of all core modules in a component."""
    for outer, module, end in _sections(image, 0, len(image)):
        if outer != _CORE_MODULE:
            continue
        for section, at, _ in _sections(image, module, end):
            if section == SECTION_DATA:
                yield from _data_segments(image, at)


def _data_segments(image: bytes, at: int) -> Iterator[Segment]:
    """Yields the segments of a data section; raises ValueError for one at a computed address."""
    count, at = read_unsigned(image, at)
    for _ in range(count):
        if image[at] != 0 or image[at + 1] != OP_I32_CONST:
            raise ValueError("a data segment is not at a fixed place")
        address, at = read_unsigned(image, at + 2)  # signed, but only beyond 2 GB is that a difference
        if image[at] != OP_END:
            raise ValueError("a data segment is not at a fixed place")
        length, at = read_unsigned(image, at + 1)
        yield Segment(address, at, length)
        at += length
