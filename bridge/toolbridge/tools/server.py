"""Servers of host tools (in-process functions): no process, no pipe, no approval; the same gate as any other."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from math import inf
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import anyio

from toolbridge.concurrency import THREADS, event_loop_poster, is_foreign
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import (
    MisuseError,
    ServerClosedError,
    ServerTimeoutError,
    ToolDefinitionError,
    ToolNotFoundError,
    reports_misuse,
)
from toolbridge.servers.listing import Listing
from toolbridge.tools.binding import InvalidArgumentsError, OnProgress, ToolContext, on_loop_thread
from toolbridge.tools.tool import InProcessTool, error_of, result_of, tool

if TYPE_CHECKING:
    from typing import Unpack

    from toolbridge.config.server_config import CommonOptions


class ToolServer:
    """The host tools of one server, which never change."""

    def __init__(self, tools: Mapping[str, InProcessTool[..., Any]], instructions: str, version: str) -> None:
        self.tools = MappingProxyType(dict(tools))
        self._instructions = instructions
        self._version = version

    def listing(self, server: str) -> Listing:
        """Return the listing of all tools, which needs no request, for a server of this name."""
        definitions = tuple(each.definition for each in self.tools.values())
        return Listing(
            server, definitions, server_name=server, server_version=self._version, instructions=self._instructions
        )


@reports_misuse
def create_server(
    name: str,
    tools: Iterable[InProcessTool[..., Any] | Callable[..., Any]],
    *,
    instructions: str = "",
    version: str = "",
    **options: Unpack[CommonOptions],
) -> ServerConfig:
    """Create a server of tools made by `tool`, or of plain functions, for `Config.of` or a section's `mcps`.

    Raises:
        ToolDefinitionError: a tool is none, or two have one name.
        ConfigError: the server can't be used as it is.
        MisuseError: an argument has the wrong type.
    """
    made: dict[str, InProcessTool[..., Any]] = {}
    for field, value in (("instructions", instructions), ("version", version)):
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise MisuseError(field, value, "text")
    if isinstance(tools, str) or not isinstance(tools, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise MisuseError("tools", tools, "a list of functions, or of what `tool` gives")
    for each in tools:
        if not callable(each):  # pyright: ignore[reportUnnecessaryComparison]
            raise ToolDefinitionError(
                each, f"it is of type {type(each).__name__}, neither a function nor made by `tool`"
            )
        own = cast("InProcessTool[..., Any]", each if isinstance(each, InProcessTool) else tool(each))
        if own.name in made:
            raise ToolDefinitionError(own.name, f"server {name!r} has two tools of this name")
        made[own.name] = own
    return ServerConfig.in_process(name, ToolServer(made, instructions, version), **options)


_log = logging.getLogger("toolbridge")
_NO_CONTEXT = ToolContext()


class HostConnection:
    """A connection to the host tools of one server; nothing is sent, and the SDK is not imported."""

    def __init__(self, server: str, tools: ToolServer) -> None:
        self._server = server
        self._tools = tools.tools
        self._is_closed = False
        self._calls: dict[anyio.CancelScope, float] = {}
        """Calls under way and their deadlines (monotonic clock)."""
        self._alarm = inf
        """When `keep_time` wakes next: never later than the first deadline."""
        self._call_it = anyio.Event()

    @property
    def ended(self) -> bool:
        """Whether the host closed it."""
        return self._is_closed

    async def wait_for_end(self) -> None:
        """Return at once: its end is always known."""

    async def keep_time(self) -> None:
        """Cancel calls at their deadlines; returns once the connection is closed.

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
        """Empty: the host closed it."""
        return ""

    def close(self) -> None:
        """Cancel the calls under way and end `keep_time`. A plain function in a worker thread continues."""
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
        """Call a tool and return the raw result; an exception of the handler is one, too.

        Raises:
            ServerError: there is none: no such tool, it took too long, or the connection was closed.
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
        result = begin(own, arguments, context)
        return result if isinstance(result, dict) else await self.finish(own, result, seconds)

    def find(self, tool: str) -> InProcessTool[..., Any] | None:
        """A tool by its name."""
        return self._tools.get(tool)

    async def finish(
        self, own: InProcessTool[..., Any], result: Awaitable[dict[str, Any]], seconds: float
    ) -> dict[str, Any]:
        """Await the raw result of a call that has begun, for at most `seconds`; only `keep_time` ends it.

        Raises:
            ServerError: there is none: it took too long, or was closed.
        """
        end = monotonic() + seconds
        if end < self._alarm:
            self._alarm = end
            self._call_it.set()
        with anyio.CancelScope() as scope:
            self._calls[scope] = end
            try:
                return await result
            finally:
                self._calls.pop(scope, None)
        if self.ended:
            raise ServerClosedError(self._server, f"was closed during the call of {own.name!r}")
        problem = f"did not finish the call of {own.name!r} within {seconds:g} s; it may still take effect"
        raise ServerTimeoutError(self._server, problem)


def begin(
    own: InProcessTool[..., Any], arguments: Mapping[str, Any], context: ToolContext = _NO_CONTEXT
) -> dict[str, Any] | Awaitable[dict[str, Any]]:
    """Call a handler: returns its raw result if it is quick and done, or the arguments don't fit; else an awaitable.

    A handler's exception becomes a raw result. A plain handler that is not quick runs on a thread once awaited.
    """
    try:
        positional, named = own.arguments.bind(arguments, context)
    except InvalidArgumentsError as problem:
        return error_of(f"the arguments don't fit: {problem}")
    if own.is_async:
        return _awaited(own, own.handler, positional, named)
    if not own.is_quick:
        return _on_a_thread(own, positional, named)
    try:
        value: object = own.handler(*positional, **named)
    except BaseException as error:
        return _raised(own, error)
    if hasattr(type(value), "__await__"):
        return _awaited(own, lambda: value, (), {})
    return result_of(value, own.output)


async def _awaited(
    own: InProcessTool[..., Any], handler: Callable[..., Any], positional: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """Await a handler and return its raw result, also of an exception; a cancellation is raised."""
    try:
        value = await handler(*positional, **named)
    except BaseException as error:
        return _raised(own, error)
    return result_of(value, own.output)


async def _on_a_thread(
    own: InProcessTool[..., Any], positional: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """Run a plain handler on a worker thread and return its raw result, also of an exception."""
    # One that may report progress isn't waited for on the spot: its reports come by the event loop.
    is_quick = own.was_quick and not own.arguments.wants_context
    returned = await THREADS.run(partial(own.handler, *positional, **named), is_quick=is_quick)
    own.was_quick = returned.was_quick
    value: object = returned.value
    if returned.error is not None:
        return _failed(own, returned.error)
    if hasattr(type(value), "__await__"):
        return await _awaited(own, lambda: value, (), {})
    return result_of(value, own.output)


def _raised(own: InProcessTool[..., Any], error: BaseException) -> dict[str, Any]:
    """Return the raw result for an exception on the event loop; raise cancellations and interrupts again."""
    is_cancelled = isinstance(error, anyio.get_cancelled_exc_class()) and not is_foreign(error)
    if is_cancelled or isinstance(error, (KeyboardInterrupt, GeneratorExit)):
        raise error
    return _failed(own, error)


def _failed(own: InProcessTool[..., Any], error: BaseException) -> dict[str, Any]:
    """Log a handler's exception with its traceback, and return the raw result with its type and text only."""
    _log.warning("The tool %r raised %s", own.name, type(error).__name__, exc_info=error)
    try:
        words = str(error)
    except BaseException:
        words = ""
    return error_of(f"{type(error).__name__}: {words}" if words else type(error).__name__)
