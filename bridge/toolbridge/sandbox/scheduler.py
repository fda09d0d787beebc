"""Runs host calls that can't run on the guest's thread: coroutines, and calls made in parallel.

They run as tasks of an event loop: the caller's own when a run is awaited, else one that a thread
of ours runs while the sandbox is open. Both are anyio's, which is imported only when it is needed.
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


# Threads for guests: reused, and with stacks large enough for the deepest guest recursion.
#
# WebAssembly runs on the native stack of the thread that calls it, and overrunning that is a crash of the process. So
# guests never run on a stack that we didn't size: on one of these threads, or on a fiber (fiber_call.py).


# Room for Python and the C library beside the WebAssembly stack.
STACK_HEADROOM = 2 * 1024 * 1024
_IDLE_SECONDS = 10.0

Job = Callable[[], None]


class GuestThreads:
    """As many threads as there are runs at a time; idle ones end by themselves."""

    def __init__(self, wasm_stack_bytes: int) -> None:
        self._stack_bytes = wasm_stack_bytes + STACK_HEADROOM
        self._lock = threading.Lock()
        self._idle: list[DeadlineQueue[Job]] = []

    def submit(self, job: Job) -> None:
        """Runs `job` on a guest thread. The job must not raise."""
        with self._lock:
            if self._idle:
                self._idle.pop().put(job)
                return
            inbox: DeadlineQueue[Job] = DeadlineQueue()
            inbox.put(job)
            # The stack size is a setting of the process that applies to threads started from now on.
            before = threading.stack_size(self._stack_bytes)
            try:
                threading.Thread(target=self._work, args=(inbox,), name="toolbridge-guest", daemon=True).start()
            except RuntimeError as error:
                raise EngineError("start a thread for the guest", str(error)) from error
            finally:
                threading.stack_size(before)

    def _work(self, inbox: DeadlineQueue[Job]) -> None:
        while True:
            try:
                job = inbox.take(monotonic() + _IDLE_SECONDS)
            except QueueTimeoutError:
                with self._lock:
                    if inbox in self._idle:
                        self._idle.remove(inbox)
                        return
                continue  # a job was put just now
            job()
            del job
            with self._lock:
                self._idle.append(inbox)


_ROOM_CHECK_SECONDS = 0.005

Task = Callable[[], Coroutine[Any, Any, None]]
Spawn = Callable[[Task], None]


class TaskScheduler:
    """Starts calls as tasks, at most so many at a time. Waiting for a turn doesn't use up a call's time."""

    def __init__(self, limits: Limits, spawn: Spawn) -> None:
        self._limits = limits
        self._spawn = spawn
        self._turns: Any = None
        self._scopes: set[CancelScope] = set()
        self._used = False

    def start(self, call: PendingCall, deliver: Deliver) -> None:
        """Begins the call. Safe from any thread."""
        self._schedule(call, deliver, lambda: self._invoke(call))

    def start_awaiting(self, call: PendingCall, value: Any, deliver: Deliver) -> None:
        """The same for a call that has already given something to await."""
        self._schedule(call, deliver, lambda: _awaited(value))

    async def perform(self, call: PendingCall, begun: Awaitable[Any] | None = None) -> Reply:
        """The reply to a call that is made right here, where the guest waits for it; `begun`: what it gave already."""
        return await self._answer(call, self._invoke(call) if begun is None else begun)

    def cancel(self) -> None:
        """Ends the calls that still run: nobody waits for them any more."""
        if self._used:
            self._used = False
            self._spawn(self._cancel_scopes)

    async def _cancel_scopes(self) -> None:
        for scope in self._scopes:
            scope.cancel()

    def _schedule(self, call: PendingCall, deliver: Deliver, invoke: Callable[[], Awaitable[Any]]) -> None:
        async def task() -> None:
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
        import anyio

        call.began = perf_counter()
        if call.may_begin is None:  # the guest waits for it: at most one at a time, and nothing may hold it up
            return await self._answer(call, invoke())
        if self._turns is None:
            self._turns = anyio.Semaphore(self._limits.calls_in_flight)
        async with self._turns:
            while not call.may_begin():  # noqa: ASYNC110  # rare, and it is a thread that makes room
                await anyio.sleep(_ROOM_CHECK_SECONDS)
            call.began = perf_counter()
            return await self._answer(call, invoke())

    async def _answer(self, call: PendingCall, value: Awaitable[Any]) -> Reply:
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
        function = call.function.function
        if call.function.is_async:
            given = function(*call.arguments)
            return given if given is None or type(given) is Reply else await given
        value = await _on_a_thread(lambda: function(*call.arguments))
        return await value if is_awaitable(value) else value


async def _on_a_thread(function: Callable[[], Any]) -> Any:
    """What a plain function returns, run beside the event loop. Cancelling leaves the thread to itself.

    A daemon, unlike a worker thread of anyio's: a function that is stuck must not keep the process alive.
    """
    import anyio

    done = anyio.Event()
    call_soon = event_loop_poster()
    value: Any = None
    raised: BaseException | None = None

    def work() -> None:
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
    """Carries what a plain function raised, whatever it was, past the event loop."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _awaited(value: Any) -> Any:
    return await value


