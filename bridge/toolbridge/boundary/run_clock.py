"""A run's wall clock, stopped while a person is asked about one of its calls."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from math import inf
from time import monotonic
from typing import Protocol


class Stoppable(Protocol):
    """A run that can be given more time, from any thread."""

    deadline: float
    """When it ends, by the monotonic clock."""

    def prolong(self, seconds: float) -> None:
        """Moves its deadline; negative seconds take time back."""
        ...


class RunClock:
    """Belongs to one run or session, and is used on the event loop's thread. At most so long is it stopped at once."""

    def __init__(self, most_seconds: float) -> None:
        self._most = most_seconds
        self._run: Stoppable | None = None
        self._asking = 0
        self._since = 0.0

    def attach(self, run: Stoppable) -> None:
        """A run begins."""
        self._run = run
        self._asking = 0

    def seconds_left(self) -> float:
        """Until the run that is under way ends. What came before it, such as a compilation, is not its time."""
        return inf if self._run is None else self._run.deadline - monotonic()

    @contextlib.contextmanager
    def stopped(self) -> Generator[None]:
        """The run's time stands still meanwhile. Several questions at once stop it once."""
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
