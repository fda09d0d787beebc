"""A run's time: its deadline, and how long guest code has computed."""

from __future__ import annotations

from time import monotonic

from toolbridge.limits import Limits


class Ticks:
    """How often the epoch has advanced. The ticker counts, runs compare."""

    __slots__ = ("count", "seconds")

    def __init__(self, seconds: float) -> None:
        self.count: int = 0
        self.seconds = seconds


class RunTime:
    """Wall clock from the start, and ticks spent in guest code: host calls are not billed to it."""

    def __init__(self, limits: Limits, ticks: Ticks) -> None:
        self.began = monotonic()
        self.deadline: float = self.began + limits.wall_seconds
        self._ticks = ticks
        self._billed_until: int | None = None
        """Up to which tick guest code has been billed; None while it doesn't run."""
        self._guest_ticks: int = 0
        self._seen_ticks: int = 0
        self._most_ticks = limits.cpu_seconds / ticks.seconds

    def cpu_seconds(self) -> float:
        """Time spent in guest code, in whole ticks."""
        return self._guest_ticks * self._ticks.seconds

    def leave_guest(self) -> None:
        """Guest code stops being billed: a host function begins."""
        if self._billed_until is not None:
            self._guest_ticks += self._ticks.count - self._billed_until
            self._billed_until = None

    def enter_guest(self) -> None:
        """Guest code is billed again."""
        self._billed_until = self._ticks.count

    def has_ticked(self) -> bool:
        """Whether guest code has been billed since this was last asked."""
        seen, self._seen_ticks = self._seen_ticks, self._guest_ticks
        return seen != self._guest_ticks

    def is_computed_out(self) -> bool:
        """Whether guest code has used up its processor time."""
        return self._guest_ticks > self._most_ticks
