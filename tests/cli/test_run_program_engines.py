"""Compiling an engine: who waits for it sees so, can stop waiting, and hears what went wrong."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from observe.pseudo_terminal import PseudoTerminal
from toolbridge.cli.run_program import make_ready
from toolbridge.errors import GuestImageError
from toolbridge.sandbox import engine as engines

COMMAND = [sys.executable, "-c", "from toolbridge.cli import main; main()", "run"]
NOTICE = "Compiling the Python engine for this machine (once, 10 to 30 seconds) …"


class SlowEngine:
    """Stands in for the engine: it compiles until it is told to end."""

    def __init__(self, problem: Exception | None = None, *, is_cached: bool = False) -> None:
        self.end = threading.Event()
        self._problem = problem
        self._is_cached = is_cached

    def python_image(self, on_compile: Callable[[str], None]) -> None:
        if not self._is_cached:
            on_compile("python")
            assert self.end.wait(60)
        if self._problem is not None:
            raise self._problem


@pytest.fixture
def terminal() -> Iterator[PseudoTerminal]:
    terminal = PseudoTerminal()
    yield terminal
    terminal.close()


def use(monkeypatch: pytest.MonkeyPatch, engine: SlowEngine, terminal: PseudoTerminal | None = None) -> SlowEngine:
    """Puts an engine in the place of the real one, and a terminal in that of standard error."""
    monkeypatch.setattr(engines, "shared_engine", lambda: engine)
    if terminal is not None:
        monkeypatch.setattr(sys, "stderr", terminal.stream)
        monkeypatch.setenv("TERM", "xterm")
    return engine


def test_the_seconds_of_a_compilation_are_counted_on_a_terminal(
    terminal: PseudoTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = use(monkeypatch, SlowEngine(), terminal)
    waiting = threading.Thread(target=make_ready, args=("python",))
    waiting.start()
    terminal.wait_for_screen(f"{NOTICE} 0 s")
    terminal.wait_for_screen(f"{NOTICE} 1 s")
    engine.end.set()
    waiting.join(60)
    terminal.wait_until(lambda text: text.endswith("s.\r\n"))
    assert terminal.screen() == ["Compiled the Python engine for this machine in 1 s.", ""]


def test_a_terminal_that_can_not_go_back_gets_one_line(
    terminal: PseudoTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = use(monkeypatch, SlowEngine(), terminal)
    monkeypatch.setenv("TERM", "dumb")
    waiting = threading.Thread(target=make_ready, args=("python",))
    waiting.start()
    terminal.wait_until(lambda text: text == f"{NOTICE}\r\n")
    engine.end.set()
    waiting.join(60)
    terminal.wait_until(lambda text: text.endswith("in 0 s.\r\n"))


def test_an_engine_that_is_there_is_not_worth_a_word(terminal: PseudoTerminal, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, SlowEngine(is_cached=True), terminal)
    make_ready("python")
    assert terminal.written == ""


def test_nothing_is_announced_to_what_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = use(monkeypatch, SlowEngine())
    threading.Timer(0.5, engine.end.set).start()
    make_ready("python")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("is_cached", [True, False])
def test_what_goes_wrong_is_raised_where_it_is_waited_for(
    terminal: PseudoTerminal, monkeypatch: pytest.MonkeyPatch, is_cached: bool
) -> None:
    problem = GuestImageError("python", "has not been built")
    use(monkeypatch, SlowEngine(problem, is_cached=is_cached), terminal).end.set()
    with pytest.raises(GuestImageError, match="The python guest image has not been built"):
        make_ready("python")
    assert "Compiled" not in terminal.written


def test_an_interrupt_ends_the_wait_for_a_real_compilation(tmp_path: Path) -> None:
    terminal = PseudoTerminal()
    process = subprocess.Popen(
        [*COMMAND, "--language", "python", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=terminal.stream,
        env={**os.environ, "TERM": "xterm", "TOOLBRIDGE_CACHE_DIR": str(tmp_path)},
    )
    assert process.stdin is not None
    process.stdin.write(b"1 + 1")
    process.stdin.close()
    terminal.wait_until(lambda text: re.search(r"Compiling the Python engine .*… \d+ s", text) is not None, 60)
    process.send_signal(signal.SIGINT)
    # Far less than the compilation would take.
    assert process.wait(timeout=60) == 130
    terminal.wait_until(lambda text: "Interrupted." in text)
    assert "Traceback" not in terminal.written
    terminal.close()
