"""A service over real HTTP on loopback, and raw requests to it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2

from serve.serving import service_of
from toolbridge import ServerConfig
from toolbridge.serve.http import HttpApp, HttpLimits, open_socket, serve_http
from toolbridge.serve.http_guard import guard_of
from toolbridge.serve.service import CodeModeServer, ServeOptions, Service

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@dataclass
class HttpService:
    """Where it is, and what is behind it."""

    service: Service
    app: HttpApp
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@asynccontextmanager
async def http_service_of(
    directory: Path,
    *servers: ServerConfig,
    limits: HttpLimits | None = None,
    token: str | None = None,
    options: ServeOptions | None = None,
    **config: Any,
) -> AsyncGenerator[HttpService]:
    """A service at a free port."""
    limits = limits or HttpLimits(shutdown_seconds=0.5)
    listening = open_socket("127.0.0.1", 0)
    port = listening.getsockname()[1]
    ready, stop = anyio.Event(), anyio.Event()
    async with service_of(directory, *servers, options=options, **config) as service:
        guard = guard_of("127.0.0.1", port, token=token)
        app = HttpApp(CodeModeServer(service), service, guard, limits, metrics=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve_http, app, listening, limits, ready=ready.set, stop=stop))
            await ready.wait()
            yield HttpService(service, app, port)
            stop.set()


def message(method: str, params: dict[str, Any] | None = None, number: int | None = 1) -> bytes:
    """A JSON-RPC message; without a number, a notification."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    return json.dumps(body if number is None else {**body, "id": number}).encode()


async def open_session(http: httpx2.AsyncClient, url: str, **headers: str) -> str:
    """The handshake; gives the session's id."""
    answer = await http.post(url, content=message("initialize", INITIALIZE), headers={**HEADERS, **headers})
    assert answer.status_code == 200, answer.text
    session = answer.headers["mcp-session-id"]
    done = message("notifications/initialized", number=None)
    await http.post(url, content=done, headers={**HEADERS, **headers, "mcp-session-id": session})
    return session


async def raw(port: int, request: bytes, *, until: bytes = b"", seconds: float = 10.0) -> bytes:
    """What comes back for these bytes, until the connection is closed, or has sent this."""
    stream = await anyio.connect_tcp("127.0.0.1", port)
    got = b""
    async with stream:
        await stream.send(request)
        with anyio.move_on_after(seconds):
            try:
                while not until or until not in got:
                    got += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                pass
    return got
