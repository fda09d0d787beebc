"""Callbacks of a host: an object with the method, an async function, or a plain function.

An async callback runs on the event loop. A plain one runs on a daemon thread, in a copy of the caller's context, so
that blocking stalls no run; an awaitable that it returns is awaited on the event loop. Plain observers are the
exception: they are called at once on the event loop's thread, so that an audit log records a call before its effects.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar, cast

import anyio
import anyio.from_thread

from toolbridge.concurrency import THREADS
from toolbridge.errors import MisuseError

_log = logging.getLogger("toolbridge")

MOST_QUEUED = 10_000
"""Queued events of an async observer; beyond it the oldest are dropped."""
SETTLE_SECONDS = 5.0
"""How long closing a runtime waits for async observers to catch up."""

_Event = TypeVar("_Event")


def callback(name: str, given: object, method: str, *parameters: str) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Adapts a host's callback to an async function; a plain function then runs on a thread.

    Args:
        name: the host's argument (`elicitor`), for the error.
        given: an object with the method, or a function in its place.
        method: the method's name.
        parameters: the names of its parameters.

    Raises:
        MisuseError: it is neither, or its signature doesn't match.
    """
    signature = f"{method}({', '.join(parameters)})"
    expected = f"an object with a method {signature}, or a plain or async function ({', '.join(parameters)})"
    if isinstance(given, type):
        raise MisuseError(name, given, f"{expected}; {given.__name__} is a class: give an instance of it")
    function: Any = getattr(given, method, given)
    if not callable(function) or not _takes(function, len(parameters)):
        raise MisuseError(name, given, expected)
    return cast("Any", function) if _is_async(function) else partial(_call_plain, function)


async def _call_plain(function: Callable[..., Any], *arguments: object) -> Any:
    """Calls a function on a thread, and awaits an awaitable that it returns on the event loop; raises its exception."""
    returned = await THREADS.run(partial(function, *arguments))
    if returned.error is not None:
        raise returned.error
    return await returned.value if inspect.isawaitable(returned.value) else returned.value


def call_in_thread(function: Callable[..., object], *arguments: object) -> None:
    """Calls a plain or async function in this worker thread; blocks until an awaitable of it is done.

    It is awaited on the event loop that started the thread, or on a new one where there is none.
    """
    returned = function(*arguments)
    if inspect.isawaitable(returned):
        awaitable: Awaitable[object] = returned

        async def wait() -> None:
            await awaitable

        try:
            anyio.from_thread.check_cancelled()
        except RuntimeError:
            with ThreadPoolExecutor(1) as own_loop:  # this thread may be an event loop's own
                own_loop.submit(anyio.run, wait).result()
        else:
            anyio.from_thread.run(wait)


def _is_async(function: Callable[..., Any]) -> bool:
    """Returns whether a function, or the function of a partial, is async."""
    if isinstance(function, partial):
        return _is_async(function.func)
    return function is _call_plain or inspect.iscoroutinefunction(function) or _has_async_call(function)


def _has_async_call(function: object) -> bool:
    return inspect.iscoroutinefunction(getattr(type(function), "__call__", None))  # noqa: B004  # not whether, but which


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Returns whether a function can be called with `count` positional arguments; True where that can't be told."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # written in C, without a signature
        pass
    return True


def observers_of(given: Iterable[Callable[[_Event], object]]) -> tuple[Callable[[_Event], object], ...]:
    """Adapts observers to plain functions: an async one gets its events in order, in its own task.

    Raises:
        MisuseError: an observer is no function of one event.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise MisuseError("observers", given, "a list of functions that take an event")
    return tuple(_observer(each) for each in given)


def _observer(given: Any) -> Any:
    """Returns a plain observer as it is, and an async one as an AsyncObserver.

    Raises:
        MisuseError: it is no function of one event.
    """
    if isinstance(given, type) or not callable(given) or not _takes(given, 1):
        raise MisuseError("an observer", given, "a plain or async function that takes an event")
    return AsyncObserver(cast("Any", given)) if _is_async(given) else given


class AsyncObserver:
    """Queues events for an async observer and awaits it for one at a time."""

    def __init__(self, observer: Callable[[Any], Awaitable[object]]) -> None:
        self._observer = observer
        self._queue: deque[Any] = deque()
        self._dropped = 0
        self._task: object = None
        self._settled: anyio.Event | None = None
        self.wants_arguments = getattr(observer, "wants_arguments", False)
        self.wants_progress = getattr(observer, "wants_progress", True)

    def __call__(self, event: object) -> None:
        """Queues an event and returns at once; above 10,000 the oldest is dropped.

        Before an event loop runs, it stays queued until the next event.
        """
        self._queue.append(event)
        if len(self._queue) > MOST_QUEUED:
            self._queue.popleft()
            self._dropped += 1
        self._start()

    def _start(self) -> None:
        """Starts the task that empties the queue, if there are events, an event loop, and no such task."""
        if self._task is None and self._queue:
            with contextlib.suppress(RuntimeError, ImportError):  # no event loop runs yet
                self._task = _spawn(self._take_all)

    async def _take_all(self) -> None:
        """Awaits the observer for each queued event; logs what it raises, and how many events were dropped."""
        try:
            while self._queue:
                if self._dropped:
                    _log.warning("An async observer is too slow: %d events were dropped", self._dropped)
                    self._dropped = 0
                try:
                    await self._observer(self._queue.popleft())
                except Exception:
                    _log.exception("An observer raised")
        finally:
            self._task = None
            if self._settled is not None:
                self._settled.set()

    async def settle(self) -> None:
        """Waits until the queue is empty; returns at once if no event loop runs the observer."""
        self._start()
        if self._task is not None:
            self._settled = self._settled or anyio.Event()
            await self._settled.wait()
            self._settled = None


async def settle(observers: Iterable[object]) -> None:
    """Waits, for five seconds at most, until async observers have processed their events."""
    with anyio.move_on_after(SETTLE_SECONDS):
        for observer in observers:
            if isinstance(observer, AsyncObserver):
                await observer.settle()


def _spawn(function: Callable[[], Coroutine[Any, Any, None]]) -> object:
    """Starts a background task of the running loop, asyncio's or trio's, and returns it.

    Raises:
        RuntimeError: no event loop runs.
        ImportError: none of asyncio runs, and trio is not installed.
    """
    import asyncio

    try:
        return asyncio.get_running_loop().create_task(function())
    except RuntimeError:
        import trio.lowlevel

        return trio.lowlevel.spawn_system_task(function)
