"""Daemon threads for the host's plain functions, keyrings and prompts: one that blocks holds up nothing else.

Daemons, unlike anyio's worker threads: a function that is stuck must not keep the process alive. Kept for a while,
unlike a thread for each call: starting one costs more than most functions do. Most functions of a host take less time
than an event loop takes to hear of their end: one that did so last time is waited for on the spot, for half a
millisecond at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import anyio

# Telling the host's cancellation from one that foreign code raised by itself.
#
# On asyncio any code can raise `CancelledError`, and a function that awaited a cancelled task does. Passed on, it
# would cancel tasks that nobody wanted to cancel.


def is_foreign(error: BaseException) -> bool:
    """Whether a caught exception is a cancellation that nobody asked of this task."""
    if not isinstance(error, anyio.get_cancelled_exc_class()):
        return False
    return not (_is_cancelled_by_asyncio() or anyio.get_current_task().has_pending_cancellation())


def _is_cancelled_by_asyncio() -> bool:
    """Whether `Task.cancel()` was called, of which anyio knows nothing once it has been delivered."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # trio, where there are only cancel scopes
        return False
    return task is not None and task.cancelling() > 0


T = TypeVar("T")

MOST_THREADS = 64
"""Of functions that run at once. More wait: a function that never returns must not cost a thread for each call."""
QUICK_SECONDS = 0.0005
"""How long an event loop stands still for a function: less than two turns of it take, and far less than a tick."""
_IDLE_SECONDS = 5.0


class Returned(NamedTuple):
    """What became of a function: its value, or what it raised."""

    value: Any = None
    error: BaseException | None = None
    seconds: float = 0.0
    """How long it ran."""

    @property
    def was_quick(self) -> bool:
        """Whether waiting for it on the spot would have been enough."""
        return self.seconds < QUICK_SECONDS / 2


def _forget_event_loop() -> None:
    """A context that was copied says which event loop runs here. None does: a function may run one of its own."""
    sniffio = sys.modules.get("sniffio")
    if sniffio is not None:
        sniffio.current_async_library_cvar.set(None)


class _Job:
    """One call of a function. Whoever waits for it may give up before it has begun.

    It is waited for in two ways: on the spot, by a lock, and as an event loop does, which takes a turn of the loop more
    on either side. The thread lets go of the lock before it asks whether anybody awaits; who awaits says so first, and
    then looks at the lock again: so one of them always sees the other.
    """

    __slots__ = ("_awaited", "_context", "_finished", "_function", "is_wanted", "returned")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._context = contextvars.copy_context()
        self._finished = threading.Lock()
        self._finished.acquire()
        self._awaited: Callable[[], Any] | None = None
        self.is_wanted = True
        self.returned = Returned()

    def run(self) -> None:
        self._context.run(_forget_event_loop)
        began = perf_counter()
        try:
            self.returned = Returned(self._context.run(self._function), None, perf_counter() - began)
        except BaseException as error:
            self.returned = Returned(None, error, perf_counter() - began)

    def tell(self) -> None:
        self._finished.release()
        if self._awaited is not None:
            with contextlib.suppress(RuntimeError):  # the event loop is gone: nobody waits
                self._awaited()

    async def wait(self, at_first: float) -> None:
        """Until it is done; for the first moments, with the event loop standing still."""
        if at_first and self._finished.acquire(timeout=at_first):
            return
        done = anyio.Event()
        self._awaited = partial(event_loop_poster(), done.set)
        if not self._finished.acquire(blocking=False):
            await done.wait()


class FunctionThreads:
    """As many threads as are needed at once, up to a limit."""

    def __init__(self, most: int = MOST_THREADS, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._most = most
        self._idle_seconds = idle_seconds
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._threads = 0
        self._free = 0
        """Threads that wait, and for which no job is waiting."""
        self._queued = 0
        """Jobs that wait for a thread to be done with another."""

    async def run(self, function: Callable[[], Any], *, is_quick: bool = False) -> Returned:
        """What a function returns or raises. Cancelling leaves its thread to itself.

        One that `is_quick` is waited for on the spot, and like any other if it takes longer than it should.
        """
        if self._process != os.getpid():  # after a fork the threads are gone
            self._reset()
        job = _Job(function)
        at_first = QUICK_SECONDS if is_quick else 0.0
        with self._lock:
            self._jobs.put(job)
            if self._free > 0:
                self._free -= 1
            elif self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._work, name="toolbridge-tool", daemon=True).start()
            else:
                self._queued += 1
                at_first = 0.0
        try:
            await job.wait(at_first)
        finally:
            job.is_wanted = False
        return job.returned

    def _work(self) -> None:
        jobs = self._jobs
        while True:
            try:
                job = jobs.get(timeout=self._idle_seconds)
            except Empty:
                with self._lock:
                    if self._free == 0:
                        continue  # a job has just come for it
                    self._threads -= 1
                    self._free -= 1
                    return
            if job.is_wanted:
                job.run()
            with self._lock:  # before anybody hears of it: the next call is to find this thread free
                if self._queued:
                    self._queued -= 1
                else:
                    self._free += 1
            job.tell()
            del job  # not kept alive until the next one comes


THREADS = FunctionThreads()
"""Those of this process."""


async def on_daemon_thread(function: Callable[[], T]) -> T:
    """Run what may never return (a keyring, a line of input) on a thread of its own; cancelling abandons it."""
    done = anyio.Event()
    call_soon = event_loop_poster()
    values: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            values.append(function())
        except BaseException as error:
            errors.append(error)
        with contextlib.suppress(RuntimeError):  # the event loop is gone: nobody waits
            call_soon(done.set)

    threading.Thread(target=work, name="toolbridge-waiting", daemon=True).start()
    await done.wait()
    if errors:
        raise errors[0]
    return values[0]


def event_loop_poster() -> Callable[[Callable[[], Any]], Any]:
    """Thread-safe `call_soon` of the running loop (asyncio or trio)."""
    try:
        import asyncio

        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        import trio.lowlevel

        return trio.lowlevel.current_trio_token().run_sync_soon
