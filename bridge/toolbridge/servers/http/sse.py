"""SECURITY: the older HTTP+SSE transport (one stream of events, messages by POST), as the pipe of a line dispatcher.

Each event is a line for the dispatcher, as hostile as a process's output. A failed POST becomes an error answer to its
own request, in the order of events.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import anyio
import anyio.abc
import httpx2
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import ServerConnectError, ServerError, ServerTimeoutError
from toolbridge.servers.failures import BadAnswerError
from toolbridge.servers.http.answers import EVENT_STREAM, EventStream, HttpStatusError, OverlongEvent, error_in
from toolbridge.servers.http.client import HttpClient, retry_delay
from toolbridge.servers.http.network import content_type
from toolbridge.servers.http.ssrf import HttpRuleError, check_url, origin, same_origin
from toolbridge.servers.inbound import answered_request
from toolbridge.servers.jsonrpc import encode_line
from toolbridge.trust.sanitise import for_error

_MOST_ENDPOINT = 8192
_MOST_UNREAD = 8
# Fewer than the connections that there are beside those for calls.
_MOST_BESIDE = 4
_LOGGER = logging.getLogger("toolbridge")


@dataclass(frozen=True, slots=True)
class _Failure:
    """A request that has no answer."""

    request_id: object
    error: ServerError


class SsePipe:
    """An open stream of events, and where to post."""

    def __init__(self, http: HttpClient, response: httpx2.Response, limits: ServerLimits) -> None:
        self.end_reason = ""
        self._http = http
        self._limits = limits
        self._events = EventStream(response, limits.message_bytes)
        self._endpoint: httpx2.URL | None = None
        self.on_failure: Callable[[object, ServerError], None] = lambda _id, _error: None
        """Called with each request that could not be delivered, and its error."""
        self._received: deque[bytes | _Failure] = deque()
        self._has_received = anyio.Event()
        self._has_taken = anyio.Event()
        self._outgoing: deque[bytes] = deque()
        self._has_outgoing = anyio.Event()
        self._has_room = anyio.Event()
        self._posting: dict[object, anyio.CancelScope] = {}
        self._beside = 0

    async def find_endpoint(self) -> None:
        """Read events until the server names its endpoint, and store it. The caller bounds the time.

        Raises:
            ServerConnectError: it did not, or named a place that nothing is sent to.
        """
        while (event := await self._events.next()) is not None:
            if not isinstance(event, OverlongEvent) and event.name == "endpoint":
                self._endpoint = self._checked_endpoint(event.data)
                return
        raise ServerConnectError(self._http.server, "ended its stream of events before it had said where to post")

    # ---- what the dispatcher sees

    async def receive(self) -> bytes:
        """Wait for the next line; b"" when the stream has ended."""
        while not (line := self.receive_nowait()) and not self.end_reason:
            self._has_received = anyio.Event()
            await self._has_received.wait()
        return line

    def receive_nowait(self) -> bytes:
        """Return a line that is there already, else b""; requests that failed before it go to `on_failure`."""
        self._has_taken.set()
        while self._received:
            found = self._received.popleft()
            if isinstance(found, bytes):
                return found
            self.on_failure(found.request_id, found.error)
        return b""

    def send_nowait(self, data: bytes | memoryview) -> int:
        """Queue a whole message to be posted, and return its size; 0 if too many wait.

        Raises:
            BrokenPipeError: the stream of events has ended.
        """
        if self.end_reason:
            raise BrokenPipeError(self.end_reason)
        if len(self._outgoing) >= self._limits.calls_in_flight:
            return 0
        self._outgoing.append(bytes(data))
        self._has_outgoing.set()
        return len(data)

    async def wait_until_sendable(self) -> None:
        """Wait until there is room for another message."""
        while len(self._outgoing) >= self._limits.calls_in_flight:
            self._has_room = anyio.Event()
            await self._has_room.wait()

    async def attend(self) -> None:
        """Receive events and post queued messages until the stream ends, which cancels the posts under way."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._post_all)
            while (event := await self._events.next()) is not None:
                if isinstance(event, OverlongEvent):
                    problem = f"The answer is too long: {event.size} bytes"
                    self._fail(answered_request(event.head, event.tail), INTERNAL_ERROR, problem)
                elif event.name == "message" and event.data:
                    # A line break inside JSON is only space; inside a string it would be no JSON.
                    self._receive(self._http.without_tokens(event.data).replace(b"\n", b" ") + b"\n")
                    await self._until_taken()
            self.end_reason = "it ended its stream of events"
            self._has_received.set()
            tasks.cancel_scope.cancel()

    # ---- behind it

    async def _until_taken(self) -> None:
        """Backpressure: wait until the dispatcher has read most events."""
        while len(self._received) > _MOST_UNREAD:
            self._has_taken = anyio.Event()
            await self._has_taken.wait()

    def _receive(self, received: bytes | _Failure) -> None:
        self._received.append(received)
        self._has_received.set()

    async def _post_all(self) -> None:
        """Post queued messages until cancelled, each in a task but `initialized`, which is awaited."""
        async with anyio.create_task_group() as posts:
            while True:
                while not self._outgoing:
                    self._has_outgoing = anyio.Event()
                    await self._has_outgoing.wait()
                data = self._outgoing.popleft()
                self._has_room.set()
                message = cast("dict[str, Any]", json.loads(data))
                if "id" in message and "method" in message:
                    posts.start_soon(self._post, data, message)
                elif message.get("method") == "notifications/initialized":
                    await self._post(data, message)  # what comes after it may rely on it
                else:
                    self._call_off(message)
                    self._post_beside(posts, data, message)

    def _post_beside(self, posts: anyio.abc.TaskGroup, data: bytes, message: dict[str, Any]) -> None:
        """Post a notification or answer in a background task; dropped, and logged, when too many are under way."""
        if self._beside >= _MOST_BESIDE:
            self._fail(None, INTERNAL_ERROR, "too many before it were not answered")
            return
        self._beside += 1

        async def post() -> None:
            """Post the message, then free its place among the background posts."""
            try:
                await self._post(data, message)
            finally:
                self._beside -= 1

        posts.start_soon(post)

    def _call_off(self, message: dict[str, Any]) -> None:
        """Cancel the POST under way of a request that this message cancels; ignores other messages."""
        if message.get("method") == "notifications/cancelled":
            scope = self._posting.get(message.get("params", {}).get("requestId"))
            if scope is not None:
                scope.cancel()

    async def _post(self, data: bytes, message: dict[str, Any]) -> None:
        """Post a message within its time; raises nothing: a request that fails gets an error as its answer."""
        request_id = message.get("id") if "method" in message else None
        seconds = self._limits.connect_seconds if request_id is None else self._limits.call_seconds
        try:
            with anyio.CancelScope() as scope, anyio.fail_after(seconds):
                if request_id is not None:
                    self._posting[request_id] = scope
                await self._post_repeatedly(data, str(message.get("method", "")), seconds)
        except MCPError as error:
            self._fail(request_id, error.error.code, error.error.message)
        except ServerError as error:
            self._fail_with(request_id, error)
        except TimeoutError:
            problem = f"did not take the request within {seconds:g} s; it may still take effect"
            self._fail_with(request_id, ServerTimeoutError(self._http.server, problem))
        finally:
            self._posting.pop(request_id, None)

    async def _post_repeatedly(self, data: bytes, method: str, seconds: float) -> None:
        """Post a message, and again if the server is busy and that is safe. Raises `MCPError` or `ServerError`."""
        attempts = 0
        until = anyio.current_time() + seconds
        while True:
            attempts += 1
            headers = {"content-type": "application/json", "accept": "application/json"}
            async with self._http.send("POST", headers, content=data, url=self._endpoint) as response:
                status, wait = response.status_code, response.headers.get("retry-after")
                left = until - anyio.current_time()
                delay = retry_delay(method, status, wait, attempts=attempts, seconds_left=left)
                if delay is None:
                    if status >= 300:
                        raise await error_in(response) or HttpStatusError(status)
                    return
            await anyio.sleep(delay)

    def _fail(self, request_id: object, code: int, problem: str) -> None:
        """Answer a request of ours with an error in place of the server; without an id, only log it."""
        if request_id is None:
            _LOGGER.debug("Server %r did not take a message: %s", self._http.server, problem)
            return
        error = {"code": code, "message": problem}
        self._receive(encode_line({"jsonrpc": "2.0", "id": request_id, "error": error}))

    def _fail_with(self, request_id: object, error: ServerError) -> None:
        """Fail a request of ours with an error that is no word of the server; without an id, only log it."""
        if request_id is None:
            _LOGGER.debug("%s", error)
        else:
            self._receive(_Failure(request_id, error))

    def _checked_endpoint(self, data: bytes) -> httpx2.URL:
        """Resolve the endpoint that the server named. Raises `ServerConnectError` if it is malformed or elsewhere."""
        server = self._http.server
        try:
            if len(data) > _MOST_ENDPOINT:
                raise ValueError("too long")
            target = self._http.url.join(data.decode("utf-8"))
            check_url(str(target), secrets=False)
        except (httpx2.InvalidURL, HttpRuleError, ValueError):
            raise ServerConnectError(server, "named a place to post to that can't be understood") from None
        if not same_origin(self._http.url, target):
            shown = for_error(origin(target), limit=200)
            raise ServerConnectError(server, f"wants messages to be posted to {shown}, which is another server")
        return target


def check_event_stream(server: str, response: httpx2.Response) -> None:
    """Verify that a stream of events was opened, by the answer's status and content type.

    Raises:
        ServerConnectError: it was not.
    """
    if response.status_code >= 400:
        problem = str(HttpStatusError(response.status_code))
    elif content_type(response) != EVENT_STREAM:
        kind = for_error(content_type(response), limit=80) or "no content type"
        problem = str(BadAnswerError(f"{kind} in place of a stream of events"))
    else:
        return
    raise ServerConnectError(server, f"answered with {problem}")
