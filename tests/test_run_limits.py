"""A run of pytest ends, and says what failed, whatever its tests do and wherever it was started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HANGING = """
import os, signal, subprocess, sys, threading
import anyio, pytest

CHILD = [sys.executable, "-c", "import time; time.sleep(600)"]

@pytest.fixture
def stuck():
    yield
    threading.Event().wait()

@pytest.mark.anyio
async def test_waiting(): await anyio.sleep_forever()
def test_locked(): threading.Event().wait()
def test_child():
    with subprocess.Popen([*CHILD, "child-of-WORD"]): pass
def test_teardown(stuck): subprocess.Popen([*CHILD, "orphan-of-WORD"])
def test_after(): pass
"""
LOST = """
import os
def test_before(): pass
def test_lost(): os._exit(1)
"""
SIGNALS = """
import subprocess, sys
SHOW = "import signal; print(*(signal.getsignal(n).__repr__() for n in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)))"
def test_signals():
    shown = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True).stdout
    assert "default_int_handler" in shown and "IGN" not in shown
"""
FILES = {"test_hanging": HANGING, "test_lost": LOST, "test_signals": SIGNALS, "test_a": LOST, "test_b": SIGNALS}
OPTIONS = ["-p", "no:cacheprovider", "-o", "timeout_method=signal", "-o", "timeout_func_only=true"]


def ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def run_pytest(directory: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A run of its own, of the files in a directory, started as nohup and cron do."""
    (directory / "conftest.py").write_text('pytest_plugins = ["run_limits"]\n')
    (directory / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", *OPTIONS, *options, str(directory)]
    own = {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST", "TOOLBRIDGE"))}
    environ = {**own, "PYTHONPATH": str(Path(__file__).parent), **variables}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, env=environ, preexec_fn=ignore_signals
    )


def words_of_processes() -> str:
    return subprocess.run(["ps", "-axww", "-o", "command="], capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_a_run_outlives_hanging_tests_and_lost_workers(tmp_path: Path) -> None:
    word = f"run-{os.getpid()}"
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text.replace("WORD", word))
    done = run_pytest(tmp_path, "--numprocesses=2", "--dist=loadfile", "--timeout=4")
    failed = sorted(line.split()[1] for line in done.stdout.splitlines() if line.startswith("FAILED "))
    hanging = ["child", "locked", "teardown", "waiting[asyncio]", "waiting[trio]"]
    lost = [f"{file}.py::test_lost" for file in ("test_a", "test_lost")]
    expected = sorted([*lost, *(f"test_hanging.py::test_{name}" for name in hanging)])
    assert [name.rpartition("/")[2] for name in failed] == expected, done.stdout
    assert f"{len(expected)} failed, 6 passed" in done.stdout
    assert word not in words_of_processes()


def test_a_run_that_stands_still_is_given_up_with_the_place_of_every_thread(tmp_path: Path) -> None:
    (tmp_path / "test_stuck.py").write_text("import threading\ndef test_stuck(): threading.Event().wait()\n")
    for seconds in (5, 20, 80):  # whichever lets the worker begin, on this machine
        done = run_pytest(tmp_path, "--numprocesses=1", "--timeout=200", TOOLBRIDGE_RUN_SECONDS=str(seconds))
        assert done.returncode == 1
        assert f"The run takes longer than {seconds} s and is given up." in done.stderr
        if "in test_stuck" in done.stderr:  # what the worker was at
            return
    pytest.fail(done.stderr)
