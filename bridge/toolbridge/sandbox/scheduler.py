"""Runs host calls outside of the guest's thread: async functions, and parallel calls.

They are tasks of an event loop: the caller's if a run is awaited, else one on a thread of the sandbox. Both are
anyio's, which is imported on first use.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from queue import SimpleQueue
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

from toolbridge.boundary.host_call import (
    DeadlineQueue,
    Deliver,
    PendingCall,
    QueueTimeoutError,
    Reply,
    failed,
    is_awaitable,
    reply_with,
    timed_out,
)
from toolbridge.errors import EngineError
from toolbridge.limits import Limits

if TYPE_CHECKING:
    from anyio import CancelScope
    from anyio.abc import TaskGroup


# Room for Python and the C library beside the WebAssembly stack.
STACK_HEADROOM = 2 * 1024 * 1024
_IDLE_SECONDS = 10.0

Job = Callable[[], None]


class GuestThreads:
    """Thread pool for guests, unbounded, with stacks large enough for the deepest recursion of a guest.

    WebAssembly runs on the native stack, and overrunning that crashes the process: guests run on these threads, or on
    fibers (instance.py), never on a stack of another size. Idle threads end by themselves.
    """

    def __init__(self, wasm_stack_bytes: int) -> None:
        self._stack_bytes = wasm_stack_bytes + STACK_HEADROOM
        self._lock = threading.Lock()
        self._idle: list[DeadlineQueue[Job]] = []

    def submit(self, job: Job) -> None:
        """Runs `job` on a guest thread, without waiting for it. The job must not raise. Thread-safe.

        Raises:
            EngineError: no thread can be started.
        """
        with self._lock:
            if self._idle:
                self._idle.pop().put(job)
                return
            inbox: DeadlineQueue[Job] = DeadlineQueue()
            inbox.put(job)
            # The stack size is a process-wide setting, which applies to threads started later.
            before = threading.stack_size(self._stack_bytes)
            try:
                threading.Thread(target=self._work, args=(inbox,), name="toolbridge-guest", daemon=True).start()
            except RuntimeError as error:
                raise EngineError("start a thread for the guest", str(error)) from error
            finally:
                threading.stack_size(before)

    def _work(self, inbox: DeadlineQueue[Job]) -> None:
        """Runs the jobs of one guest thread, until it has been idle for ten seconds."""
        while True:
            try:
                job = inbox.take(monotonic() + _IDLE_SECONDS)
            except QueueTimeoutError:
                with self._lock:
                    if inbox in self._idle:
                        self._idle.remove(inbox)
                        return
                continue  # a job has just been put
            job()
            del job
            with self._lock:
                self._idle.append(inbox)


_ROOM_CHECK_SECONDS = 0.005

Task = Callable[[], Coroutine[Any, Any, None]]
Spawn = Callable[[Task], None]


class TaskScheduler:
    """Starts calls as tasks under a semaphore; waiting for the semaphore doesn't count as time of a call."""

    def __init__(self, limits: Limits, spawn: Spawn) -> None:
        self._limits = limits
        self._spawn = spawn
        self._turns: Any = None
        self._scopes: set[CancelScope] = set()
        self._used = False

    def start(self, call: PendingCall, deliver: Deliver) -> None:
        """Starts a call. Thread-safe."""
        self._schedule(call, deliver, lambda: self._invoke(call))

    def start_awaiting(self, call: PendingCall, value: Any, deliver: Deliver) -> None:
        """Awaits the value of a call whose function has returned an awaitable. Thread-safe."""
        self._schedule(call, deliver, lambda: _awaited(value))

    async def perform(self, call: PendingCall, begun: Awaitable[Any] | None = None) -> Reply:
        """Awaits a call that the guest waits for; `begun` is the awaitable if the function was already called."""
        return await self._answer(call, self._invoke(call) if begun is None else begun)

    def cancel(self) -> None:
        """Cancels all pending calls, without waiting for them. Thread-safe."""
        if self._used:
            self._used = False
            self._spawn(self._cancel_scopes)

    async def _cancel_scopes(self) -> None:
        for scope in self._scopes:
            scope.cancel()

    def _schedule(self, call: PendingCall, deliver: Deliver, invoke: Callable[[], Awaitable[Any]]) -> None:
        """Starts a task that awaits `invoke()` and delivers its reply; if the loop is closed, delivers an error now."""

        async def task() -> None:
            """Performs the call in a scope that `cancel` cancels, and delivers its reply."""
            import anyio

            with anyio.CancelScope() as scope:
                self._scopes.add(scope)
                try:
                    deliver(call, await self._perform(call, invoke))
                finally:
                    self._scopes.discard(scope)

        self._used = True
        try:
            self._spawn(task)
        except RuntimeError as error:  # the event loop is closed
            deliver(call, Reply(failed(error)))

    async def _perform(self, call: PendingCall, invoke: Callable[[], Awaitable[Any]]) -> Reply:
        """Awaits a call's reply. A call that guest code doesn't wait for first awaits the semaphore and room for it."""
        import anyio

        call.began = perf_counter()
        if call.may_begin is None:  # the guest waits for it: one at a time, without the semaphore
            return await self._answer(call, invoke())
        if self._turns is None:
            self._turns = anyio.Semaphore(self._limits.calls_in_flight)
        async with self._turns:
            while not call.may_begin():  # noqa: ASYNC110  # rare, and another thread makes room
                await anyio.sleep(_ROOM_CHECK_SECONDS)
            call.began = perf_counter()
            return await self._answer(call, invoke())

    async def _answer(self, call: PendingCall, value: Awaitable[Any]) -> Reply:
        """Awaits a call's value within its timeout; returns the reply, also for an error. Raises only cancellation."""
        seconds = self._limits.call_seconds
        try:
            if call.function.keeps_time:
                return reply_with(call.request, await value, self._limits.frame_bytes)
            import anyio

            with anyio.move_on_after(seconds):
                return reply_with(call.request, await value, self._limits.frame_bytes)
            return Reply(timed_out(call.request, seconds))
        except BaseException as error:
            import anyio

            from toolbridge.concurrency import is_foreign

            if isinstance(error, anyio.get_cancelled_exc_class()) and not is_foreign(error):
                raise
            return Reply(failed(error.error if isinstance(error, _RaisedError) else error))

    async def _invoke(self, call: PendingCall) -> Any:
        """Calls the function and awaits its value; a plain function runs on a daemon thread."""
        function = call.function.function
        if call.function.is_async:
            given = function(*call.arguments)
            return given if given is None or type(given) is Reply else await given
        value = await _on_a_thread(lambda: function(*call.arguments))
        return await value if is_awaitable(value) else value


