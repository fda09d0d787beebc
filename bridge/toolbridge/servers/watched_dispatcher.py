"""A dispatcher with what we need around the SDK's session: the end seen, floods kept out, requests declined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.abc
from mcp.shared.dispatcher import CallOptions, DispatchContext, Dispatcher, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from mcp_types import METHOD_NOT_FOUND

from toolbridge.servers.channel import ChannelClosedError
from toolbridge.servers.server_requests import Declines, ServerRequests


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
