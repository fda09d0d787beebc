"""A connection to the host's own tools: nothing is sent anywhere, and the SDK is not even imported."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from functools import partial
from math import inf
from time import monotonic
from typing import Any, cast

import anyio

from toolbridge.errors import ServerClosedError, ServerTimeoutError, ToolNotFoundError
from toolbridge.foreign_cancellation import is_foreign
from toolbridge.servers.connected import OnProgress
from toolbridge.servers.daemon_thread import event_loop_poster
from toolbridge.servers.function_threads import THREADS
from toolbridge.servers.own_arguments import InvalidArgumentsError
from toolbridge.servers.own_results import error_of, result_of
from toolbridge.servers.own_server import ToolServer
from toolbridge.servers.own_tool import InProcessTool
from toolbridge.servers.tool_context import ToolContext, on_loop_thread

_log = logging.getLogger("toolbridge")
_NO_CONTEXT = ToolContext()


class OwnConnection:
    """Calls the tools of one server."""

    def __init__(self, server: str, tools: ToolServer) -> None:
        self._server = server
        self._tools = tools.tools
        self._is_closed = False
        self._calls: dict[anyio.CancelScope, float] = {}
        """Those under way, and when their time is over (monotonic clock)."""
        self._alarm = inf
        """When `keep_time` next looks at them: never later than the first of their ends."""
        self._call_it = anyio.Event()

    @property
    def ended(self) -> bool:
        """Whether the host closed it."""
        return self._is_closed

    async def wait_for_end(self) -> None:
        """Until its end is known, which it is at once."""

    async def keep_time(self) -> None:
        """Until the host closes it: ends calls whose time is over.

        There is one timer for all of them, which is seldom set: a call ends long before its time, and the next one's is
        later. A timer for each would take as long as a call does.
        """
        while not self._is_closed:
            self._call_it = anyio.Event()
            self._alarm = min(self._calls.values(), default=inf)
            with anyio.move_on_after(self._alarm - monotonic()):
                await self._call_it.wait()
            now = monotonic()
            for scope in [scope for scope, end in self._calls.items() if end <= now]:
                scope.cancel()
                del self._calls[scope]

    def end_reason(self) -> str:
        """The host closed it: that is all there is to say."""
        return ""

    def close(self) -> None:
        """Whoever waits for a result is told so. A plain function that runs goes on by itself."""
        self._is_closed = True
        self._call_it.set()
        for scope in self._calls:
            scope.cancel()

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        seconds: float,
        secrets: frozenset[str],
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """The raw result of a call: whatever the handler does is one.

        Raises:
            ServerError: there is none: it took too long, or was closed.
        """
        del secrets  # there are none
        own = self._tools.get(tool)
        if own is None:
            raise ToolNotFoundError(self._server, f"has no tool {tool!r}")
        if own.timeout is not None:
            seconds = min(seconds, own.timeout)
        if seconds <= 0:
            raise ServerTimeoutError(self._server, f"was not called: no time is left for {tool!r}")
        context = _NO_CONTEXT
        if own.arguments.wants_context:
            report = None if on_progress is None else on_loop_thread(on_progress, event_loop_poster())
            context = ToolContext(self._server, tool, report)
        if own.is_quick and not own.is_async:  # it is over before anybody could end it
            return await _perform(own, arguments, context)
        end = monotonic() + seconds
        if end < self._alarm:
            self._alarm = end
            self._call_it.set()
        with anyio.CancelScope() as scope:
            self._calls[scope] = end
            try:
                return await _perform(own, arguments, context)
            finally:
                self._calls.pop(scope, None)
        if self.ended:
            raise ServerClosedError(self._server, f"was closed during the call of {tool!r}")
        problem = f"did not finish the call of {tool!r} within {seconds:g} s; it may still take effect"
        raise ServerTimeoutError(self._server, problem)


async def _perform(own: InProcessTool[..., Any], arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    try:
        positional, named = own.arguments.bind(arguments, context)
    except InvalidArgumentsError as problem:
        return error_of(f"the arguments don't fit: {problem}")
    try:
        if own.is_async or own.is_quick:
            value = own.handler(*positional, **named)
        else:
            # One that may report progress isn't waited for on the spot: its reports come by the event loop.
            is_quick = own.was_quick and not own.arguments.wants_context
            returned = await THREADS.run(partial(own.handler, *positional, **named), is_quick=is_quick)
            own.was_quick = returned.was_quick
            if returned.error is not None:
                return _failed(own, returned.error)
            value = returned.value
        if own.is_async or isinstance(value, Awaitable):
            value = await cast("Awaitable[Any]", value)
    except BaseException as error:
        is_cancelled = isinstance(error, anyio.get_cancelled_exc_class()) and not is_foreign(error)
        if is_cancelled or isinstance(error, (KeyboardInterrupt, GeneratorExit)):
            raise
        return _failed(own, error)
    return result_of(value, own.output)


def _failed(own: InProcessTool[..., Any], error: BaseException) -> dict[str, Any]:
    """A handler that raised: type and words for the guest, cleaned like any server's; the rest for the host's log."""
    _log.warning("The tool %r raised %s", own.name, type(error).__name__, exc_info=error)
    try:
        words = str(error)
    except BaseException:
        words = ""
    return error_of(f"{type(error).__name__}: {words}" if words else type(error).__name__)
