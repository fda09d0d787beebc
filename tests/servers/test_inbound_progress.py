"""How far a call is, as its server says: over every transport, only if wanted, and no flood of it."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

from servers.fault_expectations import text_of
from servers.fault_servers import fault_server, manager_of
from servers.http_servers import uvicorn_server
from toolbridge.config.server_config import ServerConfig
from toolbridge.servers.inbound import MAX_PROGRESS_MESSAGE, PROGRESS_BURST, progress_callback
from toolbridge.servers.manager import ServerManager

pytestmark = pytest.mark.anyio

Told = tuple[float, float | None, str]


def counting() -> MCPServer:
    server = MCPServer("counting")

    @server.tool()
    async def count(context: Context[Any]) -> str:
        for number in (1, 2, 3):
            await context.report_progress(number, 3, f"step {number}")
            await anyio.sleep(0.05)
        return "counted"

    return server


@pytest.fixture(scope="module")
def by_http() -> Generator[str]:
    with uvicorn_server(counting().streamable_http_app()) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(scope="module")
def by_sse() -> Generator[str]:
    with uvicorn_server(counting().sse_app()) as port:
        yield f"http://127.0.0.1:{port}/sse"


class Heard:
    """What was told."""

    def __init__(self) -> None:
        self.told = list[Told]()

    def __call__(self, done: float, total: float | None, message: str) -> None:
        self.told.append((done, total, message))


async def counted(server: ServerConfig) -> list[Told]:
    heard = Heard()
    async with manager_of([server]) as manager:
        with anyio.fail_after(30):
            result = await manager.call(server.name, "count", {}, on_progress=heard)
    assert text_of(result) == "counted"
    return heard.told


STEPS: list[Told] = [(1.0, 3.0, "step 1"), (2.0, 3.0, "step 2"), (3.0, 3.0, "step 3")]


async def test_it_is_told_over_streamable_http(by_http: str) -> None:
    assert await counted(ServerConfig.http("counting", by_http)) == STEPS


async def test_it_is_told_over_sse(by_sse: str) -> None:
    assert await counted(ServerConfig.sse("counting", by_sse)) == STEPS


async def test_it_is_told_by_a_server_in_the_same_process() -> None:
    assert await counted(ServerConfig.in_process("counting", counting())) == STEPS


SERVER = """
import json, sys
def send(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        about = {"name": "x", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": about}
    elif message["method"] == "tools/list":
        result = {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}
    elif message["method"] == "tools/call":
        token = message["params"].get("_meta", {}).get("progressToken")
        for number, words in ((1, "step 1"), (2, "step 2"), (3, "step 3")):
            if token is not None:
                params = {"progressToken": token, "progress": number, "total": 3, "message": words}
                send({"method": "notifications/progress", "params": params})
        text = "counted" if token is not None else "not asked for"
        result = {"content": [{"type": "text", "text": text}]}
    else:
        send({"id": message["id"], "error": {"code": -32601, "message": "no"}})
        continue
    send({"id": message["id"], "result": result})
"""


@pytest.fixture
def by_stdio(tmp_path: Path) -> ServerConfig:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    return ServerConfig.stdio("counting", sys.executable, [str(script)])


async def test_it_is_told_over_stdio_before_the_result(by_stdio: ServerConfig) -> None:
    assert await counted(by_stdio) == STEPS


async def test_a_server_is_not_asked_for_it_if_nobody_wants_it(by_stdio: ServerConfig) -> None:
    async with manager_of([by_stdio]) as manager:
        assert text_of(await manager.call("counting", "count", {})) == "not asked for"


async def _flooded(manager: ServerManager) -> tuple[int, str]:
    heard = Heard()
    with anyio.fail_after(60):
        began = anyio.current_time()
        result = await manager.call("flood", "faulty", {"text": "x"}, on_progress=heard)
        seconds = anyio.current_time() - began
    assert len(heard.told) <= PROGRESS_BURST + 10 * seconds + 1
    return len(heard.told), text_of(result)


async def test_a_flood_of_it_reaches_nobody_and_costs_no_answer() -> None:
    async with manager_of([fault_server("flood", "progress-flood")]) as manager:
        count, answer = await _flooded(manager)
        assert count >= 1
        assert answer == "x"
        assert text_of(await manager.call("flood", "echo", {"text": "after"})) == "after"


async def test_words_are_masked_and_cut_and_numbers_that_are_none_left_out() -> None:
    heard = Heard()
    tell = progress_callback(heard, frozenset({"hush-hush-secret"}))
    await tell(1.0, float("inf"), "my key is hush-hush-secret\x1b[31m")
    await tell(float("nan"), None, "nothing")
    await tell(2.0, None, "x" * 10_000)
    await tell(3.0, 4.0, None)
    told = heard.told
    assert [(done, total) for done, total, _ in told] == [(1.0, None), (2.0, None), (3.0, 4.0)]
    assert "hush-hush-secret" not in told[0][2]
    assert "\x1b" not in told[0][2]
    assert len(told[1][2]) <= MAX_PROGRESS_MESSAGE + 10
    assert told[2][2] == ""
