"""One run from start to result: on a guest thread, watched by whoever waits for it."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from toolbridge.boundary.host_call import CallRecord, HostModules, Scheduler
from toolbridge.boundary.json_codec import TooDeepError, WireError
from toolbridge.boundary.memory import OutOfBoundsError
from toolbridge.boundary.output import STDERR, STDOUT
from toolbridge.boundary.run_state import RunState
from toolbridge.boundary.wire import OutcomeFrame, RunFrame, decode_outcome, encode_run
from toolbridge.limits import Limits
from toolbridge.sandbox.engine import Engine
from toolbridge.sandbox.instance import GuestTrap, Instance
from toolbridge.sandbox.javascript_failure import PROGRAM_FILE, describe, describe_calls
from toolbridge.sandbox.outcome import Failure, FailureKind, RunResult, Usage

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from toolbridge.sandbox.scheduler import LoopInbox

# How long after its deadline a run may take to notice, before whoever waits stops waiting: a plain
# host function can't be interrupted.
GRACE_SECONDS = 0.1
# How long a cancelled run is waited for: long enough for a guest to end, not for a plain host function.
_CANCEL_SECONDS = 0.045

# Runs that are under way in this process.
_active: set[Execution] = set()


class Execution:
    """A run that has been set up and not yet begun."""

    def __init__(
        self,
        *,
        engine: Engine,
        source: str,
        seed: bytes,
        limits: Limits,
        modules: HostModules,
        scheduler: Scheduler,
        clock: Callable[[], float],
        new_instance: Callable[[], Instance],
        keep_instance: Callable[[Instance], None] | None = None,
    ) -> None:
        self._engine = engine
        self._source = source
        self._limits = limits
        self._new_instance = new_instance
        self._keep_instance = keep_instance
        frame = encode_run(RunFrame(source, PROGRAM_FILE, seed.hex(), limits.stack_bytes))
        self._frame_bytes = len(frame)
        self._state = RunState(
            limits=limits, modules=modules, scheduler=scheduler, ticks=engine.ticker.ticks, clock=clock, frame=frame
        )
        self._lock = threading.Lock()
        self._result: RunResult | None = None
        self._error: BaseException | None = None
        self._on_done: Callable[[], None] | None = None

    def _give_up_at(self) -> float:
        """When whoever waits should stop waiting (monotonic clock)."""
        calling, ended_at = self._state.calling, self._state.ended_at
        deadline = self._state.deadline
        if calling is not None:
            deadline = min(deadline, calling[1] + self._limits.call_seconds)
        if ended_at is not None:
            deadline = min(deadline, ended_at)
        return deadline + GRACE_SECONDS

    def patience(self) -> float:
        """How long to wait before asking `give_up`: calls come and go, so not for long."""
        return min(max(self._give_up_at() - monotonic(), 0.01), 0.25)

    def begin(self, on_done: Callable[[], None]) -> None:
        """Starts the run on a guest thread; `on_done` is called on that thread at the end."""
        self._on_done = on_done
        _active.add(self)
        self._engine.threads.submit(self._execute)

    def cancel(self) -> None:
        """Ends the run soon, from any thread."""
        self._state.cancel()

    def give_up(self) -> bool:
        """Whether to stop waiting: the guest thread is stuck in a plain host function.

        The thread is left to itself: it ends when that function returns.
        """
        calling = self._state.calling
        if self.is_done or calling is None or monotonic() < self._give_up_at():
            return False
        request, since = calling
        waited = monotonic() - since
        self._state.end("timeout", f"{request.function} of {request.module} has not returned after {waited:.1f} s.")
        stuck = CallRecord(request.module, request.function, "unfinished", waited, 0, 0)
        self._finish(self._ended_result((*self._state.calls, stuck)), None)
        return True

    @property
    def is_done(self) -> bool:
        """Whether there is a result."""
        return self._result is not None or self._error is not None

    def result(self) -> RunResult:
        """The result, once the run is done.

        Raises:
            ToolbridgeError: the host's own installation failed, not the guest.
        """
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    # ---- on the guest thread

    def _execute(self) -> None:
        self._engine.ticker.enter()
        instance: Instance | None = None
        try:
            instance = self._new_instance()
            result, keep = self._run_in(instance)
            if keep and self._keep_instance is not None and self._state.ending is None:
                self._keep_instance(instance)
                instance = None
            self._finish(result, None)
        except BaseException as raised:
            self._finish(None, raised)
        self._engine.ticker.leave()
        if instance is not None:  # before anybody goes on: a next run would contend for the same memory map
            instance.close()
        if self._on_done is not None:
            self._on_done()

    def _finish(self, result: RunResult | None, error: BaseException | None) -> None:
        with self._lock:  # the first of the guest thread and whoever gave up waiting
            if self._result is None and self._error is None:
                self._result, self._error = result, error
        _active.discard(self)

    def _run_in(self, instance: Instance) -> tuple[RunResult, bool]:
        """The run's result, and whether the instance can be used again."""
        state = self._state
        if state.ending is not None:
            return self._ended_result(tuple(state.calls)), True
        try:
            pointer, length = instance.run(state, self._frame_bytes)
        except GuestTrap as trap:
            return self._trapped_result(trap), False
        return self._read_outcome(instance, pointer, length), True

    def _read_outcome(self, instance: Instance, pointer: int, length: int) -> RunResult:
        if length > self._limits.frame_bytes:
            message = f"The run's value is {length} bytes, more than the limit of {self._limits.frame_bytes}."
            return self._result_of("limit", f"{message} Return less: filter or summarise.", instance)
        if not pointer:
            return self._result_of("out_of_memory", "There was not enough memory to read the program.", instance)
        try:
            outcome = decode_outcome(instance.memory.read(pointer, length))
        except TooDeepError:
            message = "The run's value is nested too deeply. Return something flatter."
            return self._result_of("limit", message, instance)
        except (WireError, OutOfBoundsError) as error:
            return self._result_of("protocol", f"The guest's outcome was not understood: {error}.", instance)
        if monotonic() > self._state.deadline + GRACE_SECONDS:  # reading it was part of the run
            self._state.end("timeout", f"The run took longer than {self._limits.wall_seconds:g} s.")
            return self._ended_result(self._all_calls())
        return self._outcome_result(outcome, instance)

    # ---- results

    def _outcome_result(self, outcome: OutcomeFrame, instance: Instance) -> RunResult:
        calls = self._all_calls()
        if outcome.error is None:
            return self._make_result(calls, instance, value=outcome.value)
        kind: FailureKind = outcome.failure_kind  # pyright: ignore[reportAssignmentType]  # decode_outcome checked it
        notes: list[str] = []
        if kind == "out_of_memory":
            notes.append(f"The program may use {self._limits.memory_bytes // 2**20} MiB of memory.")
        failure = describe(kind, outcome.error, self._source, calls, extra_notes=notes)
        return self._make_result(calls, instance, failure=failure)

    def _trapped_result(self, trap: GuestTrap) -> RunResult:
        if self._state.ending is not None:
            return self._ended_result(self._all_calls())
        if trap.is_stack_overflow:
            return self._result_of("limit", "The program recursed too deeply.", None)
        return self._result_of("crashed", "The guest's engine stopped unexpectedly.", None)

    def _ended_result(self, calls: tuple[CallRecord, ...]) -> RunResult:
        ending = self._state.ending
        assert ending is not None
        kind: FailureKind = ending.kind  # pyright: ignore[reportAssignmentType]  # written by RunState only
        notes = (describe_calls(calls),) if calls else ()
        return self._make_result(calls, None, failure=Failure(kind, ending.message, notes=notes))

    def _result_of(self, kind: FailureKind, message: str, instance: Instance | None) -> RunResult:
        calls = self._all_calls()
        notes = (describe_calls(calls),) if calls else ()
        return self._make_result(calls, instance, failure=Failure(kind, message, notes=notes))

    def _all_calls(self) -> tuple[CallRecord, ...]:
        return (*self._state.calls, *self._state.started.unfinished())

    def _make_result(
        self,
        calls: tuple[CallRecord, ...],
        instance: Instance | None,
        *,
        value: object = None,
        failure: Failure | None = None,
    ) -> RunResult:
        state = self._state
        usage = Usage(
            wall_seconds=monotonic() - state.began,
            cpu_seconds=state.cpu_seconds(),
            memory_bytes=instance.memory.size if instance is not None else 0,
            output_bytes_dropped=state.output.dropped,
        )
        return RunResult(value, state.output.text(STDOUT), state.output.text(STDERR), calls, failure, usage)


