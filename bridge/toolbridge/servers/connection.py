"""One open connection: negotiated, listed, called, and watched until it ends.

One task enters and leaves it (see `manager`), because the SDK's cancel scopes must be left by the task that entered
them. Calls come from any task.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import anyio
import anyio.abc
import mcp_types as types
from mcp.client._probe import negotiate_auto
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.dispatcher import (
    CallOptions,
    DispatchContext,
    Dispatcher,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    ProgressFnT,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import x_mcp_header_map
from mcp.shared.transport_context import TransportContext
from mcp_types import METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolbridge import __version__
from toolbridge.concurrency import is_foreign
from toolbridge.config.server_config import ServerConfig, ServerLimits
from toolbridge.errors import MisuseError, ServerConnectError, ServerProtocolError, ServerTimeoutError
from toolbridge.servers.discovery import announces_changes, follow_changes, handshake_of, list_tools
from toolbridge.servers.failures import (
    ChannelClosedError,
    EndedAtProbeError,
    RequestTimedOutError,
    UnsendableError,
    call_failure,
)
from toolbridge.servers.inbound import answer_questions, progress_callback, session_callbacks
from toolbridge.servers.lifecycle import CallNotSentError
from toolbridge.servers.listing import Listing
from toolbridge.servers.requests import Declines, ServerRequests
from toolbridge.tools.binding import OnProgress

CLIENT = types.Implementation(name="toolbridge", version=__version__)

# Debounce: a listing that was just refreshed is not refreshed again at once, however often the server changes it.
DEBOUNCE_SECONDS = 0.2
REFRESH_SECONDS = 1.0
PING_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class ServerChannel:
    """An open transport. Its dispatcher is run by the connection, which also closes the channel."""

    dispatcher: Dispatcher[Any]
    end: Callable[[], str] = lambda: ""
    """How it ended and the server's last output, or what was odd so far; may be empty. Not sanitised."""
    secrets: Callable[[], frozenset[str]] | None = None
    """Secrets it learned, as of now: the tokens of a sign-in."""
    mirrors_headers: bool = False
    """Whether arguments marked `x-mcp-header` are repeated as HTTP headers."""
    has_timeouts: bool = True
    """Whether the dispatcher raises our own timeout errors; else timeouts are the connection's alone."""


@asynccontextmanager
async def open_in_process(server: ServerConfig) -> AsyncGenerator[ServerChannel]:
    """Run a server object of the SDK in this process: no child, no pipe, the same protocol.

    Raises:
        ServerConnectError: the object is no server.
    """
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer
    from mcp.server.runner import modern_on_request
    from mcp.shared.direct_dispatcher import create_direct_dispatcher_pair

    found: object = server.server
    if isinstance(found, MCPServer):
        found = cast("Any", found)._lowlevel_server  # the SDK has no public way yet
    if not isinstance(found, Server):
        kind = type(found).__name__
        raise ServerConnectError(server.name, f"is of type {kind}: expected an `mcp.server` Server or MCPServer")
    lowlevel = cast("Server[Any]", found)

    async def ignore(*_notification: object) -> None:
        pass  # a client of this protocol era sends none

    client_side, server_side = create_direct_dispatcher_pair(raise_handler_exceptions=False)
    async with lowlevel.lifespan(lowlevel) as state, anyio.create_task_group() as tasks:
        await tasks.start(server_side.run, modern_on_request(lowlevel, state), ignore)
        try:
            # The SDK's own timeout error looks like one of the server's.
            yield ServerChannel(client_side, has_timeouts=False)
        finally:
            server_side.close()
            tasks.cancel_scope.cancel()


class PausableDeadline:
    """A server's deadline on a cancel scope, paused while a person signs in.

    A request, its call and the connecting around them each have one. Pauses may overlap: the last one to end resumes.
    """

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope
        self._pauses = 0
        self._left = math.inf

    def lift(self) -> None:
        """Remove the deadline for good; a pause that ends later does not restore it."""
        self._scope.deadline = self._left = math.inf

    @contextmanager
    def paused(self) -> Generator[None]:
        """Remove the deadline within the context; on leaving the last pause, grant the seconds that were left."""
        if self._pauses == 0:
            self._left = self._scope.deadline - anyio.current_time()
            self._scope.deadline = math.inf
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0:
                self._scope.deadline = anyio.current_time() + self._left


