"""One open connection: negotiated, asked for its tools, called, and watched until it ends.

Everything here is entered and left by one task (see `manager`), because the SDK's cancel scopes must be left by the
task that entered them. Calls come from any task.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import anyio
import anyio.abc
import mcp_types as types
from mcp.client._probe import negotiate_auto
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.client.subscriptions import SubscriptionLost, listen
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
from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import MisuseError, ServerConnectError, ServerProtocolError, ServerTimeoutError
from toolbridge.servers.discovery import list_tools
from toolbridge.servers.failures import ChannelClosedError, RequestTimedOutError, UnsendableError, call_failure
from toolbridge.servers.inbound import answer_questions, passed_on, session_callbacks
from toolbridge.servers.lifecycle import CallNotSentError, News
from toolbridge.servers.listing import Listing
from toolbridge.servers.requests import Declines, ServerRequests
from toolbridge.tools.binding import OnProgress

# What a transport gives to a connection: the SDK's dispatcher, and why it ended.


class ChannelEnd(Protocol):
    """Tells how a channel fares, for error messages."""

    def __call__(self) -> str:
        """How it ended and what it said ("exited with status 1; …"), or an empty string. Not sanitised.

        While the channel is open: what has been odd about it so far.
        """
        ...


def _no_reason() -> str:
    return ""


def _no_secrets() -> frozenset[str]:
    return frozenset()


@dataclass(frozen=True, slots=True)
class Channel:
    """An open way to a server. The dispatcher is run by the connection, which also closes the channel."""

    dispatcher: Dispatcher[Any]
    end: ChannelEnd = field(default=_no_reason)
    secrets: Callable[[], frozenset[str]] = field(default=_no_secrets)
    """What it came to know and must not be shown, as of now: the tokens of a sign-in."""
    mirrors_headers: bool = False
    """Whether arguments marked `x-mcp-header` are repeated as HTTP headers."""


# Deadlines that are a server's, and stand still while a person is asked to sign in.
#
# A request, the call that it belongs to, and the connecting that it is a part of each have one: a person who takes
# their time must outlast all of them. Nothing here needs the SDK, which is imported only once a server is approved.


class PausableDeadline:
    """The deadline of one cancel scope. Several may wait for the same person: the last one lets it go on."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope
        self._pauses = 0
        self._left = math.inf

    def lift(self) -> None:
        """There is no hurry any more, and no pause that ends later brings it back."""
        self._scope.deadline = self._left = math.inf

    @contextmanager
    def paused(self) -> Generator[None]:
        """While it stands still."""
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
    """What is done inside may have to wait for a person, for which this scope's deadline is not meant."""
    deadline = PausableDeadline(scope)
    token = _deadlines.set((*_deadlines.get(), deadline))
    try:
        yield deadline
    finally:
        _deadlines.reset(token)


def deadlines_around() -> tuple[PausableDeadline, ...]:
    """Those inside which this is called."""
    return _deadlines.get()


@contextmanager
def waiting_for_a_person() -> Generator[None]:
    """Every deadline around stands still: they are for the server."""
    with ExitStack() as pauses:
        for deadline in deadlines_around():
            pauses.enter_context(deadline.paused())
        yield


# A dispatcher with what we need around the SDK's session: the end seen, floods kept out, requests declined.


class WatchedDispatcher(Dispatcher[Any]):
    """Passes requests through; swallows notifications that nobody here listens to before they cost anything."""

    def __init__(
        self,
        inner: Dispatcher[Any],
        server: str,
        requests: ServerRequests,
        *,
        probe_seconds: float,
        on_tools_changed: Callable[[], None],
    ) -> None:
        self._inner = inner
        self.declines = Declines(server)
        self._requests = requests
        self._probe_seconds = probe_seconds
        self._on_tools_changed = on_tools_changed
        self.ended = anyio.Event()
        """Set when the channel's receive loop is over, for whatever reason."""

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Drive the receive loop until the channel closes."""

        async def answer(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> dict[str, Any]:
            if self._requests.handles(method):
                return await on_request(context, method, params)
            if (answer := self.declines.answer(method)) is not None:
                return answer
            raise MCPError(METHOD_NOT_FOUND, "Not supported by this client")

        def intercept(method: str, params: Mapping[str, Any] | None) -> bool:
            # The session's own bookkeeping of subscriptions comes first; nothing else of it needs notifications.
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
        """Send a request and await its result."""
        if method == "server/discover":
            # An older server may leave an unknown request unanswered: the handshake must still fit in the time.
            opts = {**(opts or {}), "timeout": self._probe_seconds}
        try:
            result = await self._inner.send_raw_request(method, params, opts)
        except ChannelClosedError as error:
            if error.sent:
                self.ended.set()  # the caller knows before the receive loop is done
            raise
        if method == "initialize":
            # What a server says of itself is nice to know, and no reason to refuse it.
            result.setdefault("serverInfo", {"name": "", "version": ""})
            result.setdefault("capabilities", {})
        return result

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification."""
        await self._inner.notify(method, params, opts)


