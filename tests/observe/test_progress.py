"""Progress on a real terminal, and on what is none."""

from __future__ import annotations

import io
import os
import pty
import re
import termios
import threading
from collections.abc import Generator

import pytest

from observe.examples import CALL_ENDED, CALL_STARTED, RUN
from observe.pseudo_terminal import PseudoTerminal
from toolbridge.events import CallEnded, CallStarted, Event, RunEnded, RunStarted, StateChanged
from toolbridge.observe.progress import Counts, Progress, _Drawing, line_of

STARTED = RunStarted(RUN, "javascript", 1)
ENDED = RunEnded(RUN, "ok", 0.1, 0.0, 1)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Generator[PseudoTerminal]:
    monkeypatch.setenv("TERM", "xterm")
    terminal = PseudoTerminal(columns=60)
    yield terminal
    terminal.close()


def drawing_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "toolbridge-progress"]


def text(*events: Event, now: float = 1.24) -> str:
    counts = Counts()
    for event in events:
        counts.count(event, 0.0)
    return counts.text(now)


def call(number: int, tool: str = "get_forecast") -> CallStarted:
    return CallStarted(RUN, number, "weather", tool)


def end(number: int, outcome: str = "ok") -> CallEnded:
    return CallEnded(RUN, number, "weather", "get_forecast", outcome, 0.1, 1, 1)


def test_a_call_under_way_is_shown_with_its_seconds() -> None:
    assert text(STARTED, call(1)) == "weather.get_forecast … 1.2 s"


def test_of_several_the_oldest_is_shown_and_all_are_counted() -> None:
    events = [call(1, "a"), call(2, "b"), call(3, "c"), call(4, "d"), end(1), end(3, "timeout")]
    assert text(STARTED, *events) == "weather.b … 1.2 s, 2 running, 2 done, 1 failed"


def test_between_calls_only_counts_are_shown() -> None:
    assert text(STARTED) == ""
    assert text(STARTED, call(1), end(1)) == "1 done"


def test_a_server_that_is_being_connected_is_shown() -> None:
    connecting = StateChanged("weather", "connecting")
    assert text(STARTED, connecting) == "connecting to weather … 1.2 s"
    assert text(STARTED, call(1), connecting) == "weather.get_forecast … 1.2 s (connecting)"
    assert text(STARTED, connecting, StateChanged("weather", "connected")) == ""
    assert text(STARTED, connecting, StateChanged("weather", "error", "gone")) == ""


def test_a_host_function_has_no_server() -> None:
    assert text(STARTED, CallStarted(RUN, 1, "", "now")) == "now … 1.2 s"


def test_a_foreign_name_is_one_harmless_line() -> None:
    shown = text(STARTED, call(1, "a\nb\r\x1b[2J\u202e\ud800" + "x" * 100_000))
    assert shown.isprintable()
    assert len(shown) < 120


def test_the_next_run_begins_from_nothing() -> None:
    assert text(STARTED, call(1), end(1), ENDED, RunStarted("next", "javascript", 1)) == ""


def test_the_line_lives_while_the_run_does(terminal: PseudoTerminal) -> None:
    progress = Progress(terminal.stream)
    progress(STARTED)
    progress(CALL_STARTED)
    # The seconds go on although nothing is told.
    terminal.wait_until(lambda text: len(set(re.findall(r"weather\.get_forecast … (\d+\.\d) s", text))) >= 3)
    (thread,) = drawing_threads()
    progress(CALL_ENDED)
    progress(ENDED)
    terminal.wait_for_screen("")
    thread.join(60)
    assert drawing_threads() == []
    assert terminal.screen() == [""]


