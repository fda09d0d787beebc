"""SECURITY: what a server says over HTTP without being asked: notifications and requests of its own, within bounds."""

from __future__ import annotations

from typing import Any, cast

import anyio.abc
from mcp.shared.dispatcher import OnNotify, OnNotifyIntercept, OnRequest, Outbound, run_notify_intercept

from toolbridge.servers.inbound_requests import InboundContext, InboundRequests, Send
from toolbridge.servers.messages import number_of
from toolbridge.servers.notices import Notice, Notices
from toolbridge.servers.requests_in_flight import RequestsInFlight

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
