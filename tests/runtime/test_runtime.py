"""The whole way: a program, its calls of real servers, and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server import MCPServer

import toolbridge
from growth import patience
from runtime import programs
from runtime.moments import Moments, call_of
from runtime.programs import Program, in_each_language, on_each_backend_and_in_each_language
from runtime.worlds import ApproveAll, runtime_of, weather, weather_process
from toolbridge import (
    ApprovalRequest,
    ApprovalStore,
    Config,
    Limits,
    Permissions,
    RunResult,
    Runtime,
    Section,
    ServerConfig,
    create_server,
    open_runtime,
    tool,
)
from toolbridge.approval import Approval
from toolbridge.errors import (
    LanguageError,
    SandboxClosedError,
    SessionBusyError,
    ToolbridgeError,
    UnknownModuleError,
    UnknownServerError,
)
from toolbridge.events import CallEnded, CallStarted, RunEnded, RunStarted
from toolbridge.prompt import Visibility, render
from toolbridge.runtime import Language
from toolbridge.sandbox.engine import Guests
from toolbridge.sandbox.outcome import Dialect
from toolbridge.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


def value_of(result: RunResult) -> Any:
    assert result.failure is None, str(result.failure)
    return result.value


def shop() -> ServerConfig:
    """A server in this process."""
    server = MCPServer("shop")

    @server.tool()
    def price(item: str) -> float:
        """What an item costs."""
        return {"tea": 3.5, "cake": 4.25}[item]

    @server.tool()
    def stock() -> dict[str, int]:
        """What there is."""
        return {"tea": 7, "cake": 0}

    return ServerConfig.in_process("shop", server)


@on_each_backend_and_in_each_language
async def test_a_program_imports_a_module_and_calls_a_tool_synchronously(tmp_path: Path, language: Language) -> None:
    async with runtime_of(tmp_path, weather_process()) as runtime:
        result = await runtime.run(programs.FORECAST.of(language), language=language)
    value = value_of(result)
    assert value["location"] == "Austin, TX"
    assert len(value["days"]) == 3
    assert [(call.server, call.tool, call.outcome) for call in result.calls] == [("weather", "get_forecast", "ok")]
    assert result.servers == ("weather",)


async def test_the_same_by_import(tmp_path: Path) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        program = (
            'import { get_forecast } from "host:mcp-weather"; get_forecast({ location: "Oslo", days: 1 }).location'
        )
        assert value_of(await runtime.run(program)) == "Oslo"
        program = (
            'import * as w from "host:mcp-weather"; (await w.get_forecast({ location: "Oslo", days: 2 })).days.length'
        )
        assert value_of(await runtime.run(program)) == 2


@on_each_backend_and_in_each_language
async def test_two_servers_are_joined_in_one_program(tmp_path: Path, language: Language) -> None:
    approver = ApproveAll()
    async with runtime_of(tmp_path, weather(), shop(), approver=approver) as runtime:
        result = await runtime.run(programs.TWO_SERVERS.of(language), language=language)
    assert value_of(result) == {"stations": 3, "tea": 24.5}
    assert result.servers == ("weather", "shop")


@on_each_backend_and_in_each_language
async def test_calls_of_the_async_twin_overlap(tmp_path: Path, language: Language) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        await runtime.start_all()
        result = await runtime.run(programs.TEN_AT_ONCE.of(language), language=language)
    assert value_of(result) == ["Waited 0.5 s"] * 10
    # One after the other, the run would take as long as all of them.
    assert sum(call.seconds for call in result.calls) > 2 * result.usage.wall_seconds


@on_each_backend_and_in_each_language
async def test_a_server_starts_only_when_its_module_is_imported(tmp_path: Path, language: Language) -> None:
    approver = ApproveAll()
    async with runtime_of(tmp_path, weather_process(), approver=approver) as runtime:
        assert value_of(await runtime.run(programs.ONE_AND_ONE.of(language), language=language)) == 2
        assert (approver.asked, runtime.servers.status("weather").state) == ([], "idle")
        await runtime.run(programs.IMPORT.of(language), language=language)
        assert (approver.asked, runtime.servers.status("weather").state) == (["weather"], "connected")


@on_each_backend_and_in_each_language
async def test_without_an_approver_the_import_fails_and_says_why(tmp_path: Path, language: Language) -> None:
    async with open_runtime(Config.of(weather_process()), directory=tmp_path) as runtime:
        result = await runtime.run(programs.FORECAST.of(language), language=language)
    assert result.failure is not None
    assert result.failure.kind == "denied"
    assert "not approved" in result.failure.message
    assert result.calls == ()


async def test_a_misspelt_module_is_answered_with_the_nearest(tmp_path: Path) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        result = await runtime.run('import { get_forecast } from "host:mcp-wether"; 1')
        assert 'Did you mean "host:mcp-weather"?' in str(result.failure)
        result = await runtime.run('import { get_forcast } from "host:mcp-weather"; 1')
        assert 'Did you mean "get_forecast"?' in str(result.failure)
        result = await runtime.run("import host.mcp_wether", language="python")
        assert "Did you mean 'host.mcp_weather'?" in str(result.failure)
        result = await runtime.run("from host.mcp_weather import get_forcast", language="python")
        assert "Did you mean: 'get_forecast'?" in str(result.failure)


@on_each_backend_and_in_each_language
async def test_bad_arguments_never_reach_the_server_and_are_explained(tmp_path: Path, language: Language) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        result = await runtime.run(programs.BAD_ARGUMENTS.of(language), language=language, check=False)
    is_tool_error, kind, server, tool, message = value_of(result)
    assert (is_tool_error, kind, server, tool) == (True, "invalid_arguments", "weather", "get_forecast")
    assert "location: " in message
    assert "days: " in message
    declared = Program(
        "get_forecast(input: { location: string; days?: number })", "get_forecast(location: str, days: int = ...)"
    )
    assert declared.of(language) in message
    assert [call.outcome for call in result.calls] == ["invalid_arguments"]
    assert result.servers == ()


async def test_a_call_in_python_that_gives_no_names_is_told_to(tmp_path: Path) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        program = 'from host.mcp_weather import get_forecast\nget_forecast("Oslo")'
        checked = await runtime.run(program, language="python")
        result = await runtime.run(program, language="python", check=False)
    assert "it takes keyword arguments, or one dict." in str(checked.failure)
    text = str(result.failure)
    assert "it takes keyword arguments, or one dict. It is declared as get_forecast(location: str" in text


@on_each_backend_and_in_each_language
async def test_a_tools_own_error_is_a_tool_error_with_its_words(tmp_path: Path, language: Language) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        result = await runtime.run(programs.FAIL.of(language), language=language)
    assert result.failure is not None
    assert result.failure.kind == "raised"
    assert "no signal" in result.failure.message
    assert result.failure.line == 1
    assert "Calls already made" in str(result.failure)


@on_each_backend_and_in_each_language
async def test_errors_are_returned_if_so_configured(tmp_path: Path, language: Language) -> None:
    async with runtime_of(tmp_path, weather(), errors="return") as runtime:
        result = await runtime.run(programs.RETURNED_ERRORS.of(language), language=language, check=False)
        assert "error: string" in runtime.stubs("typescript")["mcp-weather.d.ts"]
        assert "error: string" in runtime.stubs("typescript", detail="compact")["mcp-weather.txt"]
        assert runtime.search("forecast")[0].signature.endswith(" | { error: string }")
    failed, refused = value_of(result)
    assert "no signal" in failed["error"]
    assert "location" in refused["error"]
    assert refused["error"].endswith(' | { "error": str }' if language == "python" else " | { error: string }")
    assert [call.outcome for call in result.calls] == ["failed", "invalid_arguments"]


@on_each_backend_and_in_each_language
async def test_a_call_that_takes_too_long_is_a_timeout_and_the_program_goes_on(
    tmp_path: Path, language: Language
) -> None:
    async with runtime_of(tmp_path, weather(), limits=Limits(call_seconds=0.3)) as runtime:
        result = await runtime.run(programs.LATE_CALL.of(language), language=language)
    assert value_of(result) == ["timeout", 3]


async def test_a_server_may_be_given_more_time_for_its_calls_than_others(tmp_path: Path) -> None:
    servers = weather(call_timeout=60), weather("quick")
    async with runtime_of(tmp_path, *servers, limits=Limits(call_seconds=0.3)) as runtime:
        result = await runtime.run("""
            import { slow } from "host:mcp-weather";
            import * as quick from "host:mcp-quick";
            const kind = (call) => { try { return typeof call(); } catch (error) { return error.kind; } };
            [kind(() => slow({ seconds: 1 })), kind(() => quick.slow({ seconds: 1 }))]
        """)
    assert value_of(result) == ["string", "timeout"]


@on_each_backend_and_in_each_language
async def test_the_run_ends_at_its_deadline_in_the_middle_of_a_call(tmp_path: Path, language: Language) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        await runtime.start_all()
        with anyio.fail_after(60):
            result = await runtime.run(
                programs.ENDLESS_CALL.of(language), language=language, limits=Limits(wall_seconds=0.5)
            )
    assert result.failure is not None
    assert result.failure.kind == "timeout"
    assert [(call.tool, call.outcome) for call in result.calls] == [("slow", "unfinished")]


async def test_an_engine_that_is_compiled_first_takes_none_of_the_calls_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[object] = []
    prepare = Sandbox._prepare

    async def compile_for_long(sandbox: Sandbox, dialect: Dialect, limits: Limits) -> Guests:
        if dialect not in compiled:
            compiled.append(dialect)
            await anyio.sleep(3.1)  # longer than the run may take
        return await prepare(sandbox, dialect, limits)

    async with runtime_of(tmp_path, weather()) as runtime:
        await runtime.start_all()
        monkeypatch.setattr(Sandbox, "_prepare", compile_for_long)
        result = await runtime.run(programs.STATIONS.javascript, limits=Limits(wall_seconds=3))
    assert value_of(result) == 3


@on_each_backend_and_in_each_language
async def test_a_session_keeps_its_state_and_its_modules(tmp_path: Path, language: Language) -> None:
    async with runtime_of(tmp_path, weather()) as runtime, runtime.session(language) as session:
        await session.run(programs.FIRST_TURN.of(language))
        result = await session.run(programs.SECOND_TURN.of(language))
        assert value_of(result) == "Austin"
        assert result.servers == ("weather",)


@on_each_backend_and_in_each_language
async def test_programs_run_at_the_same_time_without_mixing_up(tmp_path: Path, language: Language) -> None:
    places = [f"Place {number}" for number in range(12)]
    results: dict[str, Any] = {}
    async with runtime_of(tmp_path, weather()) as runtime, anyio.create_task_group() as tasks:

        async def ask(place: str) -> None:
            program = programs.forecast_at(place).of(language)
            results[place] = value_of(await runtime.run(program, language=language))

        for place in places:
            tasks.start_soon(ask, place)
    assert results == {place: place for place in places}


@on_each_backend_and_in_each_language
async def test_a_closed_runtime_ends_its_runs_and_takes_no_more(tmp_path: Path, language: Language) -> None:
    results: list[RunResult] = []
    moments = Moments()
    async with runtime_of(tmp_path, weather_process(), observers=[moments]) as runtime:
        await runtime.start_all()
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                results.append(await runtime.run(programs.ENDLESS_CALL.of(language), language=language))

            tasks.start_soon(run)
            with anyio.fail_after(60):
                await moments.wait_for(call_of("slow"))
                await runtime.close()
        await runtime.close()
        with pytest.raises(SandboxClosedError):
            await runtime.run("1")
    assert results[0].failure is not None
    assert results[0].failure.kind == "cancelled"


async def test_misuse_is_raised(tmp_path: Path) -> None:
    runtime = open_runtime(Config.of(weather()), directory=tmp_path)
    with pytest.raises(ToolbridgeError, match="async with"):
        await runtime.run("1")
    async with runtime:
        with pytest.raises(LanguageError):
            await runtime.run("1", language="cobol")  # pyright: ignore[reportArgumentType]
        with pytest.raises(UnknownModuleError, match="never connected"):
            runtime.module_info("host:mcp-weather")
        session = runtime.session()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.run, "await new Promise((done) => setTimeout(done, 300))")
            await anyio.sleep(0.05)
            with pytest.raises(SessionBusyError):
                await session.run("1")
    with pytest.raises(ToolbridgeError, match="once"):
        async with runtime:
            pass


async def test_a_second_program_of_a_busy_session_leaves_the_first_as_it_was(tmp_path: Path) -> None:
    reached, go_on = anyio.Event(), anyio.Event()
    slow = MCPServer("slow")

    @slow.tool(structured_output=False)
    async def wait() -> str:  # pyright: ignore[reportUnusedFunction]
        reached.set()
        await go_on.wait()
        return "waited"

    program = """
        const waited = require("host:mcp-slow").wait({});
        [waited, require("host:mcp-weather").get_forecast({ location: "Oslo" }).location]
    """
    recorder: list[object] = []
    results: list[RunResult] = []
    async with runtime_of(
        tmp_path, ServerConfig.in_process("slow", slow), weather(), observers=[recorder.append]
    ) as runtime:
        session = runtime.session()

        async def first() -> None:
            results.append(await session.run(program))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first)
            await reached.wait()
            with pytest.raises(SessionBusyError):
                await session.run("1")
            go_on.set()
    (result,) = results
    assert result.failure is None, str(result.failure)
    assert result.servers == ("slow", "weather")
    runs = {event.run for event in recorder if isinstance(event, (RunStarted, CallStarted, CallEnded, RunEnded))}
    assert len(runs) == 1


@on_each_backend_and_in_each_language
async def test_a_module_of_a_disabled_server_is_refused_with_that_reason(tmp_path: Path, language: Language) -> None:
    async with runtime_of(tmp_path, weather(enabled=False), shop()) as runtime:
        result = await runtime.run(programs.IMPORT.of(language), language=language)
        assert "Server 'weather' is disabled" in str(result.failure)
        assert "toolbridge enable weather" in str(result.failure)
        assert runtime.servers.status("weather").state == "idle"


MISTAKES: dict[str, Callable[[Runtime], Any]] = {
    "run a number": lambda runtime: runtime.run(5),  # pyright: ignore[reportArgumentType]
    "run with a number as limits": lambda runtime: runtime.run("1", limits=5),  # pyright: ignore[reportArgumentType]
    "run with a text as seed": lambda runtime: runtime.run("1", seed="x"),  # pyright: ignore[reportArgumentType]
    "session with a number as limits": lambda runtime: runtime.session(limits=5),  # pyright: ignore[reportArgumentType]
    "search for a number": lambda runtime: runtime.search(5),  # pyright: ignore[reportArgumentType]
    "stubs in Ruby": lambda runtime: runtime.stubs("ruby"),  # pyright: ignore[reportArgumentType]
    "reload a dictionary": lambda runtime: runtime.reload({}),  # pyright: ignore[reportArgumentType]
    "open a number": lambda _: open_runtime(5),  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_hosts_mistake_is_a_toolbridge_error(tmp_path: Path, mistake: Callable[[Runtime], Any]) -> None:
    async with runtime_of(tmp_path) as runtime:
        with pytest.raises(ToolbridgeError, match="expected"):
            await mistake(runtime)


@on_each_backend_and_in_each_language
async def test_the_time_that_a_person_takes_to_approve_a_server_is_not_the_runs(
    tmp_path: Path, language: Language
) -> None:
    class Slow:
        async def approve(self, request: ApprovalRequest) -> Approval:
            await anyio.sleep(3.3)  # longer than the run may take
            return Approval(True)

    async with runtime_of(tmp_path, weather(), approver=Slow(), limits=Limits(wall_seconds=3)) as runtime:
        assert value_of(await runtime.run(programs.STATIONS.of(language), language=language)) == 3


@on_each_backend_and_in_each_language
async def test_the_time_that_a_person_takes_to_answer_is_not_the_runs(tmp_path: Path, language: Language) -> None:
    config = Config.of(weather(), permissions=toolbridge.Permissions(ask=("mcp__weather__list_stations",)))
    seen: list[str] = []

    async def slowly(use: toolbridge.ToolUse) -> bool:
        seen.append(use.detail)
        await anyio.sleep(2.2)  # longer than the run may take
        return True

    async with runtime_of(tmp_path, config=config, can_use_tool=slowly, limits=Limits(wall_seconds=2)) as runtime:
        await runtime.start_all()
        result = await runtime.run(programs.STATIONS.of(language), language=language)
        assert value_of(result) == 3
        result = await runtime.run(programs.CALL_AND_LOOP.of(language), language=language)
        assert result.failure is not None
        assert result.failure.kind == "timeout"
        assert result.usage.wall_seconds < patience(4)
    assert seen == ["list_stations {}"] * 2


async def test_an_answer_that_never_comes_ends_with_its_own_limit(tmp_path: Path) -> None:
    config = Config.of(weather(), permissions=toolbridge.Permissions(ask=("mcp__weather__*",)))

    async def never(_: toolbridge.ToolUse) -> bool:
        await anyio.sleep_forever()
        return True

    limits = Limits(wall_seconds=0.3, ask_seconds=0.3)
    async with runtime_of(tmp_path, config=config, can_use_tool=never, limits=limits) as runtime:
        await runtime.start_all()
        with anyio.fail_after(60):
            result = await runtime.run('require("host:mcp-weather").list_stations()')
    assert result.failure is not None
    assert result.failure.kind == "timeout"


@on_each_backend_and_in_each_language
async def test_switching_the_gateway_off_closes_everything(tmp_path: Path, language: Language) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        program = programs.STATIONS.of(language)
        assert value_of(await runtime.run(program, language=language)) == 3
        await runtime.switch_gateway(on=False)
        assert runtime.list_modules() == ()
        assert runtime.catalog.modules == ()
        assert "There is no module" in str((await runtime.run(program, language=language)).failure)
        await runtime.switch_gateway(on=True)
        assert value_of(await runtime.run(program, language=language)) == 3


@on_each_backend_and_in_each_language
async def test_a_revoked_server_is_closed_and_its_module_is_gone(tmp_path: Path, language: Language) -> None:
    store = toolbridge.ApprovalStore(tmp_path / "approvals")
    async with runtime_of(tmp_path, weather(), shop()) as runtime:
        program = programs.STATIONS.of(language)
        assert value_of(await runtime.run(program, language=language)) == 3
        await runtime.revoke("weather", approvals=store)
        assert "There is no module" in str((await runtime.run(program, language=language)).failure)
        assert [module.server for module in runtime.list_modules()] == ["shop"]
        with pytest.raises(UnknownServerError):
            await runtime.revoke("weather", approvals=store)


async def test_what_there_is_can_be_asked_for(tmp_path: Path) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        assert [module.specifier for module in runtime.list_modules()] == ["host:mcp-weather"]
        await runtime.start_all()
        assert runtime.search("forecast", limit=3)[0].identifier == "get_forecast"
        assert "get_forecast" in runtime.module_info("host:mcp-weather").stub
        assert "host:mcp-weather" in runtime.system_prompt().text


@in_each_language
def test_a_script_runs_one_program_without_an_event_loop(tmp_path: Path, language: Language) -> None:
    result = toolbridge.run_sync(
        Config.of(weather_process()),
        programs.STATIONS.of(language),
        language=language,
        approver=ApproveAll(),
        directory=tmp_path,
    )
    assert value_of(result) == 3


async def test_a_script_inside_an_event_loop_is_told_what_to_use(tmp_path: Path) -> None:
    with pytest.raises(ToolbridgeError, match="open_runtime"):
        toolbridge.run_sync(Config.of(weather()), "1", directory=tmp_path)
    assert isinstance(open_runtime(Config.of(), directory=tmp_path), Runtime)


async def test_rules_that_match_no_tool_are_logged_once_and_told_with_each_result(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    permissions, warnings = (
        Permissions(deny=("mcp__own__pong",)),
        ("permissions.deny: 'mcp__own__pong' matches no tool.",),
    )
    config = Config.of(create_server("own", [tool("ping", "", None, lambda: "pong")]), permissions=permissions)
    async with open_runtime(config, directory=tmp_path) as runtime:
        for _ in range(2):
            result = await runtime.run('require("host:mcp-own").ping()')
            assert (result.value, result.warnings) == ("pong", warnings)
        async with runtime.session() as session:
            assert (await session.run("1")).warnings == warnings
    told = [record.getMessage() for record in caplog.records if record.getMessage().startswith("permissions.deny")]
    assert told[0] == "permissions.deny: 'mcp__own__pong' matches no tool."
    assert len(told) == len(set(told))


async def test_filters_that_match_no_tool_are_told_with_each_result(tmp_path: Path) -> None:
    own = create_server("own", [tool("ping", "", None, lambda: "pong")], allow_tools=["ping", "Ping"], deny_tools=["x"])
    async with open_runtime(Config.of(own), directory=tmp_path) as runtime:
        result = await runtime.run('require("host:mcp-own").ping()')
        assert (result.value, result.warnings) == (
            "pong",
            tuple(
                f"Server 'own': allowTools or denyTools names {name!r}, which it does not list."
                for name in ("Ping", "x")
            ),
        )
        await runtime.reload(Config.of(create_server("own", [tool("ping", "", None, lambda: "pong")])))
        assert (await runtime.run('require("host:mcp-own").ping()')).warnings == ()


async def test_rules_that_name_no_server_or_tool_are_told_when_the_runtime_is_opened(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    deny = ("mcp__gone__*", "mcp__own__pong", "mcp__acme__db__*", "mcp__own__ping")
    config = Config.of(
        create_server("own", [tool("ping", "", None, lambda: "pong")]), permissions=Permissions(deny=deny)
    )
    expected = [
        "permissions.deny: 'mcp__gone__*' names no server that is configured.",
        "permissions.deny: 'mcp__own__pong' matches no tool.",
    ]
    async with open_runtime(config, directory=tmp_path) as runtime:
        assert [record.getMessage() for record in caplog.records] == expected
        async with runtime.for_task("x"):
            pass
        await runtime.revoke("own", approvals=ApprovalStore(tmp_path / "approvals"))
        assert [record.getMessage() for record in caplog.records] == expected
        await runtime.reload(Config.of(permissions=Permissions(deny=("mcp__later__*",))))
        assert "'mcp__later__*' names no server" in caplog.records[-1].getMessage()
    caplog.clear()
    prompt = render([Section("More", "more", visibility=Visibility.SUMMARY, mcps=[create_server("gone", [])])])
    async with open_runtime(config, directory=tmp_path, prompt=prompt):
        assert [record.getMessage() for record in caplog.records] == expected[1:]


async def test_an_operators_schemas_are_of_tools_in_any_spelling(tmp_path: Path) -> None:
    own = create_server("my-own", [tool(name, "", None, lambda: 1) for name in ("one", "two-b", "three")])
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    spelt = {"mcp__my-own__one": schema, "my_own_two_b": schema, "three": schema}
    async with open_runtime(Config.of(replace(own, output_schemas=spelt)), directory=tmp_path) as runtime:
        assert [each.output_schema for each in runtime.catalog.tools] == [schema] * 3
        assert runtime.stub_set("typescript").diagnostics == ()
