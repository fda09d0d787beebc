"""Threads for the host's plain functions, so that one that blocks holds up nothing else.

Daemons, unlike anyio's worker threads: a function that is stuck must not keep the process alive. Kept for a while,
unlike a thread for each call: starting one costs more than most functions do.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import anyio

from toolbridge.servers.daemon_thread import event_loop_poster

MOST_THREADS = 64
"""Of functions that run at once. More wait: a function that never returns must not cost a thread for each call."""
_IDLE_SECONDS = 5.0


class Returned(NamedTuple):
    """What became of a function: its value, or what it raised."""

    value: Any = None
    error: BaseException | None = None


class _Job:
    """One call of a function. Whoever waits for it may give up before it has begun."""

    __slots__ = ("_context", "_function", "_post", "done", "is_wanted", "returned")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._context = contextvars.copy_context()
        self._post = event_loop_poster()
        self.done = anyio.Event()
        self.is_wanted = True
        self.returned = Returned()

    def run(self) -> None:
        try:
            self.returned = Returned(self._context.run(self._function))
        except BaseException as error:
            self.returned = Returned(error=error)

    def tell(self) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is gone: nobody waits
            self._post(self.done.set)


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

    async def run(self, function: Callable[[], Any]) -> Returned:
        """What a function returns or raises. Cancelling leaves its thread to itself."""
        if self._process != os.getpid():  # after a fork the threads are gone
            self._reset()
        job = _Job(function)
        with self._lock:
            self._jobs.put(job)
            if self._free > 0:
                self._free -= 1
            elif self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._work, name="toolbridge-tool", daemon=True).start()
            else:
                self._queued += 1
        try:
            await job.done.wait()
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
