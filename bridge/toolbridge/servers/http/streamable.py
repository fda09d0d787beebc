"""SECURITY: streamable HTTP, as a dispatcher of the SDK. Everything that is read here is hostile.

The SDK's own transport hands each request to a task whose failure ends the host's; one that is not answered, or is
answered wrongly, holds up or ends the others; and an HTTP status is lost on the way. Here a request is an HTTP
exchange in its caller's own task: it fails alone, says why, and ends at its deadline.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any, cast

import anyio
import anyio.abc
import anyio.lowlevel
import httpx2
from mcp.shared.dispatcher import (
    CallOptions,
    Dispatcher,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    Outbound,
    ProgressFnT,
    run_notify_intercept,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.transport_context import TransportContext
from mcp_types import RequestId
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import ServerDisconnectedError, ServerError
from toolbridge.servers.connection import pausable
from toolbridge.servers.failures import BadAnswerError, ChannelClosedError, RequestTimedOutError
from toolbridge.servers.http.answers import EVENT_STREAM, Event, EventStream, Exchange, SessionGoneError, Take
from toolbridge.servers.http.client import HttpClient, may_be_repeated, retry_delay
from toolbridge.servers.http.network import content_type
from toolbridge.servers.http.ssrf import HttpRuleError, check_header_value
from toolbridge.servers.inbound import InboundContext, InboundRequests, Notice, Notices, Send
from toolbridge.servers.jsonrpc import encode_line, number_of, parse_line, request_key

# The stream on which a server of the older era says what nobody asked. Losing it costs only freshness.


_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_MOST_FAILURES = 5
_LOGGER = logging.getLogger("toolbridge")


async def listen(http: HttpClient, headers: Callable[[], dict[str, str]], take: Take, most_bytes: int) -> None:
    """Keep the stream open, for as long as the server does its part."""
    last_id, asked_pause, failures = "", None, 0
    while failures < _MOST_FAILURES:
        began = anyio.current_time()
        sent = {**headers(), "accept": EVENT_STREAM}
        if last_id:
            sent["last-event-id"] = last_id
        try:
            async with http.send("GET", sent) as response:
                if response.status_code != 200 or content_type(response) != EVENT_STREAM:
                    return  # it offers none
                stream = EventStream(response, most_bytes)
                while (event := await stream.next()) is not None:
                    last_id, asked_pause = stream.reader.last_id or last_id, stream.reader.retry_seconds
                    if isinstance(event, Event) and event.name == "message" and event.data:
                        _take_event(event, take)
        except (ServerError, MCPError) as error:
            _LOGGER.debug("The event stream of server %r failed: %s", http.server, error)
        # Opening it again and again would be a flood of our own.
        failures = 0 if anyio.current_time() - began > _LONGEST_PAUSE else failures + 1
        await anyio.sleep(pause(asked_pause, failures))


def pause(asked: float | None, failures: int = 0) -> float:
    """Before a stream is opened again: what the server asks for, but no flood of requests, and no endless wait."""
    return min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE * 2**failures, 1.0 if asked is None else asked))


def _take_event(event: Event, take: Take) -> None:
    try:
        message = parse_line(event.data)
    except ValueError:
        return
    if isinstance(message, dict):
        take(cast("dict[str, Any]", message), len(event.data))


# Requests over HTTP that wait for their answers: their ids, their deadlines, and the end of all of them.


_RUN_OUT_SECONDS = 1.0


class RequestsInFlight:
    """The requests of one channel. A request is its caller's own task; here is what ends it from outside."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.end_reason = ""
        self._scopes: dict[RequestId, anyio.CancelScope] = {}
        self._progress: dict[RequestId, ProgressFnT] = {}
        self._last_id = 0
        self._last_answered: anyio.Event | None = None
        """Once no more are taken: set when none is under way."""

    def new_id(self, chosen: RequestId | None) -> RequestId:
        """An id that no other request has."""
        if chosen is not None:
            key = request_key(chosen)
            if key is None or key in self._scopes:
                raise ValueError(f"request id {chosen!r} is no id, or already in flight")
            return chosen
        self._last_id += 1
        while self._last_id in self._scopes:
            self._last_id += 1
        return self._last_id

    @contextmanager
    def waiting(self, method: str, request_id: RequestId, options: CallOptions) -> Generator[None]:
        """While one request is sent and answered.

        Raises:
            ChannelClosedError: the channel has ended, or ends meanwhile.
            RequestTimedOutError: `options["timeout"]` is over.
        """
        timeout = options.get("timeout")
        key = request_key(request_id)
        assert key is not None
        if self.ended.is_set() or self._last_answered is not None:
            raise ChannelClosedError(self.end_reason or "Connection closed", sent=False)
        deadline = math.inf if timeout is None else anyio.current_time() + timeout
        with anyio.CancelScope(deadline=deadline) as scope:
            self._scopes[key] = scope
            if (on_progress := options.get("on_progress")) is not None:
                self._progress[key] = on_progress
            try:
                with pausable(scope):
                    yield
            finally:
                self._progress.pop(key, None)
                del self._scopes[key]
                if self._last_answered is not None and not self._scopes:
                    self._last_answered.set()
        if scope.cancelled_caught:
            if self.ended.is_set() or timeout is None:
                raise ChannelClosedError(self.end_reason or "Connection closed")
            raise RequestTimedOutError(method, timeout)

    def progress_callback(self, token: object) -> ProgressFnT | None:
        """Who wants to know of progress that is reported under a token."""
        key = request_key(token)
        return None if key is None else self._progress.get(key)

    async def run_out(self, reason: str) -> None:
        """The channel is about to be no more. Requests that are under way may still get answers of their own, soon."""
        if self._last_answered is None:
            self._last_answered = anyio.Event()
        self.end_reason = reason
        try:
            if self._scopes:
                with anyio.move_on_after(_RUN_OUT_SECONDS):
                    await self._last_answered.wait()
        finally:
            self.end(reason)

    def end(self, reason: str) -> None:
        """The channel is no more: whoever waits learns it now."""
        if self.ended.is_set():
            return
        self.end_reason = reason
        self.ended.set()
        for scope in self._scopes.values():
            scope.cancel()


