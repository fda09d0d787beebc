"""`toolbridge demo`, and the command line as a whole."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-c", "from toolbridge.cli import main; main()"]


def run(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, encoding="utf-8", timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def test_the_demo_shows_five_programs_and_what_becomes_of_them() -> None:
    code, out, err = run("demo")
    assert (code, err) == (0, "")
    outcomes = re.findall(r"^    => (.*)$", out, re.MULTILINE)
    assert outcomes == [
        "{'city': 'Oslo', 'celsius': 4, 'fahrenheit': 39.2}",
        "[4, 19, 27]",
        'raised: TypeError: module "host:demo" has no export "temprature". Did you mean "temperature"?',
        "timeout: The run took longer than 1 s.",
        'raised: ModuleError: There is no module "fs". Only host modules can be imported here: no files, no packages. '
        'There is: "host:demo", "host:bridge".',
    ]
    milliseconds = [float(number) for number in re.findall(r"^    \(([\d.]+) ms\)$", out, re.MULTILINE)]
    assert len(milliseconds) == 5
    assert 200 <= milliseconds[1] < 1000
    assert 1000 <= milliseconds[3] < 3000


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_help_lists_the_commands(arguments: list[str]) -> None:
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    assert re.findall(r"^  (\w+) +(\S.*)$", out.split("Commands:\n", 1)[1], re.MULTILINE) == [
        ("demo", "See the sandbox at work."),
        ("run", "Run a program in the sandbox."),
    ]


def test_help_of_run_lists_its_exit_codes() -> None:
    code, out, _ = run("run", "--help")
    assert code == 0
    text = " ".join(out.split())
    assert "Exit codes: 0 the program ran to its end; 1 it failed" in text
    assert "--timeout SECONDS" in text


def test_the_version_is_shown() -> None:
    from toolbridge import __version__

    assert run("--version") == (0, f"toolbridge, version {__version__}\n", "")


def test_an_unknown_command_is_explained_and_exits_with_two() -> None:
    code, out, err = run("rnu")
    assert (code, out) == (2, "")
    assert "No such command 'rnu'" in err
    assert "Traceback" not in err


def test_no_command_at_all_shows_the_help_and_exits_with_two() -> None:
    code, out, err = run()
    assert code == 2
    assert "Usage: toolbridge [OPTIONS] COMMAND [ARGS]..." in out + err


def test_the_installed_command_is_the_same() -> None:
    from pathlib import Path

    command = Path(sys.executable).with_name("toolbridge")
    done = subprocess.run([str(command), "--help"], capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert (done.returncode, done.stdout) == run("--help")[:2]
