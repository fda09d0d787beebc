"""SECURITY: guests that serve again, once every byte of theirs is that of a fresh one (T33).

A guest begins as a copy of its image, whose pages the system copies when they are first written to. That copying, and
giving the pages back, takes most of the time of a short run. So a guest that ended well is not thrown away: the pages
that it wrote to get the image's content again. Which those are, the system tells (`/proc/self/pagemap`), not the guest.

Besides its memory a guest has nothing that lasts: its only mutable global is the stack pointer, which is back where
it was when `run` returns, and no code of the image changes a table (tests/sandbox/test_image_state.py looks).
What can't be told, or has grown, or is too much, is thrown away. So is everything where the system doesn't tell.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading

from toolbridge.limits import MIB
from toolbridge.sandbox.instance import GuestInstance, Image, Instance

_MOST_SPARES = 4
# More than this is cheaper to map anew, and not to be held on to.
_MOST_PAGES = 192
# A second copy of the image's memory is held, too.
_MOST_MEMORY = 32 * MIB
_ENTRY_BYTES = 8
_PAGE_MAP = "/proc/self/pagemap"
_RUNS_BEFORE, _MOST_TRIES = 2, 10
# The highest byte of an entry. 0: never touched. Present, and a page of the file: only read. All else is written.
_PRESENT_OF_FILE, _NOT_SHARED = 0xA0, 0x01
_IS_WRITTEN = bytes(flags & ~_NOT_SHARED not in (0, _PRESENT_OF_FILE) for flags in range(256))
_WRITTEN = re.compile(rb"\x01+")


class SpareInstances:
    """The spare guests of one image. Safe to use from any thread."""

    def __init__(self, engine: int, image: Image) -> None:
        self._engine = engine
        self._image = image
        self._lock = threading.Lock()
        self._spares: list[Instance] = []
        self._fresh: ctypes.Array[ctypes.c_char] | None = None
        self._runs = 0
        self._works: bool | None = None
        """Whether guests are restored here; None until that is known."""

    def take(self, memory_bytes: int) -> Instance:
        """A guest that nobody has used, or that can't be told from one."""
        try:
            instance = self._spares.pop()
        except IndexError:
            return Instance(self._engine, self._image, memory_bytes)
        instance.limit(memory_bytes)
        return instance

    def put(self, instance: GuestInstance) -> None:
        """A guest whose run has ended well, and that nobody else will use."""
        if isinstance(instance, Instance) and self._is_spare(instance):
            self._spares.append(instance)
        else:
            instance.close()

    def _is_spare(self, instance: Instance) -> bool:
        if self._works is None:
            with self._lock:
                if self._works is None:
                    self._try(instance)
            return False
        return self._works and len(self._spares) < _MOST_SPARES and self._restore(instance)

    def _try(self, instance: Instance) -> None:
        """Finds out what a fresh guest looks like, and whether restoring works here, by comparing all of a memory.

        Not for a process that runs one program; and this guest is no spare: reading all of it has mapped all of it.
        """
        self._runs += 1
        if self._runs < _RUNS_BEFORE:
            return
        if not os.path.exists(_PAGE_MAP) or instance.memory.size > _MOST_MEMORY:
            self._works = False
            return
        fresh = Instance(self._engine, self._image, instance.memory.size)
        content = fresh.memory.read(0, fresh.memory.size)
        fresh.close()
        self._fresh = ctypes.create_string_buffer(content, len(content))
        restored = self._restore(instance)
        if restored or self._runs > _MOST_TRIES:  # else it has grown, or written much: another may tell
            self._works = restored and instance.memory.read(0, len(content)) == content

    def _restore(self, instance: Instance) -> bool:
        """Gives every page that was written to its first content; whether that could be done."""
        fresh, memory = self._fresh, instance.memory
        assert fresh is not None
        size = len(fresh)
        if memory.size != size:
            return False
        page = os.sysconf("SC_PAGESIZE")
        count = size // page
        entries = _read_page_map(memory.base // page * _ENTRY_BYTES, _ENTRY_BYTES * count)
        if len(entries) != _ENTRY_BYTES * count:
            return False
        written = entries[_ENTRY_BYTES - 1 :: _ENTRY_BYTES].translate(_IS_WRITTEN)
        if written.count(1) > _MOST_PAGES:
            return False
        source = ctypes.addressof(fresh)
        for match in _WRITTEN.finditer(written):
            first, end = match.span()
            ctypes.memmove(memory.base + first * page, source + first * page, (end - first) * page)
        return True


def _read_page_map(at: int, size: int) -> bytes:
    """Opened each time: an open one goes on telling of the process that opened it, also after a fork."""
    try:
        page_map = os.open(_PAGE_MAP, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.pread(page_map, size, at)
    except OSError:
        return b""
    finally:
        os.close(page_map)
