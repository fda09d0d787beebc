"""Executes one run: on the caller's thread in steps, on a guest thread, or on an event loop."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Generator
from math import inf
from time import monotonic, perf_counter
from typing import TypeAlias, cast

from toolbridge.boundary.host_call import CallRecord, HostSide, Scheduler
from toolbridge.boundary.imports import LOG, NOW, TAKE, Asked, AwaitedRequests, answer
from toolbridge.boundary.run_state import STDERR, STDOUT, OutOfBoundsError, RunOver, RunState
from toolbridge.boundary.wire import OutcomeFrame, RunFrame, decode_outcome, encode_run
from toolbridge.json_codec import TooDeepError, WireError
from toolbridge.limits import Limits
from toolbridge.sandbox.engine import TICK_SECONDS, Engine
from toolbridge.sandbox.instance import GuestInstance, GuestTrap
from toolbridge.sandbox.outcome import Dialect, Failure, FailureKind, RunResult, Usage, notes_of_calls
from toolbridge.sandbox.scheduler import LoopTasks, TaskScheduler

# How long after its deadline a run is still waited for: a plain host function can't be interrupted.
GRACE_SECONDS = 0.1

# Runs on guest threads of this process.
_active: set[Execution] = set()

RunSteps: TypeAlias = Generator[Asked | None, int | None, None]
"""As `instance.Steps`, from making the guest to the result."""


class Execution:
    """One run: its guest, its state and its result."""

    def __init__(
        self,
        *,
        engine: Engine,
        dialect: Dialect,
        source: str,
        erased: str | None = None,
        seed: bytes,
        limits: Limits,
        host: HostSide,
        scheduler: Scheduler,
        clock: Callable[[], float],
        spent: tuple[float, float] = (0.0, 0.0),
        new_instance: Callable[[], GuestInstance],
        keep_instance: Callable[[GuestInstance], None] | None = None,
    ) -> None:
        self._engine = engine
        self._dialect = dialect
        self._source = source
        self._limits = limits
        self._new_instance = new_instance
        self._keep_instance = keep_instance
        program = source if erased is None else erased
        frame = encode_run(RunFrame(program, dialect.program_file, seed.hex(), limits.stack_bytes))
        self._frame = frame
        self._host = host
        self.state = RunState(
            limits=limits,
            host=host,
            scheduler=scheduler,
            ticks=engine.ticker.ticks,
            clock=clock,
            frame=frame,
            spent=spent,
        )
        self._lock = threading.Lock()
        self._result: RunResult | None = None
        self._error: BaseException | None = None
        self._on_done: Callable[[], None] | None = None
        self._put_aside: tuple[RunSteps, Asked | None] | None = None

    def _abandon_at(self) -> float:
        """Returns when to give up (monotonic clock): soon after the run's end or deadline, or its call's timeout."""
        calling, ended_at = self.state.calling, self.state.ended_at
        deadline = self.state.deadline
        if calling is not None:
            waited = perf_counter() - calling.began
            deadline = min(deadline, monotonic() - waited + self._limits.call_seconds)
        if ended_at is not None:
            deadline = min(deadline, ended_at)
        return deadline + GRACE_SECONDS

    def poll_seconds(self) -> float:
        """Returns the seconds to wait before the next `abandon_if_stuck`, at most a quarter."""
        return min(max(self._abandon_at() - monotonic(), 0.01), 0.25)

    def run_until_wait(self) -> bool:
        """Runs on this thread until the end, a host call or a tick; returns whether it was the end (fast path).

        Otherwise the run is suspended until `begin` or `discard`; one that looks like making calls isn't even begun.
        """
        words = self._dialect.words_of_calls
        if words is None or any(word in self._source for word in words):
            return False
        steps = self.steps()
        try:
            self._put_aside = (steps, next(steps))
        except StopIteration:
            return True
        return False

    def begin(self, on_done: Callable[[], None]) -> None:
        """Starts or resumes the run on a guest thread, without waiting; `on_done` is called there at the end."""
        self._on_done = on_done
        steps, asked = self._put_aside or (self._execute(here=False), None)
        self._put_aside = None
        self.submit(lambda: self._take_all_steps(steps, asked))

    def submit(self, job: Callable[[], None]) -> None:
        """Runs a job of this run on a guest thread. The job must not raise."""

        def work() -> None:
            """Runs the job on a guest thread; then the run is no longer active there."""
            try:
                job()
            finally:
                _active.discard(self)

        _active.add(self)
        try:
            self._engine.threads.submit(work)
        except BaseException:
            _active.discard(self)
            raise

    def discard(self) -> bool:
        """Ends a run that `run_until_wait` suspended; returns whether there was one."""
        aside, self._put_aside = self._put_aside, None
        if aside is None:
            return False
        aside[0].close()
        return True

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────

    def can_run_on_loop(self) -> bool:
        """Returns whether the run may take steps on an event loop's thread: no host function of it blocks."""
        if self._dialect.words_of_calls is None:
            return False
        functions = [each for module in self._host.modules.values() for each in module.values()]
        return all(each.is_async or each.is_quick for each in functions)

    def steps(self) -> RunSteps:
        """Returns the run as steps of less than a tick."""
        return self._execute(here=True)

    def step(self, steps: RunSteps, asked: Asked | None) -> Asked | None:
        """Performs the guest's request on this thread, and advances to the next step.

        Raises:
            StopIteration: the run has ended.
        """
        if asked is None:
            return next(steps)
        try:
            number = answer(self.state, asked)
        except RunOver:
            return steps.throw(RunOver())
        return steps.send(number)

    def _take_all_steps(self, steps: RunSteps, asked: Asked | None) -> None:
        """Takes all remaining steps, on a guest thread."""
        with contextlib.suppress(StopIteration):
            while True:
                asked = self.step(steps, asked)

    def cancel(self) -> None:
        """Cancels the run. Thread-safe."""
        self.state.cancel()

    def abandon_if_stuck(self) -> bool:
        """Ends a run whose thread is stuck in a plain host function past the deadline; returns whether it did.

        The thread ends when that function returns.
        """
        calling = self.state.calling
        if self.is_done or calling is None or monotonic() < self._abandon_at():
            return False
        stuck = self.state.log_of_calls.unfinished(calling)
        request = calling.request
        message = f"{request.function} of {request.module} has not returned after {stuck.seconds:.1f} s."
        self.state.end("timeout", message)
        self._finish(self._ended_result((*self.state.log_of_calls.ended, stuck)), None)
        return True

    @property
    def is_done(self) -> bool:
        """Whether the run has a result, or an error of the installation."""
        return self._result is not None or self._error is not None

    def result(self) -> RunResult:
        """Returns the result of a run that is done.

        Raises:
            ToolbridgeError: the host's own installation failed, not the guest.
        """
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    # ── on the thread that takes the steps ───────────────────────────────────────────────────────────────────────

    def _execute(self, *, here: bool) -> RunSteps:
        """Runs in a new instance and keeps the result, or what was raised; then calls `on_done`.

        `here`: in steps, on a thread that guest code must not block.
        """
        self._engine.ticker.enter()
        instance: GuestInstance | None = None
        try:
            instance = self._new_instance()
            result, keep = yield from self._run_in(instance, here=here)
            if keep and self._keep_instance is not None and self.state.ending is None:
                self._keep_instance(instance)
                instance = None
            self._finish(result, None)
        except GeneratorExit:  # discarded between two steps
            raise
        except BaseException as raised:
            self._finish(None, raised)
        finally:
            self._engine.ticker.leave()
            if instance is not None:  # before `on_done`: the next run would contend for the same memory map
                instance.close()
        if self._on_done is not None:
            self._on_done()

    def _finish(self, result: RunResult | None, error: BaseException | None) -> None:
        """Sets the result or error, unless there is one already. Thread-safe."""
        with self._lock:  # the guest thread and `abandon_if_stuck` may race: the first wins
            if self._result is None and self._error is None:
                self._result, self._error = result, error

    def _run_in(
        self, instance: GuestInstance, *, here: bool
    ) -> Generator[Asked | None, int | None, tuple[RunResult, bool]]:
        """Runs in this instance; returns the result, and whether the instance can be reused."""
        state = self.state
        if state.ending is not None:
            return self._ended_result(state.calls()), True
        try:
            pointer, length = yield from instance.run(state, self._frame, here)
            if length <= self._limits.frame_bytes:
                state.check_time_for(length)
        except GuestTrap as trap:
            return self._trapped_result(trap), False
        except RunOver:
            return self._ended_result(state.calls()), False
        result = self._read_outcome(instance, pointer, length)
        if result is None and here:  # the caller's Python frames count; a guest thread has few
            yield None
            result = self._read_outcome(instance, pointer, length)
        too_deep = "The run's value is nested too deeply. Return something flatter."
        return result or self._result_of("limit", too_deep, instance), True

    def _read_outcome(self, instance: GuestInstance, pointer: int, length: int) -> RunResult | None:
        """Reads the outcome frame, and makes the result; None if Python's recursion limit is in the way."""
        if length > self._limits.frame_bytes:
            message = f"The run's value is {length} bytes, more than the limit of {self._limits.frame_bytes}."
            return self._result_of("limit", f"{message} Return less: filter or summarise.", instance)
        if not pointer:
            return self._result_of("out_of_memory", "There was not enough memory to read the program.", instance)
        try:
            outcome = decode_outcome(instance.memory.read(pointer, length))
        except TooDeepError:
            return None
        except (WireError, OutOfBoundsError) as error:
            return self._result_of("protocol", f"The guest's outcome was not understood: {error}.", instance)
        if monotonic() > self.state.deadline + GRACE_SECONDS:  # decoding is part of the run
            self.state.end("timeout", f"The run took longer than {self._limits.wall_seconds:g} s.")
            return self._ended_result(self.state.calls())
        return self._outcome_result(outcome, instance)

    # ── results ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _outcome_result(self, outcome: OutcomeFrame, instance: GuestInstance) -> RunResult:
        """Makes the result for an outcome: its value, or its failure in the terms of the program's language."""
        calls = self.state.calls()
        if outcome.error is None:
            return self._make_result(calls, instance, value=outcome.value)
        kind: FailureKind = outcome.failure_kind  # pyright: ignore[reportAssignmentType]  # decode_outcome checked it
        if kind == "raised" and outcome.error.kind == "denied":
            kind = "denied"
        notes: list[str] = []
        if kind == "out_of_memory":
            notes.append(f"The program may use {self._limits.memory_bytes // 2**20} MiB of memory.")
        failure = self._dialect.describe(kind, outcome.error, self._source, calls, extra_notes=notes)
        return self._make_result(calls, instance, failure=failure)

    def _trapped_result(self, trap: GuestTrap) -> RunResult:
        """Makes the result for a trap: why the host ended the run, else a denial, stack overflow or crash."""
        if self.state.ending is not None:
            return self._ended_result(self.state.calls())
        if trap.denied:
            message = f"The program asked the system for {trap.denied}, which doesn't exist in the sandbox."
            return self._result_of("denied", message, None)
        if trap.is_stack_overflow:
            return self._result_of("limit", "The program recursed too deeply.", None)
        return self._result_of("crashed", "The guest's engine stopped unexpectedly.", None)

    def _ended_result(self, calls: tuple[CallRecord, ...]) -> RunResult:
        """Makes the result of a run that the host ended, noting the calls already made."""
        ending = self.state.ending
        assert ending is not None
        kind: FailureKind = ending.kind  # pyright: ignore[reportAssignmentType]  # written by RunState only
        notes = notes_of_calls(calls)
        return self._make_result(calls, None, failure=Failure(kind, ending.message, notes=notes))

    def _result_of(self, kind: FailureKind, message: str, instance: GuestInstance | None) -> RunResult:
        """Makes the result of a failed run, noting the calls already made."""
        calls = self.state.calls()
        notes = notes_of_calls(calls)
        return self._make_result(calls, instance, failure=Failure(kind, message, notes=notes))

    def _make_result(
        self,
        calls: tuple[CallRecord, ...],
        instance: GuestInstance | None,
        *,
        value: object = None,
        failure: Failure | None = None,
    ) -> RunResult:
        """Makes a result from value or failure, with the output and the resources used so far."""
        state, memory_bytes = self.state, instance.memory.size if instance is not None else 0
        usage = Usage(
            wall_seconds=monotonic() - state.began,
            cpu_seconds=state.cpu_seconds(),
            memory_bytes=memory_bytes,
            output_bytes_dropped=state.output.dropped,
        )
        return RunResult(value, state.output.text(STDOUT), state.output.text(STDERR), calls, failure, usage)


