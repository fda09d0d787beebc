"""How the image's memory is left when it is made, so that a run touches little of it.

An instance shares the image's pages until it writes to them, and each page that it writes to is a fault and a copy:
that, not computing, is what a short run costs. So a run's own objects should lie together, and what is in the image
should not be written to only because it is used.
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
# What ends while the image is finished, or is about to.
_PASSING = (FrameType, GeneratorType, CoroutineType, TracebackType)

_filled: list[bytes] = []
_listed: list[bytes] = []


def fill_holes() -> None:
    """Takes every free place between the objects of the image: what a run makes then lies behind them, together."""
    end = id(bytes(1 << 20))  # no hole is so large
    for _ in range(2):  # the list itself leaves holes while it grows
        size = _LARGEST
        while size:
            while id(filling := bytes(size)) < end:
                _filled.append(filling)
            size = size // 2 if size > 1024 else size - _STEP


def list_objects() -> None:
    """Leaves a list of the image's objects in the image: of none of them references need to be counted any more."""
    _listed.append(b"".join((MARK, MARK, *_objects())))


def _objects() -> tuple[bytes, bytes]:
    """How many they are; the address and the type's address of everything that the collector knows, and what it has."""
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
