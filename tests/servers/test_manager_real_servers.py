"""Servers that others wrote, from npm and PyPI: connected, listed and called. Skipped where no registry is reached."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from registry_packages import node_modules, python_servers, sqlite_server
from servers.fault_expectations import text_of
from servers.fault_servers import manager_of
from servers.used_servers import LIMITS, call, tools_of, use_server
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import ToolRefusedError
from toolbridge.servers.manager import ServerManager

pytestmark = pytest.mark.slow  # real servers take a second or more to start

# ---- npm


def node_command(package: str, *args: str) -> tuple[str, tuple[str, ...]]:
    """How a package of the protocol's own servers is started, without npx."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    return node, (str(node_modules() / "@modelcontextprotocol" / package / "dist" / "index.js"), *args)


def node_server(package: str, *args: str, **env: str) -> ServerConfig:
    """The server of such a package."""
    command, arguments = node_command(package, *args)
    return ServerConfig(name="real", transport="stdio", command=command, args=arguments, env=env)


async def use_everything(manager: ServerManager) -> None:
    left_out = {"simulate-research-query": "can be called only as a task, which is not supported"}
    tools = await tools_of(manager, "real", left_out)
    assert {"echo", "get-sum", "get-tiny-image", "get-structured-content"} <= tools
    assert text_of(await call(manager, "real", "echo", message="Grüße")) == "Echo: Grüße"
    assert "42" in text_of(await call(manager, "real", "get-sum", a=20, b=22))
    picture = await call(manager, "real", "get-tiny-image")
    assert "image" in [block["type"] for block in picture["content"]]
    weather = await call(manager, "real", "get-structured-content", location="New York")
    assert weather["structuredContent"]["temperature"]
    texts = [f"message {number}" for number in range(50)]
    answers: dict[str, str] = {}

    async def echo(text: str) -> None:
        answers[text] = text_of(await call(manager, "real", "echo", message=text))

    async with anyio.create_task_group() as tasks:
        for text in texts:
            tasks.start_soon(echo, text)
    assert answers == {text: f"Echo: {text}" for text in texts}


def test_server_everything_by_stdio() -> None:
    use_server(node_server("server-everything"), use_everything)


@pytest.mark.parametrize(
    ("transport", "argument", "path"), [("http", "streamableHttp", "/mcp"), ("sse", "sse", "/sse")], ids=["http", "sse"]
)
def test_server_everything_over_the_network(transport: Literal["http", "sse"], argument: str, path: str) -> None:
    async def main() -> None:
        async with _listening("server-everything", argument) as port:
            server = ServerConfig(name="real", transport=transport, url=f"http://127.0.0.1:{port}{path}")
            async with manager_of([server], LIMITS) as manager:
                await use_everything(manager)

    anyio.run(main)


@asynccontextmanager
async def _listening(package: str, argument: str) -> AsyncGenerator[int]:
    """The port of a server of such a package that is running."""
    command, arguments = node_command(package, argument)
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    process = await anyio.open_process(
        [command, *arguments], env={**os.environ, "PORT": str(port)}, stdout=subprocess.DEVNULL
    )
    async with process:
        try:
            assert process.stderr is not None
            said = b""
            with anyio.fail_after(60):
                while str(port).encode() not in said:
                    said += await process.stderr.receive()
            yield port
        finally:
            process.kill()


def test_server_filesystem(tmp_path: Path) -> None:
    async def use(manager: ServerManager) -> None:
        assert {"read_text_file", "write_file", "list_directory"} <= await tools_of(manager, "real")
        file = tmp_path / "note.txt"
        await call(manager, "real", "write_file", path=str(file), content="line 1\nline 2\u2028still line 2\n")
        assert file.read_text(encoding="utf-8") == "line 1\nline 2\u2028still line 2\n"
        assert text_of(await call(manager, "real", "read_text_file", path=str(file))) == file.read_text(
            encoding="utf-8"
        )
        outside = await manager.call("real", "read_text_file", {"path": "/etc/hostname"})
        assert outside["isError"] is True

    use_server(node_server("server-filesystem", str(tmp_path)), use)


