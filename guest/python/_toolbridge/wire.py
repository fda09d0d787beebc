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
"""Callback for the reply of a pending call."""


def loads(frame: str) -> Any:
    """Parses a frame of the host: JSON without surrounding white space."""
    return _scan(frame, 0)[0]


def printable(text: str) -> str:
    """Replaces lone surrogates, which can't cross the boundary, by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _reply(frame: str) -> dict[str, Any]:
    """Parses the host's reply, fetching a long one; raises RuntimeError if it has unknown fields."""
    reply = loads(_fetched(frame))
    if not reply.keys() <= _REPLY_FIELDS:
        raise RuntimeError("the host's reply has unknown fields")
    return reply


def request(frame: str) -> dict[str, Any]:
    """Sends a request frame and blocks until the host replies; returns the reply, which may be an error."""
    return _reply(wit_world.call(printable(frame)))


def _fetched(frame: str) -> str:
    """Returns the frame, or the long one that it announces, fetched by `take`.

    Raises:
        MemoryError: there is no room for it. Unchecked, the interpreter would end in the middle of a call.
        RuntimeError: it was lost to a call in between.
    """
    if not frame.startswith("+"):
        return frame
    length, room = frame[1:].split()
    bytes(int(room))
    taken = wit_world.take(int(length))
    if not taken:  # a finalizer can run at any time, and make a call
        raise RuntimeError("the reply was lost: something else made a call in the middle of this one")
    return taken


# Pending calls: number → callback. asyncio and parallel() share the table, because either one's wait can deliver the
# other's reply.
_pending: dict[int, Settle] = {}


def forget_pending_calls() -> None:
    """Drops the pending calls of a session's last run, which the host has forgotten."""
    _pending.clear()


def has_pending_calls() -> bool:
    """Whether a reply can still come."""
    return bool(_pending)


def start(frame: str, settle: Settle) -> None:
    """Starts a call without blocking; `settle` gets its reply.

    Raises:
        ValueError: the host refused the frame.
    """
    number = wit_world.start(printable(frame))
    if number < 0:
        raise ValueError("the host refused the call")
    _pending[number] = settle


def wait(seconds: float | None) -> bool:
    """Blocks until the next reply (None: without a timeout) and passes it to its callback; False on timeout.

    Raises:
        RuntimeError: no call is pending.
    """
    microseconds = -1 if seconds is None else min(max(0, round(seconds * 1e6)), 1 << 60)
    frame = wit_world.wait(microseconds)
    if frame == "-":
        raise RuntimeError("no call is pending")
    if not frame:
        return False
    reply = _reply(frame)
    settle = _pending.pop(reply["id"], None)
    if settle is not None:
        settle(reply)
    return True


def sleep(seconds: float, /) -> None:
    """Blocks in the host, for time.sleep: not counted as CPU time, and ends with the run. Delivers replies meanwhile.

    Raises:
        ValueError: `seconds` is negative or NaN.
    """
    if not seconds >= 0:
        raise ValueError("sleep length must be non-negative")
    until = time.monotonic() + seconds
    left = float(seconds)
    while wait(left):
        left = until - time.monotonic()
        if left <= 0:
            return


log = wit_world.log
