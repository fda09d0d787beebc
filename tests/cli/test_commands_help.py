"""What all commands have in common: help with an example and exit codes, completion, tables that fit."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cli.projects import Project, weather
from toolbridge.cli.commands import toolbridge
from toolbridge.cli.terminal import table

COMMANDS = toolbridge.list_commands(click.Context(toolbridge))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_and_the_exit_codes(name: str) -> None:
    text = CliRunner().invoke(toolbridge, [name, "--help"], terminal_width=80).output
    assert "Example" in text
    assert f"toolbridge {name}" in text.split("Example")[1]
    assert "Exit codes: 0" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    result = CliRunner().invoke(toolbridge, ["completion", shell])
    assert "_TOOLBRIDGE_COMPLETE" in result.output


def test_a_shell_completes_commands_and_names_of_servers(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.configure({"weather": weather(), "atlas": weather()})

    def completed(words: str, number: int) -> str:
        project.environ |= {"COMP_WORDS": words, "COMP_CWORD": str(number), "_TOOLBRIDGE_COMPLETE": "bash_complete"}
        code, out, err = project.run()
        assert (code, err) == (0, "")
        return out

    assert completed("toolbridge inst", 1) == "plain,install\n"
    assert completed("toolbridge approve we", 2) == "plain,weather\n"


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_a_table_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a-name-that-is-rather-long-for-a-server", "project", "stdio", "x" * 300), ("b", "user", "http", "short")]
    monkeypatch.setenv("COLUMNS", str(columns))
    elsewhere = table(("NAME", "ORIGIN", "TRANSPORT", "LAST ERROR"), rows)
    assert "x" * 300 in elsewhere
    monkeypatch.setattr("sys.stdout", _Terminal())
    lines = table(("NAME", "ORIGIN", "TRANSPORT", "LAST ERROR"), rows).splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[2].startswith("b ")


class _Terminal:
    def isatty(self) -> bool:
        return True