CLIENT = types.Implementation(name="toolbridge", version=__version__)

# A listing that was just refreshed is not refreshed again at once, however often the server says it changed.
DEBOUNCE_SECONDS = 0.2
REFRESH_SECONDS = 1.0
PING_SECONDS = 2.0


@asynccontextmanager
async def open_connection(
    server: str,
    channel: Channel,
    requests: ServerRequests,
    limits: ServerLimits,
    *,
    connect_seconds: float,
    probe: bool = True,
) -> AsyncGenerator[Connection]:
    """Negotiate the protocol over an open channel; without `probe`, only the older one. The caller bounds the time.

    Raises:
        EndedAtProbeError: the server ended when it was asked for the newer protocol.
        ServerConnectError: the server is toolbridge.
    """
    news = News()
    dispatcher = WatchedDispatcher(
        channel.dispatcher,
        server,
        requests,
        probe_seconds=max(0.2, connect_seconds / 3),
        on_tools_changed=news.change,
    )
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            ClientSession(dispatcher=dispatcher, client_info=CLIENT, **session_callbacks(requests, server))
        )
        if probe:
            await _negotiate(session)
        else:
            await session.initialize()
        info = session.server_info
        if info is not None and info.name == CLIENT.name:  # T22: its runs would have flow labels of their own
            problem = "is toolbridge itself: a run inside a run is refused. Configure its servers here instead"
            raise ServerConnectError(server, problem)
        if session.protocol_version in MODERN_PROTOCOL_VERSIONS and _announces_changes(session):
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(tasks.cancel_scope.cancel)
            tasks.start_soon(_follow_changes, session, news.change)
        connection = Connection(
            server,
            channel,
            dispatcher=dispatcher,
            session=session,
            requests=requests,
            limits=limits,
            news=news,
        )
        try:
            yield connection
        finally:
            dispatcher.ended.set()
            connection.end_calls()


class EndedAtProbeError(Exception):
    """The server ended when it was asked for the newer protocol: it may understand the older one."""


async def _negotiate(session: ClientSession) -> None:
    try:
        await negotiate_auto(session)
    except ChannelClosedError as error:
        if session.initialize_result is None and session.discover_result is None:
            raise EndedAtProbeError from error
        raise


