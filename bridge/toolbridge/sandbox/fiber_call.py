"""A call into a guest on a stack of its own: it can be put aside, and gone on with on any thread.

A program that computes `1 + 1` takes less time than waking a guest thread. So a run begins on the
caller's own thread, on a fiber: the library switches to a native stack that is as large as a guest
thread's. When the epoch advances (every tick, or because the guest called `leave`), the library
switches back. If the guest has put something into its mailbox, it is answered; and the run goes on.

No Python code runs on the fiber, on whichever thread: a signal handler, a debugger or a timeout library
may raise an exception in any Python code, and the library would not get to know; and Pythons from 3.14 on
compare the stack's address with what they know of the thread's own.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import c_void_p

from toolbridge.boundary import library

_I32 = 0
_EACH_TICK = 1


def can_use_fibers() -> bool:
    """Whether guests run in steps on this system. On Windows, it was never tried."""
    return os.name == "posix"


class FiberCall:
    """One call of an export that takes a number and answers with one. Used by one thread at a time."""

    _future: int | None = None

    def __init__(self, context: int, function: int, argument: int) -> None:
        self._argument = library.Value(_I32, argument)
        self._answer = library.Value()
        self._trap = c_void_p()
        self._error = c_void_p()
        library.context_epoch_deadline_async_yield_and_update(context, _EACH_TICK)
        library.context_set_epoch_deadline(context, _EACH_TICK)
        self._future = library.func_call_async(
            *(context, function, ctypes.addressof(self._argument), 1, ctypes.addressof(self._answer), 1),
            *(ctypes.byref(self._trap), ctypes.byref(self._error)),
        )

    def proceed(self) -> bool:
        """Lets the guest run until it ends, or until the epoch has advanced; whether it has ended."""
        return library.call_future_poll(self._future)

    def answer(self) -> tuple[int, int | None, int | None]:
        """The number that it gave; or an error, or a trap, which are then the caller's to free."""
        return self._answer.number, self._error.value, self._trap.value

    def close(self) -> None:
        """Ends the call, wherever it is. Must come before the end of the store."""
        future, self._future = self._future, None
        if future is not None:
            library.call_future_delete(future)
