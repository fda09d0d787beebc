"""Waiting for a run: on a thread, or in an event loop."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from toolbridge.sandbox.execution import Execution
from toolbridge.sandbox.outcome import RunResult

if TYPE_CHECKING:
    from toolbridge.sandbox.scheduler import LoopInbox, TaskScheduler

# How long a cancelled run is waited for: long enough for a guest to end, not for a plain host function.
_CANCEL_SECONDS = 0.045


def wait_for(execution: Execution) -> RunResult:
    """Begins a run and waits for its result on this thread.

    Raises:
        ToolbridgeError: the host's own installation failed, not the guest.
    """
    done = threading.Lock()
    done.acquire()
    try:
        if not execution.begin_here():
            execution.begin(done.release)
            while not done.acquire(timeout=execution.patience()):
                if execution.give_up():
                    break
    except BaseException:  # Ctrl-C: the guest goes first
        execution.cancel()
        if not execution.leave_undone():
            done.acquire(timeout=_CANCEL_SECONDS)
        raise
    return execution.result()


async def wait_for_async(execution: Execution, inbox: LoopInbox, scheduler: TaskScheduler) -> RunResult:
    """The same in an event loop, where the run's calls are made; cancelling it ends the guest.

    Raises:
        ToolbridgeError: the host's own installation failed, not the guest.
    """
    if execution.can_run_on_loop():
        from toolbridge.sandbox.loop_run import LoopRun

        return await LoopRun(execution, inbox, scheduler).result()

    from anyio import move_on_after

    def on_done() -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is gone: nobody waits
            inbox.wake()

    execution.begin(on_done)
    try:
        while not execution.is_done:
            with move_on_after(execution.patience()):
                await inbox.wait()
            if execution.give_up():
                break
    except BaseException:
        execution.cancel()
        with move_on_after(_CANCEL_SECONDS, shield=True):
            while not execution.is_done:
                await inbox.wait()
        raise
    return execution.result()
