"""A run on an event loop: its calls are awaited right there, and only what it computes goes to a guest thread.

A guest runs on the loop's thread for less than a tick at a time. Whatever it wants of its host it asks by mailbox,
is put aside, and goes on when the answer has been awaited: nothing has to wake another thread. When a tick finds it
computing, it goes on on a guest thread until it next asks for something.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from math import inf
from time import monotonic
from typing import cast

import anyio
import anyio.lowlevel

from toolbridge.boundary.awaited_requests import AwaitedRequests
from toolbridge.boundary.mailbox import LOG, NOW, TAKE, Asked
from toolbridge.boundary.run_state import RunEnded
from toolbridge.sandbox.execution import Execution
from toolbridge.sandbox.outcome import RunResult
from toolbridge.sandbox.scheduler import LoopInbox, TaskScheduler
from toolbridge.sandbox.ticker import TICK_SECONDS

# How long a cancelled run is waited for: long enough for a guest to end.
_CANCEL_SECONDS = 0.045
# What a guest thread answers itself: printing in the middle of a computation is no reason to come back.
_ANSWERED_ANYWHERE = frozenset({TAKE, LOG, NOW})


class LoopRun:
    """One run. Used on the event loop's thread."""

    def __init__(self, execution: Execution, inbox: LoopInbox, scheduler: TaskScheduler) -> None:
        self._execution = execution
        self._inbox = inbox
        self._steps = execution.steps()
        self._asked: Asked | None = None
        self._requests = AwaitedRequests(execution.state, scheduler.perform)
        self._scope = anyio.CancelScope()
        """Cancelled when the run's time is up, or when it was ended."""
        self._is_left = False
        """Whether nobody waits for it any more; the guest thread that has it then ends it."""

    async def result(self) -> RunResult:
        """Runs it to its end. Cancelling ends the guest.

        Raises:
            ToolbridgeError: the host's own installation failed, not the guest.
        """
        state, scope = self._execution.state, self._scope
        shift = anyio.current_time() - monotonic()

        def look() -> None:
            if state.ending is not None:
                scope.cancel()
            else:
                scope.deadline = state.deadline + shift

        def on_change() -> None:
            with contextlib.suppress(RuntimeError):  # the event loop is gone: nobody waits
                self._inbox.run_soon(look)

        try:
            with scope:
                scope.deadline = state.deadline + shift
                state.on_change = on_change
                await self._go_on()
            if not self._execution.is_done:  # the scope was cancelled: the time is up, or the run was ended
                state.time_out()
                self._end()
        finally:
            state.on_change = None
            if not self._is_left:
                self._steps.close()
        return self._execution.result()

    async def _go_on(self) -> None:
        self._advance(None)
        turn_ends = monotonic() + TICK_SECONDS
        while not self._execution.is_done:
            if self._asked is None:
                await self._compute_elsewhere()
                continue
            try:
                answer = self._requests.answer(self._asked)
                if type(answer) is not int:
                    answer = await cast("Awaitable[int]", answer)
            except RunEnded:
                self._end()
                return
            if monotonic() > turn_ends:  # functions that never wait would keep the loop
                await anyio.lowlevel.checkpoint()
                turn_ends = monotonic() + TICK_SECONDS
            self._advance(answer)
        if self._execution.state.started.can_settle():  # what was started last has begun, here as on any thread
            await anyio.lowlevel.checkpoint()

    def _advance(self, answer: int | None) -> None:
        try:
            self._asked = self._steps.send(answer)
        except StopIteration:
            self._asked = None

    def _end(self) -> None:
        with contextlib.suppress(StopIteration):
            self._steps.throw(RunEnded())

    async def _compute_elsewhere(self) -> None:
        """Goes on on a guest thread, until the guest asks for something that only the loop can do, or ends."""
        done = anyio.Event()
        self._execution.submit(lambda: self._compute(done.set))
        try:
            await done.wait()
        except BaseException:
            patience = _CANCEL_SECONDS
            if self._scope.cancel_called:  # whoever waits wants a result, which there is at the next tick
                self._execution.state.time_out()
                patience = inf
            self._execution.cancel()
            with anyio.move_on_after(patience, shield=True):
                await done.wait()
            self._is_left = not done.is_set()
            raise

    def _compute(self, on_done: Callable[[], None]) -> None:
        """On a guest thread."""
        asked: Asked | None = None
        with contextlib.suppress(StopIteration):
            while asked is None or asked.operation in _ANSWERED_ANYWHERE:
                asked = self._execution.proceed(self._steps, asked)
            self._asked = asked
        if self._is_left:
            self._steps.close()
        with contextlib.suppress(RuntimeError):  # the event loop is gone: nobody waits
            self._inbox.run_soon(on_done)
