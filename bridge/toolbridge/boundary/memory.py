"""SECURITY: reading and writing guest memory. Every pointer and length is the guest's word, so it is checked."""

from __future__ import annotations

from ctypes import c_ubyte
from typing import Protocol

from toolbridge.boundary.library import memory_data, memory_data_size


class OutOfBoundsError(Exception):
    """A guest's pointer and length reach beyond its memory. Never leaves the boundary."""


class TextMemory(Protocol):
    """What a run reads from its guest and writes to it."""

    @property
    def size(self) -> int:
        """In bytes, now; 0 if it isn't known."""
        ...

    def read(self, pointer: int, length: int) -> bytes:
        """`length` bytes from `pointer`; raises OutOfBoundsError."""
        ...

    def write(self, pointer: int, data: bytes) -> None:
        """Puts `data` at `pointer`; raises OutOfBoundsError."""
        ...


class GuestMemory:
    """The linear memory of one instance. Must not be used after the instance is closed.

    WebAssembly memory grows and never shrinks, and the engine is configured not to move it: what was
    in bounds once stays in bounds, so the size is asked again only for what lies beyond it.
    """

    __slots__ = ("_base", "_context", "_memory", "_size", "_view")

    def __init__(self, context: int, memory: int) -> None:
        self._context = context
        self._memory = memory
        self._base: int = memory_data(context, memory)
        self._look()

    def _look(self) -> None:
        self._size: int = memory_data_size(self._context, self._memory)
        self._view = memoryview((c_ubyte * self._size).from_address(self._base)).cast("B")

    @property
    def size(self) -> int:
        """In bytes, now."""
        return memory_data_size(self._context, self._memory)

    @property
    def base(self) -> int:
        """Where it lies in this process; it is never moved."""
        return self._base

    def read(self, pointer: int, length: int) -> bytes:
        """`length` bytes from `pointer`.

        Raises:
            OutOfBoundsError: any of them lies outside the memory.
        """
        end = pointer + length
        if pointer < 0 or length < 0 or end > self._size:
            self._check_grown(pointer, length)
        return self._view[pointer:end].tobytes()

    def write(self, pointer: int, data: bytes) -> None:
        """Puts `data` at `pointer`.

        Raises:
            OutOfBoundsError: any byte of it would lie outside the memory.
        """
        end = pointer + len(data)
        if pointer < 0 or end > self._size:
            self._check_grown(pointer, len(data))
        self._view[pointer:end] = data

    def place(self, pointer: int, length: int) -> memoryview:
        """`length` bytes from `pointer` as they are at any time: memory is not moved, and in bounds stays in bounds.

        Raises:
            OutOfBoundsError: any of them lies outside the memory.
        """
        if pointer < 0 or length < 0 or pointer + length > self._size:
            self._check_grown(pointer, length)
        return self._view[pointer : pointer + length]

    def _check_grown(self, pointer: int, length: int) -> None:
        """What lies beyond the size that was known: the memory has grown, or it is out of bounds."""
        self._look()
        if pointer < 0 or length < 0 or pointer + length > self._size:
            raise OutOfBoundsError(f"{length} bytes at {pointer}")