_deadlines: ContextVar[tuple[PausableDeadline, ...]] = ContextVar("toolbridge_deadlines", default=())


@contextmanager
def pausable(scope: anyio.CancelScope) -> Generator[PausableDeadline]:
    """Register a scope's deadline, within the context and this task, as one that `waiting_for_a_person` pauses."""
    deadline = PausableDeadline(scope)
    token = _deadlines.set((*_deadlines.get(), deadline))
    try:
        yield deadline
    finally:
        _deadlines.reset(token)


def enclosing_deadlines() -> tuple[PausableDeadline, ...]:
    """Return the pausable deadlines registered around the caller, outermost first."""
    return _deadlines.get()


@contextmanager
def waiting_for_a_person() -> Generator[None]:
    """Pause every pausable deadline around the caller within the context."""
    with ExitStack() as pauses:
        for deadline in enclosing_deadlines():
            pauses.enter_context(deadline.paused())
        yield


class WakeupEvent:
    """Wakes the task that watches a connection: tools changed, or a liveness probe is due."""

    def __init__(self) -> None:
        self.tools_changed = False
        self.probe_due = False
        self._event = anyio.Event()

    def notify_tools_changed(self) -> None:
        """Have the watching task list the tools again; returns at once."""
        self.tools_changed = True
        self._event.set()

    def request_probe(self) -> None:
        """Have the watching task probe the server; returns at once."""
        self.probe_due = True
        self._event.set()

    async def wait_or(self, end: anyio.Event) -> None:
        """Wait until tools changed, a probe is due, or `end` is set; the caller resets the flags."""
        if self._event.is_set() and not (self.tools_changed or self.probe_due):
            self._event = anyio.Event()
        async with anyio.create_task_group() as tasks:

            async def finish_after(event: anyio.Event) -> None:
                await event.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(finish_after, self._event)
            tasks.start_soon(finish_after, end)