class Connection:
    """An open connection to one server."""

    def __init__(
        self,
        server: str,
        channel: Channel,
        *,
        dispatcher: WatchedDispatcher,
        session: ClientSession,
        requests: ServerRequests,
        limits: ServerLimits,
        news: News,
    ) -> None:
        self._server = server
        self._channel = channel
        self._dispatcher = dispatcher
        self._session = session
        self._requests = requests
        self._limits = limits
        self._news = news
        self._calls: set[anyio.CancelScope] = set()
        self._verdict = ""
        """Why we ended it, if we did."""

    @property
    def ended(self) -> bool:
        """Whether the server is gone: nothing that is sent now would reach it."""
        return self._dispatcher.ended.is_set()

    async def wait_for_end(self) -> None:
        """Until its end is known."""
        await self._dispatcher.ended.wait()

    def end_reason(self) -> str:
        """Why it ended, in the server's or system's words: not sanitised."""
        return self._verdict or self._channel.end()

    async def discover(self, secrets: Collection[str], seconds: float | None = None) -> Listing:
        """All tools of the server.

        Raises:
            ServerProtocolError: the listing is no listing, or past a cap.
            MCPError: the server refused, ended or did not answer in time.
        """
        info = self._session.server_info
        about = Listing(
            server=self._server,
            tools=(),
            protocol_version=self._session.protocol_version or "",
            server_name=info.name if info else "",
            server_version=info.version if info else "",
            server_title=(info.title or "") if info else "",
            server_description=(info.description or "") if info else "",
            instructions=self._session.instructions or "",
        )

        async def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
            return await self._request(method, params, seconds)

        mirrors = self._channel.mirrors_headers and self._session.protocol_version in MODERN_PROTOCOL_VERSIONS
        listing = await list_tools(about, request, self._limits, secrets, mirrors_headers=mirrors)
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
        """The raw result of a call. How far it is, is asked of the server only if somebody wants to know.

        Raises:
            ServerError: there is no result: a timeout, an end, a refusal, or nonsense.
            CallNotSentError: the server was gone before it could have seen the call.
        """
        if seconds <= 0:
            raise ServerTimeoutError(self._server, f"was not called: no time is left for {tool!r}")
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        told = None if on_progress is None else passed_on(on_progress, secrets)
        failure: BaseException = TimeoutError()
        is_answered = False
        # The dispatcher keeps the time; this scope is for one that is stuck, and for the end of the connection.
        with anyio.CancelScope(deadline=anyio.current_time() + seconds + 0.5) as scope, pausable(scope):
            self._calls.add(scope)
            try:
                result = await self._request("tools/call", params, seconds, told)
                if result.get("resultType") == "input_required":
                    is_answered = True
                    send = partial(self._request, "tools/call", seconds=seconds, told=told)
                    result = await answer_questions(result, params, ask=self._ask, send=send)
                return result
            except BaseException as error:
                if not isinstance(error, Exception) and not is_foreign(error):
                    raise
                failure = error
            finally:
                self._calls.discard(scope)
        if is_answered and isinstance(failure, (ChannelClosedError, ServerConnectError, UnsendableError)):
            failure = ChannelClosedError()  # the server has seen the call, though not what was sent last
        if isinstance(failure, ChannelClosedError) and not failure.sent:
            raise CallNotSentError from None
        if isinstance(failure, UnsendableError):
            raise MisuseError("arguments", arguments, f"JSON values: a part {failure.error.message}") from None
        if scope.cancelled_caught and self.ended:
            failure = ChannelClosedError()
        elif isinstance(failure, (TimeoutError, RequestTimedOutError)) and not self._calls:
            # While another call is under way, a server that does one thing at a time may just be busy with that.
            self._news.doubt()
        end = self.end_reason()
        raise call_failure(self._server, tool, failure, seconds=seconds, end=end, secrets=secrets) from None

    async def _ask(self, key: str, request: types.InputRequest) -> types.InputResponse | types.ErrorData:
        """A question that came as the answer to a call: declined without a handler, as one that came by itself."""
        if self._requests.handles(request.method):
            context = ClientRequestContext(session=self._session, request_id=key)
            return await self._session.dispatch_input_request(context, request)
        self._dispatcher.declines.answer(request.method)
        if isinstance(request, types.ElicitRequest):
            return types.ElicitResult(action="decline")
        raise ServerProtocolError(self._server, f"asked for {request.method} in answer to a call; no handler is set up")

    def end_calls(self) -> None:
        """The connection is over: whoever waits for a result is told so."""
        for scope in self._calls:
            scope.cancel()

    async def wait(self, refresh: Callable[[], Awaitable[None]]) -> None:
        """Until the connection ends, or is found dead.

        In between, `refresh` is awaited when the server's tools changed.
        """
        ended = self._dispatcher.ended
        while True:
            await self._news.wait_or(ended)
            if ended.is_set():
                return
            if self._news.is_doubted and not await self._is_alive():
                self._verdict = "it answered neither a call in time nor a ping, and was ended"
                return
            if not self._news.is_changed:
                continue
            # A burst of changes is one change.
            with anyio.move_on_after(DEBOUNCE_SECONDS):
                await ended.wait()
            self._news.is_changed = False
            await refresh()
            with anyio.move_on_after(REFRESH_SECONDS):
                await ended.wait()

    async def _is_alive(self) -> bool:
        """After a call that got no answer: a server that is stuck for good would cost every later call its time."""
        self._news.is_doubted = False
        try:
            with anyio.fail_after(PING_SECONDS):
                await self._request("ping", {}, PING_SECONDS)
        except (RequestTimedOutError, ChannelClosedError, TimeoutError):
            return False
        except MCPError:
            pass  # an answer, if not a pong
        return True

    async def _request(
        self, method: str, params: dict[str, Any], seconds: float | None, told: ProgressFnT | None = None
    ) -> dict[str, Any]:
        data: dict[str, Any] = {"method": method, "params": params}
        options: CallOptions = {} if seconds is None else {"timeout": seconds}
        if told is not None:
            options["on_progress"] = told
        # The SDK's models would reject a whole answer for one odd field, so requests go past them; what the
        # negotiated era wants on every request is added by the session's own stamp.
        self._session._stamp(data, options)
        return await self._dispatcher.send_raw_request(method, data["params"], options)


def _announces_changes(session: ClientSession) -> bool:
    capabilities = session.server_capabilities
    return bool(capabilities and capabilities.tools and capabilities.tools.list_changed)


async def _follow_changes(session: ClientSession, changed: Callable[[], None]) -> None:
    """The newer era's subscription to changes. Losing it costs only freshness."""
    try:
        async with listen(session, tools_list_changed=True) as subscription:
            async for _ in subscription:
                changed()
    except (MCPError, SubscriptionLost, TimeoutError, ValueError):
        return
