"""JSON-RPC framing, one message per line, as a dispatcher of the SDK: the session and all calls go through it.

The SDK's own transport models every message twice and hands it through streams and tasks; here a line is parsed once,
straight into the pending request that it answers. SECURITY: all lines are hostile. No line ends the session, and all
that is kept for a server is bounded: lines, notifications, requests of its own, and bytes that it does not read.
"""

from __future__ import annotations

import gc
import json
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import anyio
import anyio.abc
import anyio.lowlevel
from mcp.shared.dispatcher import CallOptions, Dispatcher, OnNotify, OnNotifyIntercept, OnRequest, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from mcp_types import INTERNAL_ERROR, RequestId

from toolbridge.errors import ServerError
from toolbridge.json_codec import NOT_UTF8, TooDeepError
from toolbridge.servers.failures import BadAnswerError, ChannelClosedError, RequestTimedOutError, UnsendableError
from toolbridge.servers.inbound import InboundMessages, LineProblems, answered_request
from toolbridge.servers.stdio.process import END_BYTES, Line, LineReader, OverlongLine, QueuedLine, SendPipe, WriteQueue

_log = logging.getLogger("toolbridge")
_LARGEST_CODE = 2**31
_COLLECTED_BYTES = 65_536
"""Longer lines are parsed with garbage collection paused."""


def _as_json(value: object) -> dict[Any, Any]:
    """Copy a mapping to a dict for the JSON encoder. Raises TypeError for any other value."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    raise TypeError(f"{type(value).__name__} is no JSON type")


# ASCII only, so that a lone surrogate or a line separator in an argument can't break the line or its encoding.
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_as_json).encode


def encode_line(message: dict[str, Any]) -> bytes:
    """Encode one message as a line of ASCII. Raises `UnsendableError` if it can't be encoded as JSON."""
    try:
        return _encode(message).encode("ascii") + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise UnsendableError(f"can't be written as JSON: {error}") from None


def parse_line(line: Line) -> Any:
    """Parse a line as JSON, leniently, so that one odd byte costs no answer.

    Bytes that aren't UTF-8 become U+FFFD, and a result with such bytes is marked (`NOT_UTF8`). `NaN` and `Infinity` are
    accepted, an integer of more digits than Python converts is infinite, and escaped lone surrogates are kept.

    Raises:
        ValueError: it is not JSON, or (TooDeepError) nested too deeply.
    """
    try:
        text, is_utf8 = str(line, "utf-8"), True
    except UnicodeDecodeError:
        text, is_utf8 = str(line, "utf-8", "replace"), False
    # Of a megabyte of lists, two thirds of the time would go into collections that find nothing: all are in use.
    pause = len(line) > _COLLECTED_BYTES and gc.isenabled()
    if pause:
        gc.disable()
    try:
        message: Any = _parse(text.removeprefix("\ufeff"))
    except RecursionError:
        raise TooDeepError from None
    finally:
        if pause:
            gc.enable()
    if not is_utf8:
        for each in cast("list[Any]", message) if isinstance(message, list) else [message]:
            _mark_not_utf8(each)
    return cast("Any", message)


def _parse(text: str) -> Any:
    """Parse JSON; an integer of too many digits becomes a float. Raises ValueError or RecursionError."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # an integer beyond `sys.get_int_max_str_digits`
        return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> int | float:
    """Parse an integer; as a float, maybe infinite, if it has more digits than Python converts."""
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _mark_not_utf8(message: Any) -> None:
    """Set the `NOT_UTF8` mark in the `_meta` of a message's result, if it has one."""
    result = cast("dict[str, Any]", message).get("result") if isinstance(message, dict) else None
    if isinstance(result, dict):
        fields = cast("dict[str, Any]", result)
        meta: object = fields.get("_meta")
        fields["_meta"] = {**(cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}), NOT_UTF8: True}


