"""`toolbridge demo`, and the command line as a whole."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.projects import Project
from growth import patience
from toolbridge.cli.demo import _where  # pyright: ignore[reportPrivateUsage]

COMMAND = [sys.executable, "-c", "from toolbridge.cli import main; main()"]
# As a person has it: a script in the environment's directory, which doesn't look for modules where it is called.
INSTALLED = str(Path(sys.executable).with_name("toolbridge"))


def run(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, encoding="utf-8", timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def stranger(tmp_path: Path) -> Project:
    """In a directory that somebody else filled, with a configuration that can't be used."""
    project = Project(tmp_path)
    project.write("{", "toolbridge.json")
    for name in ("mcp", "pydantic", "toolbridge", "json"):
        project.write("import pathlib; pathlib.Path('canary').touch()", f"{name}.py")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.json").write_text("{", encoding="utf-8")
    return project


def files_below(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


def test_the_demo_goes_from_a_configuration_to_results_and_touches_nothing(stranger: Project, tmp_path: Path) -> None:
    before = files_below(tmp_path)
    done = subprocess.run(
        [INSTALLED, "demo"],
        cwd=stranger.directory,
        env=stranger.environ,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert files_below(tmp_path) == before
    out = done.stdout
    assert [line for line in out.split("\n") if len(line) > 80] == []
    heads = re.findall(r"^(\d+)\. (.*?) ─*$", out, re.MULTILINE)
    assert [number for number, _ in heads] == [str(number) for number in range(1, 11)]
    parts = re.split(r"^\d+\. .*$", out, flags=re.MULTILINE)[1:]
    configuration, stub, *acts = parts
    assert '"command": "toolbridge-demo-weather"' in configuration
    assert "the demo approves exactly what it starts: sha256:" in " ".join(configuration.split())
    assert "export function get_forecast(input: GetForecastInput): GetForecastOutput;" in stub
    assert "3 functions in host:mcp-atlas, 7 functions in host:mcp-weather" in stub
    # Each has its time.
    times = [re.findall(r"(?:^|, | )([\d.]+ m?s)$", part, re.MULTILINE)[-1] for part in parts]
    assert len(times) == 10
    forecast, at_once, join, picture, python, mistake, loop, theft = (part.split("   => ", 1)[1] for part in acts)
    value = json.loads(forecast[: forecast.rindex("}") + 1])
    assert (value["location"], len(value["days"])) == ("Austin, TX", 2)
    assert at_once.startswith('{"Austin": 12, "Cairo": 12, "Kyoto": 9, "Lisbon": 25, "Oslo": 30}')
    assert "10 calls, " in at_once
    assert '"name": "Kigali"' in join
    assert '"image": "<image/png 1.4 KB>"' in picture
    means = json.loads(python[: python.rindex("}") + 1])
    assert means["Bergen"] == 24.7
    assert len(means) == 6
    assert mistake.startswith("Type error: Object literal may only specify known properties, and 'city'")
    assert "no call was made" in mistake
    assert loop.startswith("The run took longer than 1 s.")
    assert theft.startswith('ModuleError: There is no module "fs".')


def test_the_demo_says_where_its_commands_are_if_a_shell_does_not_find_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "an environment" / "toolbridge"
    script.parent.mkdir()
    script.touch(mode=0o755)
    monkeypatch.setattr("sys.argv", [str(script), "demo"])
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert f"export PATH='{script.parent}':$PATH" in _where()
    monkeypatch.setenv("PATH", str(script.parent))
    assert _where() == ""


def test_the_demo_goes_on_without_an_image_for_python() -> None:
    script = (
        "import toolbridge.sandbox.engine as engine; find = engine.guest_image\n"
        "engine.guest_image = lambda language: None if language == 'python' else find(language)\n"
        "from toolbridge.cli import main; main()"
    )
    words = [sys.executable, "-c", script, "demo"]
    done = subprocess.run(words, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "   The python guest image has not been built." in done.stdout
    assert 'ModuleError: There is no module "fs".' in done.stdout


def test_calls_of_the_demo_that_are_made_at_once_overlap() -> None:
    out = run("demo")[1]
    # One after the other, they would take 1.5 s.
    ((took, unit),) = re.findall(r"10 calls, ([\d.]+) (ms|s)\b", out)
    assert 0.3 <= float(took) / {"ms": 1000, "s": 1}[unit] < patience(0.25)


def test_the_demo_is_readable_where_only_ascii_can_be_shown() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([*COMMAND, "demo"], env=environment, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u" not in done.stdout
    assert b"   | while (true) {}\n" in done.stdout


def test_a_reader_of_the_demo_that_has_gone_causes_no_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([*COMMAND, "demo"], stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (4, b"")


def test_an_interrupt_ends_the_demo_without_a_traceback() -> None:
    process = subprocess.Popen([*COMMAND, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if "while (true)" in line:  # it runs for a second now
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=90)
    assert (process.returncode, err.strip()) == (130, "Interrupted.")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_help_lists_the_commands(arguments: list[str]) -> None:
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    assert re.findall(r"^  ([\w-]+) +(\S.*)$", out.split("Commands:\n", 1)[1], re.MULTILINE) == [
        ("approve", "Approve servers, so that they may be started or connected."),
        ("audit", "Scan tool definitions for prompt injection."),
        ("call", "Call one tool."),
        ("check", "Type-check a program without running it."),
        ("completion", "Print a shell completion script."),
        ("config-schema", "Print the JSON Schema of a configuration file."),
        ("demo", "Show it at work: two servers, eight programs."),
        ("disable", "Disable a server."),
        ("doctor", "Diagnose configuration and servers."),
        ("enable", "Enable a disabled server."),
        ("info", "Show one server and its tools."),
        ("init", "Import servers from other clients' configurations."),
        ("install", "Add `toolbridge serve` to a client's configuration."),
        ("list", "List the configured servers."),
        ("lock", "Pin tool definitions; review and accept changes."),
        ("plugins", "List plugins and their servers."),
        ("revoke", "Revoke a server's approval."),
        ("run", "Run a program in the sandbox."),
        ("search", "Search tools by what they do."),
        ("serve", "Serve your servers to an MCP client, in code mode."),
        ("sign-in", "Sign in to an HTTP server with OAuth."),
        ("sign-out", "Sign out of a server."),
        ("stubs", "Print or write type stubs of the tools."),
    ]


def test_help_of_run_lists_its_exit_codes() -> None:
    code, out, _ = run("run", "--help")
    assert code == 0
    text = " ".join(out.split())
    assert "Exit codes: 0 the program ran to its end; 1 it failed" in text
    for option in (
        "--timeout SECONDS",
        "--memory SIZE",
        "--config FILE",
        "--server NAME",
        "--audit-log FILE",
        "--json",
    ):
        assert option in text


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
    done = subprocess.run([INSTALLED, "--help"], capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert (done.returncode, done.stdout) == run("--help")[:2]
