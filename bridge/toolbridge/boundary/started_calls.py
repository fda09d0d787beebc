"""The calls of a run whose replies arrive later: those under way, and those whose reply the guest hasn't fetched."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from toolbridge.boundary.host_call import PendingCall, Reply
from toolbridge.boundary.inbox import Inbox, NothingArrivedError
from toolbridge.boundary.wire import encode_settled

# How many of the largest frames a run may have under way, and as many unfetched, in bytes.
_FRAMES_HELD = 4


class Interrupted(Exception):  # noqa: N818  # control flow inside the boundary, not an error
    """Somebody wants the guest's thread to look up from waiting."""


class StartedCalls:
    """Used by the guest's thread, except for `deliver` and `interrupt`, which any thread may call."""

    def __init__(self, frame_bytes: int) -> None:
        self.most_bytes = _FRAMES_HELD * frame_bytes
        self._under_way: dict[int, PendingCall] = {}
        self._inbox: Inbox[tuple[PendingCall, Reply] | None] = Inbox()
        self._settled: deque[bytes] = deque()
        self._request_bytes = 0
        self._reply_bytes = 0
        self._reply_lock = threading.Lock()
        self.on_delivery: Callable[[], None] | None = None
        """Told that a reply has arrived, on the thread that delivered it."""

    def request_bytes_with(self, length: int) -> int:
        """What the calls under way were passed, and one more would be."""
        return self._request_bytes + length

    def has_room(self) -> bool:
        """Whether the host may hold one more reply for a guest that doesn't fetch them."""
        return self._reply_bytes < self.most_bytes

    def can_settle(self) -> bool:
        """Whether a reply is there, or can come."""
        return bool(self._settled or self._under_way)

    def add(self, call: PendingCall) -> None:
        """A call begins."""
        self._under_way[call.identity] = call
        self._request_bytes += call.request_bytes

    def deliver(self, call: PendingCall, reply: Reply) -> None:
        """A scheduled call is done. From any thread."""
        self._hold(len(reply.frame))
        self._inbox.put((call, reply))
        if self.on_delivery is not None:
            self.on_delivery()

    def interrupt(self) -> None:
        """Ends a wait. From any thread."""
        self._inbox.put(None)

    def receive(self, until: float) -> tuple[PendingCall, Reply] | None:
        """The next reply that arrives; None when the time (monotonic clock) comes first.

        Raises:
            Interrupted: so it was.
        """
        while True:
            try:
                arrived = self._inbox.take(until)
            except NothingArrivedError:
                return None
            if arrived is None:
                raise Interrupted
            call, reply = arrived
            if self.remove(call):
                self._hold(-len(reply.frame))
                return arrived

    def remove(self, call: PendingCall) -> bool:
        """A call is no longer under way; whether it was."""
        if self._under_way.pop(call.identity, None) is None:
            return False
        self._request_bytes -= call.request_bytes
        return True

    def settle(self, call: int, reply: bytes) -> None:
        """Keeps a reply until the guest asks for it."""
        frame = encode_settled(call, reply)
        self._hold(len(frame))
        self._settled.append(frame)

    def next_settled(self) -> bytes | None:
        """The oldest reply that was kept."""
        if not self._settled:
            return None
        frame = self._settled.popleft()
        self._hold(-len(frame))
        return frame

    def unfinished(self) -> list[PendingCall]:
        """Calls that have no reply: they may still take effect."""
        return [call for call in self._under_way.values() if call.function.is_recorded]

    def _hold(self, size: int) -> None:
        with self._reply_lock:
            self._reply_bytes += size