async def _on_a_thread(function: Callable[[], Any]) -> Any:
    """Runs a plain function in a daemon thread. Cancelling abandons the thread.

    Not a worker thread of anyio: a stuck function must not keep the process alive.

    Raises:
        _RaisedError: the function raised.
    """
    import anyio

    done = anyio.Event()
    call_soon = event_loop_poster()
    value: Any = None
    raised: BaseException | None = None

    def work() -> None:
        """Calls the function and keeps what it returns or raises; then wakes the event loop."""
        nonlocal value, raised
        try:
            value = function()
        except BaseException as error:
            raised = error
        with contextlib.suppress(RuntimeError):  # the event loop is gone: nobody waits
            call_soon(done.set)

    threading.Thread(target=work, name="toolbridge-function", daemon=True).start()
    await done.wait()
    if raised is not None:
        raise _RaisedError(raised)
    return value


class _RaisedError(Exception):
    """Carries any exception of a plain function past the event loop."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _awaited(value: Any) -> Any:
    return await value


class LoopTasks:
    """Starts tasks in the task group of an event loop, from any thread, in the context of the group's owner."""

    def __init__(self, group: TaskGroup) -> None:
        import anyio

        self._group = group
        self._context = contextvars.copy_context()
        with contextlib.suppress(ImportError):  # installed with trio; else the loop is asyncio's
            import sniffio

            # In a callback of a loop that anyio didn't start (`asyncio.run`), sniffio doesn't know the library.
            self._context.run(sniffio.current_async_library_cvar.set, sniffio.current_async_library())
        self._new_event = anyio.Event
        self._event = anyio.Event()
        self._call_soon = event_loop_poster()
        self._thread = threading.get_ident()
        self._is_closed = False

    def post(self, task: Task) -> None:
        """Starts a task. Thread-safe.

        Raises:
            RuntimeError: the event loop is closed.
        """
        if threading.get_ident() == self._thread:
            self._start(task)
        else:
            self._call_soon(partial(self._start, task))

    def close(self) -> None:
        """Ignores tasks from now on: the group is about to end."""
        self._is_closed = True

    def wake(self) -> None:
        """Ends `wait`. Thread-safe.

        Raises:
            RuntimeError: the event loop is closed.
        """
        self._call_soon(self._set)

    def run_soon(self, function: Callable[[], None]) -> None:
        """Calls a function soon on the loop's thread, in the owner's context. Thread-safe.

        Raises:
            RuntimeError: the event loop is closed.
        """
        self._call_soon(partial(self._context.run, function))

    def _set(self) -> None:
        self._event.set()

    def _start(self, task: Task) -> None:
        """Starts a task in the group, on the loop's thread; does nothing after `close`."""
        # In the loop's callback, not in a waiting task: the call starts one turn of the loop sooner.
        if not self._is_closed:
            self._context.run(self._group.start_soon, task)

    async def wait(self) -> None:
        """Waits for `wake`, which may have come before."""
        await self._event.wait()
        self._event = self._new_event()


