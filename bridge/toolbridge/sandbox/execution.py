"""One run from start to result: begun by whoever waits for it, gone on with on a guest thread, and watched."""

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
from toolbridge.sandbox.scheduler import LoopInbox, TaskScheduler

# How long after its deadline a run may take to notice, before whoever waits stops waiting: a plain
# host function can't be interrupted.
GRACE_SECONDS = 0.1

# Runs that are on a guest thread of this process.
_active: set[Execution] = set()

RunSteps: TypeAlias = Generator[Asked | None, int | None, None]
"""As `instance.Steps`, from the making of the guest to the result."""


class Execution:
    """A run that has been set up and not yet begun."""

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

    def _give_up_at(self) -> float:
        """When whoever waits should stop waiting (monotonic clock)."""
        calling, ended_at = self.state.calling, self.state.ended_at
        deadline = self.state.deadline
        if calling is not None:
            waited = perf_counter() - calling.began
            deadline = min(deadline, monotonic() - waited + self._limits.call_seconds)
        if ended_at is not None:
            deadline = min(deadline, ended_at)
        return deadline + GRACE_SECONDS

    def patience(self) -> float:
        """How long to wait before asking `give_up`: calls come and go, so not for long."""
        return min(max(self._give_up_at() - monotonic(), 0.01), 0.25)

    def begin_here(self) -> bool:
        """Runs on this thread until the end, a host call or a tick, whichever is first; whether it was the end.

        It is put aside in the middle for `begin`; or for `leave_undone`, when something comes between.
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
        """Starts the run on a guest thread, or goes on with it; `on_done` is called on that thread at the end."""
        self._on_done = on_done
        steps, asked = self._put_aside or (self._execute(here=False), None)
        self._put_aside = None
        self.submit(lambda: self._exhaust(steps, asked))

    def submit(self, job: Callable[[], None]) -> None:
        """Has something of this run done on a guest thread. The job must not raise."""

        def work() -> None:
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

    def leave_undone(self) -> bool:
        """Ends a run that was put aside and hasn't gone on. False if there is none."""
        aside, self._put_aside = self._put_aside, None
        if aside is None:
            return False
        aside[0].close()
        return True

    # ---- in steps

    def can_run_on_loop(self) -> bool:
        """Whether an event loop's thread may run it, in steps: nothing that it can call would keep the loop."""
        if self._dialect.words_of_calls is None:
            return False
        functions = [each for module in self._host.modules.values() for each in module.values()]
        return all(each.is_async or each.is_quick for each in functions)

    def steps(self) -> RunSteps:
        """The run, for a thread that it must not keep."""
        return self._execute(here=True)

    def proceed(self, steps: RunSteps, asked: Asked | None) -> Asked | None:
        """Does what the guest asked for, on this thread, and goes on to the next step.

        Raises:
            StopIteration: that was the last.
        """
        if asked is None:
            return next(steps)
        try:
            number = answer(self.state, asked)
        except RunOver:
            return steps.throw(RunOver())
        return steps.send(number)

    def _exhaust(self, steps: RunSteps, asked: Asked | None) -> None:
        """Goes through all the steps that are left, on a guest thread."""
        with contextlib.suppress(StopIteration):
            while True:
                asked = self.proceed(steps, asked)

    def cancel(self) -> None:
        """Ends the run soon, from any thread."""
        self.state.cancel()

    def give_up(self) -> bool:
        """Whether to stop waiting: the guest thread is stuck in a plain host function.

        The thread is left to itself: it ends when that function returns.
        """
        calling = self.state.calling
        if self.is_done or calling is None or monotonic() < self._give_up_at():
            return False
        stuck = self.state.log_of_calls.unfinished(calling)
        request = calling.request
        message = f"{request.function} of {request.module} has not returned after {stuck.seconds:.1f} s."
        self.state.end("timeout", message)
        self._finish(self._ended_result((*self.state.log_of_calls.ended, stuck)), None)
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

    # ---- on the thread of whoever waits, until the first step is done; then on the guest thread

    def _execute(self, *, here: bool) -> RunSteps:
        self._engine.ticker.enter()
        instance: GuestInstance | None = None
        try:
            instance = self._new_instance()
            result, keep = yield from self._run_in(instance, here=here)
            if keep and self._keep_instance is not None and self.state.ending is None:
                self._keep_instance(instance)
                instance = None
            self._finish(result, None)
        except GeneratorExit:  # interrupted between two steps: there is nobody to tell
            raise
        except BaseException as raised:
            self._finish(None, raised)
        finally:
            self._engine.ticker.leave()
            if instance is not None:  # before anybody goes on: a next run would contend for the same memory map
                instance.close()
        if self._on_done is not None:
            self._on_done()

    def _finish(self, result: RunResult | None, error: BaseException | None) -> None:
        with self._lock:  # the first of the guest thread and whoever gave up waiting
            if self._result is None and self._error is None:
                self._result, self._error = result, error

    def _run_in(
        self, instance: GuestInstance, *, here: bool
    ) -> Generator[Asked | None, int | None, tuple[RunResult, bool]]:
        """The run's result, and whether the instance can be used again."""
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
        if result is None and here:  # the frames of whoever waits count too; a guest thread has few
            yield None
            result = self._read_outcome(instance, pointer, length)
        too_deep = "The run's value is nested too deeply. Return something flatter."
        return result or self._result_of("limit", too_deep, instance), True

    def _read_outcome(self, instance: GuestInstance, pointer: int, length: int) -> RunResult | None:
        """The result that the guest's outcome frame tells of; None if Python's recursion limit is in the way."""
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
        if monotonic() > self.state.deadline + GRACE_SECONDS:  # reading it was part of the run
            self.state.end("timeout", f"The run took longer than {self._limits.wall_seconds:g} s.")
            return self._ended_result(self.state.calls())
        return self._outcome_result(outcome, instance)

    # ---- results

    def _outcome_result(self, outcome: OutcomeFrame, instance: GuestInstance) -> RunResult:
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
        if self.state.ending is not None:
            return self._ended_result(self.state.calls())
        if trap.denied:
            message = f"The program asked the system for {trap.denied}, which doesn't exist in the sandbox."
            return self._result_of("denied", message, None)
        if trap.is_stack_overflow:
            return self._result_of("limit", "The program recursed too deeply.", None)
        return self._result_of("crashed", "The guest's engine stopped unexpectedly.", None)

    def _ended_result(self, calls: tuple[CallRecord, ...]) -> RunResult:
        ending = self.state.ending
        assert ending is not None
        kind: FailureKind = ending.kind  # pyright: ignore[reportAssignmentType]  # written by RunState only
        notes = notes_of_calls(calls)
        return self._make_result(calls, None, failure=Failure(kind, ending.message, notes=notes))

    def _result_of(self, kind: FailureKind, message: str, instance: GuestInstance | None) -> RunResult:
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
        state, memory_bytes = self.state, instance.memory.size if instance is not None else 0
        usage = Usage(
            wall_seconds=monotonic() - state.began,
            cpu_seconds=state.cpu_seconds(),
            memory_bytes=memory_bytes,
            output_bytes_dropped=state.output.dropped,
        )
        return RunResult(value, state.output.text(STDOUT), state.output.text(STDERR), calls, failure, usage)


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


