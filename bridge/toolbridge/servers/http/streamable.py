"""SECURITY: streamable HTTP, as a dispatcher of the SDK. All input is hostile.

The SDK's own transport hands each request to a task whose failure ends the host's; a request without a valid answer
delays or ends the others; and its HTTP status is lost. Here a request is an HTTP exchange in its caller's own task: it
fails alone, with a reason, and ends at its deadline.
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
from mcp.shared.dispatcher import CallOptions, Dispatcher, OnNotify, OnNotifyIntercept, OnRequest
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
from toolbridge.servers.inbound import InboundMessages
from toolbridge.servers.jsonrpc import (
    PendingRequest,
    PendingRequests,
    cancellation,
    encode_line,
    notification,
    parse_line,
    request_message,
)

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_MAX_FAILURES = 5
_RUN_OUT_SECONDS = 1.0
_log = logging.getLogger("toolbridge")


async def listen(http: HttpClient, headers: Callable[[], dict[str, str]], take: Take, most_bytes: int) -> None:
    """Read the standalone SSE stream (GET) of protocol ≤ 2025-11 and hand its messages to `take`, reconnecting.

    Returns, raising nothing, when the server offers no stream or after repeated failures: list changes arrive late.
    """
    last_id, asked_pause, failures = "", None, 0
    while failures < _MAX_FAILURES:
        began = anyio.current_time()
        sent = {**headers(), "accept": EVENT_STREAM}
        if last_id:
            sent["last-event-id"] = last_id
        try:
            async with http.send("GET", sent) as response:
                if response.status_code != 200 or content_type(response) != EVENT_STREAM:
                    return
                stream = EventStream(response, most_bytes)
                while (event := await stream.next()) is not None:
                    last_id, asked_pause = stream.reader.last_id or last_id, stream.reader.retry_seconds
                    if isinstance(event, Event) and event.name == "message" and event.data:
                        _take_event(event, take)
        except (ServerError, MCPError) as error:
            _log.debug("The event stream of server %r failed: %s", http.server, error)
        failures = 0 if anyio.current_time() - began > _LONGEST_PAUSE else failures + 1
        await anyio.sleep(pause(asked_pause, failures))


def pause(asked: float | None, failures: int = 0) -> float:
    """Backoff before a stream is opened again: the server's `retry` within bounds, doubled with each failure."""
    return min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE * 2**failures, 1.0 if asked is None else asked))


def _take_event(event: Event, take: Take) -> None:
    """Hand an event's JSON-RPC message to `take`; anything but a JSON object is dropped."""
    try:
        message = parse_line(event.data)
    except ValueError:
        return
    if isinstance(message, dict):
        take(cast("dict[str, Any]", message), len(event.data))


