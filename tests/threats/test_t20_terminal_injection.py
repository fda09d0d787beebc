"""T20, terminal injection: no text of a server moves a cursor, sets a title or clipboard, or draws over a line."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from cases import each
from codegen.stub_syntax import hidden_characters
from toolbridge.cli.terminal import table, write
from toolbridge.trust.audit.detector import audit
from toolbridge.trust.sanitise import for_error, for_guest_error, for_terminal
from toolbridge_codegen.catalog import ToolDefinition

SEQUENCES = {
    "OSC 8 link": "\x1b]8;;https://evil.example\x1b\\docs\x1b]8;;\x1b\\",
    "OSC 52 clipboard": "\x1b]52;c;Y3VybCBldmls\x07",
    "OSC 0 title": "\x1b]0;root shell\x07",
    "OSC in C1": "\x9d0;root shell\x9c",
    "carriage return over a line": "rm -rf /\rls       ",
    "backspaces": "rm -rf /" + "\b" * 8 + "ls      ",
    "cursor up and erase": "\x1b[1A\x1b[2K",
    "CSI in C1": "\x9b2J\x9b8m",
    "clear the screen": "\x1b[2J\x1b[H",
    "hidden text": "\x1b[8mhidden\x1b[28m",
    "alternate screen": "\x1b[?1049h",
    "answerback and reports": "\x05\x1b[6n\x1b[c",
    "DCS": "\x1bP+q544e\x1b\\",
    "APC and PM": "\x1b_payload\x1b\\\x1b^payload\x1b\\",
    "unfinished": "\x1b]52;c;",
    "bell and shifts": "\x07\x0e\x0f\x18\x1a",
    "turned text": "\u202egpj.exe\u202c",
    "next line and separators": "a\x85b\u2028c\u2029d",
    "form feed and vertical tab": "a\x0cb\x0bc",
    "delete": "ab\x7f\x7f",
}


@each("name", SEQUENCES)
def test_a_sequence_is_written_out_wherever_a_person_reads_it(name: str) -> None:
    hostile = f"before {SEQUENCES[name]} after"
    for shown in (for_terminal(hostile), for_error(hostile), table(("A", "B"), [(hostile, hostile)])):
        assert not hidden_characters(shown.replace("\n", ""))
        assert "before" in shown
        assert "after" in shown
    assert "\n" not in for_error(hostile)
    assert len(table(("A",), [(hostile,)]).splitlines()) == 2  # it makes no line of its own


@each("name", SEQUENCES)
def test_a_sequence_is_gone_from_what_a_guest_reads(name: str) -> None:
    shown = for_guest_error(f"before {SEQUENCES[name]} after")
    assert not hidden_characters(shown.replace("\n", ""))
    assert shown.startswith("before")


@each("name", SEQUENCES)
def test_a_sequence_in_a_tool_is_reported_in_a_form_that_is_inert(name: str) -> None:
    (tool,) = [ToolDefinition("f", {"type": "object"}, description=f"Adds {SEQUENCES[name]} numbers")]
    found = [finding for finding in audit("s", [tool]) if finding.rule in {"terminal-control", "turned-text"}]
    assert found
    for finding in found:
        assert not hidden_characters(finding.excerpt + finding.place + finding.why)


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


@each("name", SEQUENCES)
def test_the_way_to_a_terminal_lets_nothing_through(name: str) -> None:
    terminal = Terminal()
    write(terminal, SEQUENCES[name])
    assert not hidden_characters(terminal.getvalue().replace("\n", ""))


def shown_on_terminal(words: list[str], directory: Path) -> str:
    """What a command sends to a real terminal."""
    leader, follower = pty.openpty()
    environ = {**os.environ, "HOME": str(directory), "TOOLBRIDGE_CONFIG_DIR": str(directory / "config")}
    command = [sys.executable, "-c", "from toolbridge.cli import main; main()", *words]
    process = subprocess.Popen(command, cwd=directory, env=environ, stdout=follower, stderr=follower)
    os.close(follower)
    shown = b""
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:  # the other side is closed and all is read
            break
        if not data:
            break
        shown += data
    os.close(leader)
    process.wait(timeout=60)
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("command", ["audit", "stubs"])
def test_a_listing_full_of_sequences_is_inert_on_a_real_terminal(command: str, tmp_path: Path) -> None:
    tools = [
        {
            "name": f"tool{number}{text}",
            "title": text,
            "description": text,
            "inputSchema": {"type": "object", "properties": {text: {"description": text, "enum": [text]}}},
        }
        for number, text in enumerate(SEQUENCES.values())
    ]
    (tmp_path / "evil.json").write_text(
        json.dumps({"tools": [*tools, {"name": "\x1b[2J"}], "instructions": "\x1b]52;c;\x07"})
    )
    shown = shown_on_terminal([command, "--from", "evil.json"], tmp_path)
    assert "tool0" in shown
    assert not hidden_characters(shown.replace("\n", "").replace("\t", ""))
