"""What a reviewer found: reloads with calls in line, approvers that are cancelled, servers that repeat their token."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp.server import MCPServer

from toolbridge.config.config import Config
from toolbridge.config.server_config import ServerConfig, ServerLimits
from toolbridge.errors import (
    MisuseError,
    ServerClosedError,
    ServerConnectError,
    ServerNotApprovedError,
    ServerRespawnError,
    ServerTimeoutError,
    ToolbridgeError,
)
from toolbridge.servers.manager import ServerManager
from toolbridge.trust.approval.approver import Approval, ApprovalRequest

pytestmark = pytest.mark.anyio


class ApproveAll:
    def __init__(self) -> None:
        self.asked = 0

    async def approve(self, request: ApprovalRequest) -> Approval:
        self.asked += 1
        return Approval(True)


def slow_server() -> MCPServer:
    server = MCPServer("slow")

    @server.tool()
    async def wait(seconds: float = 30) -> str:
        """Wait"""
        await anyio.sleep(seconds)
        return "done"

    return server


def one(server: ServerConfig, **limits: Any) -> Config:
    return Config({server.name: server}, ServerLimits(**limits))


def slow(**fields: Any) -> ServerConfig:
    return ServerConfig(name="slow", transport="in_process", server=slow_server(), **fields)


@pytest.mark.parametrize("change", ["removed", "denied", "closed"])
async def test_calls_in_line_never_restart_what_was_closed(change: str) -> None:
    approver = ApproveAll()
    async with ServerManager(one(slow(), calls_in_flight=1), approver=approver) as manager:
        await manager.connect("slow")
        errors: list[str] = []

        async def call() -> None:
            with pytest.raises(ServerClosedError) as caught:
                await manager.call("slow", "wait", {})
            errors.append(str(caught.value))

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            if change == "closed":
                await manager.close_server("slow")
            else:
                config = Config() if change == "removed" else one(slow(deny_tools=("wait",)), calls_in_flight=1)
                await manager.reload(config)
        assert sorted(errors) == [
            "Server 'slow' was closed before the call of 'wait' was sent",
            "Server 'slow' was closed before the call of 'wait' was sent",
            "Server 'slow' was closed during the call of 'wait'",
        ]
        assert approver.asked == 1


async def test_leaving_the_manager_during_a_call_says_that_it_was_closed() -> None:
    async with anyio.create_task_group() as tasks, ServerManager(one(slow()), approver=ApproveAll()) as manager:
        await manager.connect("slow")

        async def call() -> None:
            with pytest.raises(ServerClosedError, match="was closed during the call"):
                await manager.call("slow", "wait", {})

        tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_approver_that_is_cancelled_refuses_and_harms_nobody(anyio_backend: str) -> None:
    class Cancelled:
        async def approve(self, request: ApprovalRequest) -> Approval:
            raise asyncio.CancelledError

    async with ServerManager(one(slow()), approver=Cancelled()) as manager:
        with pytest.raises(ServerNotApprovedError, match="the approver failed with CancelledError"):
            await manager.connect("slow")
        await anyio.sleep(0.01)
    await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_tool_that_raises_a_cancellation_fails_its_own_call_only(anyio_backend: str) -> None:
    server = MCPServer("odd")

    @server.tool()
    async def cancel() -> str:
        """Cancel"""
        raise asyncio.CancelledError

    @server.tool()
    async def fine() -> str:
        """Work"""
        return "fine"

    config = one(ServerConfig(name="odd", transport="in_process", server=server))
    async with ServerManager(config, approver=ApproveAll()) as manager:
        with pytest.raises(ToolbridgeError):
            await manager.call("odd", "cancel", {})
        assert (await manager.call("odd", "fine", {}))["content"][0]["text"] == "fine"


async def test_an_approver_must_answer_with_an_approval() -> None:
    class Yes:
        async def approve(self, request: ApprovalRequest) -> bool:
            return True

    approver: Any = Yes()
    async with ServerManager(one(slow()), approver=approver) as manager:
        with pytest.raises(ServerNotApprovedError, match="answered with a bool, not an Approval"):
            await manager.connect("slow")


SCRIPT = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "instructions": "token " + os.environ.get("SEC", "")}
    elif message["method"] == "tools/list" and "SEC" in os.environ:
        secret = os.environ["SEC"]
        schema = {"type": "object", "properties": {"x": {"type": "string", "description": "like " + secret}}}
        answer["result"] = {"tools": [
            {"name": "tell", "description": "uses " + secret, "inputSchema": schema},
            {"name": "tool-" + secret, "inputSchema": {"type": "object"}},
        ]}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"""


