"""SECURITY: streamable HTTP, as a dispatcher of the SDK. Everything that is read here is hostile.

The SDK's own transport hands each request to a task whose failure ends the host's; one that is not answered, or is
answered wrongly, holds up or ends the others; and an HTTP status is lost on the way. Here a request is an HTTP
exchange in its caller's own task: it fails alone, says why, and ends at its deadline.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import count
from typing import Any

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
)
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.transport_context import TransportContext
from mcp_types import RequestId
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolbridge.config.server_limits import ServerLimits
from toolbridge.errors import ServerDisconnectedError, ServerError
from toolbridge.servers.channel import BadAnswerError, ChannelClosedError, RequestTimedOutError
from toolbridge.servers.http_answers import EVENT_STREAM, Exchange, SessionGoneError
from toolbridge.servers.http_body import content_type
from toolbridge.servers.http_client import HttpClient
from toolbridge.servers.http_listener import listen, pause
from toolbridge.servers.http_retry import may_be_repeated, retry_delay
from toolbridge.servers.http_rules import HttpRuleError, check_header_value
from toolbridge.servers.http_unasked import Unasked
from toolbridge.servers.messages import encode_line
from toolbridge.servers.requests_in_flight import RequestsInFlight, seconds_left

SESSION_GONE = "it no longer knows the session: it was restarted, or ended the session"

_SESSION_HEADER = "mcp-session-id"
_ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_NOTIFICATION_SECONDS = 5.0
_MOST_RESUMPTIONS = 10
_OVER_SECONDS = 1.0
_LOGGER = logging.getLogger("toolbridge")


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