def seconds_left() -> float:
    """Until the innermost deadline of the request that is being sent, or of whoever waits for it."""
    return anyio.current_effective_deadline() - anyio.current_time()


# SECURITY: what a server says over HTTP without being asked: notifications and requests of its own, within bounds.


_MOST_REQUESTS = 16
_MOST_NOTICES = 256
_MOST_NOTICE_BYTES = 1024 * 1024


class Unasked:
    """Passes messages on to whom `run` was given. Nothing here waits: a stream that is read is never held up."""

    def __init__(self, outbound: Outbound, send: Send, in_flight: RequestsInFlight, most_bytes: int) -> None:
        self._outbound = outbound
        self._in_flight = in_flight
        self._requests = InboundRequests(outbound, send, _MOST_REQUESTS, most_bytes)
        self._notices = Notices(_MOST_NOTICES, _MOST_NOTICE_BYTES)
        self._handlers: tuple[OnRequest, OnNotify, OnNotifyIntercept | None, anyio.abc.TaskGroup] | None = None

    def open(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None,
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        """Begin to pass messages on, in tasks of this group."""
        self._handlers = on_request, on_notify, on_notify_intercept, tasks
        tasks.start_soon(self._notices.handle_all)

    def close(self) -> None:
        """Pass nothing on any more."""
        self._handlers = None

    def take(self, message: dict[str, Any], size: int) -> None:
        """Take a message that is no answer."""
        method, params = message.get("method"), message.get("params")
        if self._handlers is None or not isinstance(method, str) or message.get("jsonrpc") != "2.0":
            return
        on_request, on_notify, intercept, tasks = self._handlers
        if "id" in message:
            self._requests.begin(message, size, on_request, tasks)
            return
        if params is not None and not isinstance(params, dict):
            return
        given = cast("dict[str, Any] | None", params)
        if given is not None and method == "notifications/cancelled":
            self._requests.cancel(given.get("requestId"))
        elif given is not None and method == "notifications/progress":
            self._take_progress(given, size)
        if not run_notify_intercept(intercept, method, given):
            context = InboundContext(self._outbound)

            async def handle() -> None:
                await on_notify(context, method, given)

            self._notices.add(Notice(method, size, handle))

    def _take_progress(self, params: dict[str, Any], size: int) -> None:
        report = self._in_flight.progress_callback(params.get("progressToken"))
        progress, total, message = (
            number_of(params.get("progress")),
            number_of(params.get("total")),
            params.get("message"),
        )
        if report is None or progress is None:
            return

        async def handle() -> None:
            await report(progress, total, message if isinstance(message, str) else None)

        self._notices.add(Notice("notifications/progress", size, handle))


SESSION_GONE = "it no longer knows the session: it was restarted, or ended the session"

_SESSION_HEADER = "mcp-session-id"
_ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_NOTIFICATION_SECONDS = 5.0
_MOST_RESUMPTIONS = 10
_OVER_SECONDS = 1.0


class HttpDispatcher(Dispatcher[TransportContext]):
    """One session with one server; it can't be run again once it has ended."""

    def __init__(self, http: HttpClient, limits: ServerLimits) -> None:
        self._http = http
        self._limits = limits
        self._in_flight = RequestsInFlight()
        self._unasked = Unasked(self, self._post_soon, self._in_flight, limits.message_bytes)
        self._tasks: anyio.abc.TaskGroup | None = None
        self._has_run = False
        self._over = anyio.Event()
        self._session_id: str | None = None
        self._protocol_version: str | None = None
        self._posts = 0
        self._streams_end = True

    def end_reason(self) -> str:
        """Why the channel ended."""
        return self._in_flight.end_reason

    # ---- to the server

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request and await its result.

        Raises:
            ChannelClosedError: the session is gone, or the channel was closed.
            RequestTimedOutError: `opts["timeout"]` is over.
            BadAnswerError, HttpStatusError: the answer is none.
            MCPError: the server answered with an error, or the request can't be written as JSON.
            ServerError: it could not be reached, broke off, or wants a sign-in.
        """
        options: CallOptions = opts if opts is not None else {}
        # Where everything is being cancelled, that is what the caller is to learn.
        await anyio.lowlevel.checkpoint_if_cancelled()
        if self._tasks is None:
            if self._has_run:
                raise ChannelClosedError(self.end_reason() or "Connection closed", sent=False)
            raise RuntimeError("send_raw_request was called before run()")
        request_id = self._in_flight.new_id(options.get("request_id"))
        headers = self._request_headers(method, options)
        content = encode_line(_request(request_id, method, params, progress="on_progress" in options))
        try:
            with self._in_flight.waiting(method, request_id, options):
                outcome = await self._ask(method, request_id, content, headers)
        except SessionGoneError as gone:
            self._session_id = None
            await self._in_flight.run_out(SESSION_GONE)
            await self._until_over()
            raise ChannelClosedError(SESSION_GONE, sent=not gone.refused) from None
        except ChannelClosedError:
            await self._until_over()
            raise
        except (RequestTimedOutError, anyio.get_cancelled_exc_class()):
            if options.get("cancel_on_abandon", True):
                self._abandon(request_id, headers)
            raise
        if isinstance(outcome, MCPError):
            raise self._http.redacted(outcome)
        return outcome

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification. Lost where the channel has ended or the server does not take it."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        headers = self._request_headers(method, opts if opts is not None else {})
        await self._post(method, encode_line(message), headers)
        if method == "notifications/initialized" and self._session_id is not None and self._tasks is not None:
            self._tasks.start_soon(listen, self._http, self._headers, self._unasked.take, self._limits.message_bytes)

    async def end_session(self) -> None:
        """Tell the server that the session is over. The caller bounds the time."""
        session_id, self._session_id = self._session_id, None
        if session_id is not None:
            try:
                async with self._http.send("DELETE", {**self._headers(), _SESSION_HEADER: session_id}):
                    pass
            except (ServerError, MCPError):
                _LOGGER.debug("Server %r was not told that its session is over", self._http.server)

    # ---- from the server

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Until the session ends; then every request that waits fails at once."""
        if self._has_run:
            raise RuntimeError("a dispatcher runs once")
        self._has_run = True
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self._unasked.open(on_request, on_notify, on_notify_intercept, tasks)
            try:
                task_status.started()
                await self._in_flight.ended.wait()
            finally:
                # From here on the group takes no more tasks.
                self._tasks = None
                self._unasked.close()
                self._in_flight.end("")
                tasks.cancel_scope.cancel()
        self._over.set()

    # ---- one exchange

    async def _ask(
        self, method: str, request_id: RequestId, content: bytes, headers: dict[str, str]
    ) -> dict[str, Any] | MCPError:
        most_bytes = self._limits.message_bytes
        exchange = Exchange(request_id, self._unasked.take, most_bytes, see_end=self._streams_end)
        outcome = None
        for attempts in count(1):
            try:
                async with self._http.send("POST", headers, content=content, may_sign_in=True) as response:
                    delay = _delay(method, response, attempts)
                    if delay is None:
                        outcome = await exchange.read(response, has_session=_SESSION_HEADER in headers)
                        self._streams_end = exchange.see_end
                        if method == "initialize" and isinstance(outcome, dict):
                            self._begin_session(response.headers.get(_SESSION_HEADER))
                        break
            except ServerDisconnectedError:
                # It may have closed an idle connection just when the request was sent.
                if attempts > 1 or not may_be_repeated(method):
                    raise
                delay = 0.0
            await anyio.sleep(delay)
        return outcome if outcome is not None else await self._resume(exchange, headers)

    async def _resume(self, exchange: Exchange, headers: dict[str, str]) -> dict[str, Any] | MCPError:
        """Ask for the rest of a stream that ended without the answer. This sends nothing a second time.

        Raises:
            ServerDisconnectedError: it can't be asked any more. It took the request, which must not look unsent.
        """
        try:
            return await self._rest_of(exchange, headers)
        except ServerError as error:
            then = str(error).removeprefix(f"Server {self._http.server!r} ")
            problem = f"broke off before it had answered; what was asked of it may have taken effect. Then it {then}"
            raise ServerDisconnectedError(self._http.server, problem) from None

    async def _rest_of(self, exchange: Exchange, headers: dict[str, str]) -> dict[str, Any] | MCPError:
        for _ in range(_MOST_RESUMPTIONS):
            if not exchange.last_event_id or headers.get(MCP_PROTOCOL_VERSION_HEADER) in MODERN_PROTOCOL_VERSIONS:
                break
            await anyio.sleep(pause(exchange.retry_seconds))
            again = {**headers, "accept": EVENT_STREAM, "last-event-id": exchange.last_event_id}
            async with self._http.send("GET", again) as response:
                if response.status_code != 200 or content_type(response) != EVENT_STREAM:
                    break
                outcome = await exchange.read_events(response)
                if outcome is not None:
                    return outcome
        raise BadAnswerError(exchange.problem)

    def _begin_session(self, session_id: str | None) -> None:
        if session_id is None:
            return
        try:
            check_header_value(_SESSION_HEADER, session_id)
        except HttpRuleError as error:
            raise BadAnswerError(f"It gave a session id that can't be sent back: {error}") from None
        self._session_id = session_id

    async def _until_over(self) -> None:
        """Whoever is told of the end, and connects anew, finds everybody else knowing of it, too."""
        with anyio.move_on_after(_OVER_SECONDS):
            await self._over.wait()

    # ---- beside requests

    def _abandon(self, request_id: RequestId, headers: dict[str, str]) -> None:
        """Nobody waits any more. No await: this also runs while the caller is being cancelled."""
        # In the newer era, closing the exchange is what tells the server.
        if headers.get(MCP_PROTOCOL_VERSION_HEADER) not in MODERN_PROTOCOL_VERSIONS:
            params = {"requestId": request_id, "reason": "nobody waits for the answer any more"}
            self._post_soon({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def _post_soon(self, message: dict[str, Any]) -> None:
        """Send something that nobody waits for; lost when too much of that is on its way."""
        content = encode_line(message)
        if (
            self._tasks is not None
            and not self._in_flight.ended.is_set()
            and self._posts < self._limits.calls_in_flight
        ):
            self._posts += 1
            self._tasks.start_soon(self._post_one, str(message.get("method", "")), content)

    async def _post_one(self, method: str, content: bytes) -> None:
        try:
            await self._post(method, content, self._headers())
        finally:
            self._posts -= 1

    async def _post(self, method: str, content: bytes, headers: dict[str, str]) -> None:
        with anyio.move_on_after(_NOTIFICATION_SECONDS):
            try:
                for attempts in count(1):
                    async with self._http.send("POST", headers, content=content) as response:
                        delay = _delay(method, response, attempts)
                    if delay is None:
                        return
                    await anyio.sleep(delay)
            except (ServerError, MCPError) as error:
                _LOGGER.debug("Server %r did not take %s: %s", self._http.server, method or "an answer", error)

    def _headers(self) -> dict[str, str]:
        headers = dict(_ACCEPT)
        if self._session_id is not None:
            headers[_SESSION_HEADER] = self._session_id
        if self._protocol_version is not None:
            headers[MCP_PROTOCOL_VERSION_HEADER] = self._protocol_version
        return headers

    def _request_headers(self, method: str, options: CallOptions) -> dict[str, str]:
        given = {name.lower(): value for name, value in options.get("headers", {}).items()}
        # What the session says of the protocol holds for what is sent without it; a handshake begins anew.
        self._protocol_version = (
            None if method == "initialize" else given.get(MCP_PROTOCOL_VERSION_HEADER, self._protocol_version)
        )
        return {**self._headers(), **{name: value for name, value in given.items() if name.startswith("mcp-")}}


def _request(request_id: RequestId, method: str, params: Mapping[str, Any] | None, *, progress: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
    given: dict[str, Any] = dict(params or {})
    if progress:
        given["_meta"] = {**(given.get("_meta") or {}), "progressToken": request_id}
    if given:
        message["params"] = given
    return message


def _delay(method: str, response: httpx2.Response, attempts: int) -> float | None:
    wait = response.headers.get("retry-after")
    return retry_delay(method, response.status_code, wait, attempts=attempts, seconds_left=seconds_left())
