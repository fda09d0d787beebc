"""Our requests that wait for an answer, and which answer belongs to which."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import anyio
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import RequestId

from toolbridge.errors import ServerError
from toolbridge.servers.messages import request_key

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