class _LoopThread:
    """A running event loop. Its thread references this object, so that a `BackgroundLoop` can be collected."""

    def __init__(self) -> None:
        self.is_stopped = False
        self.process = os.getpid()
        ready: SimpleQueue[LoopTasks] = SimpleQueue()
        # A daemon: a sandbox that was never closed doesn't keep the process alive.
        threading.Thread(target=self._run, args=(ready,), name="toolbridge-calls", daemon=True).start()
        self.inbox = ready.get()

    def stop(self) -> None:
        """Makes the loop's thread end, without waiting for it."""
        self.is_stopped = True
        with contextlib.suppress(RuntimeError):  # it has ended before
            self.inbox.wake()

    def _run(self, ready: SimpleQueue[LoopTasks]) -> None:
        """Runs an event loop until `stop`; puts its inbox into `ready`."""
        import anyio

        async def serve() -> None:
            """Serves the inbox until `stop`, then cancels all tasks."""
            async with anyio.create_task_group() as group:
                inbox = LoopTasks(group)
                ready.put(inbox)
                while not self.is_stopped:
                    await inbox.wait()
                inbox.close()
                group.cancel_scope.cancel()

        anyio.run(serve)


class BackgroundLoop:
    """An event loop on its own thread, for blocking runs; started on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: _LoopThread | None = None
        self._closed = False

    def post(self, task: Task) -> None:
        """Starts a task on the loop, after starting its thread if need be. Thread-safe.

        Raises:
            RuntimeError: the loop is closed.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError("the sandbox is closed")
            if self._thread is None or self._thread.process != os.getpid():  # after a fork the thread is gone
                self._thread = _LoopThread()
            thread = self._thread
        thread.inbox.post(task)

    def close(self) -> None:
        """Stops the loop, without waiting for it; pending calls are cancelled."""
        self._closed = True
        if self._thread is not None:
            self._thread.stop()

    def __del__(self) -> None:
        self.close()


def event_loop_poster() -> Callable[[Callable[[], Any]], Any]:
    """Returns the thread-safe `call_soon` of the running loop (asyncio or trio).

    Raises:
        RuntimeError, ImportError: this thread runs no event loop.
    """
    try:
        import asyncio

        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        import trio.lowlevel

        return trio.lowlevel.current_trio_token().run_sync_soon


def is_in_event_loop() -> bool:
    """Returns whether this thread runs an event loop, of asyncio or trio."""
    try:
        event_loop_poster()
    except (ImportError, RuntimeError):
        return False
    return True