def request_message(
    wire_id: RequestId, method: str, params: Mapping[str, Any] | None, *, wants_progress: bool
) -> dict[str, Any]:
    """Build a request; with `wants_progress`, its id is the progress token, too. Copies what it changes of `params`."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": wire_id, "method": method}
    if wants_progress:
        given = params or {}
        message["params"] = {**given, "_meta": {**(given.get("_meta") or {}), "progressToken": wire_id}}
    elif params:
        message["params"] = params
    return message


def notification(method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Build a notification."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


def cancellation(wire_id: RequestId) -> dict[str, Any]:
    """Build the notification that a request is cancelled."""
    params = {"requestId": wire_id, "reason": "the caller no longer waits for the answer"}
    return notification("notifications/cancelled", params)


def request_key(wire_id: object) -> RequestId | None:
    """Return the key under which a request is pending: an id as it was sent, or the same integer as a string.

    None for any other value: in Python `True` and `1.0` are equal to 1, in JSON-RPC they are no ids of ours.
    """
    if type(wire_id) is int:
        return wire_id
    if type(wire_id) is str:
        is_integer = len(wire_id) < 19 and wire_id.isascii() and wire_id.isdigit() and str(int(wire_id)) == wire_id
        return int(wire_id) if is_integer else wire_id
    return None


def outcome_of(answer: dict[str, Any]) -> dict[str, Any] | MCPError:
    """Return, not raise, the result that an answer carries or its error; a malformed answer is a `BadAnswerError`."""
    error = answer.get("error")
    if error is not None:
        return _error_of(error)
    result = answer.get("result")
    if isinstance(result, dict):
        return cast("dict[str, Any]", result)
    if "result" in answer:
        return BadAnswerError("The answer's result is not an object")
    return BadAnswerError("The answer has neither a result nor an error")


def _error_of(error: object) -> MCPError:
    """Build the error of an answer, with values that the SDK's model would refuse replaced."""
    if not isinstance(error, dict):
        return BadAnswerError("The answer's error is not an object")
    fields = cast("dict[str, Any]", error)
    code, message = fields.get("code"), fields.get("message")
    if type(code) is not int or abs(code) > _LARGEST_CODE:
        code = INTERNAL_ERROR
    if not isinstance(message, str) or not message.strip():
        message = "The server gave no message"
    return MCPError(code, message.encode("utf-8", "replace").decode(), fields.get("data"))


_IDS = 2**31  # some servers have no more bits for an id


class PendingRequest:
    """One request that waits for its answer."""

    __slots__ = ("abandoned", "answered", "on_progress", "outcome", "wire_id")

    def __init__(self, wire_id: RequestId, on_progress: ProgressFnT | None) -> None:
        self.wire_id = wire_id
        self.on_progress = on_progress
        self.answered = anyio.Event()
        self.outcome: dict[str, Any] | MCPError | ServerError | None = None
        self.abandoned = False

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Call its progress callback, unless it was abandoned."""
        if self.on_progress is not None and not self.abandoned:
            await self.on_progress(progress, total, message)


class PendingRequests:
    """Pending requests by id. A request leaves with its first answer: a repeated or late one finds no request.

    SECURITY: ids don't count up: an answer that was sent before its request must not match by being the next (T8).
    """

    def __init__(self) -> None:
        self._requests: dict[RequestId, PendingRequest] = {}
        self._last_id = secrets.randbelow(_IDS)
        # Odd, so that no id comes a second time before all have been used.
        self._step = 2**20 + 2 * secrets.randbelow(2**28) + 1

    def new_id(self, chosen: RequestId | None = None) -> RequestId:
        """Return an id that no pending request has; raises ValueError if `chosen` is taken. Registers nothing."""
        if chosen is not None:
            key = request_key(chosen)
            if key is None or key in self._requests:
                raise ValueError(f"request id {chosen!r} is no id, or already in flight")
            return chosen
        while True:
            self._last_id = (self._last_id + self._step) % _IDS
            if self._last_id and self._last_id not in self._requests:  # some servers take 0 for no id
                return self._last_id

    def add(self, request: PendingRequest) -> None:
        """Register a request under its id, to be found by its answer."""
        self._requests[_key(request)] = request

    def progress_callback(self, token: object) -> ProgressFnT | None:
        """Return the callback of the pending request with this progress token; None if there is none."""
        key = request_key(token)
        request = None if key is None else self._requests.get(key)
        return request.report if request is not None and request.on_progress else None

    def answer(self, wire_id: object, outcome: dict[str, Any] | MCPError | ServerError) -> bool:
        """Hand an outcome to the pending request of this id, and remove it; False when there is none."""
        key = request_key(wire_id)
        request = self._requests.pop(key, None) if key is not None else None
        if request is None:
            return False
        request.outcome = outcome
        request.answered.set()
        return True

    def remove(self, request: PendingRequest) -> None:
        """Remove a request that has no answer yet. Raises KeyError if it is not pending."""
        del self._requests[_key(request)]

    def fail_all(self, error: Callable[[], MCPError]) -> None:
        """Remove and fail all requests, each with an error of its own: raising one adds a traceback to it."""
        while self._requests:
            _, request = self._requests.popitem()
            request.outcome = error()
            request.answered.set()


def _key(request: PendingRequest) -> RequestId:
    """Return a request's key, whose id must be valid."""
    key = request_key(request.wire_id)
    assert key is not None
    return key


