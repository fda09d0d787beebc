"""Requests that a server makes of us: each answered in a task of its own, so many at once and no more."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.abc
import mcp_types as types
from mcp.client._input_required import InputRequiredRoundsExceededError, run_input_required_driver
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import CallOptions, OnRequest, Outbound
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data, progress_token_from_params
from mcp.shared.transport_context import TransportContext
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, ErrorData, ProgressToken, RequestId

from toolbridge.concurrency import is_foreign
from toolbridge.servers.requests import ElicitationRequest, ServerRequests
from toolbridge.tools.binding import OnProgress
from toolbridge.trust.text.sanitise import for_error, masked

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT


# SECURITY: what a server says of how far a call is: cut, masked, and so seldom that a flood of it reaches nobody.


MOST_MESSAGE = 200
MOST_AT_ONCE = 20
MOST_PER_SECOND = 10.0


def passed_on(report: OnProgress, secrets: frozenset[str]) -> ProgressFnT:
    """What the progress of one call is told to, as the SDK wants it. What comes too fast is left out."""
    left, before = float(MOST_AT_ONCE), monotonic()

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        nonlocal left, before
        now = monotonic()
        left, before = min(MOST_AT_ONCE, left + (now - before) * MOST_PER_SECOND), now
        if left < 1 or not math.isfinite(progress):
            return
        left -= 1
        whole = total if total is not None and math.isfinite(total) else None
        report(progress, whole, for_error(message, secrets, limit=MOST_MESSAGE) if message else "")

    return tell


# The newer protocol's way for a server to ask during a call: it answers with questions, and is called again.


MOST_QUESTIONS = 16
"""In one answer: they are asked at the same time."""

Ask = Callable[[str, types.InputRequest], Awaitable[types.InputResponse | types.ErrorData]]
SendRequest = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


async def answer_questions(
    first: dict[str, Any], params: dict[str, Any], *, ask: Ask, send: SendRequest
) -> dict[str, Any]:
    """Answer a server's questions until its call has a result.

    Raises:
        MCPError: a question was refused, or the server refused.
        ValueError: it kept asking, or its questions are none.
    """

    async def again(
        responses: types.InputResponses | None, state: str | None
    ) -> dict[str, Any] | types.InputRequiredResult:
        retry = types.CallToolRequestParams(
            name=params["name"], arguments=dict(params["arguments"]), input_responses=responses, request_state=state
        )
        result = await send(retry.model_dump(by_alias=True, mode="json", exclude_none=True))
        return _questions(result) if result.get("resultType") == "input_required" else result

    try:
        return await run_input_required_driver(_questions(first), dispatch=ask, retry=again)
    except InputRequiredRoundsExceededError:
        raise ValueError("it kept asking for input") from None


def _questions(result: dict[str, Any]) -> types.InputRequiredResult:
    asked: object = result.get("inputRequests")
    if isinstance(asked, dict) and len(cast("dict[str, Any]", asked)) > MOST_QUESTIONS:
        raise ValueError(f"it asked more than {MOST_QUESTIONS} questions at once")
    return types.InputRequiredResult.model_validate(result)


# What a server did wrong on its channel, counted: for error messages, in bounded memory.


_EXCERPT = 1000


@dataclass(slots=True)
class LineProblems:
    """None of these ends a session."""

    lines: int = 0
    """Lines that are not MCP: banners, telemetry, broken or overlong messages."""
    stray_answers: int = 0
    """Answers to nothing: unknown, repeated and late ones."""
    dropped_notifications: int = 0
    refused_requests: int = 0
    unsent_messages: int = 0
    """Answers and notifications of ours that a server which does not read has no room for."""
    _recent: bytearray = field(default_factory=bytearray)

    @property
    def recent(self) -> str:
        """The beginnings of the last few lines that are not MCP. Not sanitised."""
        return self._recent[-3 * _EXCERPT :].decode("utf-8", "replace")

    def add_line(self, line: bytes | bytearray) -> None:
        """One more that is not MCP."""
        self.lines += 1
        self._recent += b"\n"
        self._recent += line[:_EXCERPT].strip()
        if len(self._recent) > 100 * _EXCERPT:  # seldom: a server may send little else
            del self._recent[: -3 * _EXCERPT]

    def summary(self, secrets: frozenset[str] = frozenset()) -> str:
        """Words for an error message; empty when there is nothing to say.

        Not sanitised, but for secrets: one that was written over several lines is not known by its last.
        """
        if not self.lines:
            return ""
        last = masked(self.recent, secrets).rpartition("\n")[2]
        many = f"{self.lines} lines that are not MCP messages, the last" if self.lines > 1 else "a line that is not MCP"
        return f"its stdout had {many}: {last}"


# Notifications of a server that wait to be handled: a flood of them costs neither memory nor a change.


_CHANGED = "/list_changed"

_LOGGER = logging.getLogger("toolbridge")


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification, and what is to be done about it."""

    method: str
    size: int
    """Of the line it came in."""
    handle: Callable[[], Awaitable[None]]

    @property
    def says_only_that(self) -> bool:
        """Whether a second one in line would say nothing new, while losing the only one would lose a change."""
        return self.method.endswith(_CHANGED)


