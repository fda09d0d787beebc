"""Stdio servers made of a few lines of Python, and sessions with them."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from mcp.shared.dispatcher import CallOptions, DispatchContext
from mcp.shared.transport_context import TransportContext

from toolbridge.config.server_config import ServerLimits
from toolbridge.servers.connection import ServerChannel
from toolbridge.servers.stdio.launch import Launch, open_stdio

LIMITS = ServerLimits(close_seconds=0.5)

_PRELUDE = """
import json, os, signal, sys, time
BEGAN = time.monotonic()
def write(data, descriptor=1):
    data = memoryview(data)
    while data:
        data = data[os.write(descriptor, data):]
def say(message):
    write(json.dumps(message).encode() + b"\\n")
def hear():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)
def answer(request, value=None):
    value = request.get("params", {}).get("value") if value is None else value
    say({"jsonrpc": "2.0", "id": request["id"], "result": {"value": value}})
def serve():
    while True:
        request = hear()
        if "id" in request and "method" in request:
            answer(request)
def linger():
    time.sleep(60)
    os._exit(0)
"""


def scripted(directory: Path, body: str, *args: str, env: Mapping[str, str] | None = None) -> Launch:
    """A server of this code, which has `say`, `hear`, `answer`, `write`, `serve` and `linger` at hand."""
    file = directory / f"server{len(os.listdir(directory))}.py"
    file.write_text(_PRELUDE + body)
    # No site-packages: it starts in no time.
    return Launch(sys.executable, ("-S", "-E", str(file), *args), env if env is not None else {"LANG": "C"}, None)


@dataclass
class Conversation:
    """A session with a server: what it sent of its own accord is noted."""

    channel: ServerChannel
    notifications: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    requests: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    ended: anyio.Event = field(default_factory=anyio.Event)

    async def ask(self, value: Any = "hello", seconds: float = 5.0) -> Any:
        """What the server makes of a value."""
        options: CallOptions = {"timeout": seconds}
        return (await self.channel.dispatcher.send_raw_request("echo", {"value": value}, options))["value"]

    async def run(self, *, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
        try:
            await self.channel.dispatcher.run(self._on_request, self._on_notify, task_status=task_status)
        finally:
            self.ended.set()

    async def _on_request(self, context: DispatchContext[TransportContext], method: str, params: Any) -> dict[str, Any]:
        self.requests.append((method, params))
        return {"asked": method}

    async def _on_notify(self, context: DispatchContext[TransportContext], method: str, params: Any) -> None:
        self.notifications.append((method, params))


@asynccontextmanager
async def conversation(launch: Launch, limits: ServerLimits = LIMITS) -> AsyncGenerator[Conversation]:
    """Start a server and talk with it."""
    async with open_stdio("scripted", launch, limits) as channel, anyio.create_task_group() as tasks:
        talk = Conversation(channel)
        await tasks.start(talk.run)
        yield talk
        tasks.cancel_scope.cancel()


def open_descriptors() -> set[str]:
    """What this process has open, by number."""
    directory = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    return {name for name in os.listdir(directory) if os.path.lexists(f"{directory}/{name}")}
