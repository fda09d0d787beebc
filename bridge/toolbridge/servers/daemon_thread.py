"""Waiting for what may never return: a keyring that asks a person, a browser in the foreground, a line of input.

A worker thread of anyio's would keep the process alive for as long as it is stuck; a daemon is left behind.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import anyio

T = TypeVar("T")


async def on_daemon_thread(function: Callable[[], T]) -> T:
    """What a function gives or raises, run beside the event loop. Cancelling leaves its thread to itself."""
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
    """What runs a function soon in the thread of the event loop that runs now."""
    try:
        import asyncio

        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        import trio.lowlevel

        return trio.lowlevel.current_trio_token().run_sync_soon