# A run on an event loop: its calls are awaited right there, and only what it computes goes to a guest thread.
#
# A guest runs on the loop's thread for less than a tick at a time. Whatever it wants of its host it asks by mailbox,
# is put aside, and goes on when the answer has been awaited: nothing has to wake another thread. When a tick finds it
# computing, it goes on on a guest thread until it next asks for something.


# How long a cancelled run is waited for: long enough for a guest to end.
_CANCEL_SECONDS = 0.045
# What a guest thread answers itself: printing in the middle of a computation is no reason to come back.
_ANSWERED_ANYWHERE = frozenset({TAKE, LOG, NOW})


class LoopRun:
    """One run. Used on the event loop's thread."""

    def __init__(self, execution: Execution, inbox: LoopInbox, scheduler: TaskScheduler) -> None:
        import anyio

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
        import anyio

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
            if monotonic() > turn_ends:  # functions that never wait would keep the loop
                await anyio.lowlevel.checkpoint()
                turn_ends = monotonic() + TICK_SECONDS
            self._advance(answer)
        if self._execution.state.pending.can_settle():  # what was started last has begun, here as on any thread
            await anyio.lowlevel.checkpoint()

    def _advance(self, answer: int | None) -> None:
        try:
            self._asked = self._steps.send(answer)
        except StopIteration:
            self._asked = None

    def _end(self) -> None:
        with contextlib.suppress(StopIteration):
            self._steps.throw(RunOver())

    async def _compute_elsewhere(self) -> None:
        """Goes on on a guest thread, until the guest asks for something that only the loop can do, or ends."""
        import anyio

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


# Waiting for a run: on a thread, or in an event loop.


# How long a cancelled run is waited for: long enough for a guest to end, not for a plain host function.


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