def scripted(tmp_path: Path, **fields: Any) -> ServerConfig:
    import sys

    script = tmp_path / "server.py"
    script.write_text(SCRIPT)
    return ServerConfig(name="scripted", transport="stdio", command=sys.executable, args=(str(script),), **fields)


async def test_a_server_without_tools_or_a_name_of_its_own_is_connected(tmp_path: Path) -> None:
    async with ServerManager(one(scripted(tmp_path)), approver=ApproveAll()) as manager:
        listing = await manager.connect("scripted")
        assert (listing.tools, listing.problems, listing.server_name) == ((), (), "")
        assert manager.status("scripted").state == "connected"


async def test_a_token_that_a_server_repeats_is_neither_shown_nor_kept(tmp_path: Path) -> None:
    secret = "tok-VERYSECRET-1234567890"
    config = one(scripted(tmp_path, env={"SEC": "${SEC}"}))
    kept = tmp_path / "kept"
    environ = {"SEC": secret, "PATH": ""}
    async with ServerManager(config, approver=ApproveAll(), directory=kept, environ=environ) as manager:
        listing = await manager.connect("scripted")
        assert [tool.name for tool in listing.tools] == ["tell"]
        assert listing.tools[0].description == "uses ***"
        shown = f"{listing!r} {manager.status('scripted')!r} {manager.catalog!r}"
    assert secret not in shown
    (entry,) = kept.iterdir()
    assert secret not in entry.read_text()


async def test_the_refusal_of_a_respawn_does_not_grow(tmp_path: Path) -> None:
    import sys

    dead = ServerConfig(name="dead", transport="stdio", command=sys.executable, args=("-c", "raise SystemExit(7)"))
    async with ServerManager(one(dead, respawns=0), approver=ApproveAll()) as manager:
        with pytest.raises(ServerConnectError):
            await manager.connect("dead")
        messages: set[str] = set()
        for _ in range(3):
            with pytest.raises(ServerRespawnError) as caught:
                await manager.connect("dead")
            messages.add(str(caught.value))
        assert len(messages) == 1
        assert "status 7" in messages.pop()


async def test_the_hosts_own_mistakes_are_not_the_servers() -> None:
    async with ServerManager(one(slow()), approver=ApproveAll()) as manager:
        for tool, arguments, timeout in [
            (None, {}, None),
            ("wait", [1], None),
            ("wait", {1: 2}, None),
            ("wait", {}, "5"),
        ]:
            wrong: Any = (tool, arguments)
            when: Any = timeout
            with pytest.raises(MisuseError):
                await manager.call("slow", *wrong, timeout=when)
        with pytest.raises(ServerTimeoutError, match="was not called: no time is left"):
            await manager.call("slow", "wait", {}, timeout=0)
        with pytest.raises(ToolbridgeError, match="entered once"):
            await manager.__aenter__()
    unentered = ServerManager(one(slow()), approver=ApproveAll())
    with pytest.raises(ToolbridgeError, match="inside `async with`"):
        await unentered.connect("slow")


async def test_arguments_that_are_no_json_are_the_hosts_mistake(tmp_path: Path) -> None:
    config = one(scripted(tmp_path, env={"SEC": "12345678"}))
    cyclic: dict[str, Any] = {}
    cyclic["self"] = cyclic
    async with ServerManager(config, approver=ApproveAll()) as manager:
        for arguments in ({"x": b"bytes"}, {"x": float("nan")}, cyclic, {"x": {1, 2}}):
            with pytest.raises(MisuseError, match="arguments"):
                await manager.call("scripted", "tell", arguments)


@pytest.mark.parametrize(
    ("program", "advice"),
    [
        ("npx", "fetched first takes long once: try again, or raise its `connectTimeout`"),
        ("server", "If it needs longer"),
    ],
)
async def test_a_server_that_takes_too_long_to_connect_is_told_of_with_what_to_do(
    program: str, advice: str, tmp_path: Path
) -> None:
    file = tmp_path / program
    file.write_text("#!/bin/sh\necho Fetching. >&2\nexec sleep 60\n")
    file.chmod(0o700)
    server = ServerConfig(name="late", transport="stdio", command=str(file), connect_timeout=0.7)
    async with ServerManager(one(server, close_seconds=0.2), approver=ApproveAll()) as manager:
        with (
            anyio.fail_after(60),
            pytest.raises(ServerTimeoutError, match=r"within 0\.7 s: it last .* Fetching\. ") as caught,
        ):
            await manager.connect("late")
    assert advice in str(caught.value)
