"""The record of a run's calls: one entry for each, whatever became of it."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter

from toolbridge.boundary.host_call import CallRecord, HostFunction, PendingCall, Reply, outcome_of
from toolbridge.boundary.wire import CallRequest


class CallLog:
    """Written by the guest's thread; read when the run is over."""

    __slots__ = ("_began", "ended")

    def __init__(self) -> None:
        self._began = perf_counter()
        self.ended: list[CallRecord] = []

    def add(self, function: HostFunction, request: CallRequest, reply: Reply, began: float, request_bytes: int) -> None:
        """A call has its reply."""
        if not function.is_recorded:
            return
        self.ended.append(
            CallRecord(
                request.module,
                request.function,
                reply.outcome or outcome_of(reply.frame),
                perf_counter() - began,
                request_bytes,
                len(reply.frame),
                function.server,
                function.tool,
                began - self._began,
                reply.notes,
                reply.sent,
            )
        )

    def with_unfinished(self, calls: Iterable[PendingCall]) -> tuple[CallRecord, ...]:
        """All calls, and at the end those that have no reply: they may still take effect."""
        return (*self.ended, *(self.unfinished(call) for call in calls))

    def unfinished(self, call: PendingCall) -> CallRecord:
        """The record of a call that has no reply."""
        return CallRecord(
            call.request.module,
            call.request.function,
            "unfinished",
            perf_counter() - call.began,
            call.request_bytes,
            0,
            call.function.server,
            call.function.tool,
            call.began - self._began,
        )