class Notices:
    """Handled one by one, in order. When they come faster than that, the newest are dropped."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._waiting: deque[Notice] = deque()
        self._bytes = 0
        self._filled = anyio.Event()

    def add(self, notice: Notice) -> int:
        """Put one in line; how many were lost by that."""
        lost = 0
        if notice.says_only_that:
            if any(waiting.method == notice.method for waiting in self._waiting):
                return 0
            while self._waiting and not self._has_room(notice.size):
                self._take()
                lost += 1
        elif self._waiting and not self._has_room(notice.size):
            return 1
        self._waiting.append(notice)
        self._bytes += notice.size
        self._filled.set()
        return lost

    async def handle_all(self) -> None:
        """Handle what comes, for as long as the channel is open."""
        while True:
            if not self._waiting:
                self._filled = anyio.Event()
                await self._filled.wait()
            notice = self._take()
            try:
                await notice.handle()
            except Exception:
                _LOGGER.exception("Handling a server's %r failed", notice.method)

    def _has_room(self, size: int) -> bool:
        return len(self._waiting) < self._most and self._bytes + size <= self._most_bytes

    def _take(self) -> Notice:
        notice = self._waiting.popleft()
        self._bytes -= notice.size
        return notice


# SECURITY: the SDK's callbacks for the handlers that a host supplied. What a handler raises never reaches a server.


_log = logging.getLogger("toolbridge")


def session_callbacks(requests: ServerRequests, server: str) -> dict[str, Any]:
    """For the handlers there are; what has none is not announced to the server."""
    callbacks: dict[str, Any] = {}
    if requests.elicit is not None:
        callbacks["elicitation_callback"] = _elicitation(server, requests.elicit)
    if requests.sample is not None:
        callbacks["sampling_callback"] = _sampling(server, requests.sample)
    if requests.list_roots is not None:
        callbacks["list_roots_callback"] = _list_roots(server, requests)
    return callbacks


def _elicitation(server: str, elicit: Callable[..., Awaitable[Any]]) -> Any:
    async def callback(
        context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        del context
        raw = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        request = ElicitationRequest(server, raw.get("message", ""), raw.get("requestedSchema"), raw.get("url"))
        try:
            answer = await elicit(request)
            content = None if answer.content is None else dict(answer.content)
            return types.ElicitResult.model_validate({"action": answer.action, "content": content})
        except BaseException as error:
            if not isinstance(error, Exception) and not is_foreign(error):
                raise
            return _handler_failed(server, "elicitation", error)

    return callback


def _sampling(server: str, sample: Callable[..., Awaitable[Any]]) -> Any:
    async def callback(
        context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        del context
        try:
            answer = await sample(server, params.model_dump(by_alias=True, mode="json", exclude_none=True))
            return types.CreateMessageResult.model_validate(dict(answer))
        except BaseException as error:
            if not isinstance(error, Exception) and not is_foreign(error):
                raise
            return _handler_failed(server, "sampling", error)

    return callback


def _list_roots(server: str, requests: ServerRequests) -> Any:
    async def callback(context: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        del context
        try:
            assert requests.list_roots is not None
            roots = tuple(await requests.list_roots(server))
            return types.ListRootsResult.model_validate({"roots": [{"uri": uri} for uri in roots]})
        except BaseException as error:
            if not isinstance(error, Exception) and not is_foreign(error):
                raise
            return _handler_failed(server, "roots", error)

    return callback


def _handler_failed(server: str, what: str, error: BaseException) -> types.ErrorData:
    """The server learns that it failed, and nothing of the host."""
    _log.warning("The %s handler failed for server %r: %s", what, server, for_error(repr(error)))
    return types.ErrorData(code=types.INTERNAL_ERROR, message=f"The host's {what} handler failed")


TOO_MANY_REQUESTS = -32000

_STDIO = TransportContext(kind="stdio", can_send_request=True)

Send = Callable[[dict[str, Any]], None]
"""Sends a message if there is room for it."""


@dataclass(slots=True)
class InboundContext:
    """The SDK's `DispatchContext` of one inbound message; an open way back until it has been handled."""

    outbound: Outbound
    request_id: RequestId | None = None
    progress_token: ProgressToken | None = None
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    transport: TransportContext = _STDIO
    message_metadata: None = None
    closed: bool = False

    @property
    def can_send_request(self) -> bool:
        """Whether the message is still being handled."""
        return not self.closed

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Ask the server something while handling its message."""
        if self.closed:
            raise NoBackChannelError(method)
        return await self.outbound.send_raw_request(method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Tell the server something while handling its message."""
        if not self.closed:
            await self.outbound.notify(method, params, opts)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the server asked for it."""
        if self.progress_token is not None:
            given = {"total": total, "message": message}
            params = {"progressToken": self.progress_token, "progress": progress}
            params |= {key: value for key, value in given.items() if value is not None}
            await self.notify("notifications/progress", params)


class InboundRequests:
    """The requests being answered."""

    def __init__(self, outbound: Outbound, send: Send, most: int, most_bytes: int) -> None:
        self._outbound = outbound
        self._send = send
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._under_way: dict[RequestId, tuple[anyio.CancelScope, InboundContext]] = {}

    def begin(self, message: dict[str, Any], size: int, on_request: OnRequest, tasks: anyio.abc.TaskGroup) -> bool:
        """Answer a request; False when it is refused or ignored instead."""
        from toolbridge.servers.jsonrpc import request_key

        wire_id, params = message.get("id"), message.get("params")
        key = request_key(wire_id)
        if key is None or key in self._under_way:
            return False  # an answer could not be told apart from another's
        if params is not None and not isinstance(params, dict):
            self._send_error(wire_id, INVALID_PARAMS, "params must be an object")
            return False
        if len(self._under_way) >= self._most or self._bytes + size > self._most_bytes:
            self._send_error(wire_id, TOO_MANY_REQUESTS, "Too many requests at once")
            return False
        token = progress_token_from_params(cast("dict[str, Any] | None", params))
        context = InboundContext(self._outbound, key, token)
        scope = anyio.CancelScope()
        self._under_way[key] = scope, context
        self._bytes += size
        tasks.start_soon(self._answer, message, size, scope, context, on_request)
        return True

    def cancel(self, wire_id: object) -> None:
        """The server takes a request back: it is not answered any more."""
        from toolbridge.servers.jsonrpc import request_key

        key = request_key(wire_id)
        if key is not None and key in self._under_way:
            scope, context = self._under_way[key]
            context.cancel_requested.set()
            scope.cancel()

    async def _answer(
        self,
        message: dict[str, Any],
        size: int,
        scope: anyio.CancelScope,
        context: InboundContext,
        on_request: OnRequest,
    ) -> None:
        wire_id, method = message["id"], message["method"]
        try:
            with scope:
                result = await on_request(context, method, message.get("params"))
                if not context.cancel_requested.is_set():
                    self._send({"jsonrpc": "2.0", "id": wire_id, "result": result})
        except Exception as error:
            data = handler_exception_to_error_data(error)
            if data is None:
                _LOGGER.exception("The answer to a server's %r failed", method)
                data = ErrorData(code=INTERNAL_ERROR, message="Internal error")  # not our words: they may name paths
            if not context.cancel_requested.is_set():
                self._send_error(wire_id, data.code, data.message, data.data)
        finally:
            context.closed = True
            self._bytes -= size
            assert context.request_id is not None
            del self._under_way[context.request_id]

    def _send_error(self, wire_id: object, code: int, message: str, data: Any = None) -> None:
        error: dict[str, Any] = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        try:
            self._send({"jsonrpc": "2.0", "id": wire_id, "error": error})
        except MCPError:  # its data can't be written as JSON
            self._send({"jsonrpc": "2.0", "id": wire_id, "error": {"code": code, "message": message}})
