"""Our tools over HTTP: /mcp, /healthz and, if wanted, /metrics."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers

from toolbridge.serve.clients import GONE, request_key
from toolbridge.serve.http_body import BodyError, Replay, read_body
from toolbridge.serve.http_guard import Guard, Refused
from toolbridge.serve.turns import share_of

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from toolbridge.serve.caller import ClientKey
    from toolbridge.serve.server import CodeModeServer
    from toolbridge.serve.service import Service

_BUSY = Refused(503, "Too many requests are under way.", ((b"retry-after", b"1"),))
_BUSY_FOR_ONE = Refused(503, "Too many requests of one client are under way.", ((b"retry-after", b"1"),))
_ENDING = Refused(503, "This server is about to end.", ((b"connection", b"close"),))
_DELETED = 200
_NOT_FOUND = Refused(404, "There is /mcp here, and /healthz.")
_NOT_ALLOWED = Refused(405, "Use GET, POST or DELETE.", ((b"allow", b"GET, POST, DELETE"),))


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """How much one client, or all of them together, may ask of us."""

    body_bytes: int = 4 * 2**20
    body_seconds: float = 10.0
    header_seconds: float = 10.0
    requests: int = 512
    """At the same time, streams that wait for news included; of one client, half as many."""
    clients: int = 1_000
    """HTTP sessions."""
    client_idle_seconds: float = 1800.0
    shutdown_seconds: float = 5.0
    """For calls that are under way when we are told to end."""


class HttpApp:
    """The ASGI application. `async with` its `manager.run()` while it serves."""

    def __init__(
        self, server: CodeModeServer, service: Service, guard: Guard, limits: HttpLimits, *, metrics: bool
    ) -> None:
        self.manager = StreamableHTTPSessionManager(
            server,
            max_request_body_size=limits.body_bytes,
            session_idle_timeout=limits.client_idle_seconds,
            max_sessions=limits.clients,
        )
        self._service = service
        self._guard = guard
        self._limits = limits
        self._has_metrics = metrics
        self._requests = 0
        self._requests_of: Counter[ClientKey] = Counter()
        self._refused = 0
        self.calls = 0
        """Requests under way that somebody waits for the answer of."""
        self.is_ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        refused = await self._served(scope, receive, send)
        if refused is not None:
            self._refused += 1
            await _answer(send, refused.status, refused.words + "\n", "text/plain", refused.headers)

    async def _served(self, scope: Scope, receive: Receive, send: Send) -> Refused | None:
        path, method = scope["path"], scope["method"]
        if path == "/healthz" and method in ("GET", "HEAD"):
            await _answer(send, 503 if self.is_ending else 200, json.dumps({"ok": not self.is_ending}) + "\n")
            return None
        refused = self._guard.refusal(scope)
        if refused is None and path == "/metrics" and self._has_metrics and method == "GET":
            await _answer(send, 200, _metrics(self._facts()), "text/plain; version=0.0.4")
            return None
        client = request_key(Headers(scope=scope))
        refused = refused or self._refusal(path, method, client)
        if refused is not None:
            return refused
        self._requests += 1
        self._requests_of[client] += 1
        self.calls += method == "POST"
        try:
            return await self._passed_on(scope, receive, send)
        finally:
            self._requests -= 1
            self._requests_of[client] -= 1
            if not self._requests_of[client]:
                del self._requests_of[client]
            self.calls -= method == "POST"

    def _refusal(self, path: str, method: str, client: ClientKey) -> Refused | None:
        if path != "/mcp":
            return _NOT_FOUND
        if method not in ("GET", "POST", "DELETE"):
            return _NOT_ALLOWED
        if self.is_ending:
            return _ENDING
        if self._requests_of[client] >= share_of(self._limits.requests):
            return _BUSY_FOR_ONE
        return _BUSY if self._requests >= self._limits.requests else None

    async def _passed_on(self, scope: Scope, receive: Receive, send: Send) -> Refused | None:
        limits = self._limits
        try:
            body = await read_body(scope, receive, most=limits.body_bytes, seconds=limits.body_seconds)
        except BodyError as error:
            return error.refused
        replay = Replay(body, receive)
        scope[GONE] = replay.gone
        statuses: list[int] = []

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        try:
            await self.manager.handle_request(scope, replay, watched)
        finally:
            replay.gone.set()
            # Only if there was such a session: else anybody could end what others have.
            if scope["method"] == "DELETE" and statuses == [_DELETED]:
                self._service.forget(request_key(Headers(scope=scope)))
        return None

    def _facts(self) -> Mapping[str, Any]:
        return {
            **self._service.facts(),
            "http_requests_active": self._requests,
            "http_requests_refused_total": self._refused,
        }


async def _answer(
    send: Send,
    status: int,
    text: str,
    kind: str = "application/json",
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    body = text.encode()
    own = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": body})


def _metrics(facts: Mapping[str, Any]) -> str:
    """In the form that Prometheus reads."""
    lines: list[str] = []
    for name, value in facts.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# TYPE toolbridge_{name} {kind}", f"toolbridge_{name} {value}"]
    return "\n".join(lines) + "\n"
