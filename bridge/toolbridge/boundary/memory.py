"""Reading and writing guest memory: every pointer and length is the guest's word, so it is checked."""

from __future__ import annotations

from ctypes import memmove, string_at

from toolbridge.boundary.library import memory_data, memory_data_size


class OutOfBoundsError(Exception):
    """A guest's pointer and length reach beyond its memory. Never leaves the boundary."""


class GuestMemory:
    """The linear memory of one instance.

    Address and size are asked anew for every access: memory can grow, and so move, between two.
    """

    __slots__ = ("_context", "_memory")

    def __init__(self, context: int, memory: int) -> None:
        self._context = context
        self._memory = memory

    @property
    def size(self) -> int:
        """In bytes, now."""
        return memory_data_size(self._context, self._memory)

    def read(self, pointer: int, length: int) -> bytes:
        """`length` bytes from `pointer`.

        Raises:
            OutOfBoundsError: any of them lies outside the memory.
        """
        if pointer < 0 or length < 0 or pointer + length > memory_data_size(self._context, self._memory):
            raise OutOfBoundsError(f"{length} bytes at {pointer}")
        return string_at(memory_data(self._context, self._memory) + pointer, length)

    def write(self, pointer: int, data: bytes) -> None:
        """Puts `data` at `pointer`.

        Raises:
            OutOfBoundsError: any byte of it would lie outside the memory.
        """
        length = len(data)
        if pointer < 0 or pointer + length > memory_data_size(self._context, self._memory):
            raise OutOfBoundsError(f"{length} bytes at {pointer}")
        memmove(memory_data(self._context, self._memory) + pointer, data, length)
