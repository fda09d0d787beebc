"""Servers that end: who waits is told, and the next use starts them again."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from toolbridge.config.config import Config
from toolbridge.config.server_config import ServerConfig, ServerLimits
from toolbridge.errors import ServerConnectError, ServerDisconnectedError, ServerRespawnError
from toolbridge.servers.connection import Connection
from toolbridge.servers.failures import ChannelClosedError
from toolbridge.servers.manager import ServerManager
from toolbridge.trust.approval.approver import Approval, ApprovalRequest

pytestmark = pytest.mark.anyio

SERVER = """
import json, os, sys
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("pid", "die")]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        about = {"name": "x", "version": "1"}
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": about}
    elif message["method"] == "tools/list":
        answer["result"] = {"tools": TOOLS}
    elif message["method"] == "tools/call":
        if message["params"]["name"] == "die":
            os._exit(7)
        answer["result"] = {"content": [{"type": "text", "text": str(os.getpid())}]}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"""


class ApproveAll:
    async def approve(self, request: ApprovalRequest) -> Approval:
        return Approval(True)


@pytest.fixture
def manager(tmp_path: Path) -> ServerManager:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    server = ServerConfig(name="mortal", transport="stdio", command=sys.executable, args=(str(script),))
    return ServerManager(Config({"mortal": server}, ServerLimits()), approver=ApproveAll())


async def process_of(manager: ServerManager) -> int:
    result: dict[str, Any] = await manager.call("mortal", "pid", {})
    return int(result["content"][0]["text"])


async def test_calls_that_arrive_together_after_a_death_share_the_new_process(manager: ServerManager) -> None:
    async with manager:
        first = await process_of(manager)
        os.kill(first, signal.SIGKILL)
        with contextlib.suppress(ServerDisconnectedError):  # it may have been written before the process was gone
            await process_of(manager)
        found: set[int] = set()

        async def call() -> None:
            found.add(await process_of(manager))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(call)
        assert len(found) == 1
        assert first not in found


async def test_a_call_in_flight_when_the_server_ends_is_not_sent_again(manager: ServerManager) -> None:
    async with manager:
        before = await process_of(manager)
        with pytest.raises(ServerDisconnectedError, match=r"call of 'die', which may have taken effect: .*status 7"):
            await manager.call("mortal", "die", {})
        assert await process_of(manager) != before
        assert manager.status("mortal").respawns == 1


async def test_the_fourth_respawn_is_refused_with_the_last_error(manager: ServerManager) -> None:
    async with manager:
        for _ in range(4):
            with pytest.raises(ServerDisconnectedError):
                await manager.call("mortal", "die", {})
        with pytest.raises(ServerRespawnError, match=r"ended or failed 4 times .* status 7"):
            await manager.call("mortal", "die", {})
        assert manager.status("mortal").state == "error"


async def test_a_server_that_the_host_closed_starts_counting_anew(manager: ServerManager) -> None:
    async with manager:
        for _ in range(4):
            with pytest.raises(ServerDisconnectedError):
                await manager.call("mortal", "die", {})
        await manager.close_server("mortal")
        assert await process_of(manager) > 0


async def test_a_server_that_crashed_is_in_error_as_soon_as_the_call_has_failed(manager: ServerManager) -> None:
    async with manager:
        await process_of(manager)
        with pytest.raises(ServerDisconnectedError):
            await manager.call("mortal", "die", {})
        status = manager.status("mortal")  # nothing was awaited in between
        assert status.state == "error"
        assert status.last_error.startswith("Server 'mortal' ended")


@pytest.mark.parametrize("failure", [ChannelClosedError(sent=False), ServerConnectError("mortal", "is not reached")])
async def test_a_call_that_was_answered_with_a_question_is_never_made_again(
    manager: ServerManager, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    """The server has seen it, though not the answer to its question."""
    sent: list[Mapping[str, Any]] = []

    async def request(
        _: Connection, method: str, params: Mapping[str, Any], *rest: Any, **named: Any
    ) -> dict[str, Any]:
        sent.append(params)
        if len(sent) > 1:
            raise failure
        return {"resultType": "input_required", "inputRequests": {}, "requestState": "asked"}

    async with manager:
        await process_of(manager)
        monkeypatch.setattr(Connection, "_request", request)
        with pytest.raises(ServerDisconnectedError, match="may have taken effect"):
            await manager.call("mortal", "pid", {})
    assert len(sent) == 2