_MAX_BATCH = 1000
_MAX_LINES_AT_ONCE = 128
"""Lines handled before the event loop's other tasks have their turn."""
_MAX_UNREAD_BYTES = 1024 * 1024
# A pipe's capacity, which may be full when its writer has just exited; Linux allows no more without privileges.
_MAX_LEFT_IN_PIPE = 1024 * 1024
# A process that has closed its stdout has usually exited; its status is known a moment later.
_EXIT_STATUS_SECONDS = 0.2


class LinePipe(SendPipe, Protocol):
    """A pipe to a server, in both directions."""

    async def receive(self) -> bytes:
        """Wait for the next bytes; empty when the stream has ended."""
        ...

    def receive_nowait(self) -> bytes:
        """Bytes that are there already; empty when there are none."""
        ...

    async def attend(self) -> None:
        """Attend the other side until it is gone, even if its stream stays open."""
        ...


class LineDispatcher(Dispatcher[TransportContext]):
    """One session over one pipe; it can't be run again once it has ended."""

    def __init__(self, pipe: LinePipe, message_bytes: int) -> None:
        self.problems = LineProblems()
        self._pipe = pipe
        self._lines = LineReader(message_bytes)
        self._write_queue = WriteQueue(pipe, _MAX_UNREAD_BYTES)
        self._pending = PendingRequests()
        self._inbound = InboundMessages(
            self, self._send_if_room, self._pending.progress_callback, max_bytes=message_bytes, problems=self.problems
        )
        self._running = self._ended = False
        self._over = anyio.Event()
        self._reading = anyio.CancelScope()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request and await its result. Only the answer is awaited: a full pipe blocks no caller.

        Raises:
            ChannelClosedError: the channel has ended, or ends before the answer.
            RequestTimedOutError: `opts["timeout"]` is over.
            BadAnswerError: the answer is malformed.
            MCPError: the server answered with an error, or the request can't be encoded as JSON.
            ServerError: the pipe could not deliver it, or not learn whether it was delivered.
        """
        if self._ended:
            raise ChannelClosedError(sent=False)
        if not self._running:
            raise RuntimeError("send_raw_request was called before run()")
        options: CallOptions = opts or {}
        timeout = options.get("timeout")
        if timeout is not None and timeout <= 0:
            raise RequestTimedOutError(method, timeout)
        await anyio.lowlevel.checkpoint_if_cancelled()  # from here on it may take effect
        request = PendingRequest(self._pending.new_id(options.get("request_id")), options.get("on_progress"))
        wants_progress = request.on_progress is not None
        data = encode_line(request_message(request.wire_id, method, params, wants_progress=wants_progress))
        try:
            line = self._send(data)
        except ChannelClosedError:
            # Until the end's reason is known to the caller that is told of it.
            with anyio.move_on_after(2 * _EXIT_STATUS_SECONDS):
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
                self._abandon(request, line, notify=options.get("cancel_on_abandon", True))
        if request.outcome is None:
            assert timeout is not None
            raise RequestTimedOutError(method, timeout)
        if isinstance(request.outcome, (MCPError, ServerError)):
            raise request.outcome
        return request.outcome

    def fail(self, request_id: object, error: ServerError) -> None:
        """Fail a pending request that the pipe could not deliver; does nothing if it is no longer pending."""
        self._pending.answer(request_id, error)

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,  # noqa: ARG002  # for HTTP only
    ) -> None:
        """Send or queue a notification without waiting; lost if the channel has ended or the server does not read."""
        self._send_if_room(notification(method, params))

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Read until the channel ends; then fail every pending request. A second run raises RuntimeError."""
        if self._running or self._ended:
            raise RuntimeError("a dispatcher runs once")
        self._running = True
        try:
            async with anyio.create_task_group() as tasks:
                self._inbound.open(on_request, on_notify, on_notify_intercept, tasks)
                gone = anyio.Event()
                tasks.start_soon(self._attend, gone)
                tasks.start_soon(self._write_waiting)
                task_status.started()
                with self._reading:
                    while chunk := await self._pipe.receive():
                        await self._take(chunk)
                await self._read_rest()
                with anyio.move_on_after(_EXIT_STATUS_SECONDS):
                    await gone.wait()
                self._end()
                tasks.cancel_scope.cancel()
        finally:
            self._end()

    async def _attend(self, gone: anyio.Event) -> None:
        """Attend the pipe's other side until it is gone; then set `gone` and end the reading."""
        await self._pipe.attend()
        gone.set()
        self._reading.cancel()

    async def _write_waiting(self) -> None:
        """Write queued lines until cancelled; a pipe without a reader ends the reading."""
        try:
            await self._write_queue.write_waiting()
        except OSError:
            self._reading.cancel()

    async def _read_rest(self) -> None:
        """Read what the exited server has left in the pipe; another process may hold its stdout open and write on."""
        left = _MAX_LEFT_IN_PIPE
        while left > 0 and (chunk := self._pipe.receive_nowait()):
            left -= len(chunk)
            await self._take(chunk)
        self._take_line(self._lines.rest())  # a last line needs no newline to be a whole message

    async def _take(self, chunk: bytes) -> None:
        """Handle each line that a chunk completes; yields to other tasks now and then."""
        for number, line in enumerate(self._lines.feed(chunk), 1):
            self._take_line(line)
            if number % _MAX_LINES_AT_ONCE == 0:
                await anyio.lowlevel.cancel_shielded_checkpoint()  # an answer may be among the lines that are left

    def _take_line(self, line: Line | OverlongLine) -> None:
        """Handle a line, and log any exception. Blank lines are ignored."""
        try:
            if isinstance(line, OverlongLine):
                self._drop(line.head, line.tail, f"The answer is too long: {line.size} bytes")
            elif line and not line.isspace():
                self._take_messages(line)
        except Exception:  # a mistake of ours costs one message, not the session
            _log.exception("A server's message could not be handled")

    def _take_messages(self, line: Line) -> None:
        """Route the message, or batch of messages, of a line; a malformed one is counted as a problem."""
        try:
            message = parse_line(line)
        except ValueError as error:
            too_deep = bytes(line) if isinstance(error, TooDeepError) else b""
            self._drop(line, line[-END_BYTES:], f"The answer is not JSON: {error}", too_deep)
            return
        messages = cast("list[Any]", message) if isinstance(message, list) else [message]
        size = len(line) // max(1, len(messages))
        understood = 0 < len(messages) <= _MAX_BATCH
        for item in messages[:_MAX_BATCH]:
            understood &= isinstance(item, dict) and self._take_message(cast("dict[str, Any]", item), size)
        if not understood:
            self.problems.add_line(line)

    def _drop(self, head: Line, tail: Line, problem: str, too_deep: bytes = b"") -> None:
        """Drop an unreadable line, and fail the one request that it answers."""
        self.problems.add_line(head)
        self._pending.answer(answered_request(head, tail), BadAnswerError(problem, too_deep=too_deep))

    def _take_message(self, message: dict[str, Any], size: int) -> bool:
        """Route a message to its pending request or to the session's handlers; False if it is malformed."""
        if message.get("jsonrpc") != "2.0":
            return False
        if "method" in message:
            return self._inbound.take(message, size)
        if "id" not in message:
            return False
        if self._pending.answer(message["id"], outcome_of(message)):
            return True
        self.problems.stray_answers += 1
        # An error without an id: the server could not read a message of ours, and its text may explain a timeout.
        return message["id"] is not None

    def _end(self) -> None:
        """Mark the channel as ended, and fail all pending requests. Safe to repeat."""
        self._ended = True
        self._over.set()
        self._pending.fail_all(ChannelClosedError)

    def _send(self, data: bytes) -> QueuedLine | None:
        """Write a line, or queue and return it. If nobody reads, ends the reading and raises `ChannelClosedError`."""
        try:
            return self._write_queue.send(data)
        except OSError:
            self._reading.cancel()
            raise ChannelClosedError("The server no longer reads its stdin", sent=False) from None

    def _send_if_room(self, message: dict[str, Any], *, always: bool = False) -> None:
        """Write or queue a message; dropped, and counted, if the queue is full (unless `always`) or the pipe closed."""
        data = encode_line(message)
        try:
            if self._write_queue.is_full and not always:
                self.problems.unsent_messages += 1
            elif not self._ended:
                self._send(data)
        except ChannelClosedError:
            self.problems.unsent_messages += 1

    def _abandon(self, request: PendingRequest, line: QueuedLine | None, *, notify: bool) -> None:
        """Remove a request and withdraw its queued line; if it was sent, `notify` the server of its cancellation."""
        request.abandoned = True
        self._pending.remove(request)
        if line is not None and self._write_queue.withdraw(line):
            return  # the server never saw it
        if notify:  # even if the queue is full: there are never more of these than requests that were sent
            self._send_if_room(cancellation(request.wire_id), always=True)
