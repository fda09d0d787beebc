"""T22, by nesting: toolbridge as its own server would run programs with new flow labels, budgets and limits."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cli.projects import COMMAND, Project
from runtime.worlds import ApproveAll
from serve.http_service import http_service_of
from serve.serving import service_of
from toolbridge import Config, Runtime, ServerConfig, load_config, open_runtime
from toolbridge.cli.call import command as call
from toolbridge.cli.run_program import run
from toolbridge.cli.serve import command as serve
from toolbridge.errors import ServerConnectError
from toolbridge.serve.service import CodeModeServer
from toolbridge.servers.stdio.process_tree import MARK

pytestmark = pytest.mark.anyio

COMMANDS = [
    "toolbridge serve",
    "/opt/tools/bin/toolbridge serve --config /project/toolbridge.json",
    "uvx toolbridge serve",
    "uvx --from toolbridge==1.2 toolbridge serve --no-ask",
    "uvx toolbridge@latest serve",
    "uvx toolbridge[all]>=1 serve",
    "uv tool run toolbridge serve",
    "uv run --directory /project toolbridge serve",
    "pipx run toolbridge serve",
    "python3 -m toolbridge serve",
    "python -m toolbridge.cli serve",
    "env DEBUG=1 toolbridge serve",
    "C:\\tools\\toolbridge.exe serve",
]
OTHERS = ["toolbridge-demo-weather serve", "node /src/toolbridge/server.js serve", "toolbridge list", "npx my-server ."]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def configured(directory: Path, command: str, *args: str) -> Config:
    entries = {"self": {"command": command, "args": args}, "other": {"command": "other"}}
    file = directory / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    return load_config(file, directory=directory)


@pytest.mark.parametrize("words", [each.split() for each in COMMANDS] + [["sh", "-c", "exec toolbridge serve"]])
def test_toolbridge_is_left_out_of_its_own_servers(tmp_path: Path, words: list[str]) -> None:
    config = configured(tmp_path, *words)
    assert list(config.servers) == ["other"]
    assert any("'self' is toolbridge itself, and is left out" in each for each in config.warnings)


@pytest.mark.parametrize("words", OTHERS)
def test_other_servers_stay(tmp_path: Path, words: str) -> None:
    assert list(configured(tmp_path, *words.split()).servers) == ["self", "other"]


def test_what_install_writes_is_left_out(tmp_path: Path) -> None:
    project = Project(tmp_path)
    assert project.run("install", "claude-code", "--project")[0] == 0
    assert "toolbridge" in (project.directory / ".mcp.json").read_text(encoding="utf-8")
    code, out, err = project.run("list", "--json")
    assert code == 0
    assert "is toolbridge itself" in err
    assert '"toolbridge"' not in out
    assert "is toolbridge itself" in project.run("doctor")[1]


@pytest.mark.parametrize("words", [["run", "program.js"], ["serve"], ["serve", "--http", "--port", "0"]])
def test_a_run_inside_a_run_is_refused(tmp_path: Path, words: list[str]) -> None:
    project = Project(tmp_path)
    project.configure({})
    project.write("1 + 1")
    project.environ[MARK] = "anything"
    code, out, err = project.run(*words)
    assert (code, out) == (2, "")
    assert "a run inside a run is refused" in err
    assert project.run("list")[0] == 0


@pytest.mark.parametrize(("command", "words"), [(call, ["weather.list_stations"]), (run, []), (serve, [])])
def test_commands_that_call_tools_look_for_the_mark(command: click.Command, words: list[str]) -> None:
    said = CliRunner(env={MARK: "anything"}).invoke(command, words)
    assert "a run inside a run is refused" in said.output


async def why_not(runtime: Runtime) -> str:
    async with runtime:
        with pytest.raises(ServerConnectError) as caught:
            await runtime.servers.connect("self")
    return str(caught.value)


@pytest.mark.parametrize("last", ["exec {command} serve", "unset {mark}; exec {command} serve"])
async def test_a_wrapper_script_does_not_help(tmp_path: Path, last: str) -> None:
    """Nor does an `env` that takes the mark away; without it, we are known by our name in the handshake."""
    script = tmp_path / "wrapper"
    command = " ".join(f"'{each}'" for each in COMMAND)
    script.write_text(f"#!/bin/sh\n{last.format(command=command, mark=MARK)}\n", encoding="utf-8")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    env = {"TOOLBRIDGE_STATE_DIR": str(tmp_path / "state"), "TOOLBRIDGE_CONFIG_DIR": str(tmp_path / "config"), MARK: ""}
    server = ServerConfig.stdio("self", str(script), env=env, cwd=str(tmp_path), connect_timeout=60)
    said = await why_not(open_runtime(Config.of(server), approver=ApproveAll(), directory=str(tmp_path / "cache")))
    assert "a run inside a run is refused" in said


async def test_our_own_address_does_not_help(tmp_path: Path) -> None:
    async with http_service_of(tmp_path / "inner") as http:
        server = ServerConfig.http("self", http.url)
        runtime = open_runtime(Config.of(server), approver=ApproveAll(), directory=str(tmp_path / "cache"))
        assert "is toolbridge itself: a run inside a run is refused" in await why_not(runtime)


async def test_our_own_object_does_not_help(tmp_path: Path) -> None:
    async with service_of(tmp_path / "inner") as service:
        server = ServerConfig.in_process("self", CodeModeServer(service))
        runtime = open_runtime(Config.of(server), approver=ApproveAll(), directory=str(tmp_path / "cache"))
        assert "is toolbridge itself: a run inside a run is refused" in await why_not(runtime)
