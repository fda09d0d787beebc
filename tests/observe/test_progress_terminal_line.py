"""A line that is written again and again, on a real terminal."""

from __future__ import annotations

import io
from collections.abc import Generator
from pathlib import Path

import pytest

from observe.pseudo_terminal import PseudoTerminal
from toolbridge.observe.progress import cell_width, fitted, line_of


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Generator[PseudoTerminal]:
    monkeypatch.setenv("TERM", "xterm")
    terminal = PseudoTerminal(columns=20)
    yield terminal
    terminal.close()


def test_a_shorter_text_leaves_nothing_of_a_longer_one(terminal: PseudoTerminal) -> None:
    line = line_of(terminal.stream)
    assert line is not None
    line.show("a long text")
    line.show("short")
    terminal.wait_for_screen("short")
    line.erase()
    terminal.wait_for_screen("")
    before = terminal.written
    line.erase()
    assert terminal.written == before


def test_a_text_that_is_too_wide_stays_on_one_line(terminal: PseudoTerminal) -> None:
    line = line_of(terminal.stream)
    assert line is not None
    line.show("x" * 100)
    terminal.wait_for_screen("x" * 18 + "…")


def test_a_terminal_of_another_encoding_is_written_to_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = PseudoTerminal(columns=20, encoding="ascii")
    line = line_of(terminal.stream)
    assert line is not None
    line.show("Århus … and what is too much")
    terminal.wait_for_screen("\\xc5rhus \\u2026 ...")
    terminal.close()


def test_what_is_no_terminal_has_no_line(terminal: PseudoTerminal, tmp_path: Path) -> None:
    class Pretender(io.StringIO):
        def isatty(self) -> bool:
            return True

    closed = (tmp_path / "closed").open("w")
    closed.close()
    with (tmp_path / "file").open("w") as file:
        assert [line_of(stream) for stream in (None, file, io.StringIO(), Pretender(), closed)] == [None] * 5


def test_a_dumb_terminal_has_no_line(terminal: PseudoTerminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert line_of(terminal.stream) is None


@pytest.mark.parametrize(
    ("text", "cells", "shown"),
    [
        ("forecast", 8, "forecast"),
        ("forecast", 7, "foreca…"),
        ("天気予報", 8, "天気予報"),
        ("天気予報", 7, "天気予…"),
        ("天気予報", 6, "天気…"),
        ("e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"),
        ("forecast", 2, "f…"),
        ("forecast", 1, ""),
        ("forecast", 0, ""),
        ("forecast", -1, ""),
        ("", 0, ""),
    ],
)
def test_a_text_is_cut_by_the_cells_it_takes(text: str, cells: int, shown: str) -> None:
    assert fitted(text, cells) == shown
    assert sum(map(cell_width, fitted(text, cells))) <= max(cells, 0)
