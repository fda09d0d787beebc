"""Requests over HTTP that wait for their answers: their ids, their deadlines, and the end of all of them."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager

import anyio
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp_types import RequestId

from toolbridge.servers.channel import ChannelClosedError, RequestTimedOutError
from toolbridge.servers.messages import request_key
from toolbridge.servers.pausable_deadline import pausable

_RUN_OUT_SECONDS = 1.0


class RequestsInFlight:
    """The requests of one channel. A request is its caller's own task; here is what ends it from outside."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.end_reason = ""
        self._scopes: dict[RequestId, anyio.CancelScope] = {}
        self._progress: dict[RequestId, ProgressFnT] = {}
        self._last_id = 0
        self._last_answered: anyio.Event | None = None
        """Once no more are taken: set when none is under way."""

    def new_id(self, chosen: RequestId | None) -> RequestId:
        """An id that no other request has."""
        if chosen is not None:
            key = request_key(chosen)
            if key is None or key in self._scopes:
                raise ValueError(f"request id {chosen!r} is no id, or already in flight")
            return chosen
        self._last_id += 1
        while self._last_id in self._scopes:
            self._last_id += 1
        return self._last_id

    @contextmanager
    def waiting(self, method: str, request_id: RequestId, options: CallOptions) -> Generator[None]:
        """While one request is sent and answered.

        Raises:
            ChannelClosedError: the channel has ended, or ends meanwhile.
            RequestTimedOutError: `options["timeout"]` is over.
        """
        timeout = options.get("timeout")
        key = request_key(request_id)
        assert key is not None
        if self.ended.is_set() or self._last_answered is not None:
            raise ChannelClosedError(self.end_reason or "Connection closed", sent=False)
        deadline = math.inf if timeout is None else anyio.current_time() + timeout
        with anyio.CancelScope(deadline=deadline) as scope:
            self._scopes[key] = scope
            if (on_progress := options.get("on_progress")) is not None:
                self._progress[key] = on_progress
            try:
                with pausable(scope):
                    yield
            finally:
                self._progress.pop(key, None)
                del self._scopes[key]
                if self._last_answered is not None and not self._scopes:
                    self._last_answered.set()
        if scope.cancelled_caught:
            if self.ended.is_set() or timeout is None:
                raise ChannelClosedError(self.end_reason or "Connection closed")
            raise RequestTimedOutError(method, timeout)

    def progress_callback(self, token: object) -> ProgressFnT | None:
        """Who wants to know of progress that is reported under a token."""
        key = request_key(token)
        return None if key is None else self._progress.get(key)

    async def run_out(self, reason: str) -> None:
        """The channel is about to be no more. Requests that are under way may still get answers of their own, soon."""
        if self._last_answered is None:
            self._last_answered = anyio.Event()
        self.end_reason = reason
        try:
            if self._scopes:
                with anyio.move_on_after(_RUN_OUT_SECONDS):
                    await self._last_answered.wait()
        finally:
            self.end(reason)

    def end(self, reason: str) -> None:
        """The channel is no more: whoever waits learns it now."""
        if self.ended.is_set():
            return
        self.end_reason = reason
        self.ended.set()
        for scope in self._scopes.values():
            scope.cancel()


def seconds_left() -> float:
    """Until the innermost deadline of the request that is being sent, or of whoever waits for it."""
    return anyio.current_effective_deadline() - anyio.current_time()
