"""SECURITY: HTTP answers to JSON-RPC requests: JSON bodies and server-sent events (SSE). All input is hostile."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

import anyio
import anyio.lowlevel
import httpx2
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, METHOD_NOT_FOUND, RequestId

from toolbridge.json_codec import TooDeepError
from toolbridge.servers.failures import BadAnswerError
from toolbridge.servers.http.client import parse_retry_after
from toolbridge.servers.http.network import NETWORK_ERRORS, BodyReader, content_type, read_body
from toolbridge.servers.inbound import answered_request
from toolbridge.servers.jsonrpc import outcome_of, parse_line, request_key
from toolbridge.servers.stdio.process import END_BYTES, LineReader, OverlongLine
from toolbridge.trust.sanitise import for_error

_MAX_ID = 1024
_MAX_NAME = 100
_MAX_RETRY_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class OverlongEvent:
    """The two ends of an event that was dropped while it came in."""

    head: bytes
    tail: bytes
    size: int


class EventReader:
    """Parses server-sent events in bounded memory; an event cut off by the stream's end is dropped.

    `last_id` and `retry_seconds` are the latest values that the server sent.
    """

    def __init__(self, max_bytes: int) -> None:
        self.last_id = ""
        self.retry_seconds: float | None = None
        self._max_bytes = max_bytes
        # Room for the field's name: only the data decides whether an event is too long.
        self._lines = LineReader(max_bytes + END_BYTES)
        self._begun = False
        self._after_return = False
        self._name = ""
        self._id: str | None = None
        """Becomes `last_id` once its event is complete: a resumed stream begins after that event."""
        self._data = bytearray()
        self._has_data = False
        self._overlong: OverlongEvent | None = None

    def feed(self, chunk: bytes) -> list[Event | OverlongEvent]:
        """Add bytes, and return the events that they complete; of an overlong event, only its two ends are kept."""
        if not self._begun and chunk:
            self._begun = True
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        if self._after_return:
            # The carriage return has ended the line already.
            chunk = chunk.removeprefix(b"\n")
        self._after_return = chunk.endswith(b"\r")
        events: list[Event | OverlongEvent] = []
        for line in self._lines.feed(chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")):
            if isinstance(line, OverlongLine):
                self._drop(line.head.removeprefix(b"data:"), line.tail, line.size)
            elif line:
                self._take(bytes(line))
            elif (event := self._complete()) is not None:
                events.append(event)
        return events

    def _take(self, line: bytes) -> None:
        """Apply one line of the event stream (`field: value`) to the event under way; unknown fields are ignored."""
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            if self._has_data:
                self._data += b"\n"
            self._has_data = True
            if self._overlong is None:
                self._data += value
                if len(self._data) > self._max_bytes:
                    self._drop(bytes(self._data[:END_BYTES]), bytes(self._data[-END_BYTES:]), len(self._data))
            else:
                self._drop(b"", value[-END_BYTES:], len(value))
        elif field == b"event":
            self._name = value[:_MAX_NAME].decode("utf-8", "replace")
        elif field == b"id":
            # It is sent back in a header, so it must be a valid header value.
            if len(value) <= _MAX_ID and value.isascii() and value.decode().isprintable():
                self._id = value.decode().strip()
        elif field == b"retry" and value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
            self.retry_seconds = int(value) / 1000

    def _drop(self, head: bytes, tail: bytes, size: int) -> None:
        """Mark the event under way as overlong, keeping the first head, the last tail, and the sum of the sizes."""
        if self._overlong is not None:
            head, size = self._overlong.head, self._overlong.size + size
        self._overlong = OverlongEvent(head.lstrip(), tail, size)
        self._data.clear()

    def _complete(self) -> Event | OverlongEvent | None:
        """Finish the event under way at its empty line, and reset; None if it had no data. Sets `last_id`."""
        event: Event | OverlongEvent | None = self._overlong
        if event is None and self._has_data:
            event = Event(self._name or "message", bytes(self._data))
        if self._id is not None:
            self.last_id = self._id
        self._name, self._id, self._has_data, self._overlong = "", None, False, None
        self._data.clear()
        return event


EVENT_STREAM = "text/event-stream"
_MAX_ERROR_BYTES = 64 * 1024
_MAX_BATCH = 1000
_MAX_EVENTS_AT_ONCE = 128
"""Events handled before the event loop's other tasks have their turn."""
_MAX_BYTES_AT_ONCE = 16 * 1024
_SECONDS_TO_END = 0.02

