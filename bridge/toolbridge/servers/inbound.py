"""SECURITY: messages that a server sends unasked: requests, notifications and progress, each within bounds."""

from __future__ import annotations

import logging
import math
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.abc
import mcp_types as types
from mcp.client._input_required import InputRequiredRoundsExceededError, run_input_required_driver
from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest, Outbound, run_notify_intercept
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data, progress_token_from_params
from mcp.shared.transport_context import TransportContext
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, ErrorData, ProgressToken, RequestId

from toolbridge.concurrency import is_foreign
from toolbridge.servers.requests import ElicitationRequest, ServerRequests
from toolbridge.tools.binding import OnProgress
from toolbridge.trust.sanitise import for_error, masked

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT

_log = logging.getLogger("toolbridge")

MAX_PROGRESS_MESSAGE = 200
PROGRESS_BURST = 20
PROGRESS_PER_SECOND = 10.0


def progress_callback(report: OnProgress, secrets: frozenset[str]) -> ProgressFnT:
    """Wrap a progress callback for the SDK: messages truncated, secrets masked, calls above a rate limit dropped."""
    left, before = float(PROGRESS_BURST), monotonic()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        """Report progress, unless the token bucket is empty or the number is not finite."""
        nonlocal left, before
        now = monotonic()
        left, before = min(PROGRESS_BURST, left + (now - before) * PROGRESS_PER_SECOND), now
        if left < 1 or not math.isfinite(progress):
            return
        left -= 1
        whole = total if total is not None and math.isfinite(total) else None
        report(progress, whole, for_error(message, secrets, limit=MAX_PROGRESS_MESSAGE) if message else "")

    return on_progress


MAX_QUESTIONS = 16
"""Questions in one answer, all asked at the same time."""

Ask = Callable[[str, types.InputRequest], Awaitable[types.InputResponse | types.ErrorData]]
SendRequest = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


async def answer_questions(
    first: dict[str, Any], params: dict[str, Any], *, ask: Ask, send: SendRequest
) -> dict[str, Any]:
    """Ask the questions that a call was answered with, and repeat the call with their answers until it has a result.

    Raises:
        MCPError: a question was refused, or the server refused.
        ValueError: the server kept asking, or its questions are malformed.
    """

    async def again(
        responses: types.InputResponses | None, state: str | None
    ) -> dict[str, Any] | types.InputRequiredResult:
        """Repeat the call with answers and state; return its result, or the further questions."""
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
    """Parse the questions in a call's result. Raises ValueError if they are malformed or too many."""
    questions: object = result.get("inputRequests")
    if isinstance(questions, dict) and len(cast("dict[str, Any]", questions)) > MAX_QUESTIONS:
        raise ValueError(f"it asked more than {MAX_QUESTIONS} questions at once")
    return types.InputRequiredResult.model_validate(result)


