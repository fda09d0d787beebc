"""An observer for tests: keeps what it was told, and says what breaks the promises of `events.py`."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TypeVar

from toolbridge.events import (
    CallEnded,
    CallProgressed,
    CallStarted,
    DecisionMade,
    Event,
    RunEnded,
    RunEvent,
    RunStarted,
)

E = TypeVar("E")


class Recorder:
    """Keeps every event, in order."""

    def __init__(self, *, wants_arguments: bool = False) -> None:
        self.wants_arguments = wants_arguments
        self.events: list[Event] = []
        self.threads: set[int] = set()

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self.threads.add(threading.get_ident())

    def of(self, kind: type[E]) -> list[E]:
        """The events of one type."""
        return [event for event in self.events if isinstance(event, kind)]

    def broken_promises(self) -> list[str]:
        """What was told that must not be, or was not that must be. Every run must be over."""
        book = _Book(self.wants_arguments)
        for event in self.events:
            if isinstance(event, RunEvent):
                book.enter(event)
        return [*book.problems, *book.unfinished()]


class _Book:
    """What has been told so far."""

    def __init__(self, wants_arguments: bool) -> None:
        self.problems: list[str] = []
        self._wants_arguments = wants_arguments
        self._open_runs: set[str] = set()
        self._seen_runs: set[str] = set()
        self._open_calls: dict[tuple[str, int], CallStarted] = {}
        self._seen_calls: set[tuple[str, int]] = set()
        self._started: Counter[str] = Counter()

    def enter(self, event: RunEvent) -> None:
        if isinstance(event, RunStarted):
            if event.run in self._seen_runs:
                self.problems.append(f"run {event.run} started twice")
            self._open_runs.add(event.run)
            self._seen_runs.add(event.run)
            return
        if event.run not in self._open_runs:
            self.problems.append(f"outside of its run: {event}")
        if isinstance(event, RunEnded):
            self._end_run(event)
        elif isinstance(event, CallStarted):
            self._start_call(event)
        else:
            self._go_on_with_call(event)

    def unfinished(self) -> list[str]:
        runs = [f"run {run} never ended" for run in sorted(self._open_runs)]
        return runs + [f"call {key} never ended" for key in sorted(self._open_calls)]

    def _end_run(self, event: RunEnded) -> None:
        left = [call for run, call in self._open_calls if run == event.run]
        if left:
            self.problems.append(f"run {event.run} ended before its calls {left}")
        if event.calls != self._started[event.run]:
            self.problems.append(f"run {event.run} says {event.calls} calls, told of {self._started[event.run]}")
        self._open_runs.discard(event.run)

    def _start_call(self, event: CallStarted) -> None:
        key = (event.run, event.call)
        if key in self._seen_calls:
            self.problems.append(f"call {key} started twice")
        if event.arguments and not self._wants_arguments:
            self.problems.append(f"call {key} shows its arguments")
        self._started[event.run] += 1
        self._seen_calls.add(key)
        self._open_calls[key] = event

    def _go_on_with_call(self, event: DecisionMade | CallProgressed | CallEnded) -> None:
        key = (event.run, event.call)
        start = self._open_calls.get(key)
        if start is None:
            self.problems.append(f"of no open call: {event}")
        elif (start.server, start.tool) != (event.server, event.tool):
            self.problems.append(f"call {key} changed its tool: {event}")
        if isinstance(event, CallEnded):
            self._open_calls.pop(key, None)