class WatchedDispatcher(Dispatcher[Any]):
    """Wraps a channel's dispatcher: notices its end, declines unhandled requests, drops unused notifications."""

    def __init__(
        self,
        channel: ServerChannel,
        server: str,
        requests: ServerRequests,
        *,
        probe_seconds: float,
        on_tools_changed: Callable[[], None],
    ) -> None:
        self._inner = channel.dispatcher
        self._has_timeouts = channel.has_timeouts
        self.declines = Declines(server)
        self._requests = requests
        self._probe_seconds = probe_seconds
        self._on_tools_changed = on_tools_changed
        self.ended = anyio.Event()
        """Set when the channel's receive loop is over."""

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Receive until the channel closes, then set `ended`. Declines unhandled requests; never calls `on_notify`."""

        async def answer(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> dict[str, Any]:
            """Answer a server's request by its handler, or decline it; if neither works, raise METHOD_NOT_FOUND."""
            if self._requests.handles(method):
                return await on_request(context, method, params)
            if (answer := self.declines.answer(method)) is not None:
                return answer
            raise MCPError(METHOD_NOT_FOUND, "Not supported by this client")

        def intercept(method: str, params: Mapping[str, Any] | None) -> bool:
            """Handle a notification: the session's subscription first, then tool changes; drops others. Always true."""
            if on_notify_intercept is not None and on_notify_intercept(method, params):
                return True
            if method == "notifications/tools/list_changed":
                self._on_tools_changed()
            return True

        try:
            await self._inner.run(answer, on_notify, intercept, task_status=task_status)
        finally:
            self.ended.set()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request and await its raw result; raises the inner dispatcher's errors, sets `ended` if closed."""
        if method == "server/discover":
            # An older server may never answer an unknown request: the handshake must still fit in the time.
            opts = {**(opts or {}), "timeout": self._probe_seconds}
        if not self._has_timeouts and opts is not None:
            opts = cast("CallOptions", {key: value for key, value in opts.items() if key != "timeout"})
        try:
            result = await self._inner.send_raw_request(method, params, opts)
        except ChannelClosedError as error:
            if error.sent:
                self.ended.set()  # the caller knows before the receive loop is done
            raise
        if method == "initialize":
            # A server that leaves these out is not refused.
            result.setdefault("serverInfo", {"name": "", "version": ""})
            result.setdefault("capabilities", {})
        return result

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification."""
        await self._inner.notify(method, params, opts)


@asynccontextmanager
async def open_connection(
    server: str,
    channel: ServerChannel,
    requests: ServerRequests,
    limits: ServerLimits,
    *,
    connect_seconds: float,
    probe: bool = True,
) -> AsyncGenerator[Connection]:
    """Negotiate the protocol over an open channel (only the older one without `probe`); leaving it cancels its calls.

    Raises:
        EndedAtProbeError: the server ended when it was probed for the newer protocol.
        ServerConnectError: the server is toolbridge itself.
    """
    wakeup = WakeupEvent()
    probe_seconds = max(0.2, connect_seconds / 3)
    dispatcher = WatchedDispatcher(
        channel, server, requests, probe_seconds=probe_seconds, on_tools_changed=wakeup.notify_tools_changed
    )
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            ClientSession(dispatcher=dispatcher, client_info=CLIENT, **session_callbacks(requests, server))
        )
        try:
            await (negotiate_auto(session) if probe else session.initialize())
        except ChannelClosedError as error:
            if probe and session.initialize_result is None and session.discover_result is None:
                raise EndedAtProbeError from error
            raise
        info = session.server_info
        if info is not None and info.name == CLIENT.name:  # T22: its runs would have flow labels of their own
            problem = "is toolbridge itself: a run inside a run is refused. Configure its servers here instead"
            raise ServerConnectError(server, problem)
        if session.protocol_version in MODERN_PROTOCOL_VERSIONS and announces_changes(session):
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(tasks.cancel_scope.cancel)
            tasks.start_soon(follow_changes, session, wakeup.notify_tools_changed)
        connection = Connection(
            server, channel, dispatcher=dispatcher, session=session, requests=requests, limits=limits, wakeup=wakeup
        )
        try:
            yield connection
        finally:
            dispatcher.ended.set()
            connection.cancel_calls()


class Connection:
    """An open connection to one server."""

    def __init__(
        self,
        server: str,
        channel: ServerChannel,
        *,
        dispatcher: WatchedDispatcher,
        session: ClientSession,
        requests: ServerRequests,
        limits: ServerLimits,
        wakeup: WakeupEvent,
    ) -> None:
        self._server = server
        self._channel = channel
        self._dispatcher = dispatcher
        self._session = session
        self._requests = requests
        self._limits = limits
        self._wakeup = wakeup
        self._calls: set[anyio.CancelScope] = set()
        self._verdict = ""
        """Why we ended it, if we did."""

    @property
    def ended(self) -> bool:
        """Whether the server is gone: a message sent now would not reach it."""
        return self._dispatcher.ended.is_set()

    async def wait_for_end(self) -> None:
        """Wait until the channel has closed or the connection was left."""
        await self._dispatcher.ended.wait()

    def end_reason(self) -> str:
        """Return why it ended, or what was odd so far; may be empty. The server's or system's words, not sanitised."""
        return self._verdict or self._channel.end()

    async def discover(self, secrets: Collection[str], seconds: float | None = None) -> Listing:
        """List all tools of the server, `secrets` masked; `seconds` bounds each page. Caps cut the listing.

        Raises:
            ServerProtocolError: the answer is no listing.
            MCPError: the server refused, ended or did not answer in time.
        """

        async def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
            return await self._request(method, params, seconds)

        mirrors = self._channel.mirrors_headers and self._session.protocol_version in MODERN_PROTOCOL_VERSIONS
        handshake = handshake_of(self._session, self._server)
        listing = await list_tools(handshake, request, self._limits, secrets, mirrors_headers=mirrors)
        for tool in listing.tools:
            # The newer era mirrors some arguments in headers; the SDK reads which from listings that it made itself.
            if headers := x_mcp_header_map(tool.input_schema):
                self._session._x_mcp_header_maps[tool.name] = headers
        return listing

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        seconds: float,
        secrets: frozenset[str],
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """Call a tool and return the raw result; the host's handlers answer questions. A timeout may cause a probe.

        Raises:
            ServerError: there is no result: a timeout, an end, a refusal, or a malformed answer.
            CallNotSentError: the server ended before it could have seen the call.
            MisuseError: the arguments are not JSON values.
        """
        if seconds <= 0:
            raise ServerTimeoutError(self._server, f"was not called: no time is left for {tool!r}")
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        progress = None if on_progress is None else progress_callback(on_progress, secrets)
        failure: BaseException = TimeoutError()
        is_answered = False
        # The dispatcher keeps the timeout; this scope is for one that is stuck, and for the end of the connection.
        with anyio.CancelScope(deadline=anyio.current_time() + seconds + 0.5) as scope, pausable(scope):
            self._calls.add(scope)
            try:
                result = await self._request("tools/call", params, seconds, progress)
                if result.get("resultType") == "input_required":
                    is_answered = True
                    send = partial(self._request, "tools/call", seconds=seconds, progress=progress)
                    result = await answer_questions(result, params, ask=self._ask, send=send)
                return result
            except BaseException as error:
                if not isinstance(error, Exception) and not is_foreign(error):
                    raise
                failure = error
            finally:
                self._calls.discard(scope)
        if is_answered and isinstance(failure, (ChannelClosedError, ServerConnectError, UnsendableError)):
            failure = ChannelClosedError()  # the server has seen the call, though not the last message
        if isinstance(failure, ChannelClosedError) and not failure.sent:
            raise CallNotSentError from None
        if isinstance(failure, UnsendableError):
            raise MisuseError("arguments", arguments, f"JSON values: a part {failure.error.message}") from None
        if scope.cancelled_caught and self.ended:
            failure = ChannelClosedError()
        elif isinstance(failure, (TimeoutError, RequestTimedOutError)) and not self._calls:
            # With another call under way, a server that does one thing at a time may just be busy with that.
            self._wakeup.request_probe()
        reason = self.end_reason()
        raise call_failure(self._server, tool, failure, seconds=seconds, end=reason, secrets=secrets) from None

    async def _ask(self, key: str, request: types.InputRequest) -> types.InputResponse | types.ErrorData:
        """Have the handler answer a question; without one, decline an elicitation, else raise ServerProtocolError."""
        if self._requests.handles(request.method):
            context = ClientRequestContext(session=self._session, request_id=key)
            return await self._session.dispatch_input_request(context, request)
        self._dispatcher.declines.answer(request.method)
        if isinstance(request, types.ElicitRequest):
            return types.ElicitResult(action="decline")
        raise ServerProtocolError(self._server, f"asked for {request.method} in answer to a call; no handler is set up")

    def cancel_calls(self) -> None:
        """Cancel all calls under way, which then fail with a `ServerError`."""
        for scope in self._calls:
            scope.cancel()

    async def wait(self, refresh: Callable[[], Awaitable[None]]) -> None:
        """Block until the connection ends or fails a liveness probe; await `refresh`, debounced, on changed tools."""
        ended, wakeup = self._dispatcher.ended, self._wakeup
        while True:
            await wakeup.wait_or(ended)
            if ended.is_set():
                return
            if wakeup.probe_due and not await self._is_alive():
                self._verdict = "it answered neither a call in time nor a ping, and was ended"
                return
            if not wakeup.tools_changed:
                continue
            # Debounce: a burst of changes is one refresh.
            with anyio.move_on_after(DEBOUNCE_SECONDS):
                await ended.wait()
            wakeup.tools_changed = False
            await refresh()
            with anyio.move_on_after(REFRESH_SECONDS):
                await ended.wait()

    async def _is_alive(self) -> bool:
        """Ping the server, after a call timed out. False if it is silent or closed; an error counts as an answer."""
        self._wakeup.probe_due = False
        try:
            with anyio.fail_after(PING_SECONDS):
                await self._request("ping", {}, PING_SECONDS)
        except (RequestTimedOutError, ChannelClosedError, TimeoutError):
            return False
        except MCPError:
            pass  # an answer, if not a pong
        return True

    async def _request(
        self, method: str, params: dict[str, Any], seconds: float | None, progress: ProgressFnT | None = None
    ) -> dict[str, Any]:
        """Send a request stamped for the negotiated protocol, and return its raw, unvalidated result."""
        data: dict[str, Any] = {"method": method, "params": params}
        options: CallOptions = {} if seconds is None else {"timeout": seconds}
        if progress is not None:
            options["on_progress"] = progress
        # The SDK's models would reject a whole answer for one odd field, so requests bypass them; the session's stamp
        # adds the fields that the negotiated protocol wants on every request.
        self._session._stamp(data, options)
        return await self._dispatcher.send_raw_request(method, data["params"], options)
