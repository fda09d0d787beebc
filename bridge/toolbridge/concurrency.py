"""A thread pool of daemon threads for the host's plain functions, keyrings and prompts.

Daemons, unlike anyio's worker threads: a function that hangs must not keep the process alive. Idle threads are kept for
a while: starting one takes longer than most functions. A function that was quick last time is waited for synchronously,
for half a millisecond at most: two turns of the event loop would take longer.
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

# Telling a cancellation of this task from a `CancelledError` that foreign code raised.
#
# On asyncio any code can raise one, and a function that awaited a cancelled task does. Propagated, it would cancel
# tasks that were not to be cancelled.


def is_foreign(error: BaseException) -> bool:
    """Returns whether a caught exception is a cancellation error although this task was not cancelled."""
    if not isinstance(error, anyio.get_cancelled_exc_class()):
        return False
    return not (_is_cancelled_by_asyncio() or anyio.get_current_task().has_pending_cancellation())


def _is_cancelled_by_asyncio() -> bool:
    """Returns whether `Task.cancel()` was called: anyio does not know once it has been delivered."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # trio, where there are only cancel scopes
        return False
    return task is not None and task.cancelling() > 0


T = TypeVar("T")

MOST_THREADS = 64
"""Cap of concurrent functions; further ones are queued, so that hanging functions can't exhaust threads."""
QUICK_SECONDS = 0.0005
"""How long the event loop blocks for a quick function: less than two of its turns, and far less than a tick."""
_IDLE_SECONDS = 5.0


class Returned(NamedTuple):
    """The outcome of a function: its value, or the exception that it raised."""

    value: Any = None
    error: BaseException | None = None
    seconds: float = 0.0
    """Its run time."""

    @property
    def was_quick(self) -> bool:
        """Whether waiting synchronously would have been enough."""
        return self.seconds < QUICK_SECONDS / 2


def _forget_event_loop() -> None:
    """Clears the running event loop from a copied context: the function may run a loop of its own."""
    sniffio = sys.modules.get("sniffio")
    if sniffio is not None:
        sniffio.current_async_library_cvar.set(None)


class _Job:
    """One call of a function; a waiter may give up before it has begun.

    A waiter blocks on the lock `_finished`, or awaits an event, which takes a loop turn more on either side. No wakeup
    is lost: the thread releases the lock before it reads `_awaited`; a waiter sets `_awaited` before it tries the lock.
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
        """Calls the function in the waiter's context, and keeps its value or exception in `returned`."""
        self._context.run(_forget_event_loop)
        began = perf_counter()
        try:
            self.returned = Returned(self._context.run(self._function), None, perf_counter() - began)
        except BaseException as error:
            self.returned = Returned(None, error, perf_counter() - began)

    def notify(self) -> None:
        """Wakes the waiter, from the job's thread; ignores a closed event loop."""
        self._finished.release()
        if self._awaited is not None:
            with contextlib.suppress(RuntimeError):  # the event loop is closed
                self._awaited()

    async def wait(self, at_first: float) -> None:
        """Waits until the job is done; blocks the event loop for the first `at_first` seconds."""
        if at_first and self._finished.acquire(timeout=at_first):
            return
        done = anyio.Event()
        self._awaited = partial(event_loop_poster(), done.set)
        if not self._finished.acquire(blocking=False):
            await done.wait()


class ThreadPool:
    """A pool of daemon threads: grows on demand up to a cap, and shrinks when idle."""

    def __init__(self, most: int = MOST_THREADS, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._most = most
        self._idle_seconds = idle_seconds
        self._reset()

    def _reset(self) -> None:
        """Starts anew without threads or jobs."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._threads = 0
        self._free = 0
        """Idle threads without a queued job."""
        self._queued = 0
        """Jobs that wait for a busy thread."""

    async def run(self, function: Callable[[], Any], *, is_quick: bool = False) -> Returned:
        """Runs a function on a thread and returns its outcome, exceptions included. Cancelling abandons the thread.

        A function that `is_quick` is waited for synchronously at first: blocks the event loop for half a millisecond.
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
        """Runs jobs until there was none for a while: the body of each thread."""
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
            with self._lock:  # before the notification: the next call must find this thread free
                if self._queued:
                    self._queued -= 1
                else:
                    self._free += 1
            job.notify()
            del job  # not kept alive until the next one comes


THREADS = ThreadPool()
"""The thread pool of this process."""


async def on_daemon_thread(function: Callable[[], T]) -> T:
    """Runs a function that may never return (a keyring, a line of input) on its own thread.

    Returns its value or raises its exception. Cancelling abandons the thread.
    """
    job = _Job(function)

    def work() -> None:
        job.run()
        job.notify()

    threading.Thread(target=work, name="toolbridge-waiting", daemon=True).start()
    await job.wait(0.0)
    if job.returned.error is not None:
        raise job.returned.error
    return job.returned.value


def event_loop_poster() -> Callable[[Callable[[], Any]], Any]:
    """Returns the running loop's thread-safe `call_soon` (asyncio or trio)."""
    try:
        import asyncio

        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        import trio.lowlevel

        return trio.lowlevel.current_trio_token().run_sync_soon