def test_server_memory(tmp_path: Path) -> None:
    async def use(manager: ServerManager) -> None:
        assert {"create_entities", "read_graph", "search_nodes"} <= await tools_of(manager, "real")
        ada = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}
        await call(manager, "real", "create_entities", entities=[ada])
        found = await call(manager, "real", "search_nodes", query="program")
        assert json.loads(text_of(found))["entities"][0]["name"] == "Ada"

    use_server(node_server("server-memory", MEMORY_FILE_PATH=str(tmp_path / "memory.jsonl")), use)


def test_server_gitlab_is_listed_whatever_its_schemas_lack() -> None:
    """Depending on what npm puts next to it, its schemas have a type or not; the SDK's client refuses those without."""
    gitlab = node_server("server-gitlab", GITLAB_PERSONAL_ACCESS_TOKEN="none", GITLAB_API_URL="http://127.0.0.1:9/")
    raw = _listed_raw(gitlab)
    assert {"create_repository", "create_issue", "push_files", "search_repositories"} <= set(raw)

    async def use(manager: ServerManager) -> None:
        listing = await manager.connect("real")
        assert {tool.name for tool in listing.tools} == set(raw)
        assert {problem.tool for problem in listing.problems} == {name for name in raw if "type" not in raw[name]}
        # Nobody listens at the address it is given.
        with pytest.raises(ToolRefusedError, match="ECONNREFUSED"):
            await manager.call("real", "search_repositories", {"search": "x"})

    use_server(gitlab, use)


def _listed_raw(server: ServerConfig) -> dict[str, dict[str, Any]]:
    """The input schemas of a server's tools, as it sends them."""
    assert server.command is not None
    handshake = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": handshake},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    with subprocess.Popen(
        [server.command, *server.args],
        env={**os.environ, **server.env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write("".join(json.dumps(message) + "\n" for message in messages).encode())
            process.stdin.flush()
            answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        finally:
            process.kill()
    return {tool["name"]: tool["inputSchema"] for tool in answers[1]["result"]["tools"]}


# ---- PyPI


def python_server(command: str, *args: str, programs: Path | None = None) -> ServerConfig:
    """A server from PyPI, without uvx."""
    path = (programs or python_servers()) / command
    return ServerConfig(name="real", transport="stdio", command=str(path), args=args)


def test_mcp_server_git(tmp_path: Path) -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    subprocess.run([git, "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "new.txt").write_text("new")

    async def use(manager: ServerManager) -> None:
        assert {"git_status", "git_log", "git_add"} <= await tools_of(manager, "real")
        assert "new.txt" in text_of(await call(manager, "real", "git_status", repo_path=str(tmp_path)))
        await call(manager, "real", "git_add", repo_path=str(tmp_path), files=["new.txt"])
        staged = await call(manager, "real", "git_diff_staged", repo_path=str(tmp_path))
        assert "+new" in text_of(staged)

    use_server(python_server("mcp-server-git", "--repository", str(tmp_path)), use)


def test_mcp_server_time() -> None:
    async def use(manager: ServerManager) -> None:
        assert {"get_current_time", "convert_time"} <= await tools_of(manager, "real")
        question = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        converted = json.loads(text_of(await call(manager, "real", "convert_time", **question)))
        assert converted["target"]["datetime"].split("T")[1].startswith("21:00")
        nowhere = await manager.call("real", "get_current_time", {"timezone": "Nowhere/Land"})
        assert nowhere["isError"] is True

    use_server(python_server("mcp-server-time", "--local-timezone", "UTC"), use)


def test_mcp_server_sqlite(tmp_path: Path) -> None:
    async def use(manager: ServerManager) -> None:
        assert {"read_query", "write_query", "create_table"} <= await tools_of(manager, "real")
        await call(manager, "real", "create_table", query="CREATE TABLE town (name TEXT, people INTEGER)")
        await call(manager, "real", "write_query", query="INSERT INTO town VALUES ('Oslo', 700000)")
        rows = await call(manager, "real", "read_query", query="SELECT * FROM town")
        assert "Oslo" in text_of(rows)

    database = str(tmp_path / "towns.db")
    use_server(python_server("mcp-server-sqlite", "--db-path", database, programs=sqlite_server()), use)
