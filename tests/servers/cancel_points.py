"""Cancelling a program at its Nth step, whatever it is doing then: the same way on both event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio
import trio


@dataclass(frozen=True)
class Ending:
    """How a program ended."""

    cancelled: bool
    steps: int
    """How many it made, the cleaning-up included."""


class _Steps:
    """Counts, and cancels at one of them."""

    def __init__(self, last: int | None) -> None:
        self.count = 0
        self.scope: anyio.CancelScope | None = None
        self._last = last

    def step(self) -> None:
        if self.scope is None:
            return
        self.count += 1
        if self.count == self._last:
            self.scope.cancel()


class _CountingLoop(asyncio.SelectorEventLoop):
    """A step is a turn of the loop: whatever was ready has run."""

    steps: _Steps

    def _run_once(self) -> None:
        self.steps.step()
        super()._run_once()  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]


class _CountingInstrument(trio.abc.Instrument):
    """A step is one of any task."""

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._steps.step()


def run_and_cancel(program: Callable[[], Awaitable[None]], backend: str, at_step: int | None) -> Ending:
    """Run a program; at its Nth step, if it makes so many, it is cancelled from outside."""
    steps = _Steps(at_step)

    async def main() -> Ending:
        with anyio.CancelScope() as scope:
            steps.scope = scope
            await program()
        steps.scope = None
        return Ending(scope.cancelled_caught, steps.count)

    def loop() -> _CountingLoop:
        made = _CountingLoop()
        made.steps = steps
        return made

    options: dict[str, Any] = (
        {"loop_factory": loop} if backend == "asyncio" else {"instruments": [_CountingInstrument(steps)]}
    )
    return anyio.run(main, backend=backend, backend_options=options)
