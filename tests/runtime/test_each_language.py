"""What the host does about calls is the same for both languages: events, records, gate, flows, faults, handles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from observe.recorder import Recorder
from runtime.leftovers import nothing_left
from runtime.moments import SOON
from runtime.programs import LANGUAGES, Program, in_each_language
from runtime.worlds import check_failure, patient_runtime_of, runtime_of, value_of, weather
from servers.fault_servers import fault_server
from threats.gated_servers import Reached, gated
from toolbridge import Limits, ToolUse
from toolbridge.events import CallEnded, CallStarted, DecisionMade, RunEnded, RunStarted
from toolbridge.runtime import Language

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


MIXED = Program(
    """
    import { get_forecast, fail, list_stations } from "host:mcp-weather";
    get_forecast({ location: "Oslo", days: 1 });
    try { fail({ message: "no" }) } catch (error) {}
    try { get_forecast({ days: 1 }) } catch (error) {}
    list_stations().length
    """,
    """
from host.bridge import ToolError
from host.mcp_weather import get_forecast, fail, list_stations
get_forecast(location="Oslo", days=1)
try: fail(message="no")
except ToolError: pass
try: get_forecast(days=1)
except ToolError: pass
len(list_stations())
    """,
)
LEFT_ALONE = Program(
    'import { slow } from "host:mcp-weather/async"; slow({ seconds: 30 }); throw new Error("stop")',
    "import asyncio\nfrom host.mcp_weather.aio import slow\ntask = asyncio.ensure_future(slow(seconds=30))\n"
    "await asyncio.sleep(0)\nraise ValueError('stop')",
)


async def told(directory: Path, program: Program, language: Language) -> tuple[Recorder, Any]:
    recorder = Recorder()
    async with runtime_of(directory, weather(), observers=[recorder]) as runtime:
        await runtime.start_all()
        result = await runtime.run(program.of(language), language=language, check=False)  # it has mistakes in it
    return recorder, result


@pytest.mark.parametrize("program", [MIXED, LEFT_ALONE], ids=["mixed", "left alone"])
async def test_observers_and_records_tell_the_same_story(tmp_path: Path, program: Program) -> None:
    stories: list[Any] = []
    for language in LANGUAGES:
        recorder, result = await told(tmp_path / language, program, language)
        assert recorder.broken_promises() == []
        (started,), (ended,) = recorder.of(RunStarted), recorder.of(RunEnded)
        assert started.language == language
        assert started.source_bytes == len(program.of(language).encode())
        calls = [(call.server, call.tool) for call in recorder.of(CallStarted)]
        decisions = [(each.tool, each.allowed, each.rule) for each in recorder.of(DecisionMade)]
        endings = [(each.tool, each.outcome) for each in recorder.of(CallEnded)]
        records = [(call.module, call.function, call.tool, call.outcome) for call in result.calls]
        stories.append((calls, decisions, endings, records, ended.outcome, ended.calls, result.servers, result.value))
    assert stories[0] == stories[1]
    assert stories[0][5] >= 1


SEND = Program(
    'import { send } from "host:mcp-mail"; let t; try { t = send({ text: "x" }) }'
    " catch (error) { t = [error.name, error.kind, error.server, error.tool] } t",
    "from host.mcp_mail import send\ntry: t = send(text='x')\n"
    "except Exception as error: t = [type(error).__name__, error.kind, error.server, error.tool]\nt",
)


@in_each_language
@pytest.mark.parametrize(
    "permissions", [{"deny": ["mcp__mail__send"]}, {"ask": ["mcp__mail__send"]}, {"default": "deny"}]
)
async def test_the_gate_denies_before_the_server_is_reached(
    tmp_path: Path, language: Language, permissions: dict[str, Any]
) -> None:
    reached = Reached()
    async with gated(tmp_path, reached.server("mail", {"send": {}}), **permissions) as runtime:
        result = await runtime.run(SEND.of(language), language=language)
    assert value_of(result) == ["ToolDeniedError", "denied", "mail", "send"]
    assert reached.calls == []
    assert [call.outcome for call in result.calls] == ["denied"]


@in_each_language
async def test_a_host_is_asked_with_the_tool_and_its_arguments(tmp_path: Path, language: Language) -> None:
    asked: list[tuple[str, str, Any]] = []

    async def can_use_tool(use: ToolUse) -> bool:
        asked.append((use.server, use.tool, dict(use.arguments)))
        return True

    reached = Reached()
    server = reached.server("mail", {"send": {}})
    async with gated(tmp_path, server, ask=["mcp__mail__*"], can_use_tool=can_use_tool) as runtime:
        assert value_of(await runtime.run(SEND.of(language), language=language)) == "mail did send"
    assert asked == [("mail", "send", {"text": "x"})]
    assert reached.calls == [("mail", "send")]


TRIFECTA = Program(
    'import { read } from "host:mcp-files"; import { page } from "host:mcp-web"; import { send } from "host:mcp-mail";'
    "read({}); page({}); send({})",
    "from host.mcp_files import read\nfrom host.mcp_web import page\nfrom host.mcp_mail import send\n"
    "read()\npage()\nsend()",
)


@in_each_language
async def test_private_data_and_strangers_words_do_not_leave_together(tmp_path: Path, language: Language) -> None:
    reached = Reached()
    servers = [
        reached.server("files", {"read": {"readOnlyHint": True}}, "private"),
        reached.server("web", {"page": {"readOnlyHint": True}}, "untrusted"),
        reached.server("mail", {"send": {"readOnlyHint": True, "openWorldHint": False}}, "external"),
    ]
    async with gated(tmp_path, *servers) as runtime:
        result = await runtime.run(TRIFECTA.of(language), language=language)
    check_failure(result, "denied", "mcp__files__read", "mcp__web__page", "mcp__mail__send")
    assert sorted(reached.calls) == [("files", "read"), ("web", "page")]


MORTAL = Program(
    'import { faulty, echo } from "host:mcp-mortal"; let t; try { faulty({ text: "x" }) }'
    ' catch (error) { t = [error.name, error.kind, error.server, error.tool] } [t, echo({ text: "again" })]',
    "from host.mcp_mortal import faulty, echo\ntry: faulty(text='x')\n"
    "except Exception as error: t = [type(error).__name__, error.kind, error.server, error.tool]\n"
    "[t, echo(text='again')]",
)


@in_each_language
async def test_a_server_that_dies_in_a_call_fails_that_call_and_is_there_for_the_next(
    tmp_path: Path, language: Language
) -> None:
    server = "mortal"
    async with (
        nothing_left() as word,
        patient_runtime_of(tmp_path, fault_server(server, "kill-at-call", word)) as runtime,
    ):
        await runtime.run("1", language=language)  # a first use of the engine may take a while
        with anyio.fail_after(SOON):
            result = await runtime.run(MORTAL.of(language), language=language)
    assert value_of(result) == [["ToolDisconnectedError", "disconnected", "mortal", "faulty"], "again"]
    assert [(call.tool, call.outcome) for call in result.calls] == [("faulty", "disconnected"), ("echo", "ok")]


ODD_BYTES = Program(
    'import { faulty, echo } from "host:mcp-latin"; [faulty({ text: "x" }), echo({ text: "y" })]',
    "from host.mcp_latin import faulty, echo\n[faulty(text='x'), echo(text='y')]",
)


@in_each_language
@pytest.mark.parametrize(
    ("mode", "text", "notes"),
    [
        ("invalid-utf8-answer", "caf\ufffd \ufffd", ("bytes that are not UTF-8 are given as U+FFFD",)),
        ("encoded-surrogate", "a\ufffd\ufffd\ufffdb", ("bytes that are not UTF-8 are given as U+FFFD",)),
        ("lone-surrogates", "a\ufffdb\ufffdc", ()),
    ],
)
async def test_a_result_that_is_not_utf8_arrives_with_replacements_and_a_note(
    tmp_path: Path, language: Language, mode: str, text: str, notes: tuple[str, ...]
) -> None:
    async with patient_runtime_of(tmp_path, fault_server("latin", mode)) as runtime:
        result = await runtime.run(ODD_BYTES.of(language), language=language)
    assert value_of(result) == [text, "y"]
    assert [call.notes for call in result.calls] == [notes, ()]


MANY = Program(
    'import { list_stations } from "host:mcp-weather"; for (;;) list_stations()',
    "from host.mcp_weather import list_stations\nwhile True: list_stations()",
)


@in_each_language
async def test_the_limit_of_calls_holds_and_what_was_done_is_told(tmp_path: Path, language: Language) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        result = await runtime.run(MANY.of(language), language=language, limits=Limits(host_calls=3))
    check_failure(result, "limit", "more than 3 host calls", "host:mcp-weather list_stations: ok")
    assert [call.outcome for call in result.calls] == ["ok"] * 3