def test_a_line_that_was_erased_for_good_is_not_drawn_again(terminal: PseudoTerminal) -> None:
    class SetWhileItWaitedForTheTerminal(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            was_set = self.is_set()
            self.set()
            return was_set

    line = line_of(terminal.stream)
    assert line is not None
    drawing = _Drawing(line)
    drawing._counts.count(CALL_STARTED, 0.0)
    drawing._draw(SetWhileItWaitedForTheTerminal())
    terminal.stream.write("end")
    terminal.stream.flush()
    terminal.wait_for_screen("end")


def test_a_second_run_is_drawn_too(terminal: PseudoTerminal) -> None:
    progress = Progress(terminal.stream)
    for number in range(3):
        progress(RunStarted(f"r{number}", "javascript", 1))
        progress(CallStarted(f"r{number}", 1, "weather", f"tool{number}"))
        terminal.wait_until(lambda text, name=f"tool{number} … ": name in text)
        progress(RunEnded(f"r{number}", "cancelled", 0.1, 0.0, 1))
        terminal.wait_for_screen("")


def test_the_line_stays_until_the_last_of_several_runs_ends(terminal: PseudoTerminal) -> None:
    progress = Progress(terminal.stream)
    for run in ("a", "b"):
        progress(RunStarted(run, "javascript", 1))
        progress(CallStarted(run, 1, "weather", run))
    terminal.wait_until(lambda text: "weather.a … " in text)
    progress(CallEnded("a", 1, "weather", "a", "ok", 0.1, 1, 1))
    progress(RunEnded("a", "ok", 0.1, 0.0, 1))
    terminal.wait_until(lambda text: "weather.b … " in text)
    assert len(drawing_threads()) == 1
    progress(RunEnded("b", "ok", 0.1, 0.0, 1))
    terminal.wait_for_screen("")


def test_nothing_is_drawn_over_a_question(terminal: PseudoTerminal) -> None:
    progress = Progress(terminal.stream)
    progress(STARTED)
    progress(CALL_STARTED)
    terminal.wait_until(lambda text: "weather.get_forecast" in text)
    with progress.hidden():
        terminal.wait_for_screen("")
        (thread,) = drawing_threads()
        thread.join(0.4)  # it would have drawn four times
        assert terminal.screen() == [""]
        before = len(terminal.written)
    terminal.wait_until(lambda text: "weather.get_forecast" in text[before:])
    progress(ENDED)


def test_ten_thousand_calls_are_not_ten_thousand_lines(terminal: PseudoTerminal) -> None:
    progress = Progress(terminal.stream)
    progress(STARTED)
    for number in range(10_000):
        progress(call(number))
        progress(end(number))
    terminal.wait_until(lambda text: "10000 done" in text)
    progress(ENDED)
    assert terminal.written.count("\r") < 100


def test_a_terminal_that_is_stopped_does_not_stop_the_calls(terminal: PseudoTerminal) -> None:
    progress = Progress(terminal.stream)
    termios.tcflow(terminal.stream, termios.TCOOFF)  # what Ctrl-S does: whoever writes now waits
    progress(STARTED)
    progress(CALL_STARTED)
    (thread,) = drawing_threads()
    thread.join(0.3)  # by now it waits for the terminal
    events = (CALL_ENDED, call(2), end(2))
    calls = threading.Thread(target=lambda: [progress(event) for event in events], daemon=True)
    calls.start()
    calls.join(60)
    stopped = calls.is_alive()
    assert terminal.written == ""
    termios.tcflow(terminal.stream, termios.TCOON)
    assert not stopped
    terminal.wait_until(lambda text: "2 done" in text)
    progress(ENDED)
    thread.join(60)
    assert not thread.is_alive()


def test_a_terminal_that_is_gone_ends_the_drawing_and_nothing_else() -> None:
    controller, device = pty.openpty()
    with open(device, "w", encoding="utf-8") as stream:
        progress = Progress(stream)
        os.close(controller)
        progress(STARTED)
        progress(CALL_STARTED)
        for thread in drawing_threads():
            thread.join(60)
        assert drawing_threads() == []
        progress(CALL_ENDED)
        progress(ENDED)


def test_what_is_no_terminal_gets_nothing() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    for event in (STARTED, CALL_STARTED, CALL_ENDED):
        progress(event)
    with progress.hidden():
        assert drawing_threads() == []
    progress(ENDED)
    assert stream.getvalue() == ""


def test_a_process_without_standard_error_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    Progress()(STARTED)
    assert drawing_threads() == []