class LoopInbox:
    """Where other threads hand tasks to an event loop: they are started in a task group, in its owner's context."""

    def __init__(self, group: TaskGroup) -> None:
        import anyio

        self._group = group
        self._context = contextvars.copy_context()
        with contextlib.suppress(ImportError):  # it comes with trio; without it there is asyncio only
            import sniffio

            # In a callback of a loop that anyio did not start (`asyncio.run`), it would not know which loop it is on.
            self._context.run(sniffio.current_async_library_cvar.set, sniffio.current_async_library())
        self._new_event = anyio.Event
        self._event = anyio.Event()
        self._call_soon = event_loop_poster()
        self._thread = threading.get_ident()
        self._is_closed = False

    def post(self, task: Task) -> None:
        """Hands a task over. From any thread.

        Raises:
            RuntimeError: the event loop is closed.
        """
        if threading.get_ident() == self._thread:
            self._start(task)
        else:
            self._call_soon(partial(self._start, task))

    def close(self) -> None:
        """Starts nothing more: the group is about to end."""
        self._is_closed = True

    def wake(self) -> None:
        """Ends the wait. From any thread.

        Raises:
            RuntimeError: the event loop is closed.
        """
        self._call_soon(self._set)

    def run_soon(self, function: Callable[[], None]) -> None:
        """Has something done on the loop's thread. From any thread.

        Raises:
            RuntimeError: the event loop is closed.
        """
        self._call_soon(partial(self._context.run, function))

    def _set(self) -> None:
        self._event.set()

    def _start(self, task: Task) -> None:
        # In the loop's own callback, not in the task that waits: a call is one turn of the loop sooner under way.
        if not self._is_closed:
            self._context.run(self._group.start_soon, task)

    async def wait(self) -> None:
        """Until `wake`."""
        await self._event.wait()
        self._event = self._new_event()


class _LoopThread:
    """A running event loop. Its thread holds this, and not the BackgroundLoop that must be able to go away."""

    def __init__(self) -> None:
        self.is_stopped = False
        self.process = os.getpid()
        ready: SimpleQueue[LoopInbox] = SimpleQueue()
        # A daemon, so that a sandbox that was never closed doesn't keep the process alive.
        threading.Thread(target=self._run, args=(ready,), name="toolbridge-calls", daemon=True).start()
        self.inbox = ready.get()

    def stop(self) -> None:
        self.is_stopped = True
        with contextlib.suppress(RuntimeError):  # it has ended before
            self.inbox.wake()

    def _run(self, ready: SimpleQueue[LoopInbox]) -> None:
        import anyio

        async def serve() -> None:
            async with anyio.create_task_group() as group:
                inbox = LoopInbox(group)
                ready.put(inbox)
                while not self.is_stopped:
                    await inbox.wait()
                inbox.close()
                group.cancel_scope.cancel()

        anyio.run(serve)


class BackgroundLoop:
    """An event loop on a thread of its own, for runs that are not awaited. Started when first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: _LoopThread | None = None
        self._closed = False

    def post(self, task: Task) -> None:
        """Hands a task to the loop.

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
        """Ends the loop; calls that still run are cancelled."""
        self._closed = True
        if self._thread is not None:
            self._thread.stop()

    def __del__(self) -> None:
        self.close()


def event_loop_poster() -> Callable[[Callable[[], Any]], Any]:
    """What runs a function soon in the thread of the event loop that runs now."""
    try:
        import asyncio

        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        import trio.lowlevel

        return trio.lowlevel.current_trio_token().run_sync_soon


def is_in_event_loop() -> bool:
    """Whether this thread runs one, of asyncio or trio."""
    try:
        event_loop_poster()
    except (ImportError, RuntimeError):
        return False
    return True
