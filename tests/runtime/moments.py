"""Waiting for moments of a run: an observer, and runs that something happens to in the middle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from observe.recorder import Recorder
from toolbridge import RunResult, Runtime
from toolbridge.events import DecisionMade, Event

SOON = 25.0
"""Seconds within which everything must be over. A wait for a timeout would be longer."""

Matches = Callable[[Event], bool]


class Moments(Recorder):
    """Keeps every event, and lets tests wait for one."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[tuple[Matches, anyio.Event]] = []

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        for matches, told in self._waiting:
            if matches(event):
                told.set()

    async def wait_for(self, matches: Matches, times: int = 1) -> None:
        """Until so many events match, those before included."""
        while sum(map(matches, self.events)) < times:
            told = anyio.Event()
            self._waiting.append((matches, told))
            await told.wait()


def call_of(tool: str) -> Matches:
    """The moment at which a call of this tool was decided on, and is about to be sent."""
    return lambda event: isinstance(event, DecisionMade) and event.tool == tool


def state_of(server: str, state: str) -> Matches:
    """The moment at which a server is in this state."""
    return lambda event: (getattr(event, "server", ""), getattr(event, "state", "")) == (server, state)


async def run_and(
    runtime: Runtime, program: str, until: Callable[[], Awaitable[Any]], act: Callable[[], Awaitable[Any]]
) -> RunResult:
    """The result of a program to which something happens in the middle. It must not take long from then on."""
    results: list[RunResult] = []

    async def run() -> None:
        results.append(await runtime.run(program))

    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await until()
            await anyio.wait_all_tasks_blocked()  # what was decided on is sent
            with anyio.fail_after(SOON):
                await act()
    return results[0]


async def cancel_in(runtime: Runtime, program: str, until: Callable[[], Awaitable[Any]]) -> None:
    """Cancels a run in the middle. Being over must not take long."""
    began = 0.0
    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runtime.run, program)
            await until()
            await anyio.wait_all_tasks_blocked()
            began = anyio.current_time()
            tasks.cancel_scope.cancel()
        assert anyio.current_time() - began < SOON