def session_callbacks(requests: ServerRequests, server: str) -> dict[str, Any]:
    """Build the SDK's callbacks from the host's handlers; without a handler, the capability is not announced."""
    callbacks: dict[str, Any] = {}
    if requests.elicit is not None:
        elicit = requests.elicit

        async def answer_elicitation(params: types.ElicitRequestParams) -> types.ElicitResult:
            """Have the host's handler answer an elicitation, and validate its answer."""
            raw = params.model_dump(by_alias=True, mode="json", exclude_none=True)
            request = ElicitationRequest(server, raw.get("message", ""), raw.get("requestedSchema"), raw.get("url"))
            answer = await elicit(request)
            content = None if answer.content is None else dict(answer.content)
            return types.ElicitResult.model_validate({"action": answer.action, "content": content})

        callbacks["elicitation_callback"] = _guarded(server, "elicitation", answer_elicitation)
    if requests.sample is not None:
        sample = requests.sample

        async def answer_sampling(params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
            answer = await sample(server, params.model_dump(by_alias=True, mode="json", exclude_none=True))
            return types.CreateMessageResult.model_validate(dict(answer))

        callbacks["sampling_callback"] = _guarded(server, "sampling", answer_sampling)
    if requests.list_roots is not None:
        list_roots = requests.list_roots

        async def answer_roots() -> types.ListRootsResult:
            roots = tuple(await list_roots(server))
            return types.ListRootsResult.model_validate({"roots": [{"uri": uri} for uri in roots]})

        callbacks["list_roots_callback"] = _guarded(server, "roots", answer_roots)
    return callbacks


def _guarded(server: str, kind: str, answer: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Wrap a handler: its exception is logged, and becomes an error that tells the server nothing of the host."""

    async def callback(_context: object, *params: Any) -> Any:
        """Call the handler without the context; a failure is returned as `ErrorData`, not raised."""
        try:
            return await answer(*params)
        except BaseException as error:
            if not isinstance(error, Exception) and not is_foreign(error):
                raise
            _log.warning("The %s handler failed for server %r: %s", kind, server, for_error(repr(error)))
            return types.ErrorData(code=types.INTERNAL_ERROR, message=f"The host's {kind} handler failed")

    return callback


_EXCERPT = 1000


@dataclass(slots=True)
class LineProblems:
    """Counts of a server's protocol errors, for error messages, in bounded memory. None of them ends a session."""

    lines: int = 0
    """Lines that are not MCP: banners, telemetry, broken or overlong messages."""
    stray_answers: int = 0
    """Answers to no pending request: unknown, repeated and late ones."""
    dropped_notifications: int = 0
    refused_requests: int = 0
    unsent_messages: int = 0
    """Our answers and notifications for which a server that does not read had no room."""
    _recent: bytearray = field(default_factory=bytearray)

    @property
    def recent(self) -> str:
        """The beginnings of the last few lines that are not MCP. Not sanitised."""
        return self._recent[-3 * _EXCERPT :].decode("utf-8", "replace")

    def add_line(self, line: bytes | bytearray) -> None:
        """Count a line that is not MCP, and keep its beginning in bounded memory."""
        self.lines += 1
        self._recent += b"\n"
        self._recent += line[:_EXCERPT].strip()
        if len(self._recent) > 100 * _EXCERPT:  # seldom: a server may send little else
            del self._recent[: -3 * _EXCERPT]

    def summary(self, secrets: frozenset[str] = frozenset()) -> str:
        """Return a clause for an error message with the last bad line; "" if there is none. Not sanitised.

        Secrets are masked before the last line is taken: one may span several lines.
        """
        if not self.lines:
            return ""
        last = masked(self.recent, secrets).rpartition("\n")[2]
        many = f"{self.lines} lines that are not MCP messages, the last" if self.lines > 1 else "a line that is not MCP"
        return f"its stdout had {many}: {last}"


@dataclass(frozen=True, slots=True)
class QueuedNotification:
    """A notification and its handler."""

    method: str
    size: int
    """Bytes of its line."""
    handle: Callable[[], Awaitable[None]]

    @property
    def is_list_change(self) -> bool:
        """Whether a second one in the queue is redundant, while losing the only one would lose a change."""
        return self.method.endswith("/list_changed")


class NotificationQueue:
    """Bounded queue, handled one by one in order; when full, the newest notification is dropped."""

    def __init__(self, limit: int, max_bytes: int) -> None:
        self._limit = limit
        self._max_bytes = max_bytes
        self._waiting: deque[QueuedNotification] = deque()
        self._bytes = 0
        self._filled = anyio.Event()

    def add(self, notification: QueuedNotification) -> int:
        """Queue a notification, and return how many were dropped: itself, if full, or older ones for a list change.

        A list change that is queued already is left out, and counts as none.
        """
        lost = 0
        if notification.is_list_change:
            if any(waiting.method == notification.method for waiting in self._waiting):
                return 0
            while self._waiting and not self._has_room(notification.size):
                self._pop()
                lost += 1
        elif self._waiting and not self._has_room(notification.size):
            return 1
        self._waiting.append(notification)
        self._bytes += notification.size
        self._filled.set()
        return lost

    async def handle_all(self) -> None:
        """Handle notifications one by one until cancelled; waits for new ones. A handler's exception is logged."""
        while True:
            if not self._waiting:
                self._filled = anyio.Event()
                await self._filled.wait()
            notification = self._pop()
            try:
                await notification.handle()
            except Exception:
                _log.exception("Handling a server's %r failed", notification.method)

    def _has_room(self, size: int) -> bool:
        return len(self._waiting) < self._limit and self._bytes + size <= self._max_bytes

    def _pop(self) -> QueuedNotification:
        """Remove and return the oldest notification."""
        notification = self._waiting.popleft()
        self._bytes -= notification.size
        return notification


TOO_MANY_REQUESTS = -32000
_MAX_REQUESTS = 16
_MAX_NOTIFICATIONS = 256
_MAX_NOTIFICATION_BYTES = 1024 * 1024

_STDIO = TransportContext(kind="stdio", can_send_request=True)

Send = Callable[[dict[str, Any]], None]
"""Sends a message if there is room for it."""


@dataclass(slots=True)
class InboundContext:
    """The SDK's `DispatchContext` of one inbound message; a back channel until the message is handled."""

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
        """Send the server a request and await its result. Raises `NoBackChannelError` once its message is handled."""
        if self.closed:
            raise NoBackChannelError(method)
        return await self.outbound.send_raw_request(method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send the server a notification; does nothing once its message is handled."""
        if not self.closed:
            await self.outbound.notify(method, params, opts)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress to the server; does nothing unless it asked for progress and the message is being handled."""
        if self.progress_token is not None:
            given = {"total": total, "message": message}
            params = {"progressToken": self.progress_token, "progress": progress}
            params |= {key: value for key, value in given.items() if value is not None}
            await self.notify("notifications/progress", params)


class InboundMessages:
    """Routes requests and notifications of a server to the session's handlers. Never waits.

    Each request is answered in a task of its own, up to a limit. Notifications wait in a bounded queue, so that a flood
    of them delays no answer.
    """

    def __init__(
        self,
        outbound: Outbound,
        send: Send,
        progress: Callable[[object], ProgressFnT | None],
        *,
        max_bytes: int,
        problems: LineProblems | None = None,
    ) -> None:
        self._outbound = outbound
        self._send = send
        self._progress = progress
        """The progress callback of the pending request with this token."""
        self._max_bytes = max_bytes
        self._problems = problems or LineProblems()
        self._queue = NotificationQueue(_MAX_NOTIFICATIONS, _MAX_NOTIFICATION_BYTES)
        self._bytes = 0
        self._answering: dict[RequestId, tuple[anyio.CancelScope, InboundContext]] = {}
        self._handlers: tuple[OnRequest, OnNotify, OnNotifyIntercept | None, anyio.abc.TaskGroup] | None = None

    def open(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None,
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        """Begin to route messages to these handlers, in tasks of this group; before, all are refused."""
        self._handlers = on_request, on_notify, on_notify_intercept, tasks
        tasks.start_soon(self._queue.handle_all)

    def close(self) -> None:
        """Refuse all messages from now on; requests under way continue."""
        self._handlers = None

    def take(self, message: dict[str, Any], size: int) -> bool:
        """Route a message with a method without waiting; False if it is malformed or routing is closed.

        A request is answered in a task of its own, or refused; a notification is queued, or dropped when it is full.
        """
        method, params = message.get("method"), message.get("params")
        if self._handlers is None or not isinstance(method, str) or message.get("jsonrpc") != "2.0":
            return False
        if "id" in message:
            self._problems.refused_requests += not self._begin(message, size)
            return True
        if params is not None and not isinstance(params, dict):
            return False
        self._take_notification(method, cast("dict[str, Any] | None", params), size)
        return True

    def _take_notification(self, method: str, params: dict[str, Any] | None, size: int) -> None:
        """Act on a cancellation or progress, then queue a notification for the session unless it intercepts it."""
        assert self._handlers is not None
        _, on_notify, intercept, _ = self._handlers
        if params is not None and method == "notifications/cancelled":
            self._cancel(params.get("requestId"))
        elif params is not None and method == "notifications/progress":
            self._take_progress(params, size)
        if not run_notify_intercept(intercept, method, params):
            context = InboundContext(self._outbound)

            async def handle() -> None:
                await on_notify(context, method, params)

            self._enqueue(method, size, handle)

    def _take_progress(self, params: dict[str, Any], size: int) -> None:
        """Queue a report to the pending request of this token; ignored if there is none or the number is malformed."""
        report, progress = self._progress(params.get("progressToken")), _float(params.get("progress"))
        total, message = _float(params.get("total")), params.get("message")
        if report is None or progress is None:
            return

        async def handle() -> None:
            await report(progress, total, message if isinstance(message, str) else None)

        self._enqueue("notifications/progress", size, handle)

    def _enqueue(self, method: str, size: int, handle: Callable[[], Awaitable[None]]) -> None:
        self._problems.dropped_notifications += self._queue.add(QueuedNotification(method, size, handle))

    def _begin(self, message: dict[str, Any], size: int) -> bool:
        """Start a task that answers a request; False when it is refused with an error, or ignored for its id."""
        from toolbridge.servers.jsonrpc import request_key

        assert self._handlers is not None
        on_request, _, _, tasks = self._handlers
        wire_id, params = message.get("id"), message.get("params")
        key = request_key(wire_id)
        if key is None or key in self._answering:
            return False  # an answer could not be told apart from another's
        if params is not None and not isinstance(params, dict):
            self._send_error(wire_id, INVALID_PARAMS, "params must be an object")
            return False
        if len(self._answering) >= _MAX_REQUESTS or self._bytes + size > self._max_bytes:
            self._send_error(wire_id, TOO_MANY_REQUESTS, "Too many requests at once")
            return False
        token = progress_token_from_params(cast("dict[str, Any] | None", params))
        context = InboundContext(self._outbound, key, token)
        scope = anyio.CancelScope()
        self._answering[key] = scope, context
        self._bytes += size
        tasks.start_soon(self._answer, message, size, scope, context, on_request)
        return True

    def _cancel(self, wire_id: object) -> None:
        """Cancel the answering of a request, which then gets no answer; ignores unknown ids."""
        from toolbridge.servers.jsonrpc import request_key

        key = request_key(wire_id)
        if key is not None and key in self._answering:
            scope, context = self._answering[key]
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
        """Await the handler and send its result, or an error without the host's own text; nothing if cancelled."""
        wire_id, method = message["id"], message["method"]
        try:
            with scope:
                result = await on_request(context, method, message.get("params"))
                if not context.cancel_requested.is_set():
                    self._send({"jsonrpc": "2.0", "id": wire_id, "result": result})
        except Exception as error:
            data = handler_exception_to_error_data(error)
            if data is None:
                _log.exception("The answer to a server's %r failed", method)
                data = ErrorData(code=INTERNAL_ERROR, message="Internal error")  # the error's own text may name paths
            if not context.cancel_requested.is_set():
                self._send_error(wire_id, data.code, data.message, data.data)
        finally:
            context.closed = True
            self._bytes -= size
            assert context.request_id is not None
            del self._answering[context.request_id]

    def _send_error(self, wire_id: object, code: int, message: str, data: Any = None) -> None:
        """Send an error as answer; without its data if that can't be encoded."""
        error: dict[str, Any] = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        try:
            self._send({"jsonrpc": "2.0", "id": wire_id, "error": error})
        except MCPError:  # its data can't be encoded as JSON
            self._send({"jsonrpc": "2.0", "id": wire_id, "error": {"code": code, "message": message}})


def _float(value: object) -> float | None:
    """Convert a number to a float; None for a boolean, another type, or an integer too large."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


# Where the two usual serialisations have the id, anchored so that an "id" inside a result is never mistaken for it.
_ID_AT_HEAD = re.compile(
    rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"?(\d{1,18})"?\s*,\s*"(?:result|error)"\s*:'
)
_ID_AT_TAIL = re.compile(rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"?(\d{1,18})"?\s*\}\s*\Z')
_RESULT_AT_HEAD = re.compile(rb'\s*\{\s*"(?:result|error)"\s*:')


def answered_request(head: bytes | bytearray, tail: bytes | bytearray) -> int | None:
    """Return the id of the request that an unreadable line answers, from the line's two ends; None when in doubt."""
    found = _ID_AT_HEAD.match(head) or (_RESULT_AT_HEAD.match(head) and _ID_AT_TAIL.search(tail))
    return int(found[1]) if found else None
