"""Memory layout of the image, so that a run dirties few copy-on-write pages.

An instance shares the image's pages until it writes to them; each first write is a page fault and a copy, and these,
not computing, are the cost of a short run. So a run's own objects should lie together, and reference counting should
not write to the image's objects.
"""

from __future__ import annotations

import gc
from array import array
from types import CodeType, CoroutineType, FrameType, GeneratorType, TracebackType
from typing import Any, cast

# Twice before the list, which guest/python/immortal.py looks for in the finished image.
MARK = b"toolbridge: objects of the image:"
_LARGEST, _STEP = 1 << 16, 8
_MOST_MEMORY = 1 << 25
# Types of objects that die while the image is finished.
_PASSING = (FrameType, GeneratorType, CoroutineType, TracebackType)

_filled: list[bytes] = []
_listed: list[bytes] = []


def fill_holes() -> None:
    """Allocates, forever, every hole between the image's objects, so that a run's objects lie behind them, together."""
    end = id(bytes(1 << 20))  # no hole is so large
    for _ in range(2):  # the list itself leaves holes while it grows
        size = _LARGEST
        while size:
            while id(filling := bytes(size)) < end:
                _filled.append(filling)
            size = size // 2 if size > 1024 else size - _STEP


def list_objects() -> None:
    """Leaves a list of the image's objects in the image, for guest/python/immortal.py."""
    _listed.append(b"".join((MARK, MARK, *_objects())))


def _objects() -> tuple[bytes, bytes]:
    """Returns the count, and the addresses of each object reachable from the collector and of its type, as bytes."""
    found = array("I")
    seen = bytearray(_MOST_MEMORY // _STEP // 8)  # a bit for each place: a set would need megabytes, forever
    waiting: list[Any] = gc.get_objects()
    own = id(waiting)
    while waiting:
        each = waiting.pop()
        address = id(each)
        position, bit = divmod(address // _STEP, 8)
        if seen[position] >> bit & 1 or address == own or isinstance(each, _PASSING):
            continue
        seen[position] |= 1 << bit
        kind = cast(object, type(each))
        found.append(address)
        found.append(id(kind))
        waiting.append(kind)
        waiting.extend(gc.get_referents(each))
        if isinstance(each, CodeType):  # which the collector doesn't look into
            waiting += (each.co_consts, each.co_names, each.co_filename, each.co_name, each.co_qualname)
            waiting += (each.co_linetable, each.co_exceptiontable)
    return len(found).to_bytes(4, "little"), found.tobytes()
