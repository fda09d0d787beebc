"""Runs host calls that can't run on the guest's thread: coroutines, and calls made in parallel.

They run as tasks of an event loop: the caller's own when a run is awaited, else one that a thread
of ours runs while the sandbox is open. Both are anyio's, which is imported only when it is needed.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from time import perf_counter
from typing import TYPE_CHECKING, Any

from toolbridge.boundary.host_call import PendingCall, failed, is_awaitable, reply_with, timed_out
from toolbridge.limits import Limits

if TYPE_CHECKING:
    from concurrent.futures import Future

    from anyio.abc import TaskGroup
    from anyio.from_thread import BlockingPortal

Deliver = Callable[[PendingCall, bytes], None]
Task = Callable[[], Coroutine[Any, Any, None]]
Spawn = Callable[[Task], None]


class TaskScheduler:
    """Starts calls as tasks, at most so many at a time. Waiting for a turn doesn't use up a call's time."""

    def __init__(self, limits: Limits, spawn: Spawn) -> None:
        self._limits = limits
        self._spawn = spawn
        self._turns: Any = None

    def start(self, call: PendingCall, deliver: Deliver) -> None:
        """Begins the call. Safe from any thread."""
        self._schedule(call, deliver, lambda: self._invoke(call))

    def start_awaiting(self, call: PendingCall, value: Any, deliver: Deliver) -> None:
        """The same for a call that has already given something to await."""
        self._schedule(call, deliver, lambda: _awaited(value))

    def _schedule(self, call: PendingCall, deliver: Deliver, invoke: Callable[[], Awaitable[Any]]) -> None:
        async def task() -> None:
            deliver(call, await self._perform(call, invoke))

        try:
            self._spawn(task)
        except RuntimeError as error:  # the event loop is closing
            deliver(call, failed(error))

    async def _perform(self, call: PendingCall, invoke: Callable[[], Awaitable[Any]]) -> bytes:
        import anyio

        if self._turns is None:
            self._turns = anyio.Semaphore(self._limits.calls_in_flight)
        async with self._turns:
            call.began = perf_counter()
            seconds = self._limits.call_seconds
            try:
                with anyio.move_on_after(seconds):
                    return reply_with(call.request, await invoke(), self._limits.frame_bytes)
                return timed_out(call.request, seconds)
            except Exception as error:
                return failed(error)

    async def _invoke(self, call: PendingCall) -> Any:
        function = call.function.function
        if call.function.is_async:
            return await function(*call.arguments)
        from anyio import CapacityLimiter, to_thread

        # Turns are taken above: the limiter must only not be in the way.
        value = await to_thread.run_sync(function, *call.arguments, abandon_on_cancel=True, limiter=CapacityLimiter(1))
        return await value if is_awaitable(value) else value


async def _awaited(value: Any) -> Any:
    return await value


class PortalLoop:
    """An event loop on a thread of its own, for runs that are not awaited. Started when first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._portal: BlockingPortal | None = None
        self._closed = False

    def scheduler(self, limits: Limits) -> tuple[TaskScheduler, Callable[[], None]]:
        """A scheduler for one run, and what cancels the calls that are left at its end."""
        futures: list[Future[None]] = []

        def spawn(task: Task) -> None:
            futures.append(self._running().start_task_soon(task))

        def cancel() -> None:
            for future in futures:
                future.cancel()

        return TaskScheduler(limits, spawn), cancel

    def close(self) -> None:
        """Ends the loop; calls that still run are cancelled."""
        with self._lock:
            self._closed = True
            portal, self._portal = self._portal, None
        if portal is not None:
            portal.start_task_soon(portal.stop, True)

    def _running(self) -> BlockingPortal:
        with self._lock:
            if self._closed:
                raise RuntimeError("the sandbox is closed")
            if self._portal is None:
                ready: SimpleQueue[BlockingPortal] = SimpleQueue()
                # A daemon, so that a sandbox that was never closed doesn't keep the process alive.
                threading.Thread(target=_run_portal, args=(ready,), name="toolbridge-calls", daemon=True).start()
                self._portal = ready.get()
            return self._portal


def _run_portal(ready: SimpleQueue[BlockingPortal]) -> None:
    import anyio
    from anyio.from_thread import BlockingPortal

    async def serve() -> None:
        async with BlockingPortal() as portal:
            ready.put(portal)
            await portal.sleep_until_stopped()

    anyio.run(serve)


def group_spawner(tasks: TaskGroup) -> Spawn:
    """Spawns into a task group of the running event loop, from any thread."""
    call_soon = event_loop_poster()

    def spawn(task: Task) -> None:
        call_soon(partial(tasks.start_soon, task))

    return spawn


def event_loop_poster() -> Callable[[Callable[[], Any]], Any]:
    """What runs a function soon in the thread, and the context, of the event loop that runs now."""
    try:
        import asyncio

        loop = asyncio.get_running_loop()
    except RuntimeError:
        import trio.lowlevel

        return trio.lowlevel.current_trio_token().run_sync_soon
    return partial(loop.call_soon_threadsafe, context=copy_context())
