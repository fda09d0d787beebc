"""JSON-RPC in lines, as a dispatcher of the SDK: the session and our calls go through here.

The SDK's own transport models every message twice and hands it through streams and tasks; here a line is parsed once,
straight into the slot of the request that it answers. No line ends the session, and what is kept for a server is
bounded: lines, notifications, requests of its own, and what it does not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import anyio
import anyio.abc
import anyio.lowlevel
from mcp.shared.dispatcher import CallOptions, Dispatcher, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext

from toolbridge.errors import ServerError
from toolbridge.servers.channel import ChannelClosedError, RequestTimedOutError
from toolbridge.servers.inbound_lines import Handlers, InboundLines
from toolbridge.servers.inbound_requests import InboundRequests
from toolbridge.servers.line_problems import LineProblems
from toolbridge.servers.line_reader import LineReader
from toolbridge.servers.messages import encode_line
from toolbridge.servers.notices import Notices
from toolbridge.servers.outbox import Outbox, SendPipe, WaitingLine
from toolbridge.servers.pending_requests import PendingRequest, PendingRequests

_MOST_REQUESTS = 16
_MOST_NOTICES = 256
_MOST_NOTICE_BYTES = 1024 * 1024
_MOST_UNREAD_BYTES = 1024 * 1024
# What a pipe can hold when its writer has just gone; Linux allows no more without privileges.
_MOST_LEFT_IN_PIPE = 1024 * 1024
# A process that has closed its stdout has usually ended; how, is known a moment later.
_SECONDS_TO_LEARN_HOW = 0.2


class LinePipe(SendPipe, Protocol):
    """The other side of a channel."""

    async def receive(self) -> bytes:
        """The next bytes; none when the stream has ended."""
        ...

    def receive_nowait(self) -> bytes:
        """Bytes that are there already; none when there are not."""
        ...

    async def attend(self) -> None:
        """Look after the other side; returns when it is gone, also where its stream stays open."""
        ...


class LineDispatcher(Dispatcher[TransportContext]):
    """One session over one pipe; it can't be run again once it has ended."""

    def __init__(self, pipe: LinePipe, message_bytes: int) -> None:
        self.problems = LineProblems()
        self._pipe = pipe
        self._outbox = Outbox(pipe, _MOST_UNREAD_BYTES)
        self._pending = PendingRequests()
        self._notices = Notices(_MOST_NOTICES, _MOST_NOTICE_BYTES)
        self._inbound = InboundLines(
            lines=LineReader(message_bytes),
            pending=self._pending,
            requests=InboundRequests(self, self._send_if_room, _MOST_REQUESTS, message_bytes),
            notices=self._notices,
            outbound=self,
            problems=self.problems,
        )
        self._running = self._ended = False
        self._over = anyio.Event()
        self._reading = anyio.CancelScope()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request and await its result. Only the answer is waited for: a full pipe blocks nobody.

        Raises:
            ChannelClosedError: the channel has ended, or ends before the answer.
            RequestTimedOutError: `opts["timeout"]` is over.
            BadAnswerError: the answer is none.
            MCPError: the server answered with an error, or the request can't be written as JSON.
            ServerError: the pipe could not send it, or not learn whether it was taken.
        """
        if self._ended:
            raise ChannelClosedError(sent=False)
        if not self._running:
            raise RuntimeError("send_raw_request was called before run()")
        options: CallOptions = opts if opts is not None else {}
        timeout = options.get("timeout")
        if timeout is not None and timeout <= 0:
            raise RequestTimedOutError(method, timeout)
        await anyio.lowlevel.checkpoint_if_cancelled()  # from here on it may take effect
        request = PendingRequest(self._pending.new_id(options.get("request_id")), options.get("on_progress"))
        data = encode_line(_message(request, method, params))
        try:
            line = self._send(data)
        except ChannelClosedError:
            # Whoever is told of the end can then ask how it came to it.
            with anyio.move_on_after(2 * _SECONDS_TO_LEARN_HOW):
                await self._over.wait()
            raise
        self._pending.add(request)
        try:
            if timeout is None:
                await request.answered.wait()
            else:
                with anyio.move_on_after(timeout):
                    await request.answered.wait()
        finally:
            # No await here: the caller may be in the middle of being cancelled.
            if request.outcome is None:
                self._abandon(request, line, tell=options.get("cancel_on_abandon", True))
        if request.outcome is None:
            assert timeout is not None
            raise RequestTimedOutError(method, timeout)
        if isinstance(request.outcome, (MCPError, ServerError)):
            raise request.outcome
        return request.outcome

    def fail(self, request_id: object, error: ServerError) -> None:
        """End a request that the pipe could not bring to the server, if it still waits."""
        self._pending.answer(request_id, error)

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,  # noqa: ARG002  # of HTTP's concern only
    ) -> None:
        """Send a notification; lost where the channel has ended or the server does not read."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self._send_if_room(message)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Read until the channel ends; then every request that waits fails at once."""
        if self._running or self._ended:
            raise RuntimeError("a dispatcher runs once")
        self._running = True
        try:
            async with anyio.create_task_group() as tasks:
                handlers = Handlers(on_request, on_notify, on_notify_intercept, tasks)
                gone = anyio.Event()
                tasks.start_soon(self._attend, gone)
                tasks.start_soon(self._write_waiting)
                tasks.start_soon(self._notices.handle_all)
                task_status.started()
                with self._reading:
                    while chunk := await self._pipe.receive():
                        await self._inbound.take(chunk, handlers)
                await self._read_rest(handlers)
                with anyio.move_on_after(_SECONDS_TO_LEARN_HOW):
                    await gone.wait()
                self._end()
                tasks.cancel_scope.cancel()
        finally:
            self._end()

    async def _attend(self, gone: anyio.Event) -> None:
        await self._pipe.attend()
        gone.set()
        self._reading.cancel()

    async def _write_waiting(self) -> None:
        try:
            await self._outbox.write_waiting()
        except OSError:
            self._reading.cancel()

    async def _read_rest(self, handlers: Handlers) -> None:
        """What the server wrote before it went; whoever else holds its stdout open may write on, to nobody."""
        left = _MOST_LEFT_IN_PIPE
        while left > 0 and (chunk := self._pipe.receive_nowait()):
            left -= len(chunk)
            await self._inbound.take(chunk, handlers)
        self._inbound.take_rest(handlers)

    def _end(self) -> None:
        self._ended = True
        self._over.set()
        self._pending.fail_all(ChannelClosedError)

    def _send(self, data: bytes) -> WaitingLine | None:
        try:
            return self._outbox.send(data)
        except OSError:
            # Answers to earlier requests may still be in the pipe: run() takes them before it ends.
            self._reading.cancel()
            raise ChannelClosedError("The server no longer reads its stdin", sent=False) from None

    def _send_if_room(self, message: dict[str, Any]) -> None:
        data = encode_line(message)
        if self._outbox.is_full:
            self.problems.unsent_messages += 1
        else:
            self._send_if_open(data)

    def _send_if_open(self, data: bytes) -> None:
        try:
            if not self._ended:
                self._send(data)
        except ChannelClosedError:
            self.problems.unsent_messages += 1

    def _abandon(self, request: PendingRequest, line: WaitingLine | None, *, tell: bool) -> None:
        self._pending.abandon(request)
        if line is not None and self._outbox.withdraw(line):
            return  # the server never saw it
        if tell:
            params = {"requestId": request.wire_id, "reason": "nobody waits for the answer any more"}
            # Room or not: there are never more of these than requests that the pipe took.
            self._send_if_open(encode_line({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))


def _message(request: PendingRequest, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": request.wire_id, "method": method}
    if request.on_progress is not None:
        given = params or {}
        message["params"] = {**given, "_meta": {**(given.get("_meta") or {}), "progressToken": request.wire_id}}
    elif params:
        message["params"] = params
    return message
