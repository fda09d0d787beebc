"""Programs are checked before they run: a mistake makes no call, and a check that fails stops nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from runtime.worlds import ApproveAll, check_failure, runtime_of, value_of, weather
from toolbridge import ApprovalRequest, Limits, create_server, tool
from toolbridge.approval import Approval
from toolbridge.check.python import ty as python
from toolbridge.errors import GuestImageError
from toolbridge.events import CallStarted, Event, RunEnded
from toolbridge.runtime import Language
from toolbridge.sandbox import engine
from toolbridge_guest import GuestImage

pytestmark = pytest.mark.anyio

# The first call is right, and must not be made either.
IMPORTED = 'import { list_stations, get_forecast } from "host:mcp-weather";\nlist_stations();\n'
MISTAKEN: dict[Language, str] = {
    "javascript": f'{IMPORTED}get_forecast({{ locaton: "Oslo" }})',
    "typescript": f'{IMPORTED}const n: number = 1; get_forecast({{ locaton: "Oslo" }})',
    "python": 'from host.mcp_weather import list_stations, get_forecast\nlist_stations()\nget_forecast(locaton="Oslo")',
}
STATIONS: dict[Language, str] = {
    "javascript": 'require("host:mcp-weather").list_stations().length',
    "typescript": 'import { list_stations } from "host:mcp-weather"; const n: number = list_stations().length; n',
    "python": "from host.mcp_weather import list_stations\nlen(list_stations())",
}
LANGUAGES: tuple[Language, ...] = ("javascript", "typescript", "python")
in_every_language = pytest.mark.parametrize("language", LANGUAGES)


UNLISTED: dict[Language, str] = {
    "javascript": 'require("host:mcp-shop").order({ item: "tea", gift: true })',
    "typescript": 'import { order } from "host:mcp-shop";\nconst o: string = order({ item: "tea", gift: true });\no',
    "python": 'from host.mcp_shop import order\norder(item="tea", gift=True)',
}


@tool("order", "Order something.", {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]})
def order(arguments: dict[str, Any]) -> str:
    return ", ".join(arguments)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@in_every_language
async def test_an_unlisted_argument_is_a_mistake_unless_schemas_are_read_to_the_letter(
    tmp_path: Path, language: Language
) -> None:
    servers = create_server("shop", [order]), create_server("shop", [order], reading="literal")
    async with runtime_of(tmp_path, servers[0]) as intended, runtime_of(tmp_path, servers[1]) as literal:
        check_failure(await intended.run(UNLISTED[language], language=language), "type", "gift")
        assert value_of(await literal.run(UNLISTED[language], language=language)) == "item, gift"


@in_every_language
async def test_a_mistake_is_a_failure_of_kind_type_and_no_call_is_made(tmp_path: Path, language: Language) -> None:
    events: list[Event] = []
    async with runtime_of(tmp_path, weather(), observers=[events.append]) as runtime:
        result = await runtime.run(MISTAKEN[language], language=language)
    check_failure(result, "type", "locaton", "location", "The stub says", "no call was made")
    assert result.failure is not None
    assert result.failure.line == 3
    assert "> 3 |" in result.failure.excerpt
    assert (result.calls, result.servers) == ((), ())
    assert not any(isinstance(event, CallStarted) for event in events)
    assert [event.outcome for event in events if isinstance(event, RunEnded)] == ["type"]


@in_every_language
async def test_without_the_check_the_calls_before_a_mistake_are_made(tmp_path: Path, language: Language) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        result = await runtime.run(MISTAKEN[language], language=language, check=False)
    assert result.failure is not None
    assert result.failure.kind == "raised"
    assert [call.outcome for call in result.calls] == ["ok", "invalid_arguments"]


@in_every_language
async def test_a_correct_program_runs_and_a_check_says_nothing(tmp_path: Path, language: Language) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        report = await runtime.check(STATIONS[language], language=language)
        assert (report.ok, report.is_checked, report.warning) == (True, True, "")
        result = await runtime.run(STATIONS[language], language=language)
        assert (value_of(result), result.warnings) == (3, ())
        report = await runtime.check(MISTAKEN[language], language=language)
        assert [(problem.line, "location" in problem.message) for problem in report.problems] == [(3, True)]


@in_every_language
async def test_a_session_checks_with_what_came_before(tmp_path: Path, language: Language) -> None:
    declared = {"python": "from host.mcp_weather import get_forecast\ncity = 'Oslo'"}.get(
        language, 'import { get_forecast } from "host:mcp-weather"; const city = "Oslo";'
    )
    used = "get_forecast({ location: city }).days.length"
    if language == "python":
        used = "len(get_forecast(location=city)['days'])"
    async with runtime_of(tmp_path, weather()) as runtime, runtime.session(language) as session:
        assert (await session.run(declared)).failure is None
        assert value_of(await session.run(used)) == 3
        check_failure(await session.run(used.replace("location", "locaton")), "type", "locaton")
        assert value_of(await session.run(used)) == 3


@in_every_language
async def test_a_server_that_is_not_approved_is_for_the_run_to_speak_of(tmp_path: Path, language: Language) -> None:
    class Refuse:
        asked = 0

        async def approve(self, request: ApprovalRequest) -> Approval:
            self.asked += 1
            return Approval(False)

    refuse = Refuse()
    async with runtime_of(tmp_path, weather(), approver=refuse) as runtime:
        result = await runtime.run(STATIONS[language], language=language)
    check_failure(result, "denied", "not approved")
    assert refuse.asked == 1


async def test_a_program_that_calls_nothing_is_not_checked_and_connects_nothing(tmp_path: Path) -> None:
    approver = ApproveAll()
    async with runtime_of(tmp_path, weather(), approver=approver) as runtime:
        check_failure(await runtime.run("missing + 1"), "raised", "missing is not defined")
        assert not runtime._type_checks._stubs
    assert approver.asked == []


async def never(*_: object, **__: object) -> Any:
    await anyio.sleep_forever()


@in_every_language
async def test_a_check_that_does_not_end_is_a_failure_of_its_own_kind_and_nothing_runs(
    tmp_path: Path, language: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Event] = []
    opened = runtime_of(tmp_path, weather(), observers=[events.append])
    async with opened as runtime, runtime.session(language) as session:
        assert value_of(await session.run(STATIONS[language])) == 3
        events.clear()
        with monkeypatch.context() as patch:
            patch.setattr(runtime._sandbox, "ask_compiler", never)
            patch.setattr(python, "run_bounded", never)
            limits = Limits(wall_seconds=0.5)
            for result in (
                await runtime.run(STATIONS[language] + "\n", language=language, limits=limits),
                await session.run(STATIONS[language] + "\n", limits=limits),
            ):
                check_failure(result, "check_timeout", "did not end within the time of the run", "no call was made")
                assert (result.calls, result.warnings) == ((), ())
                assert result.usage.wall_seconds >= limits.wall_seconds
        assert not any(isinstance(event, CallStarted) for event in events)
        assert [event.outcome for event in events if isinstance(event, RunEnded)] == ["check_timeout"] * 2
        assert value_of(await session.run("1 + 2")) == 3


@in_every_language
async def test_an_advisory_check_keeps_no_program_from_running(
    tmp_path: Path, language: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    advice = "The program ran against the advice of its check: "
    async with runtime_of(tmp_path, weather()) as runtime:
        result = await runtime.run(MISTAKEN[language], language=language, check="advisory")
        assert [call.outcome for call in result.calls] == ["ok", "invalid_arguments"]
        assert result.warnings[0].startswith(f"{advice}Type error: ")
        assert result.warnings[0].endswith(" (line 3)")
        check_failure(await runtime.run(f"{STATIONS[language]} ^", language=language, check="advisory"), "syntax")
        monkeypatch.setattr(runtime._sandbox, "ask_compiler", never)
        monkeypatch.setattr(python, "run_bounded", never)
        limits = Limits(wall_seconds=8.0)
        result = await runtime.run(STATIONS[language], language=language, limits=limits, check="advisory")
        assert (value_of(result), result.usage.wall_seconds >= limits.wall_seconds / 2) == (3, True)
        assert result.warnings == (f"{advice}The type check did not end within the time of the run.",)


async def test_the_time_of_the_check_is_the_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        await runtime.start_all()
        ask = runtime._sandbox.ask_compiler

        async def slowly(request: str, run: Limits) -> Any:
            await anyio.sleep(1.0)
            return await ask(request, run)

        monkeypatch.setattr(runtime._sandbox, "ask_compiler", slowly)
        result = await runtime.run(f"{STATIONS['javascript']}; for (;;);", limits=Limits(wall_seconds=3.0))
        check_failure(result, "timeout", "The run took longer than 3 s.")
        assert result.usage.cpu_seconds <= 2.5  # what the check left it, and a tick


@pytest.mark.unchecked
async def test_a_python_checker_that_crashes_is_a_warning_and_the_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(ty: str, directory: object, programs: object) -> list[str]:
        return ["/bin/sh", "-c", "kill -SEGV $$"]

    monkeypatch.setattr(python, "_command", command)
    async with runtime_of(tmp_path, weather()) as runtime:
        result = await runtime.run(STATIONS["python"], language="python")
    assert value_of(result) == 3
    assert "the checker ended with exit code" in result.warnings[0]


@pytest.mark.unchecked
async def test_a_disk_that_takes_no_program_is_a_warning_and_the_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def write(files: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(python, "_write_project", write)
    async with runtime_of(tmp_path, weather()) as runtime:
        result = await runtime.run(STATIONS["python"], language="python")
    assert value_of(result) == 3
    warning = "The program was not checked before it ran: the check failed (No space left on device)."
    assert result.warnings == (warning,)
    assert [record for record in caplog.records if record.levelname != "DEBUG" and record.exc_info] == []


async def test_the_same_program_is_checked_once_until_the_tools_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    async with runtime_of(tmp_path, weather()) as runtime:
        ask = runtime._sandbox.ask_compiler

        async def count(request: str, run: Limits) -> Any:
            asked.append(request)
            return await ask(request, run)

        monkeypatch.setattr(runtime._sandbox, "ask_compiler", count)
        for _ in range(3):
            assert value_of(await runtime.run(STATIONS["typescript"], language="typescript")) == 3
        assert len(asked) == 1
        await runtime.run(STATIONS["javascript"])
        assert len(asked) == 2


async def test_without_the_image_javascript_runs_unchecked_and_a_check_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = engine.guest_image

    def guest_image(language: str) -> GuestImage | None:
        return None if language == "typescript" else find(language)

    monkeypatch.setattr(engine, "guest_image", guest_image)
    monkeypatch.setattr(engine, "_shared", None)
    async with runtime_of(tmp_path, weather()) as runtime:
        result = await runtime.run(STATIONS["javascript"])
        assert (value_of(result), result.warnings) == (3, ())
        report = await runtime.check(STATIONS["javascript"])
        assert (report.ok, report.is_checked, report.has_checker) == (True, False, False)
        assert "The TypeScript image is not built" in report.warning
        with pytest.raises(GuestImageError, match="has not been built"):
            await runtime.run(STATIONS["typescript"], language="typescript")


async def test_a_cancelled_check_ends_at_once_and_the_next_run_works(tmp_path: Path) -> None:
    slow = "type N<A extends any[]> = A['length'] extends 100000 ? A : N<[...A, 1]>; let n: N<[]> = [] as any; n"
    async with runtime_of(tmp_path, weather()) as runtime:
        await runtime.run(STATIONS["typescript"], language="typescript")
        with anyio.fail_after(60), anyio.move_on_after(0.02) as scope:
            await runtime.run(f"{STATIONS['typescript']};{slow}", language="typescript")
        assert scope.cancelled_caught
        assert value_of(await runtime.run(STATIONS["typescript"], language="typescript")) == 3
