"""Foreign text on a terminal is shown and never obeyed; in a pipe it is left alone."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cases import each
from toolbridge.cli.terminal import write
from toolbridge.trust.sanitise import for_terminal

COMMAND = [sys.executable, "-c", "from toolbridge.cli import main; main()", "run"]

# Sets a title, clears the screen, turns text red, rings, erases, turns text around, hides text.
HOSTILE = "\x1b]0;title\x07 \x1b[2J \x1b[31mred\x1b[0m \x07 a\bb a\rb \x9b31m \u202eback \u200bzero \U000e0041"
HARMLESS = (
    r"\x1b]0;title\x07 \x1b[2J \x1b[31mred\x1b[0m \x07 a\x08b a\x0db \x9b31m "
    r"\u202eback \u200bzero \U000e0041"
)


def on_terminal(
    source: str, *options: str, environment: dict[str, str] | None = None, only: str = "all"
) -> tuple[int, str, str]:
    """Exit code, what the terminal was sent, and what went to a pipe instead."""
    leader, follower = pty.openpty()
    streams = {"stdout": follower, "stderr": follower} if only == "all" else {only: follower}
    process = subprocess.Popen(
        [*COMMAND, "-", *options],
        stdin=subprocess.PIPE,
        stdout=streams.get("stdout", subprocess.PIPE),
        stderr=streams.get("stderr", subprocess.PIPE),
        env={**os.environ, **(environment or {})},
    )
    os.close(follower)
    out, err = process.communicate(source.encode(), timeout=60)
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
    # A terminal shows a line's end as both characters.
    return process.returncode, shown.decode().replace("\r\n", "\n"), ((out or b"") + (err or b"")).decode()


def in_javascript(text: str) -> str:
    return '"' + "".join(f"\\u{{{ord(character):x}}}" for character in text) + '"'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 😀", "plain é 😀"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb", "a\nb"),
        ("a\rb", "a\\x0db"),
        (HOSTILE, HARMLESS),
        ("\x00\x7f\x85\u2028\u2066\ufeff", "\\x00\\x7f\\x85\\u2028\\u2066\\ufeff"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text: str, shown: str) -> None:
    assert for_terminal(text) == shown


@each("character", [chr(code) for code in [*range(32), *range(0x7F, 0xA0)] if chr(code) not in "\t\n"])
def test_no_control_character_reaches_a_terminal(character: str) -> None:
    assert character not in for_terminal(f"a{character}b")


def test_a_value_on_a_terminal_is_neutralised() -> None:
    assert on_terminal(in_javascript(HOSTILE)) == (0, HARMLESS + "\n", "")


def test_a_value_in_a_pipe_is_left_alone() -> None:
    done = subprocess.run([*COMMAND, "-"], input=in_javascript(HOSTILE).encode(), capture_output=True, check=True)
    assert done.stdout.decode() == HOSTILE + "\n"


def test_a_failures_text_and_excerpt_on_a_terminal_are_neutralised() -> None:
    code, shown, _ = on_terminal(f"/* {HOSTILE} */ throw new Error({in_javascript(HOSTILE)})")
    assert code == 1
    assert f"Error: {HARMLESS}\n" in shown
    assert "\x1b" not in shown
    assert "\x9b" not in shown


def test_what_a_program_prints_on_a_terminal_is_neutralised() -> None:
    text = in_javascript("\x1b[2J\x07")
    code, shown, _ = on_terminal(f"console.log({text}); console.error({text}); 1")
    assert (code, shown) == (0, "\\x1b[2J\\x07\n\\x1b[2J\\x07\n1\n")


def test_json_on_a_terminal_is_neutralised() -> None:
    code, shown, _ = on_terminal(in_javascript("\x1b[2J\x9b"), "--json")
    assert code == 0
    assert "\x1b" not in shown
    assert "\x9b" not in shown


def test_each_stream_is_judged_by_itself() -> None:
    text = in_javascript("\x1b[2J")
    code, shown, piped = on_terminal(f"console.log({text}); console.error({text})", only="stderr")
    assert (code, shown, piped) == (0, "\\x1b[2J\n", "\x1b[2J\n")


def test_a_file_name_on_a_terminal_is_neutralised(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen([*COMMAND, str(tmp_path / "\x1b[2J.js")], stderr=follower, stdout=follower)
    os.close(follower)
    assert process.wait(timeout=60) == 2
    shown = os.read(leader, 65536)
    os.close(leader)
    assert b"There is no file" in shown
    assert b"\x1b" not in shown


def test_compiling_is_announced_on_a_terminal_only(tmp_path: Path) -> None:
    first, second = ({"TOOLBRIDGE_CACHE_DIR": str(tmp_path / name), "TERM": "xterm"} for name in ("first", "second"))
    code, shown, _ = on_terminal("1", environment=first)
    assert code == 0
    assert shown.startswith("Compiling the JavaScript engine for this machine (once, a few seconds) … 0 s")
    assert re.search(r"\rCompiled the JavaScript engine for this machine in \d+ s\.\n1\n$", shown)
    assert on_terminal("1", environment=first) == (0, "1\n", "")
    assert on_terminal("1", environment=second, only="stdout") == (0, "1\n", "")


def test_a_character_that_the_stream_can_not_encode_is_escaped() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="latin-1")
    write(stream, "é€😀")
    assert raw.getvalue() == b"\xe9\\u20ac\\U0001f600"


def test_nothing_is_written_for_nothing() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8")
    write(stream, "")
    assert raw.getvalue() == b""