def wait_for(execution: Execution) -> RunResult:
    """Begins a run and waits for its result on this thread.

    Raises:
        ToolbridgeError: the host's own installation failed, not the guest.
    """
    done = threading.Lock()
    done.acquire()
    execution.begin(done.release)
    try:
        while not done.acquire(timeout=execution.patience()):
            if execution.give_up():
                break
    except BaseException:  # Ctrl-C: the guest goes first
        execution.cancel()
        done.acquire(timeout=_CANCEL_SECONDS)
        raise
    return execution.result()


async def wait_for_async(execution: Execution, inbox: LoopInbox, calls: TaskGroup) -> RunResult:
    """The same in an event loop, where the run's calls are started; cancelling it ends the guest.

    Raises:
        ToolbridgeError: the host's own installation failed, not the guest.
    """
    from anyio import move_on_after

    def on_done() -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is gone: nobody waits
            inbox.wake()

    execution.begin(on_done)
    try:
        while not execution.is_done:
            with move_on_after(execution.patience()):
                await inbox.start_tasks(calls)
            if execution.give_up():
                break
    except BaseException:
        execution.cancel()
        with move_on_after(_CANCEL_SECONDS, shield=True):
            while not execution.is_done:
                await inbox.start_tasks(calls)
        raise
    return execution.result()


def fresh_seed() -> bytes:
    """A seed that nobody can guess."""
    return os.urandom(32)


def _cancel_all() -> None:
    """At exit no guest may call into an interpreter that is going away."""
    executions = list(_active)
    for execution in executions:
        execution.cancel()
    until = monotonic() + 0.5
    while _active and monotonic() < until:
        threading.Event().wait(0.005)


atexit.register(_cancel_all)
