"""Frames to the host and back: guest/WIRE.md."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import wit_world

WIRE_VERSION = 1
_REPLY_FIELDS = {"ok", "error", "handles", "id"}

_decoder: Any = json.JSONDecoder()
_scan: Callable[[str, int], tuple[Any, int]] = _decoder.scan_once
dumps: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

Settle = Callable[[dict[str, Any]], None]
"""Called with the reply of a call that was started."""


def loads(frame: str) -> Any:
    """The value of a frame of the host, which is JSON without white space around it."""
    return _scan(frame, 0)[0]


def printable(text: str) -> str:
    """Text that can cross the boundary: half a surrogate pair, which is no character, becomes U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _reply(frame: str) -> dict[str, Any]:
    reply = loads(_whole(frame))
    if not reply.keys() <= _REPLY_FIELDS:
        raise RuntimeError("the host's reply has fields that are not known")
    return reply


def request(frame: str) -> dict[str, Any]:
    """The reply to a request."""
    return _reply(wit_world.call(printable(frame)))


def _whole(frame: str) -> str:
    """A frame, or the long one that the host has in its place.

    Raises:
        MemoryError: there is no room for it. Without looking first, the interpreter would end in the middle of a call.
    """
    if not frame.startswith("+"):
        return frame
    length, room = frame[1:].split()
    bytes(int(room))
    taken = wit_world.take(int(length))
    if not taken:  # a finalizer may run at any time, and may call
        raise RuntimeError("the reply was lost: something else made a call in the middle of this one")
    return taken


# Calls that were started, and what to do with their replies. asyncio's and parallel()'s share the table, because a
# reply arrives at whoever waits first.
_started: dict[int, Settle] = {}


def forget_started() -> None:
    """At the beginning of a run: the host no longer knows of the last one's."""
    _started.clear()


def is_anything_started() -> bool:
    """Whether a reply can still come."""
    return bool(_started)


def start(frame: str, settle: Settle) -> None:
    """Begins a call without waiting for it."""
    number = wit_world.start(printable(frame))
    if number < 0:
        raise ValueError("the host didn't understand the call")
    _started[number] = settle


def wait(seconds: float | None) -> bool:
    """Waits for the next reply (None: as long as it takes) and hands it over. False when the time is over."""
    microseconds = -1 if seconds is None else min(max(0, round(seconds * 1e6)), 1 << 60)
    frame = wit_world.wait(microseconds)
    if frame == "-":
        raise RuntimeError("nothing is under way that could be waited for")
    if not frame:
        return False
    reply = _reply(frame)
    settle = _started.pop(reply["id"], None)
    if settle is not None:
        settle(reply)
    return True


def sleep(seconds: float, /) -> None:
    """time.sleep, by way of the host: it isn't billed as computing, and ends with the run."""
    if not seconds >= 0:
        raise ValueError("sleep length must be non-negative")
    until = time.monotonic() + seconds
    left = float(seconds)
    while wait(left):
        left = until - time.monotonic()
        if left <= 0:
            return


log = wit_world.log
