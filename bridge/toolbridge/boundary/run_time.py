"""Time of a run: its wall-clock deadline, which stops while a person is asked, and the CPU time of guest code."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from math import inf
from threading import get_ident
from time import monotonic, thread_time
from typing import Protocol

from toolbridge.limits import Limits


class Stoppable(Protocol):
    """A run whose deadline can be moved, from any thread."""

    deadline: float
    """By the monotonic clock."""

    def prolong(self, seconds: float) -> None:
        """Moves the deadline; negative seconds take time back."""
        ...


class RunClock:
    """Stops the time of a run or session while a person is asked. Used on the event loop's thread."""

    def __init__(self, most_seconds: float) -> None:
        self._most = most_seconds
        self._run: Stoppable | None = None
        self._asking = 0
        self._since = 0.0

    def attach(self, run: Stoppable) -> None:
        """Follows a run that begins, in place of the last one."""
        self._run = run
        self._asking = 0

    def seconds_left(self) -> float:
        """Seconds until the deadline of the current run; infinite before its guest begins."""
        return inf if self._run is None else self._run.deadline - monotonic()

    @contextlib.contextmanager
    def stopped(self) -> Generator[None]:
        """Stops the clock within the context, for `most_seconds` at most; nested or concurrent contexts count once."""
        run = self._run
        self._asking += 1
        if self._asking == 1:
            self._since = monotonic()
            if run is not None:
                run.prolong(self._most)
        try:
            yield
        finally:
            if run is self._run:
                self._asking -= 1
                if self._asking == 0:
                    waited = min(monotonic() - self._since, self._most)
                    if run is not None:
                        run.prolong(waited - self._most)


class Ticks:
    """Counter of epoch ticks: the ticker increments it, runs compare it."""

    __slots__ = ("count", "seconds")

    def __init__(self, seconds: float) -> None:
        self.count: int = 0
        self.seconds = seconds


class RunTime:
    """Wall-clock deadline of a run, and CPU time of its guest code; host calls are not billed.

    Guest code is billed by epoch ticks, and at most the CPU time of its thread since it was last billed: waiting for a
    processor, or for the interpreter's lock, is not computing.
    """

    def __init__(self, limits: Limits, ticks: Ticks, spent: tuple[float, float] = (0.0, 0.0)) -> None:
        wall_seconds, cpu_seconds = spent  # before the guest, such as its type-check
        self.began = monotonic() - wall_seconds
        self.deadline: float = self.began + limits.wall_seconds
        self._ticks = ticks
        self._billed_until: int | None = None
        """The tick up to which guest code is billed; None while it doesn't run."""
        self._guest_ticks: int = 0
        self._seen_ticks: int = 0
        self._guest_seconds = cpu_seconds
        self._most_guest_seconds = limits.cpu_seconds
        self._billed_thread: tuple[int, float] = (0, 0.0)
        """The thread that was billed last, and its CPU time then."""

    def cpu_seconds(self) -> float:
        """CPU time of guest code."""
        return self._guest_seconds

    def leave_guest(self) -> None:
        """Stops billing, as a host function begins, and bills the ticks since `enter_guest`."""
        if self._billed_until is not None:
            if self._ticks.count != self._billed_until:
                self._bill(self._ticks.count - self._billed_until)
            self._billed_until = None

    def _bill(self, ticks: int) -> None:
        """Bills so many ticks, but no more than this thread's CPU time since it was last billed."""
        self._guest_ticks += ticks
        thread, before = self._billed_thread
        self._billed_thread = get_ident(), thread_time()
        computed = self._billed_thread[1] - before if thread == self._billed_thread[0] else inf
        self._guest_seconds += min(ticks * self._ticks.seconds, computed)

    def rebill(self) -> bool:
        """Bills running guest code up to now; returns whether it has used up its CPU time."""
        self.leave_guest()
        self.enter_guest()
        return self._guest_seconds > self._most_guest_seconds

    def enter_guest(self) -> None:
        """Starts billing: guest code runs."""
        self._billed_until = self._ticks.count

    def has_ticked(self) -> bool:
        """Returns whether guest code was billed since the last call of this method."""
        seen, self._seen_ticks = self._seen_ticks, self._guest_ticks
        return seen != self._guest_ticks

    def exceeds_cpu_limit(self) -> bool:
        """Whether guest code has used up its CPU time."""
        return self._guest_seconds > self._most_guest_seconds
