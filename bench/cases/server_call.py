"""One call of a real server's tool by stdio: `echo` of server-everything, by our channel and by others' means.

Every contender has a server process of its own, and they take turns.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack
from functools import partial
from time import perf_counter
from typing import Any, TextIO

import anyio
import anyio.from_thread
from mcp.client._probe import negotiate_auto
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextContent

from bench.case import Bench
from bench.measure import Batch, compare, take_turns
from bench.peer_packages import Missing, node_packages
from bench.report import Finding, Row, Skipped
from toolbridge.config.server_config import ServerLimits
from toolbridge.servers.stdio.launch import Launch, open_stdio

_WHAT = "call of a server's tool by stdio"
_SDK = "the bare client of the MCP SDK"
_RAW = "JSON-RPC written and read by hand"
_TARGET = 0.7
_CALLS = 200
_PACKAGE = "@modelcontextprotocol/server-everything"
_PARAMS: dict[str, Any] = {"name": "echo", "arguments": {"message": "hello"}}
_ANSWER = "Echo: hello"


def measure(bench: Bench) -> Iterable[Finding]:
    """Against the SDK's own client, and against the least that any client could do."""
    packages = node_packages(_PACKAGE)
    if isinstance(packages, Missing):
        return [Skipped(_WHAT, packages.reason)]
    script = packages / "node_modules" / _PACKAGE / "dist" / "index.js"
    command = [shutil.which("node") or "node", str(script), "stdio"]
    findings: list[Finding] = []
    for backend in ("asyncio", "trio"):
        with ExitStack() as stack:
            portal = stack.enter_context(anyio.from_thread.start_blocking_portal(backend))
            ours = stack.enter_context(portal.wrap_async_context_manager(_Ours(command)))
            nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            theirs = stack.enter_context(portal.wrap_async_context_manager(_sdk_client(command, nowhere)))
            raw = stack.enter_context(_Raw(command))

            def in_loop(call: Callable[[], Awaitable[str]], portal: Any = portal) -> Batch:
                return partial(portal.call, _calls, call)

            async def sdk_call(theirs: Client = theirs) -> str:
                (block,) = (await theirs.call_tool(_PARAMS["name"], _PARAMS["arguments"])).content
                assert isinstance(block, TextContent)
                return block.text

            contenders: dict[str, Batch] = {"ours": in_loop(ours.call), _SDK: in_loop(sdk_call), _RAW: raw.batch}
            samples = take_turns(contenders, bench.rounds(30))
        what = f"{_WHAT} ({backend})"
        findings.append(Row(what, _SDK, compare(samples["ours"], samples[_SDK]), _TARGET))
        findings.append(Row(what, _RAW, compare(samples["ours"], samples[_RAW])))
    return findings


async def _calls(call: Callable[[], Awaitable[str]]) -> float:
    began = perf_counter()
    for _ in range(_CALLS):
        assert await call() == _ANSWER
    return (perf_counter() - began) / _CALLS


class _Ours:
    """An open channel with a session of the SDK over it; calls go past the session, as the bridge's do."""

    def __init__(self, command: list[str]) -> None:
        launch = Launch(command[0], tuple(command[1:]), {"PATH": os.environ.get("PATH", "")}, None)
        self._channel = open_stdio("everything", launch, ServerLimits())

    async def __aenter__(self) -> _Ours:
        channel = await self._channel.__aenter__()
        self._dispatcher = channel.dispatcher
        self._session = ClientSession(dispatcher=channel.dispatcher)
        await self._session.__aenter__()
        await negotiate_auto(self._session)
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._session.__aexit__(*error)
        await self._channel.__aexit__(*error)

    async def call(self) -> str:
        result = await self._dispatcher.send_raw_request("tools/call", _PARAMS, {"timeout": 30.0})
        return result["content"][0]["text"]


def _sdk_client(command: list[str], errors: TextIO) -> Client:
    parameters = StdioServerParameters(command=command[0], args=command[1:])
    return Client(stdio_client(parameters, errlog=errors), read_timeout_seconds=30.0)


class _Raw:
    """Blocking pipes, and json: no event loop, no timeouts, nothing checked."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._number = 0
        client = {"name": "bench", "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def batch(self) -> float:
        began = perf_counter()
        for _ in range(_CALLS):
            assert self._ask("tools/call", _PARAMS)["content"][0]["text"] == _ANSWER
        return (perf_counter() - began) / _CALLS

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdout is not None
        self._number += 1
        self._write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            message = json.loads(self._process.stdout.readline())
            if message.get("id") == self._number and "method" not in message:
                return message["result"]

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def __enter__(self) -> _Raw:
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
