"""JSON-RPC in lines, as a dispatcher of the SDK: the session and our calls go through here.

The SDK's own transport models every message twice and hands it through streams and tasks; here a line is parsed once,
straight into the slot of the request that it answers. No line ends the session, and what is kept for a server is
bounded: lines, notifications, requests of its own, and what it does not read.
"""

from __future__ import annotations

import gc
import json
import logging
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import anyio
import anyio.abc
import anyio.lowlevel
from mcp.shared.dispatcher import (
    CallOptions,
    Dispatcher,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    Outbound,
    ProgressFnT,
    run_notify_intercept,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from mcp_types import INTERNAL_ERROR, RequestId

from toolbridge.errors import ServerError
from toolbridge.json_codec import NOT_UTF8
from toolbridge.servers.failures import BadAnswerError, ChannelClosedError, RequestTimedOutError, UnsendableError
from toolbridge.servers.inbound import InboundContext, InboundRequests, LineProblems, Notice, Notices
from toolbridge.servers.stdio.process import EDGE_BYTES, Line, LineReader, Outbox, OverlongLine, SendPipe, WaitingLine

# SECURITY: decodes one JSON-RPC message of a server. All of it is hostile; nothing here raises but `ValueError`.
#
# Decoding is lenient, so that one odd byte costs no answer: bytes that aren't UTF-8 become U+FFFD, `NaN` and
# `Infinity` are accepted as Python reads them, an integer of more digits than Python converts is infinite, and lone
# surrogates written as escapes stay in their strings. Later layers decide.


_LARGEST_CODE = 2**31
_COLLECTED_BYTES = 65_536
"""Up to here, garbage is collected while a line is parsed."""


def _as_json(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    raise TypeError(f"{type(value).__name__} is no JSON type")


# ASCII only, so that a lone surrogate or a line separator in an argument can't break the line or its encoding.
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_as_json).encode

# Where the two usual serialisations have the id, anchored so that an "id" inside a result is never taken for it.
_ID_AT_HEAD = re.compile(
    rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"?(\d{1,18})"?\s*,\s*"(?:result|error)"\s*:'
)
_ID_AT_TAIL = re.compile(rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"?(\d{1,18})"?\s*\}\s*\Z')
_RESULT_AT_HEAD = re.compile(rb'\s*\{\s*"(?:result|error)"\s*:')


def encode_line(message: dict[str, Any]) -> bytes:
    """One message of ours as a line.

    Raises:
        UnsendableError: it can't be written as JSON.
    """
    try:
        return _encode(message).encode("ascii") + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise UnsendableError(f"can't be written as JSON: {error}") from None


TOO_DEEP = f"nested too deeply ({secrets.token_hex(8)})"
"""Stands in a pruned message for each part that was nested too deeply. No server can foresee it."""

_DEEPEST = 200
_STRING_OR_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


class TooDeepError(ValueError):
    """A message is nested deeper than the JSON parser goes."""


def parse_line(line: Line) -> Any:
    """Parses a line as JSON, in which bytes that aren't UTF-8 are replaced and a result is marked so (`NOT_UTF8`).

    Raises:
        ValueError: it is not JSON.
        TooDeepError: it is nested too deeply.
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
        message: Any = _parsed(text.removeprefix("\ufeff"))
    except RecursionError:
        raise TooDeepError("it is nested too deeply") from None
    finally:
        if pause:
            gc.enable()
    if not is_utf8:
        for each in cast("list[Any]", message) if isinstance(message, list) else [message]:
            _mark_not_utf8(each)
    return cast("Any", message)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # an integer beyond `sys.get_int_max_str_digits`
        return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _mark_not_utf8(message: Any) -> None:
    result = cast("dict[str, Any]", message).get("result") if isinstance(message, dict) else None
    if isinstance(result, dict):
        fields = cast("dict[str, Any]", result)
        meta = fields.get("_meta")
        fields["_meta"] = {**(cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}), NOT_UTF8: True}


def parse_pruned(line: bytes) -> Any:
    """Parses a message with `TOO_DEEP` in place of each part below a fixed depth. Takes time for many brackets.

    Raises:
        ValueError: it is not JSON.
    """
    pieces: list[bytes] = []
    depth = kept = 0
    for token in _STRING_OR_BRACKET.finditer(line):
        if token[0] in b"[{":
            depth += 1
            if depth == _DEEPEST:
                pieces += line[kept : token.start()], f'"{TOO_DEEP}"'.encode()
        elif token[0] in b"]}":
            if depth == _DEEPEST:
                kept = token.end()
            depth -= 1
    if depth >= _DEEPEST:
        raise ValueError("it is nested too deeply, and cut short")
    return parse_line(b"".join((*pieces, line[kept:])))


def request_key(wire_id: object) -> RequestId | None:
    """The key under which a request is kept: an id as we sent it, or the same integer as a string.

    None for whatever else: in Python `True` and `1.0` are equal to 1, in JSON-RPC they are no ids of ours.
    """
    if type(wire_id) is int:
        return wire_id
    if type(wire_id) is str:
        is_integer = len(wire_id) < 19 and wire_id.isascii() and wire_id.isdigit() and str(int(wire_id)) == wire_id
        return int(wire_id) if is_integer else wire_id
    return None


def answered_request(head: Line, tail: Line) -> int | None:
    """Which request a line that could not be read was the answer to, from its two ends; None when in doubt."""
    found = _ID_AT_HEAD.match(head) or (_RESULT_AT_HEAD.match(head) and _ID_AT_TAIL.search(tail))
    return int(found[1]) if found else None


def outcome_of(answer: dict[str, Any]) -> dict[str, Any] | MCPError:
    """The result that an answer carries, or the error to raise."""
    error = answer.get("error")
    if error is not None:
        return _error_of(error)
    result = answer.get("result")
    if isinstance(result, dict):
        return cast("dict[str, Any]", result)
    if "result" in answer:
        return BadAnswerError("The answer's result is not an object")
    return BadAnswerError("The answer has neither a result nor an error")


def number_of(value: object) -> float | None:
    """A number that fits, or None."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _error_of(error: object) -> MCPError:
    if not isinstance(error, dict):
        return BadAnswerError("The answer's error is not an object")
    fields = cast("dict[str, Any]", error)
    code, message = fields.get("code"), fields.get("message")
    # The SDK's model refuses what follows, and would raise its own error in place of the server's.
    if type(code) is not int or abs(code) > _LARGEST_CODE:
        code = INTERNAL_ERROR
    if not isinstance(message, str) or not message.strip():
        message = "The server gave no message"
    return MCPError(code, message.encode("utf-8", "replace").decode(), fields.get("data"))


# Our requests that wait for an answer, and which answer belongs to which.


# Some servers have no more than 31 bits for an id.
_IDS = 2**31


class PendingRequest:
    """One request: a slot for its answer."""

    __slots__ = ("abandoned", "answered", "on_progress", "outcome", "wire_id")

    def __init__(self, wire_id: RequestId, on_progress: ProgressFnT | None) -> None:
        self.wire_id = wire_id
        self.on_progress = on_progress
        self.answered = anyio.Event()
        self.outcome: dict[str, Any] | MCPError | ServerError | None = None
        self.abandoned = False


class PendingRequests:
    """All of them. A request leaves with its first answer: a second one, or a late one, finds nothing."""

    def __init__(self) -> None:
        self._requests: dict[RequestId, PendingRequest] = {}
        self._last_id = secrets.randbelow(_IDS)
        # Odd, so that no id comes a second time before all have been used.
        self._step = 2**20 + 2 * secrets.randbelow(2**28) + 1

    def new_id(self, chosen: RequestId | None = None) -> RequestId:
        """An id that no waiting request has: the caller's choice, or an integer that was not used before.

        They don't count up: an answer that was written before its question must not find it by being the next.

        Raises:
            ValueError: the chosen one is in use.
        """
        if chosen is not None:
            key = request_key(chosen)
            if key is None or key in self._requests:
                raise ValueError(f"request id {chosen!r} is no id, or already in flight")
            return chosen
        while True:
            self._last_id = (self._last_id + self._step) % _IDS
            if self._last_id and self._last_id not in self._requests:  # 0 is no id to some
                return self._last_id

    def add(self, request: PendingRequest) -> None:
        """It waits from now on."""
        key = request_key(request.wire_id)
        assert key is not None
        self._requests[key] = request

    def find(self, wire_id: object) -> PendingRequest | None:
        """The request with this id, in the form that a server gave it."""
        key = request_key(wire_id)
        return self._requests.get(key) if key is not None else None

    def answer(self, wire_id: object, outcome: dict[str, Any] | MCPError | ServerError) -> bool:
        """Hand over an outcome; False when no request waits for it."""
        key = request_key(wire_id)
        request = self._requests.pop(key, None) if key is not None else None
        if request is None:
            return False
        request.outcome = outcome
        request.answered.set()
        return True

    def abandon(self, request: PendingRequest) -> None:
        """Nobody waits for it any more."""
        request.abandoned = True
        key = request_key(request.wire_id)
        assert key is not None
        del self._requests[key]

    def fail_all(self, error: Callable[[], MCPError]) -> None:
        """No answer will come; each gets an error of its own, for raising adds a traceback to it."""
        while self._requests:
            _, request = self._requests.popitem()
            request.outcome = error()
            request.answered.set()


# SECURITY: where each line of a server goes. A line may be anything; it costs itself at most.
#
# Answers go straight into the slot of their request. Notifications wait in a bounded line of their own, so that a
# flood of them holds up no answer. Requests of the server get a task each, up to a bound.


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
