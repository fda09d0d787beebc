"""Sources at work: tasks, profiles and sections change which modules a program has; observers hear of each once."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import anyio
import pytest

from observe.recorder import Recorder
from runtime.worlds import ApproveAll, check_failure, named, value_of
from sources.installed import Installed
from toolbridge import (
    ApprovalStore,
    Config,
    Runtime,
    Section,
    ServerConfig,
    StoredApprovals,
    load_config,
    open_runtime,
)
from toolbridge.errors import (
    ConfigError,
    LanguageError,
    MisuseError,
    SectionError,
    ServerNotApprovedError,
    UnknownServerError,
)
from toolbridge.events import ServerCollided, ServerIgnored, ServerRegistered
from toolbridge.prompt import Visibility, render
from toolbridge.sources import plugins

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


def opened(directory: Path, *servers: ServerConfig, **options: Any) -> Runtime:
    return open_runtime(Config.of(*servers), directory=directory, **options)


async def who(runtime: Runtime, name: str) -> str:
    return value_of(await runtime.run(f'require("host:mcp-{name}").who()'))


# ---- tasks and plugins


@pytest.fixture
def weather_plugin(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed plugin whose server is the friendly one."""
    entry = {
        "name": "weather",
        "command": sys.executable,
        "args": ["-m", "toolbridge.demo.weather"],
        "keywords": ["forecast"],
        "capabilities": ["weather"],
    }
    installed.offering("acme", repr([entry]))
    installed.offering("silent", "[]")
    installed.add("broken", "raise ValueError('no')")

    def found() -> Sequence[EntryPoint]:
        return installed.entry_points

    monkeypatch.setattr(plugins, "_installed", found)


@pytest.mark.usefixtures("weather_plugin")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_that_mentions_a_plugins_keyword_gets_its_server(tmp_path: Path) -> None:
    recorder = Recorder()
    approver = ApproveAll()
    async with opened(tmp_path, named("own"), observers=[recorder], approver=approver, pins="none") as runtime:
        assert list(runtime.config.servers) == ["own"]
        async with runtime.for_task("What is the forecast for Oslo?") as task:
            assert list(task.config.servers) == ["own", "acme__weather"]
            assert task.reasons["acme__weather"] == "the task mentions 'forecast'"
            stations = await task.run('require("host:mcp-acme__weather").list_stations().length')
            assert value_of(stations) > 0
            assert await who(task, "own") == "own"
        assert list(runtime.config.servers) == ["own"]
        assert approver.asked == ["acme__weather"]  # its own approval, and none for the host's own tools
    registered = [(event.server, event.origin) for event in recorder.of(ServerRegistered)]
    assert registered == [("own", "code"), ("own", "code"), ("acme__weather", "plugin (acme)")]
    assert [(event.server, event.reason) for event in recorder.of(ServerIgnored)] == [
        ("broken", "it raised ValueError: no")
    ]


@pytest.mark.usefixtures("weather_plugin")
async def test_a_plugins_server_needs_an_approval_of_its_own_and_the_command_for_it_is_told(tmp_path: Path) -> None:
    approver = StoredApprovals(ApprovalStore(tmp_path / "approvals"))
    async with opened(tmp_path, approver=approver) as runtime, runtime.for_task(capabilities=["Weather"]) as task:
        with pytest.raises(ServerNotApprovedError, match="toolbridge approve acme__weather"):
            await task.servers.connect("acme__weather")
        result = await task.run('require("host:mcp-acme__weather")')
        check_failure(result, "denied", "is not approved")


@pytest.mark.usefixtures("weather_plugin")
async def test_a_task_may_name_servers_and_bring_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path, named("own")) as runtime:
        async with runtime.for_task("", servers=["weather", "own", named("extra")]) as task:
            assert list(task.config.servers) == ["extra", "own", "acme__weather"]
            assert await who(task, "extra") == "extra"
        with pytest.raises(UnknownServerError, match="acme__weather"):
            async with runtime.for_task("", servers=["nowhere"]):
                pass
        wrong: list[dict[str, Any]] = [{"servers": "own"}, {"capabilities": "a"}, {"servers": [3]}]
        for arguments in wrong:
            with pytest.raises(MisuseError):
                runtime.for_task("", **arguments)
        with pytest.raises(MisuseError):
            runtime.for_task(3)  # pyright: ignore[reportArgumentType]


async def test_a_task_within_a_task_has_all_that_the_outer_one_has(tmp_path: Path) -> None:
    recorder = Recorder()
    async with (
        opened(tmp_path, named("a"), observers=[recorder]) as runtime,
        runtime.for_task("x", servers=[named("b")]) as outer,
        outer.for_task("y", servers=[named("c"), named("a")]) as inner,
    ):
        assert list(outer.config.servers) == ["b", "a"]
        assert list(inner.config.servers) == ["c", "a", "b"]
        assert await who(inner, "b") == "b"
        assert inner.reasons["b"] == "the outer task brings it"
    assert recorder.of(ServerCollided) == [ServerCollided("a", "code", "task")]