Take = Callable[[dict[str, Any], int], object]
"""Takes a message with a method, and its size."""

_ADVICE = {
    403: "it does not allow this with the credentials that it was given",
    404: "the URL is probably not the one of its MCP endpoint",
    405: 'the URL is probably not the one of its MCP endpoint, or is one of the older "sse" transport',
    413: "what was sent is too large for it",
    429: "it has had too many requests",
    500: "it has failed",
    502: "a proxy before it does not reach it",
    503: "it is not available now",
    504: "a proxy before it waits for it in vain",
}


class HttpStatusError(MCPError):
    """An HTTP status that is no success, without a JSON-RPC error in the body."""

    def __init__(self, status: int, advice: str = "", *, code: int = INTERNAL_ERROR) -> None:
        self.status = status
        advice = advice or _ADVICE.get(status, "")
        super().__init__(code, f"HTTP {_named(status)}" + (f": {advice}" if advice else ""))


class SessionGoneError(Exception):
    """The server no longer knows the session. Never leaves the dispatcher."""

    def __init__(self, *, refused: bool) -> None:
        self.refused = refused
        """Whether it surely refused the request for that reason, without side effects."""
        super().__init__()


class EventStream:
    """The events of an answer, until it ends or breaks off."""

    def __init__(self, response: httpx2.Response, max_bytes: int) -> None:
        self.reader = EventReader(max_bytes)
        self._body = BodyReader(response)
        self._events: deque[Event | OverlongEvent] = deque()
        self._given = 0

    async def next(self) -> Event | OverlongEvent | None:
        """Wait for the next event; None when the stream ends or breaks off, for whatever reason. Raises nothing."""
        self._given += 1
        if self._given % _MAX_EVENTS_AT_ONCE == 0:
            await anyio.lowlevel.checkpoint()
        while not self._events:
            try:
                piece = await self._body.next_piece()
            except (BadAnswerError, *NETWORK_ERRORS):
                return None
            if piece is None:
                return None
            for start in range(0, len(piece), _MAX_BYTES_AT_ONCE):
                if start:
                    await anyio.lowlevel.checkpoint()
                self._events.extend(self.reader.feed(piece[start : start + _MAX_BYTES_AT_ONCE]))
        return self._events.popleft()

    async def ends_now(self) -> bool:
        """Wait 20 ms for the stream to end: only then can its connection be reused. Drops an event that arrives."""
        with anyio.move_on_after(_SECONDS_TO_END):
            return await self.next() is None
        return False


class Exchange:
    """One request and its answer: a JSON body, or a stream of events that may be resumed."""

    def __init__(self, request_id: RequestId, take: Take, max_bytes: int, *, see_end: bool = True) -> None:
        self.see_end = see_end
        """Whether to wait for a stream to end after the answer; False once a stream did not."""
        self.last_event_id = ""
        self.retry_seconds: float | None = None
        self.problem = "The stream of events ended before the answer"
        """The error message if a stream of events ends without the answer."""
        self._key = request_key(request_id)
        self._take = take
        self._max_bytes = max_bytes

    async def read(self, response: httpx2.Response, *, has_session: bool) -> dict[str, Any] | MCPError | None:
        """Read the outcome by the answer's status and content type; None when an event stream ended without it.

        The server's own error is returned. Requests and notifications in the answer go to `take`.

        Raises:
            MCPError: the answer is malformed.
            SessionGoneError: the server no longer knows the session.
        """
        status = response.status_code
        if status >= 400:
            return await _refusal(response, has_session=has_session)
        kind = content_type(response)
        if kind == EVENT_STREAM:
            return await self.read_events(response)
        if kind == "application/json" or kind.endswith("+json"):
            outcome = self._read_json(await read_body(response, self._max_bytes))
            return BadAnswerError("The answer holds other messages only") if outcome is None else outcome
        if status in (202, 204):
            raise BadAnswerError(f"HTTP {_named(status)}: it took the request without answering it")
        raise BadAnswerError(
            f"HTTP {_named(status)} with {for_error(kind, limit=80) or 'no content type'} in place of JSON: "
            "the URL is probably not the one of its MCP endpoint"
        )

    async def read_events(self, response: httpx2.Response) -> dict[str, Any] | MCPError | None:
        """Read the outcome from a stream of events, handing other messages to `take`; None when it ended without one.

        Raises:
            BadAnswerError: the answer itself is malformed.
        """
        stream = EventStream(response, self._max_bytes)
        while (event := await stream.next()) is not None:
            if isinstance(event, OverlongEvent):
                self._skip(event.head, event.tail, BadAnswerError(f"The answer is too long: {event.size} bytes"))
            elif event.name == "message" and event.data:
                try:
                    outcome = self._read_json(event.data)
                except BadAnswerError as error:
                    self._skip(event.data, event.data[-END_BYTES:], error)
                else:
                    if outcome is not None:
                        self.see_end = self.see_end and await stream.ends_now()
                        return outcome
        self.last_event_id = stream.reader.last_id or self.last_event_id
        if stream.reader.retry_seconds is not None:
            self.retry_seconds = stream.reader.retry_seconds
        return None

    def _skip(self, head: bytes, tail: bytes, error: BadAnswerError) -> None:
        """Skip a malformed message, unless it is the answer: then raise."""
        if answered_request(head, tail) == self._key:
            raise error
        self.problem = error.error.message

    def _read_json(self, body: bytes) -> dict[str, Any] | MCPError | None:
        """Find the outcome in a JSON body and hand messages with a method to `take`; None if there is no answer.

        Raises:
            BadAnswerError: it is not JSON-RPC, or answers another request only.
        """
        try:
            value = parse_line(body)
        except ValueError as error:
            too_deep = body if isinstance(error, TooDeepError) else b""
            problem = f"The answer is not JSON: {for_error(str(error), limit=200)}"
            raise BadAnswerError(problem, too_deep=too_deep) from None
        outcome = None
        stray = False
        for message, size in _messages(value, len(body)):
            if "method" in message:
                self._take(message, size)
            elif request_key(message.get("id")) == self._key or (message.get("id") is None and "error" in message):
                outcome = outcome_of(message) if outcome is None else outcome
            else:
                stray = True
        if outcome is None and stray:
            raise BadAnswerError("The answer has the id of another request")
        return outcome


