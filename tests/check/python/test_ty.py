"""The subprocess of the Python checker: its isolation, its limits and its failures."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

from check.corpus import world
from servers.live_processes import left_after, processes_by_a_word
from toolbridge.check.python import ty as python
from toolbridge.check.python.ty import ProcessFailed, ProcessTooSlow, run_bounded

pytestmark = pytest.mark.anyio


async def run(directory: Path, *arguments: str, cpu_seconds: float = 30, most_output: int = 1000) -> bytes:
    return await run_bounded(
        [sys.executable, "-I", "-c", *arguments],
        directory=directory,
        environment={"GIVEN": "1"},
        cpu_seconds=cpu_seconds,
        memory_bytes=2**30,
        most_output=most_output,
    )


async def test_configuration_files_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ignoring = "[rules]\nall = 'ignore'\n"
    for place in (tmp_path / "ty.toml", tmp_path / "ty" / "ty.toml", tmp_path / ".config" / "ty" / "ty.toml"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(ignoring, encoding="utf-8")
    for name in ("HOME", "XDG_CONFIG_HOME", "TMPDIR", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("TY_CONFIG_FILE", str(tmp_path / "ty.toml"))
    monkeypatch.chdir(tmp_path)
    report = await python.check_python("from host.mcp_nothing import x\n", world("python"), None)
    assert [problem.rule for problem in report.problems] == ["import-not-found"]


async def test_installed_packages_are_invisible_to_a_program() -> None:
    report = await python.check_python("import pytest\nimport json\n", world("python"), None)
    assert [problem.message for problem in report.problems] == ["There is no module `pytest` in the sandbox."]


async def test_a_program_is_neither_imported_nor_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    source = f"open({str(mark)!r}, 'w').write('run')\nimport host.mcp_weather\n"
    assert (await python.check_python(source, world("python"), None)).ok
    assert not mark.exists()


async def test_a_check_leaves_no_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    await python.check_python("import host.mcp_weather\n", world("python"), None)
    assert os.listdir(tmp_path) == []


async def test_a_cancelled_check_leaves_no_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cancelled(*_: object, directory: Path, **__: object) -> bytes:
        assert directory.parent.parent == tmp_path
        scope.cancel()
        await anyio.sleep_forever()
        return b""

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(python, "run_bounded", cancelled)
    with anyio.CancelScope() as scope:
        await python.check_python("import host.mcp_weather\n", world("python"), None)
    assert scope.cancelled_caught
    assert os.listdir(tmp_path) == []


async def test_the_environment_is_not_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    names = (await run(tmp_path, "import os; print(*os.environ)")).decode().split()
    assert "GIVEN" in names
    assert not set(names) - {"GIVEN", "LC_CTYPE", "PWD", "SHLVL", "_", "OLDPWD"}  # the others are the shell's own


SLEEP = "import time; time.sleep(60)"
START_ANOTHER = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}, sys.argv[1]]); {SLEEP}"


@pytest.mark.skipif(os.name != "posix", reason="there is no such limit")
async def test_the_limit_of_cpu_time_stops_the_process(tmp_path: Path) -> None:
    with pytest.raises(ProcessTooSlow, match=r"took longer than 0\.5 s of CPU time"):
        await run(tmp_path, "while True: pass", cpu_seconds=0.5)


@pytest.mark.skipif(os.name != "posix", reason="processes are grouped in another way")
async def test_cancellation_kills_the_process_group(tmp_path: Path) -> None:
    with processes_by_a_word() as word:
        with anyio.move_on_after(1.5) as scope:
            await run(tmp_path, START_ANOTHER, word)
        assert scope.cancelled_caught
        assert await left_after(word, 5.0) == {}


async def test_too_much_output_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match="wrote more than 1000 bytes"):
        await run(tmp_path, "print('x' * 100000)")


async def test_a_crash_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match="ended with exit code 3"):
        await run(tmp_path, "raise SystemExit(3)")


async def test_a_missing_program_is_a_failure(tmp_path: Path) -> None:
    nothing = [str(tmp_path / "nothing")]
    with pytest.raises(ProcessFailed):
        await run_bounded(
            nothing, directory=tmp_path, environment={}, cpu_seconds=30, memory_bytes=2**30, most_output=9
        )
