"""Sources made to be slow, deep or large: the type-check ends within the run's limits, and reports it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from check.corpus import world
from runtime.worlds import runtime_of, weather
from toolbridge import Limits, Sandbox
from toolbridge.check import checker
from toolbridge.check.checker import MOST_PROBLEMS, MOST_SOURCE, TOO_LARGE, Checker, SessionNames
from toolbridge.check.python import ty as python
from toolbridge.check.python.ty import ProcessTooLarge
from toolbridge.runtime import Language
from toolbridge.sandbox import typescript as compiler

pytestmark = pytest.mark.anyio

IMPORT = 'import { list_stations } from "host:mcp-weather";\n'
# Far above what the limits allow, for a machine that is busy.
SOON = 240

DEEP = {
    "parentheses": IMPORT + "(" * 49_000 + "1" + ")" * 49_000,
    "brackets": IMPORT + "[" * 99_000,
    "templates": IMPORT + "`${" * 33_000,
    "types": IMPORT + "type A = " + "[" * 49_000 + "]" * 49_000,
}
SLOW = {
    "a type that never ends": IMPORT
    + "type Deep<T> = T extends string ? Deep<[T, Deep<T[]>]> : Deep<{ a: T }>;\n"
    + "type Long<A extends any[]> = A['length'] extends 100000 ? A : Long<[...A, ...A, 1]>;\n"
    + "const deep: Deep<string> = null as any; const long: Long<[1]> = [] as any; deep.x; long.length",
    "a gigantic union": IMPORT
    + "type X = "
    + "|".join(f"{{k{i}:'{i}',v:{i}}}" for i in range(4500))
    + "; const a: X = 1 as any; const b: X = a; b",
    "statements by the thousand": "from host.mcp_weather import list_stations\n" + "ping();" * 14_000,
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def warning_of(source: str, language: str) -> str:
    stubs = world("python" if language == "python" else "typescript")
    with Sandbox() as sandbox, anyio.fail_after(SOON):
        report = (await Checker(sandbox).check(source, language, stubs)).report
    assert report.ok
    return report.warning


DEEP_CALLS: dict[Language, str] = {
    "javascript": 'require("host:mcp-weather").list_stations(); const deep = ' + "[" * 900 + "]" * 900,
    "typescript": 'require("host:mcp-weather").list_stations(); const deep: any = ' + "[" * 900 + "]" * 900,
    "python": "from host.mcp_weather import list_stations\nlist_stations()\nx = ''" + ".strip()" * 2_500,
}


async def unended_of(source: str, language: str) -> str:
    """Why the check of a program does not end."""
    stubs = world("python" if language == "python" else "typescript")
    limits = Limits(wall_seconds=SOON, cpu_seconds=SOON)
    with Sandbox() as sandbox, anyio.fail_after(SOON + 10):
        report = (await Checker(sandbox).check(source, language, stubs, limits=limits)).report
    assert report.failure is not None
    assert (report.failure.kind, report.is_checked, report.warning) == ("check_timeout", False, "")
    return report.failure.message


@pytest.mark.parametrize("title", DEEP)
async def test_deep_nesting_ends_the_check_and_the_run_with_a_failure(title: str) -> None:
    assert await unended_of(DEEP[title], "typescript") == TOO_LARGE
    with Sandbox() as sandbox:
        failure = (await sandbox.run(DEEP[title], language="typescript")).failure
        assert failure is not None
        assert (failure.kind, failure.line) == ("limit", None)
        assert failure.message.startswith("The program's types could not be removed, so nothing was run. ")
        assert (await sandbox.run("1 + 1", language="typescript")).value == 2


@pytest.mark.parametrize("limits", [Limits(wall_seconds=0.3), Limits(cpu_seconds=0.5)], ids=["wall", "cpu"])
@pytest.mark.parametrize("title", SLOW)
async def test_endless_work_is_stopped_at_the_limits_of_the_run(title: str, limits: Limits) -> None:
    source, language = SLOW[title], "python" if title.startswith("statements") else "typescript"
    stubs = world("python" if language == "python" else "typescript")
    with Sandbox() as sandbox, anyio.fail_after(SOON):
        report = (await Checker(sandbox).check(source, language, stubs, limits=limits)).report
    assert report.failure is not None
    assert (report.failure.kind, report.is_checked, report.warning) == ("check_timeout", False, "")
    assert report.failure.notes[0] == "The program was not run: no call was made."


@pytest.mark.parametrize(("language", "source"), DEEP_CALLS.items())
async def test_a_program_that_exhausts_its_check_makes_no_call(language: Language, source: str, tmp_path: Path) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        result = await runtime.run(source, language=language)
    assert result.failure is not None
    assert (result.failure.kind, result.failure.message, result.calls) == ("check_timeout", TOO_LARGE, ())


async def test_too_large_a_source_is_refused() -> None:
    source = IMPORT + "// " + "x" * MOST_SOURCE
    for language in ("javascript", "typescript", "python"):
        assert "longer than the 100,000 characters" in await unended_of(source, language)
    with Sandbox() as sandbox:
        failure = (await sandbox.run("x" * 10_000_000, language="typescript")).failure
    assert failure is not None
    assert failure.kind == "limit"
    assert "more than the limit of 8388608" in failure.message


async def test_a_compiler_out_of_memory_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "MOST_SOURCE", 400_000)
    monkeypatch.setattr(compiler, "COMPILER_LIMITS", compiler.COMPILER_LIMITS.with_(memory_bytes=130 * 2**20))
    source = IMPORT + "const a = [" + "{ a: 1, b: [2, 3] }," * 15_000 + "];"
    assert await unended_of(source, "typescript") == TOO_LARGE


PYTHON_IMPORT = "from host.mcp_weather import list_stations\n"


@pytest.mark.unchecked
@pytest.mark.parametrize(
    "source",
    [
        PYTHON_IMPORT + "x = " + "(" * 49_000 + "1" + ")" * 49_000,
        PYTHON_IMPORT + "x = " + "[" * 99_000,
        PYTHON_IMPORT + "from typing import Literal\nX = Literal[" + ",".join(map(str, range(17_000))) + "]\n",
        PYTHON_IMPORT
        + "class A[T]:\n  def g(self) -> 'A[A[T]]': ...\na = A[int]()\nwhile True:\n  a = (a.g(), a)[0]\n",
        PYTHON_IMPORT + "def f(x):\n  return [f(x), (f(x), f(x))]\n" * 50,
        PYTHON_IMPORT + "\0\ud800",
        PYTHON_IMPORT + "from host.bridge import parallel\n" + "parallel(" * 10_000,
        PYTHON_IMPORT + "from host.bridge import parallel\nparallel([" + "(list_stations, {" * 5_000,
        PYTHON_IMPORT + "a " * 49_000,
        PYTHON_IMPORT + "def f(" + "a: b, " * 16_000,
        PYTHON_IMPORT + "list_stations({'a': 1})\n" * 4_000,
        "from host.mcp_weather import " + ", ".join(["GetForecastInput"] * 5_000),
        PYTHON_IMPORT + "'\\" * 49_000,
    ],
    ids=[
        *("parentheses", "brackets", "union", "generic", "recursion", "no text", "calls", "pairs"),
        *("words", "annotations", "mistakes", "imports", "quotes"),
    ],
)
async def test_hostile_python_is_checked_or_refused(source: str) -> None:
    assert len(source) <= MOST_SOURCE
    with Sandbox() as sandbox, anyio.fail_after(SOON):
        limits = Limits(wall_seconds=SOON / 4)
        report = (await Checker(sandbox).check(source, "python", world("python"), limits=limits)).report
    assert len(report.problems) <= MOST_PROBLEMS
    SessionNames().add(source, "python", ())


@pytest.mark.unchecked
async def test_a_python_checker_without_enough_memory_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "_MEMORY_BYTES", 2**20)
    assert "the checker ended with exit code" in await warning_of(PYTHON_IMPORT, "python")


@pytest.mark.unchecked
async def test_malformed_output_of_a_python_checker_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def command(ty: str, directory: object, programs: object) -> list[str]:
        return ["/bin/echo", "surprise"]

    monkeypatch.setattr(python, "_command", command)
    assert "gave an answer that was not understood" in await warning_of(PYTHON_IMPORT, "python")


async def test_without_a_python_checker_a_program_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "find_ty", lambda: None)
    assert await warning_of(PYTHON_IMPORT, "python") == python.NO_TY


@pytest.mark.unchecked
@pytest.mark.parametrize("copes", [True, False])
async def test_a_checker_that_aborts_on_the_stubs_alone_does_not_stop_a_program(
    monkeypatch: pytest.MonkeyPatch, copes: bool
) -> None:
    async def aborts(command: Sequence[str], **options: object) -> bytes:
        if copes and "imports.py" in command:
            return b"[]"
        raise ProcessTooLarge("ran out of memory or stack")

    monkeypatch.setattr("toolbridge.check.python.ty.run_bounded", aborts)
    with Sandbox() as sandbox:
        report = (await Checker(sandbox).check(PYTHON_IMPORT + "list_stations()", "python", world("python"))).report
    if copes:
        assert report.failure is not None
        assert report.failure.message == TOO_LARGE
    else:
        assert (report.failure, report.is_checked) == (None, False)
        assert "the checker ran out of memory or stack" in report.warning