async def _refusal(response: httpx2.Response, *, has_session: bool) -> MCPError:
    """Read the error of an answer with a status of 400 or more, and return it.

    Raises:
        SessionGoneError: with `has_session`, a 404 (unless its error is METHOD_NOT_FOUND), or a 400 about the session.
    """
    status = response.status_code
    error, names_request = await _error_in(response)
    about_session = error is not None and "session" in error.message.lower()
    if has_session and status == 404 and (error is None or error.code != METHOD_NOT_FOUND):
        # The protocol's own status for a lost session, unless the error is about another thing not found.
        raise SessionGoneError(refused=error is None or about_session)
    if error is not None:
        # Many servers answer 400 in place of 404. A tool's own error about a session has its request's id.
        if has_session and status == 400 and about_session:
            raise SessionGoneError(refused=not names_request)
        return error
    if status == 404:
        # Older servers and gateways answer so to an unknown method.
        return HttpStatusError(status, code=METHOD_NOT_FOUND)
    wait = parse_retry_after(response.headers.get("retry-after")) if status in (429, 503) else None
    return HttpStatusError(status, f"{_ADVICE[status]}, and asks to wait for {wait:.0f} s" if wait else "")


async def error_in(response: httpx2.Response) -> MCPError | None:
    """Read the JSON-RPC error in the body of an answer; None if there is none, or the body can't be read."""
    return (await _error_in(response))[0]


async def _error_in(response: httpx2.Response) -> tuple[MCPError | None, bool]:
    """Read the JSON-RPC error, or None, and whether it has a request's id. Never raises for a bad body."""
    if content_type(response) != "application/json":
        return None, False
    try:
        value = parse_line(await read_body(response, _MAX_ERROR_BYTES))
    except (ValueError, BadAnswerError, *NETWORK_ERRORS):
        return None, False
    for message, _ in _messages(value, 0):
        if message.get("error") is not None and "method" not in message:
            outcome = outcome_of(message)
            if isinstance(outcome, MCPError) and not isinstance(outcome, BadAnswerError):
                return outcome, message.get("id") is not None
    return None, False


def _messages(value: Any, size: int) -> list[tuple[dict[str, Any], int]]:
    """Return the JSON objects in a body, which may be a batch, each with an equal share of `size`.

    Raises:
        BadAnswerError: there is none.
    """
    found = cast("list[Any]", value)[:_MAX_BATCH] if isinstance(value, list) else [value]
    messages = [cast("dict[str, Any]", each) for each in found if isinstance(each, dict)]
    if not messages:
        raise BadAnswerError("The answer is JSON, but no JSON-RPC message")
    return [(message, size // len(messages)) for message in messages]


def _named(status: int) -> str:
    """Return a status with its registered name ("404 Not Found"); the server's own name is untrusted."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