async def test_a_task_that_could_want_none_of_theirs_asks_no_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_policy: object) -> tuple[plugins.Plugin, ...]:
        raise AssertionError("plugins were asked")

    monkeypatch.setattr("toolbridge.composition.load_plugins", load)
    async with opened(tmp_path) as runtime, runtime.for_task(servers=[named("a")]) as task:
        assert list(task.config.servers) == ["a"]


# ---- sections


def prompt_of(*more: Section[Any]) -> Any:
    closed = Section("More", "more", "All.", summary="?", visibility=Visibility.SUMMARY, mcps=[named("more")])
    off = Section("Off", "off", enabled=False, mcps=[named("off")])
    return render([Section("Open", "open", mcps=[named("shown")]), closed, off, *more])


async def test_the_runtime_has_the_servers_of_what_is_shown_and_follows_when_more_is(tmp_path: Path) -> None:
    recorder = Recorder()
    async with opened(tmp_path, named("own"), prompt=prompt_of(), observers=[recorder]) as runtime:
        assert list(runtime.config.servers) == ["own", "shown"]
        assert await who(runtime, "shown") == "shown"
        check_failure(await runtime.run('require("host:mcp-more")'), "type", "There is no module")
        prompt = await runtime.open_sections(["more"])
        assert prompt.closed == ()
        assert runtime.prompt is prompt
        assert await who(runtime, "more") == "more"
        assert runtime.servers.status("shown").state == "connected"  # untouched
        check_failure(await runtime.run('require("host:mcp-off")'), "type", "There is no module")
        await runtime.follow_prompt(render([]))
        assert list(runtime.config.servers) == ["own"]
        check_failure(await runtime.run('require("host:mcp-more")'), "type", "There is no module")
    registered = [(event.server, event.reason) for event in recorder.of(ServerRegistered)]
    assert registered == [
        ("own", "it is configured"),
        ("shown", "the section 'open' declares it"),
        ("more", "the section 'more' declares it"),
    ]
    assert recorder.of(ServerCollided) == []


async def test_a_collision_is_told_once_however_often_the_servers_change(tmp_path: Path) -> None:
    recorder = Recorder()
    clash = Section("Clash", "clash", mcps=[named("own")])
    async with opened(tmp_path, named("own"), prompt=prompt_of(clash), observers=[recorder]) as runtime:
        assert await who(runtime, "own") == "own"
        await runtime.open_sections(["more"])
        await runtime.reload(Config.of(*runtime._current.own.servers.values()))
        async with runtime.for_task("x"):
            pass
    assert recorder.of(ServerCollided) == [ServerCollided("own", "section (clash)", "code")]


async def test_sections_are_opened_only_in_a_prompt_that_has_them(tmp_path: Path) -> None:
    async with opened(tmp_path, prompt=prompt_of()) as runtime:
        with pytest.raises(SectionError, match="Closed sections: more"):
            await runtime.open_sections(["nowhere"])
    async with opened(tmp_path) as runtime:
        with pytest.raises(SectionError, match="no prompt"):
            await runtime.open_sections(["more"])


async def test_a_server_of_a_section_can_be_revoked(tmp_path: Path) -> None:
    async with opened(tmp_path, prompt=prompt_of()) as runtime:
        await runtime.revoke("shown", approvals=ApprovalStore(tmp_path / "approvals"))
        assert list(runtime.config.servers) == []
        await runtime.open_sections(["more"])
        assert list(runtime.config.servers) == ["more"]


