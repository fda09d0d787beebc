"""Taking over a changed configuration while a runtime is open."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from observe.recorder import Recorder
from runtime.worlds import ApproveAll, check_failure, runtime_of, value_of, weather, weather_process
from toolbridge import Config, ConfigError, Runtime, open_runtime
from toolbridge.events import StateChanged, ToolsChanged

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def write(file: Path, *names: str) -> Path:
    file.write_text(json.dumps({"mcpServers": {name: {"command": "never-started"} for name in names}}))
    return file


def names(runtime: Runtime) -> list[str]:
    return [status.name for status in runtime.servers.statuses()]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a file that is found by looking, and is the current one."""
    write(tmp_path / "toolbridge.json", "found")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("TOOLBRIDGE_CONFIG_DIR", str(tmp_path / "user"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("given", ["other.json", None])
async def test_a_reload_reads_what_the_runtime_was_opened_with_wherever_it_is_now(
    given: str | None, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(project / (given or "toolbridge.json"), "first")
    async with open_runtime(given, directory=project / "cache") as runtime:
        assert names(runtime) == ["first"]
        write(file, "first", "second")
        monkeypatch.chdir(project / "elsewhere")
        await runtime.reload()
        assert names(runtime) == ["first", "second"]


async def test_a_reload_from_another_file_goes_on_with_that_one(project: Path) -> None:
    first, second = write(project / "first.json", "a"), write(project / "second.json", "b")
    async with open_runtime(first, directory=project / "cache") as runtime:
        await runtime.reload(second)
        write(second, "b", "c")
        await runtime.reload()
        assert names(runtime) == ["b", "c"]


async def test_a_reload_of_a_broken_file_changes_nothing(project: Path) -> None:
    file = write(project / "mine.json", "a")
    async with open_runtime(file, directory=project / "cache") as runtime:
        with pytest.raises(ConfigError, match="no such file"):
            await runtime.reload(project / "missing.json")
        file.write_text("{")
        with pytest.raises(ConfigError, match="is not JSON"):
            await runtime.reload()
        assert names(runtime) == ["a"]
        write(file, "a", "b")
        await runtime.reload()
        assert names(runtime) == ["a", "b"]


async def test_a_configuration_made_in_code_stays_connected_and_is_not_looked_for_in_files(project: Path) -> None:
    config = Config.of(weather())
    async with open_runtime(config, approver=ApproveAll(), directory=project / "cache") as runtime:
        await runtime.start_all()
        await runtime.reload()
        assert [(status.name, status.state) for status in runtime.servers.statuses()] == [("weather", "connected")]


async def test_a_function_that_a_session_holds_calls_its_server_as_it_is_configured_now(tmp_path: Path) -> None:
    async with runtime_of(tmp_path, weather(), pins="none") as runtime, runtime.session() as session:
        await session.run('import { list_stations } from "host:mcp-weather"; list_stations()')
        await runtime.reload(Config.of(weather_process()))
        assert runtime.servers.listing("weather") is None
        assert value_of(await session.run("list_stations().length")) == 3


NEUTRAL: dict[str, Any] = {
    "description": "Forecasts",
    "display_name": "Weather",
    "deny_tools": ("get_alerts",),
    "allow_tools": ("get_forecast", "list_stations"),
    "labels": ("untrusted",),
    "call_timeout": 7.0,
    "connect_timeout": 7.0,
    "reading": "literal",
    "output_schemas": {"get_alerts": {"type": "string"}},
}


@pytest.mark.parametrize("field", NEUTRAL)
async def test_a_server_of_which_only_what_is_shown_changed_stays_connected(field: str, tmp_path: Path) -> None:
    server, told = weather(), Recorder()
    async with runtime_of(tmp_path, server, observers=[told]) as runtime:
        await runtime.start_all()
        before = len(told.of(StateChanged))
        await runtime.reload(Config.of(replace(server, **{field: NEUTRAL[field]})))
        assert len(told.of(StateChanged)) == before
        assert runtime.servers.status("weather").state == "connected"
        assert getattr(runtime.servers.config_of("weather"), field) == NEUTRAL[field]
        exposed = {tool.name for tool in runtime.catalog.tools}
        assert ("get_alerts" in exposed) == (field not in ("deny_tools", "allow_tools"))
        result = await runtime.run('require("host:mcp-weather").get_forecast({ location: "Oslo" })')
        assert result.failure is None
        if field == "deny_tools":
            assert len(told.of(ToolsChanged)) >= 1
            check_failure(await runtime.run('require("host:mcp-weather").get_alerts({})'), "type")
        await runtime.reload(Config.of(replace(server, enabled=False)))
        assert runtime.servers.status("weather").state != "connected"
