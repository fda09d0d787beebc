"""Requests that a server makes of us: each answered in a task of its own, so many at once and no more."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import anyio.abc
from mcp.shared.dispatcher import CallOptions, OnRequest, Outbound
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data, progress_token_from_params
from mcp.shared.transport_context import TransportContext
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, ErrorData, ProgressToken, RequestId

from toolbridge.servers.messages import request_key

TOO_MANY_REQUESTS = -32000

_STDIO = TransportContext(kind="stdio", can_send_request=True)
_LOGGER = logging.getLogger("toolbridge")

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