# ---- profiles


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_switching_profiles_connects_and_disconnects(tmp_path: Path) -> None:
    entry = {"command": sys.executable, "args": ["-m", "toolbridge.demo.weather"], "connectTimeout": 60}
    broken = {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"], "connectTimeout": 60}
    document = {
        "mcpServers": {"north": entry, "south": entry, "broken": broken},
        "profiles": {"a": {"servers": ["north"]}, "b": {"servers": ["south", "broken"]}},
    }
    file = tmp_path / "toolbridge.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    with anyio.fail_after(120):
        async with open_runtime(
            file, approver=ApproveAll(), directory=tmp_path / "cache", pins="none", profiles=["a"]
        ) as runtime:
            assert list(runtime.config.servers) == ["north"]
            await runtime.start_all()
            statuses = await runtime.switch_profiles("b")
            states = {status.name: status.state for status in statuses}
            assert states == {"south": "connected", "broken": "error"}
            await runtime.reload(file)
            assert list(runtime.config.servers) == ["south", "broken"]  # what was chosen stays chosen
            await runtime.reload(Config(gateway=False))
            assert runtime.list_modules() == ()
            await runtime.reload(file)
            assert list(runtime.config.servers) == ["south", "broken"]
            with pytest.raises(ConfigError, match="no profile 'c'"):
                await runtime.switch_profiles("c")
            assert list(runtime.config.servers) == ["south", "broken"]
            await runtime.switch_profiles()
            assert (dict(runtime.config.servers), runtime.list_modules()) == ({}, ())
    with pytest.raises(ConfigError, match="no profile 'c'"):
        open_runtime(load_config(file), profiles=["c"])


async def test_a_task_has_the_profiles_of_the_runtime_above_until_it_chooses_its_own(tmp_path: Path) -> None:
    file = tmp_path / "toolbridge.json"

    def write(*servers: str) -> None:
        document = {
            "mcpServers": {name: {"command": name} for name in servers},
            "profiles": {f"has-{name}": {"servers": [name]} for name in ("north", "south") if name in servers},
        }
        file.write_text(json.dumps(document), encoding="utf-8")

    write("north", "south", "west")
    async with open_runtime(file, directory=tmp_path / "cache") as runtime, runtime.for_task("x") as task:
        await runtime.switch_profiles("has-north")
        assert sorted(task.config.servers) == ["north", "west"]
        await task.switch_profiles("has-south")
        await runtime.switch_profiles()
        assert sorted(task.config.servers) == ["south", "west"]
        write("north", "south")
        await runtime.reload()
        assert (sorted(runtime.config.servers), sorted(task.config.servers)) == ([], ["south"])
        write("north", "west")
        await runtime.reload()
        assert sorted(task.config.servers) == ["west"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_server_that_another_profile_changes_is_connected_again_if_it_was(tmp_path: Path) -> None:
    entry = {"command": sys.executable, "args": ["-m", "toolbridge.demo.weather"], "connectTimeout": 60}
    document = {
        "mcpServers": {"used": entry, "idle": entry},
        "profiles": {
            name: {"servers": ["used", "idle"], "overrides": {each: {"env": {"A": name}} for each in ("used", "idle")}}
            for name in ("one", "two")
        },
    }
    file = tmp_path / "toolbridge.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    with anyio.fail_after(120):
        async with open_runtime(
            file, approver=ApproveAll(), directory=tmp_path / "cache", pins="none", profiles=["one"]
        ) as runtime:
            await runtime.servers.connect("used")
            statuses = await runtime.switch_profiles("two")
            assert {status.name: status.state for status in statuses} == {"used": "connected", "idle": "idle"}
            assert runtime.config.servers["used"].env == {"A": "two"}
            await runtime.switch_profiles("default")
            assert dict(runtime.config.servers) == {}


# ---- misuse


async def test_what_is_none_of_the_kind_is_told_with_what_was_given_and_what_is_expected(tmp_path: Path) -> None:
    prompt: Any = "text"
    with pytest.raises(MisuseError, match="prompt is of type str: expected a RenderedPrompt"):
        opened(tmp_path, prompt=prompt)
    for profiles, words in (
        ("one", "profiles is of type str: expected a list"),
        ([3], r"profiles\[0\] is of type int: expected the name of a profile"),
        (3, "profiles is of type int"),
    ):
        with pytest.raises(MisuseError, match=words):
            opened(tmp_path, profiles=profiles)
    async with opened(tmp_path, prompt=prompt_of(), profiles=["default"]) as runtime:
        with pytest.raises(MisuseError, match="prompt is of type str"):
            await runtime.follow_prompt(prompt)
        wrong: Any = ["g"]
        with pytest.raises(MisuseError, match=r"profiles\[0\] is of type list"):
            await runtime.switch_profiles(wrong)
        for paths, words in ((3, "paths is of type int"), ([3], r"paths\[0\] is of type int")):
            given: Any = paths
            with pytest.raises(MisuseError, match=words):
                await runtime.open_sections(given)
        wrongs: list[tuple[dict[str, Any], str]] = [
            ({"servers": None}, "servers is of type NoneType: expected a list"),
            ({"servers": [5]}, r"servers\[0\] is of type int: expected a ServerConfig or a name"),
            ({"capabilities": 5}, "capabilities is of type int"),
            ({"capabilities": ["a", 5]}, r"capabilities\[1\] is of type int: expected a text"),
        ]
        for arguments, words in wrongs:
            with pytest.raises(MisuseError, match=words):
                runtime.for_task("", **arguments)
        with pytest.raises(LanguageError, match="no stubs in 'javascript': expected typescript or python"):
            runtime.stubs("javascript")  # pyright: ignore[reportArgumentType]
