"""asyncio without sockets or threads: the event loop blocks in a host call until a pending call settles."""

from __future__ import annotations

import asyncio
import asyncio.base_events
import asyncio.events
from collections.abc import Callable
from typing import Any

from . import wire


class _HostSelector:
    """The loop's selector: waits for replies of pending calls, and for the next timer."""

    def select(self, timeout: float | None) -> tuple[()]:
        """Blocks until a reply, which its callback gets, or the timeout; raises RuntimeError if neither can come."""
        if wire.has_pending_calls():
            wire.wait(timeout)
        elif timeout is None:
            raise RuntimeError("deadlock: the program waits, but no call or timer is pending")
        elif timeout > 0:
            wire.sleep(timeout)
        return ()

    def close(self) -> None:
        """Does nothing."""


class HostLoop(asyncio.base_events.BaseEventLoop):
    """The event loop of programs."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _HostSelector()

    def _process_events(self, event_list: Any) -> None:
        """Does nothing: the selector has delivered the replies."""

    def _write_to_self(self) -> None:
        """No wakeup: there is no other thread."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Calls the function at once, as there is no thread pool (asyncio.to_thread ends here too)."""
        del executor
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except StopIteration as error:
            future.set_exception(RuntimeError(f"{func!r} raised StopIteration: {error}"))
        except Exception as error:
            future.set_exception(error)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Does nothing: there is no executor."""


class _Policy(asyncio.events._AbstractEventLoopPolicy):  # type: ignore[name-defined, misc]  # pyright: ignore
    """Makes asyncio.run and asyncio.new_event_loop create a HostLoop."""

    _loop: asyncio.AbstractEventLoop | None = None

    def get_event_loop(self) -> asyncio.AbstractEventLoop:
        """Returns the loop that was set; raises RuntimeError if there is none, or it is closed."""
        if self._loop is None or self._loop.is_closed():
            raise RuntimeError("there is no current event loop: use asyncio.run(…), or await at the top level")
        return self._loop

    def set_event_loop(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._loop = loop

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return HostLoop()


def install() -> None:
    """Makes HostLoop the only event loop of asyncio, process-wide."""
    asyncio.events._set_event_loop_policy(_Policy())  # type: ignore[attr-defined]  # pyright: ignore
    asyncio.EventLoop = HostLoop  # type: ignore[misc, attr-defined]  # pyright: ignore


def run_to_end(coroutine: Any) -> Any:
    """Runs a program's coroutine on a new loop, then cancels its remaining tasks, as asyncio.run does."""
    with asyncio.Runner(loop_factory=HostLoop) as runner:
        return runner.run(coroutine)
