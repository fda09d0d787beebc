"""The three tools, through a client of each era."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import anyio
import jsonschema
import pytest
from mcp.shared.exceptions import MCPError

from runtime.worlds import weather
from serve.serving import Era, call, client_of, run, service_of, text_of
from toolbridge import CallRecord, Limits, Permissions, RunResult, ToolContext, create_server, tool
from toolbridge.runtime import Language
from toolbridge.serve.definitions import MOST_VALUE
from toolbridge.serve.run_code import run_result
from toolbridge.serve.service import ServeOptions

pytestmark = pytest.mark.anyio

FORECAST = 'import { get_forecast } from "host:mcp-weather"; get_forecast({ location: "Oslo" }).days.length'


async def test_a_client_searches_describes_and_runs(tmp_path: Path, era: Era) -> None:
    async with service_of(tmp_path, weather()) as service, client_of(service, era) as client:
        found = await call(client, "search_tools", {"query": "forecast", "limit": 1})
        assert found.structured_content is not None
        (hit,) = found.structured_content["hits"]
        assert (hit["module"], hit["function"]) == ("host:mcp-weather", "get_forecast")
        assert "get_forecast(input: { location: string" in text_of(found)

        described = await call(client, "describe", {"names": ["weather.get_forecast"]})
        assert "export function get_forecast(input: GetForecastInput): GetForecastOutput;" in text_of(described)
        assert "get_alerts" not in text_of(described)
        in_python = await call(client, "describe", {"names": ["host:mcp-weather"], "language": "python"})
        assert "def get_forecast" in text_of(in_python)
        assert "def get_alerts" in text_of(in_python)

        result = await run(client, f'console.log("hello"); {FORECAST}')
        assert result == {
            "value": 3,
            "stdout": "hello\n",
            "stderr": "",
            "failure": None,
            "calls": [{"server": "weather", "tool": "get_forecast", "outcome": "ok"}],
            "servers": ["weather"],
            "notes": [],
            "session": None,
        }


async def test_tools_have_schemas_titles_and_annotations(tmp_path: Path, era: Era) -> None:
    async with service_of(tmp_path, weather()) as service, client_of(service, era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == [
            *("search_tools", "describe", "run_code"),
            *("list_mcp_servers", "mcp_server_info", "manage_mcp"),
        ]
        for tool in tools.values():
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            assert tool.output_schema is not None
            jsonschema.Draft202012Validator.check_schema(tool.output_schema)
            assert tool.title
            assert tool.annotations is not None
        languages = tools["run_code"].input_schema["properties"]["language"]["enum"]
        assert tuple(languages) == get_args(Language)
        assert client.instructions is not None
        assert "host:mcp-weather" in client.instructions


async def test_a_failing_program_comes_back_as_something_to_repair(tmp_path: Path, era: Era) -> None:
    async with service_of(tmp_path, weather()) as service, client_of(service, era) as client:
        result = await call(client, "run_code", {"code": 'require("host:mcp-weather").get_forcast({})'})
        assert result.is_error
        assert "Did you mean" in text_of(result)
        assert result.structured_content is not None
        assert result.structured_content["failure"]["kind"] == "type"
        assert result.structured_content["failure"]["line"] == 1


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("run_code", {}, "run_code needs the argument 'code'"),
        ("run_code", {"cod": "1"}, "Did you mean 'code'?"),
        ("run_code", {"code": 1}, "has to be a string"),
        ("run_code", {"code": "1", "language": "cobol"}, "has to be one of javascript"),
        ("run_code", {"code": "1", "timeout": 1e9}, "has to be a number from"),
        ("run_code", {"code": "1", "timeout": True}, "has to be a number from"),
        ("run_code", {"code": "1", "session": "mine"}, "There is no session 'mine'"),
        ("search_tools", {"query": "x", "limit": 0}, "has to be a number from 1 to 50"),
        ("describe", {"names": []}, "a list of 1 to 50 strings"),
        ("describe", {"names": [1]}, "a list of 1 to 50 strings"),
        ("describe", {"names": ["nothing"]}, "Unknown: nothing"),
        ("mcp_server_info", {"server": "nobody"}, "There is no server 'nobody'. Known: weather"),
        ("manage_mcp", {"server": "weather", "action": "destroy"}, "has to be one of connect"),
    ],
)
async def test_a_wrong_call_says_what_is_right(
    tmp_path: Path, name: str, arguments: dict[str, Any], words: str
) -> None:
    async with service_of(tmp_path, weather()) as service, client_of(service, "legacy") as client:
        result = await client.call_tool(name, arguments)
        assert result.is_error
        assert words in text_of(result)


async def test_an_unknown_tool_is_an_error_of_the_protocol(tmp_path: Path, era: Era) -> None:
    async with service_of(tmp_path) as service, client_of(service, era) as client:
        with pytest.raises(MCPError, match="Unknown tool: drop_tables"):
            await client.call_tool("drop_tables", {})


@pytest.mark.parametrize(
    ("code", "value", "words"),
    [
        ('"\\ud800 half"', "\ufffd half", ""),
        (f'"x".repeat({MOST_VALUE + 1})', None, "filter it in code. It begins: xxx"),
        ("let a = []; for (let n = 0; n < 100; n++) a = [a]; a", None, "nested more than 64 deep"),
        ("undefined", None, "(no value)"),
        ("0", 0, "0"),
        ('""', "", "(no value)"),
        ("({ a: [1, { b: null }] })", {"a": [1, {"b": None}]}, '{"a": [1, {"b": null}]}'),
    ],
)
async def test_every_value_has_a_form(tmp_path: Path, era: Era, code: str, value: Any, words: str) -> None:
    async with service_of(tmp_path) as service, client_of(service, era) as client:
        result = await call(client, "run_code", {"code": code})
        assert result.structured_content is not None
        assert result.structured_content["value"] == value
        assert words in text_of(result)


async def test_calls_inside_a_program_are_told_as_progress(tmp_path: Path, era: Era) -> None:
    told: list[tuple[float, str | None]] = []

    async def progress(number: float, _total: float | None, message: str | None) -> None:
        told.append((number, message))

    async with service_of(tmp_path, weather()) as service, client_of(service, era) as client:
        await call(client, "run_code", {"code": FORECAST}, progress_callback=progress)
        await anyio.wait_all_tasks_blocked()
    assert [number for number, _ in told] == [1.0, 2.0]
    assert told[0][1] == "weather.get_forecast …"
    assert (told[1][1] or "").startswith("weather.get_forecast: ok")


async def test_how_far_a_call_is_is_told_as_progress(tmp_path: Path, era: Era) -> None:
    told: list[str | None] = []

    async def progress(_number: float, _total: float | None, message: str | None) -> None:
        told.append(message)

    @tool
    def count_to(most: int, context: ToolContext) -> int:
        """Counts, and says so."""
        for number in range(most):
            context.progress(number, most, f"at\x1b[2J\n{number}")
        context.progress(most)
        return most

    server = create_server("counter", [count_to])
    async with service_of(tmp_path, server) as service, client_of(service, era) as client:
        code = 'require("host:mcp-counter").count_to({ most: 2 })'
        await call(client, "run_code", {"code": code}, progress_callback=progress)
        await anyio.wait_all_tasks_blocked()
    assert told[1:4] == [
        "counter.count_to: 0 of 2 at\\x1b[2J 0",
        "counter.count_to: 1 of 2 at\\x1b[2J 1",
        "counter.count_to: 2",
    ]


async def test_what_was_changed_about_a_call_is_noted(tmp_path: Path, era: Era) -> None:
    given = """JSON.parse('{ "location": "Oslo", "days": null }')"""
    code = f'require("host:mcp-weather").get_forecast({given}).days.length'
    async with service_of(tmp_path, weather()) as service, client_of(service, era) as client:
        result = await call(client, "run_code", {"code": code})
        assert result.structured_content is not None
        note = "weather.get_forecast: properties that were null are left out: 1"
        assert result.structured_content["notes"] == [note]
        assert note in text_of(result)


def test_warnings_and_notes_of_a_run_are_given_once_and_not_without_end() -> None:
    calls = tuple(
        CallRecord("m", "f", "ok", 0.0, 0, 0, "weather", "f", 0.0, (f"note {number % 30}",)) for number in range(90)
    )
    result = run_result(RunResult(value=1, calls=calls, warnings=("not checked",)), None)
    assert result.structured_content is not None
    notes = result.structured_content["notes"]
    assert notes[0] == "not checked"
    assert notes[1] == "weather.f: note 0"
    assert notes[-1] == "10 more notes are not listed."
    assert len(notes) == 22


async def test_cancelling_a_call_ends_the_guest(tmp_path: Path, era: Era) -> None:
    limits = Limits(wall_seconds=60, cpu_seconds=60)
    async with (
        service_of(tmp_path, options=ServeOptions(limits=limits)) as service,
        client_of(service, era) as client,
    ):
        with anyio.move_on_after(0.5):
            await client.call_tool("run_code", {"code": "for (;;) {}"})
        with anyio.fail_after(60):
            while service.watch.running:  # noqa: ASYNC110  # nobody tells when a guest has ended
                await anyio.sleep(0.01)
        assert (await run(client, "1 + 1"))["value"] == 2


async def test_a_program_ends_at_its_own_timeout(tmp_path: Path) -> None:
    async with service_of(tmp_path) as service, client_of(service, "legacy") as client:
        result = await run(client, "for (;;) {}", timeout=0.2)
        assert result["failure"]["kind"] == "timeout"


async def test_denied_calls_are_in_the_log(tmp_path: Path, era: Era) -> None:
    lines: list[str] = []

    async def log(params: Any) -> None:
        lines.append(f"{params.level} {params.data}")

    permissions = Permissions(deny=("mcp__weather__*",))
    async with (
        service_of(tmp_path, weather(), permissions=permissions) as service,
        client_of(service, era, logging_callback=log, log_level="info") as client,
    ):
        result = await run(client, FORECAST)
        assert "was denied" in result["failure"]["text"]
        await anyio.wait_all_tasks_blocked()
    assert any(line.startswith("warning weather.get_forecast was denied") for line in lines), lines


async def test_a_name_that_is_exact_is_not_taken_for_one_that_is_like_it(tmp_path: Path, era: Era) -> None:
    servers = [create_server(name, [tool("where", "", None, lambda: "here")]) for name in ("git-hub", "github")]
    async with service_of(tmp_path, *servers) as service, client_of(service, era) as client:
        for name in ("git-hub", "github"):
            described = text_of(await call(client, "describe", {"names": [name]}))
            assert f'declare module "host:mcp-{name}"' in described
            assert described.count("declare module") == 1
        assert 'declare module "host:mcp-git' in text_of(await call(client, "describe", {"names": ["Git_Hub"]}))
