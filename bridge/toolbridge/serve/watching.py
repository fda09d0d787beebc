"""What happens in runs, told to their callers: progress for each call, and lines of a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from toolbridge import (
    CallEnded,
    CallProgressed,
    CallStarted,
    DecisionMade,
    Event,
    RunEnded,
    RunStarted,
    StateChanged,
    ToolsChanged,
)
from toolbridge.serve.caller import Caller, News, current_caller
from toolbridge.trust.sanitise import for_error

_CallEvent: TypeAlias = CallStarted | CallProgressed | CallEnded | DecisionMade


class Watch:
    """An observer. `on_change` is called when modules may have changed; `secrets_of` are a server's."""

    def __init__(self, on_change: Callable[[], None], secrets_of: Callable[[str], frozenset[str]]) -> None:
        self._on_change = on_change
        self._secrets_of = secrets_of
        self._callers: dict[str, Caller] = {}
        self._servers: dict[str, Counter[Caller]] = {}
        self.runs = self.failed_runs = self.calls = self.failed_calls = 0

    @property
    def running(self) -> int:
        """How many programs run now."""
        return len(self._callers)

    def callers_of(self, server: str) -> Counter[Caller]:
        """Who has calls under way at a server."""
        return self._servers.get(server, Counter())

    def __call__(self, event: Event) -> None:
        """Is told of everything, on the event loop's thread."""
        if isinstance(event, RunStarted):
            self.runs += 1
            caller = current_caller()
            if caller is not None:
                self._callers[event.run] = caller
        elif isinstance(event, (ToolsChanged, StateChanged)):
            self._on_change()
        elif isinstance(event, (CallStarted, CallProgressed, CallEnded, DecisionMade, RunEnded)):
            caller = self._callers.get(event.run)
            self._count(event)
            if caller is not None:
                self._tell(caller, event)
            if isinstance(event, RunEnded):
                self._callers.pop(event.run, None)

    def _count(self, event: _CallEvent | RunEnded) -> None:
        if isinstance(event, CallEnded):
            self.calls += 1
            self.failed_calls += event.outcome != "ok"
        elif isinstance(event, RunEnded):
            self.failed_runs += event.outcome != "ok"

    def _tell(self, caller: Caller, event: _CallEvent | RunEnded) -> None:
        if isinstance(event, CallStarted):
            self._servers.setdefault(event.server, Counter())[caller] += 1
            caller.tell(News(f"{_name(event)} …"))
        elif isinstance(event, CallProgressed):
            words = for_error(event.message, self._secrets_of(event.server), limit=200)
            caller.tell(News(f"{_name(event)}: {_amount(event)}{' ' if words else ''}{words}"))
        elif isinstance(event, CallEnded):
            self._ended(caller, event.server)
            words = f"{_name(event)}: {event.outcome}, {event.seconds:.1f} s"
            caller.tell(News(words))
            if event.outcome != "ok":
                caller.tell(News(words, "notice"))
        elif isinstance(event, DecisionMade):
            if not event.allowed:
                caller.tell(News(f"{_name(event)} was denied ({for_error(event.rule, limit=200)})", "warning"))
        else:
            caller.tell(News(f"run {event.outcome}: {event.calls} calls, {event.seconds:.1f} s", "debug"))

    def _ended(self, caller: Caller, server: str) -> None:
        counts = self._servers.get(server)
        if counts is not None:
            counts[caller] -= 1
            if counts[caller] <= 0:
                del counts[caller]
            if not counts:
                del self._servers[server]


def _name(event: _CallEvent) -> str:
    tool = for_error(event.tool, limit=100)
    return f"{event.server}.{tool}" if event.server else tool


def _amount(event: CallProgressed) -> str:
    return f"{event.done:g}" if event.total is None else f"{event.done:g} of {event.total:g}"