class RequestsInFlight:
    """The pending requests of one channel, each in its caller's own task, and the end of them all."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.end_reason = ""
        self.pending = PendingRequests()
        self._scopes: set[anyio.CancelScope] = set()
        self._drained: anyio.Event | None = None
        """Exists once no more requests are accepted; set when none is pending."""

    @contextmanager
    def waiting(self, method: str, request_id: RequestId, options: CallOptions) -> Generator[None]:
        """Register a request within the context, which sends it and awaits its answer, and bound its time.

        Raises:
            ChannelClosedError: the channel has ended (then not sent), or ends meanwhile.
            RequestTimedOutError: `options["timeout"]` is over.
        """
        timeout = options.get("timeout")
        if self.ended.is_set() or self._drained is not None:
            raise ChannelClosedError(self.end_reason or "Connection closed", sent=False)
        request = PendingRequest(request_id, options.get("on_progress"))
        deadline = math.inf if timeout is None else anyio.current_time() + timeout
        with anyio.CancelScope(deadline=deadline) as scope:
            self.pending.add(request)
            self._scopes.add(scope)
            try:
                with pausable(scope):
                    yield
            finally:
                self.pending.remove(request)
                self._scopes.remove(scope)
                if self._drained is not None and not self._scopes:
                    self._drained.set()
        if scope.cancelled_caught:
            if self.ended.is_set() or timeout is None:
                raise ChannelClosedError(self.end_reason or "Connection closed")
            raise RequestTimedOutError(method, timeout)

    async def drain(self, reason: str) -> None:
        """Refuse new requests, wait up to a second for pending ones, and end the channel, cancelling the rest."""
        if self._drained is None:
            self._drained = anyio.Event()
        self.end_reason = reason
        try:
            if self._scopes:
                with anyio.move_on_after(_RUN_OUT_SECONDS):
                    await self._drained.wait()
        finally:
            self.end(reason)

    def end(self, reason: str) -> None:
        """End the channel and cancel all pending requests, which then fail; does nothing if it has ended."""
        if self.ended.is_set():
            return
        self.end_reason = reason
        self.ended.set()
        for scope in self._scopes:
            scope.cancel()


def seconds_left() -> float:
    """The seconds until the innermost deadline around the caller."""
    return anyio.current_effective_deadline() - anyio.current_time()


SESSION_GONE = "it no longer knows the session: it was restarted, or ended the session"

_SESSION_HEADER = "mcp-session-id"
_ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_NOTIFICATION_SECONDS = 5.0
_MAX_RESUMPTIONS = 10
_OVER_SECONDS = 1.0


class HttpDispatcher(Dispatcher[TransportContext]):
    """One session with one server; it can't be run again once it has ended."""

    def __init__(self, http: HttpClient, limits: ServerLimits) -> None:
        self._http = http
        self._limits = limits
        self._in_flight = RequestsInFlight()
        self._inbound = InboundMessages(
            self, self._post_soon, self._in_flight.pending.progress_callback, max_bytes=limits.message_bytes
        )
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

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request and await its result.

        Raises:
            ChannelClosedError: the session is gone, or the channel was closed.
            RequestTimedOutError: `opts["timeout"]` is over.
            BadAnswerError, HttpStatusError: the answer is malformed.
            MCPError: the server answered with an error, or the request can't be encoded as JSON.
            ServerError: the server could not be reached, broke off, or wants a sign-in.
        """
        options: CallOptions = opts if opts is not None else {}
        # In a cancelled scope, the cancellation comes before any error.
        await anyio.lowlevel.checkpoint_if_cancelled()
        if self._tasks is None:
            if self._has_run:
                raise ChannelClosedError(self.end_reason() or "Connection closed", sent=False)
            raise RuntimeError("send_raw_request was called before run()")
        request_id = self._in_flight.pending.new_id(options.get("request_id"))
        headers = self._request_headers(method, options)
        content = encode_line(request_message(request_id, method, params, wants_progress="on_progress" in options))
        try:
            with self._in_flight.waiting(method, request_id, options):
                outcome = await self._ask(method, request_id, content, headers)
        except SessionGoneError as gone:
            self._session_id = None
            await self._in_flight.drain(SESSION_GONE)
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
        """Send a notification and wait for it up to 5 s; failures are only logged.

        After `notifications/initialized`, starts the event stream in the background.
        """
        headers = self._request_headers(method, opts if opts is not None else {})
        await self._post(method, encode_line(notification(method, params)), headers)
        if method == "notifications/initialized" and self._session_id is not None and self._tasks is not None:
            self._tasks.start_soon(listen, self._http, self._headers, self._inbound.take, self._limits.message_bytes)

    async def end_session(self) -> None:
        """End the session at the server by DELETE, if there is one; a failure is logged. The caller bounds the time."""
        session_id, self._session_id = self._session_id, None
        if session_id is not None:
            try:
                async with self._http.send("DELETE", {**self._headers(), _SESSION_HEADER: session_id}):
                    pass
            except (ServerError, MCPError):
                _log.debug("Server %r was not told that its session is over", self._http.server)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run until the session ends, then fail every pending request. A second run raises RuntimeError."""
        if self._has_run:
            raise RuntimeError("a dispatcher runs once")
        self._has_run = True
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self._inbound.open(on_request, on_notify, on_notify_intercept, tasks)
            try:
                task_status.started()
                await self._in_flight.ended.wait()
            finally:
                # From here on the group accepts no more tasks.
                self._tasks = None
                self._inbound.close()
                self._in_flight.end("")
                tasks.cancel_scope.cancel()
        self._over.set()

    async def _ask(
        self, method: str, request_id: RequestId, content: bytes, headers: dict[str, str]
    ) -> dict[str, Any] | MCPError:
        """POST a request, repeating it where that is safe, and return its outcome; resumes a stream that broke off."""
        most_bytes = self._limits.message_bytes
        exchange = Exchange(request_id, self._inbound.take, most_bytes, see_end=self._streams_end)
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
        """Resume a stream that ended without the answer. The request itself is not sent again.

        Raises:
            ServerDisconnectedError: the server is gone. It has seen the request, which must not look unsent.
        """
        try:
            return await self._rest_of(exchange, headers)
        except ServerError as error:
            then = str(error).removeprefix(f"Server {self._http.server!r} ")
            problem = f"broke off before it had answered; what was asked of it may have taken effect. Then it {then}"
            raise ServerDisconnectedError(self._http.server, problem) from None

    async def _rest_of(self, exchange: Exchange, headers: dict[str, str]) -> dict[str, Any] | MCPError:
        """Reopen a broken-off stream after its last event until the outcome comes; else raises `BadAnswerError`."""
        for _ in range(_MAX_RESUMPTIONS):
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
        """Store the session id, if there is one. Raises `BadAnswerError` for one that is no valid header value."""
        if session_id is None:
            return
        try:
            check_header_value(_SESSION_HEADER, session_id)
        except HttpRuleError as error:
            raise BadAnswerError(f"It gave a session id that can't be sent back: {error}") from None
        self._session_id = session_id

    async def _until_over(self) -> None:
        """Wait, at most a second, until the session's end is known everywhere, before the caller connects again."""
        with anyio.move_on_after(_OVER_SECONDS):
            await self._over.wait()

    def _abandon(self, request_id: RequestId, headers: dict[str, str]) -> None:
        """Notify the server of a cancelled request. No await: this also runs while the caller is being cancelled."""
        # In the newer protocol, closing the exchange notifies the server.
        if headers.get(MCP_PROTOCOL_VERSION_HEADER) not in MODERN_PROTOCOL_VERSIONS:
            self._post_soon(cancellation(request_id))

    def _post_soon(self, message: dict[str, Any]) -> None:
        """Post a message in the background; silently dropped after the end, or if too many are under way."""
        content = encode_line(message)
        if (
            self._tasks is not None
            and not self._in_flight.ended.is_set()
            and self._posts < self._limits.calls_in_flight
        ):
            self._posts += 1
            self._tasks.start_soon(self._post_one, str(message.get("method", "")), content)

    async def _post_one(self, method: str, content: bytes) -> None:
        """Fire and forget: post a message, encoded already, with the current headers; failures are only logged."""
        try:
            await self._post(method, content, self._headers())
        finally:
            self._posts -= 1

    async def _post(self, method: str, content: bytes, headers: dict[str, str]) -> None:
        """Post a message for up to 5 s, repeated as the server asks; failures are logged, and the answer is ignored."""
        with anyio.move_on_after(_NOTIFICATION_SECONDS):
            try:
                for attempts in count(1):
                    async with self._http.send("POST", headers, content=content) as response:
                        delay = _delay(method, response, attempts)
                    if delay is None:
                        return
                    await anyio.sleep(delay)
            except (ServerError, MCPError) as error:
                _log.debug("Server %r did not take %s: %s", self._http.server, method or "an answer", error)

    def _headers(self) -> dict[str, str]:
        """Return the headers of every message: accepted types, and session id and protocol version once known."""
        headers = dict(_ACCEPT)
        if self._session_id is not None:
            headers[_SESSION_HEADER] = self._session_id
        if self._protocol_version is not None:
            headers[MCP_PROTOCOL_VERSION_HEADER] = self._protocol_version
        return headers

    def _request_headers(self, method: str, options: CallOptions) -> dict[str, str]:
        """Return a request's headers with the given `mcp-*` ones; remembers the protocol version for later messages."""
        given = {name.lower(): value for name, value in options.get("headers", {}).items()}
        # The protocol version holds for later messages that are sent without it; a handshake begins anew.
        self._protocol_version = (
            None if method == "initialize" else given.get(MCP_PROTOCOL_VERSION_HEADER, self._protocol_version)
        )
        return {**self._headers(), **{name: value for name, value in given.items() if name.startswith("mcp-")}}


def _delay(method: str, response: httpx2.Response, attempts: int) -> float | None:
    """Return the seconds to wait before repeating a refused request, within the deadline; None to take the answer."""
    wait = response.headers.get("retry-after")
    return retry_delay(method, response.status_code, wait, attempts=attempts, seconds_left=seconds_left())
