"""Threads for guests: reused, and with stacks large enough for the deepest guest recursion.

WebAssembly runs on the native stack of the thread that calls it, and overrunning that is a crash
of the process. So guests never run on a stack that we didn't size: on one of these threads, or on a
fiber (fiber_call.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

from toolbridge.boundary.inbox import Inbox, NothingArrivedError
from toolbridge.errors import EngineError

# Room for Python and the C library beside the WebAssembly stack.
STACK_HEADROOM = 2 * 1024 * 1024
_IDLE_SECONDS = 10.0

Job = Callable[[], None]


class GuestThreads:
    """As many threads as there are runs at a time; idle ones end by themselves."""

    def __init__(self, wasm_stack_bytes: int) -> None:
        self._stack_bytes = wasm_stack_bytes + STACK_HEADROOM
        self._lock = threading.Lock()
        self._idle: list[Inbox[Job]] = []

    def submit(self, job: Job) -> None:
        """Runs `job` on a guest thread. The job must not raise."""
        with self._lock:
            if self._idle:
                self._idle.pop().put(job)
                return
            inbox: Inbox[Job] = Inbox()
            inbox.put(job)
            # The stack size is a setting of the process that applies to threads started from now on.
            before = threading.stack_size(self._stack_bytes)
            try:
                threading.Thread(target=self._work, args=(inbox,), name="toolbridge-guest", daemon=True).start()
            except RuntimeError as error:
                raise EngineError("start a thread for the guest", str(error)) from error
            finally:
                threading.stack_size(before)

    def _work(self, inbox: Inbox[Job]) -> None:
        while True:
            try:
                job = inbox.take(monotonic() + _IDLE_SECONDS)
            except NothingArrivedError:
                with self._lock:
                    if inbox in self._idle:
                        self._idle.remove(inbox)
                        return
                continue  # a job was put just now
            job()
            del job
            with self._lock:
                self._idle.append(inbox)