def fresh_seed() -> bytes:
    """An unpredictable seed."""
    return os.urandom(32)


def _cancel_all() -> None:
    """Cancels all runs at exit, and waits half a second: no guest may call into an interpreter that shuts down."""
    executions = list(_active)
    for execution in executions:
        execution.cancel()
    until = monotonic() + 0.5
    while _active and monotonic() < until:
        threading.Event().wait(0.005)


atexit.register(_cancel_all)


# ── on an event loop ──────────────────────────────────────────────────────────────────────────────────────────────
# How long a cancelled run is waited for: enough for a guest to end, not for a plain host function.
CANCEL_SECONDS = 0.045
# Requests that a guest thread answers itself: printing doesn't bring the run back to the loop.
_ANSWERED_ANYWHERE = frozenset({TAKE, LOG, NOW})


class LoopRun:
    """A run whose calls are awaited on the event loop; only its computing moves to a guest thread.

    The guest runs on the loop's thread for less than a tick at a time. It makes requests by mailbox and is suspended
    until they are answered: no other thread has to be woken. When a tick finds it computing, it continues on a guest
    thread until its next request.
    """

    def __init__(self, execution: Execution, inbox: LoopTasks, scheduler: TaskScheduler) -> None:
        import anyio

        self._execution = execution
        self._inbox = inbox
        self._steps = execution.steps()
        self._asked: Asked | None = None
        self._requests = AwaitedRequests(execution.state, scheduler.perform)
        self._scope = anyio.CancelScope()
        """Cancelled when the run's time is up, or the run is ended."""
        self._is_left = False
        """Whether the caller stopped waiting: then the guest thread ends the run."""

    async def result(self) -> RunResult:
        """Runs to the end and returns the result. Cancelling ends the guest.

        Raises:
            ToolbridgeError: the host's own installation failed, not the guest.
        """
        import anyio

        state, scope = self._execution.state, self._scope
        shift = anyio.current_time() - monotonic()

        def look() -> None:
            """Moves the scope's deadline to the run's, or cancels the scope if the run was ended."""
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
                await self._drive()
            if not self._execution.is_done:  # the scope was cancelled
                state.time_out()
                self._end()
        finally:
            state.on_change = None
            if not self._is_left:
                self._steps.close()
        return self._execution.result()

    async def _drive(self) -> None:
        """Answers the guest's requests, until the run has ended; its computing goes to a guest thread."""
        import anyio.lowlevel

        self._advance(None)
        turn_ends = monotonic() + TICK_SECONDS
        while True:
            if self._asked is None:
                if self._execution.is_done:
                    break
                await self._compute_elsewhere()
                continue
            try:
                answer = self._requests.answer(self._asked)
                if type(answer) is not int:
                    answer = await cast("Awaitable[int]", answer)
            except RunOver:
                self._end()
                return
            if monotonic() > turn_ends:  # functions that never wait would block the loop
                await anyio.lowlevel.checkpoint()
                turn_ends = monotonic() + TICK_SECONDS
            self._advance(answer)
        if self._execution.state.pending.can_settle():  # let calls that were just started begin
            await anyio.lowlevel.checkpoint()

    def _advance(self, answer: int | None) -> None:
        """Sends the guest an answer, runs it, and keeps its next request."""
        try:
            self._asked = self._steps.send(answer)
        except StopIteration:
            self._asked = None

    def _end(self) -> None:
        with contextlib.suppress(StopIteration):
            self._steps.throw(RunOver())

    async def _compute_elsewhere(self) -> None:
        """Continues on a guest thread until the guest ends, or makes a request for the loop."""
        import anyio

        done = anyio.Event()
        self._execution.submit(lambda: self._compute(done.set))
        try:
            await done.wait()
        except BaseException:
            patience = CANCEL_SECONDS
            if self._scope.cancel_called:  # the time is up: the result follows at the next tick
                self._execution.state.time_out()
                patience = inf
            self._execution.cancel()
            with anyio.move_on_after(patience, shield=True):
                await done.wait()
            self._is_left = not done.is_set()
            raise

    def _compute(self, on_done: Callable[[], None]) -> None:
        """Takes steps on a guest thread until a request that only the loop can answer; then posts `on_done` to it."""
        asked: Asked | None = None
        with contextlib.suppress(StopIteration):
            while asked is None or asked.operation in _ANSWERED_ANYWHERE:
                asked = self._execution.step(self._steps, asked)
            self._asked = asked
        if self._is_left:
            self._steps.close()
        with contextlib.suppress(RuntimeError):  # the event loop is gone: nobody waits
            self._inbox.run_soon(on_done)
