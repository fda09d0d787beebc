"""A run's time: its deadline, and how long guest code has computed."""

from __future__ import annotations

import os
from math import inf
from threading import get_ident
from time import monotonic, thread_time

from toolbridge.limits import Limits

# On Windows a thread's time advances in steps that are longer than a tick.
_HAS_THREAD_TIME = os.name == "posix"


class Ticks:
    """How many ticks have passed. The ticker counts, runs compare."""

    __slots__ = ("count", "seconds")

    def __init__(self, seconds: float) -> None:
        self.count: int = 0
        self.seconds = seconds


class RunTime:
    """Wall clock from the start, and time spent in guest code: host calls are not billed to it.

    A stretch of guest code is billed the ticks that passed in it, and no more than its thread has computed since the
    last time that something was billed: waiting for a processor, or for the interpreter's lock, is not computing.
    """

    def __init__(self, limits: Limits, ticks: Ticks) -> None:
        self.began = monotonic()
        self.deadline: float = self.began + limits.wall_seconds
        self._ticks = ticks
        self._billed_until: int | None = None
        """Up to which tick guest code has been billed; None while it doesn't run."""
        self._guest_ticks: int = 0
        self._seen_ticks: int = 0
        self._guest_seconds = 0.0
        self._most_guest_seconds = limits.cpu_seconds
        self._billed_thread: tuple[int, float] = (0, 0.0)
        """Which thread was last looked at, and how long it had computed then."""

    def charge(self, wall_seconds: float, cpu_seconds: float) -> None:
        """Counts time that was spent on the program before it began."""
        self.began -= wall_seconds
        self.deadline -= wall_seconds
        self._guest_seconds += cpu_seconds

    def cpu_seconds(self) -> float:
        """Time spent in guest code."""
        return self._guest_seconds

    def leave_guest(self) -> None:
        """Guest code stops being billed: a host function begins."""
        if self._billed_until is not None:
            if self._ticks.count != self._billed_until:
                self._bill(self._ticks.count - self._billed_until)
            self._billed_until = None

    def _bill(self, ticks: int) -> None:
        self._guest_ticks += ticks
        computed = inf
        if _HAS_THREAD_TIME:
            thread, before = self._billed_thread
            self._billed_thread = get_ident(), thread_time()
            if thread == self._billed_thread[0]:
                computed = self._billed_thread[1] - before
        self._guest_seconds += min(ticks * self._ticks.seconds, computed)

    def enter_guest(self) -> None:
        """Guest code is billed again."""
        self._billed_until = self._ticks.count

    def has_ticked(self) -> bool:
        """Whether guest code has been billed since this was last asked."""
        seen, self._seen_ticks = self._seen_ticks, self._guest_ticks
        return seen != self._guest_ticks

    def is_computed_out(self) -> bool:
        """Whether guest code has used up its processor time."""
        return self._guest_seconds > self._most_guest_seconds
