"""SECURITY: where each line of a server goes. A line may be anything; it costs itself at most.

Answers go straight into the slot of their request. Notifications wait in a bounded line of their own, so that a flood
of them holds up no answer. Requests of the server get a task each, up to a bound.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, cast

import anyio.abc
import anyio.lowlevel
from mcp.shared.dispatcher import OnNotify, OnNotifyIntercept, OnRequest, Outbound, run_notify_intercept

from toolbridge.servers.channel import BadAnswerError
from toolbridge.servers.inbound_requests import InboundContext, InboundRequests
from toolbridge.servers.line_problems import LineProblems
from toolbridge.servers.line_reader import EDGE_BYTES, Line, LineReader, OverlongLine
from toolbridge.servers.messages import TooDeepError, answered_request, number_of, outcome_of, parse_line
from toolbridge.servers.notices import Notice, Notices
from toolbridge.servers.pending_requests import PendingRequests

_MOST_IN_BATCH = 1000
_MOST_AT_ONCE = 128
"""Lines; then the event loop's other tasks have their turn."""

_LOGGER = logging.getLogger("toolbridge")


@dataclass(frozen=True, slots=True)
class Handlers:
    """What a session does with what the server sends of its own accord."""

    on_request: OnRequest
    on_notify: OnNotify
    on_notify_intercept: OnNotifyIntercept | None
    tasks: anyio.abc.TaskGroup
    """Where requests are answered."""


class InboundLines:
    """Takes the bytes of a server apart and sends each message where it belongs. Waits for its next turn only."""

    def __init__(
        self,
        *,
        lines: LineReader,
        pending: PendingRequests,
        requests: InboundRequests,
        notices: Notices,
        outbound: Outbound,
        problems: LineProblems,
    ) -> None:
        self._lines = lines
        self._pending = pending
        self._requests = requests
        self._notices = notices
        self._outbound = outbound
        self._problems = problems

    async def take(self, chunk: bytes, handlers: Handlers) -> None:
        """The next bytes."""
        for number, line in enumerate(self._lines.feed(chunk), 1):
            self._take_safely(line, handlers)
            if number % _MOST_AT_ONCE == 0:
                await anyio.lowlevel.cancel_shielded_checkpoint()  # an answer may be among the lines that are left

    def take_rest(self, handlers: Handlers) -> None:
        """The stream has ended: a last line needs no newline to be a whole message."""
        self._take_safely(self._lines.rest(), handlers)

    def _take_safely(self, line: Line | OverlongLine, handlers: Handlers) -> None:
        try:
            self._take_line(line, handlers)
        except Exception:  # a mistake of ours costs one message, not the session
            _LOGGER.exception("A server's message could not be handled")

    def _take_line(self, line: Line | OverlongLine, handlers: Handlers) -> None:
        if isinstance(line, OverlongLine):
            self._drop(line.head, line.tail, f"The answer is too long: {line.size} bytes")
            return
        if not line or line.isspace():
            return
        try:
            message = parse_line(line)
        except ValueError as error:
            too_deep = bytes(line) if isinstance(error, TooDeepError) else b""
            self._drop(line, line[-EDGE_BYTES:], f"The answer is not JSON: {error}", too_deep)
            return
        # A batch is an array of messages.
        messages = cast("list[Any]", message) if isinstance(message, list) else [message]
        size = len(line) // max(1, len(messages))
        understood = 0 < len(messages) <= _MOST_IN_BATCH
        for item in messages[:_MOST_IN_BATCH]:
            understood &= isinstance(item, dict) and self._take_message(cast("dict[str, Any]", item), size, handlers)
        if not understood:
            self._problems.add_line(line)

    def _drop(self, head: Line, tail: Line, problem: str, too_deep: bytes = b"") -> None:
        """A line that can't be read costs that line, and the one request that it was the answer to."""
        self._problems.add_line(head)
        self._pending.answer(answered_request(head, tail), BadAnswerError(problem, too_deep=too_deep))

    def _take_message(self, message: dict[str, Any], size: int, handlers: Handlers) -> bool:
        """Whether it was a message that can be understood."""
        if message.get("jsonrpc") != "2.0":
            return False
        if "method" not in message:
            return self._take_answer(message)
        method, params = message["method"], message.get("params")
        if not isinstance(method, str):
            return False
        if "id" in message:
            if not self._requests.begin(message, size, handlers.on_request, handlers.tasks):
                self._problems.refused_requests += 1
            return True
        if params is not None and not isinstance(params, dict):
            return False
        self._take_notification(method, cast("dict[str, Any] | None", params), size, handlers)
        return True

    def _take_answer(self, message: dict[str, Any]) -> bool:
        if "id" not in message:
            return False
        if self._pending.answer(message["id"], outcome_of(message)):
            return True
        self._problems.stray_answers += 1
        # An error for nobody: the server could not read what it was sent, and its words may explain a timeout.
        return message["id"] is not None

    def _take_notification(self, method: str, params: dict[str, Any] | None, size: int, handlers: Handlers) -> None:
        if params is not None:
            if method == "notifications/cancelled":
                self._requests.cancel(params.get("requestId"))
            elif method == "notifications/progress":
                self._take_progress(params, size)
        if run_notify_intercept(handlers.on_notify_intercept, method, params):
            return
        context = InboundContext(self._outbound)

        async def handle() -> None:
            await handlers.on_notify(context, method, params)

        self._problems.dropped_notifications += self._notices.add(Notice(method, size, handle))

    def _take_progress(self, params: dict[str, Any], size: int) -> None:
        request = self._pending.find(params.get("progressToken"))
        progress, total, message = params.get("progress"), params.get("total"), params.get("message")
        done = number_of(progress)
        if request is None or request.on_progress is None or done is None:
            return
        report = request.on_progress

        async def handle() -> None:
            if not request.abandoned:
                await report(done, number_of(total), message if isinstance(message, str) else None)

        notice = Notice("notifications/progress", size, handle)
        self._problems.dropped_notifications += self._notices.add(notice)
