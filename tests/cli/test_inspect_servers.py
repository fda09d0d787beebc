"""`toolbridge list`, `info` and `doctor` as real processes, with a real server."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

WEATHER = Path(__file__).resolve().parent.parent.parent / "bridge" / "toolbridge" / "demo" / "weather.py"


class Project:
    """A directory with a configuration, in which commands are run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "project"
        self.directory.mkdir()
        self._environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "TOOLBRIDGE_CACHE_DIR": str(directory / "cache"),
            "TOOLBRIDGE_CONFIG_DIR": str(directory / "config"),
        }

    def configure(self, **servers: dict[str, Any]) -> None:
        (self.directory / "toolbridge.json").write_text(json.dumps({"mcpServers": servers}))

    def run(self, *words: str) -> tuple[int, str, str]:
        command = [sys.executable, "-c", "from toolbridge.cli import main; main()", *words]
        done = subprocess.run(
            command, cwd=self.directory, env=self._environ, capture_output=True, text=True, timeout=60, check=False
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", "from toolbridge.cli import main; main()", *words]
        return subprocess.Popen(
            command, cwd=self.directory, env=self._environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json")[1])

    def digest(self, name: str) -> str:
        """The digest that the prompt shows for a server."""
        shown = self.run("approve", name)[1]
        (digest,) = set(re.findall(r"sha256:[0-9a-f]{64}", shown))
        return digest

    def approve(self, name: str) -> None:
        """Approve a server as a script would."""
        assert self.run("approve", name, "--hash", self.digest(name), "--yes") == (0, f"Approved {name}.\n", "")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def weather(**more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(WEATHER)], **more}


def test_list_shows_every_server_and_starts_none(project: Project, tmp_path: Path) -> None:
    canary = tmp_path / "started"
    project.configure(weather=weather(), trap={"command": "touch", "args": [str(canary)]})
    code, shown, errors = project.run("list")
    assert (code, errors) == (0, "")
    assert shown.splitlines()[0].split() == [
        "NAME",
        "ORIGIN",
        "TRANSPORT",
        "STATE",
        "APPROVAL",
        "TOOLS",
        "LAST",
        "ERROR",
    ]
    assert [line.split() for line in shown.splitlines()[1:]] == [
        ["trap", "project", "stdio", "needs_approval", "needed", "?"],
        ["weather", "project", "stdio", "needs_approval", "needed", "?"],
    ]
    assert project.run("list", "--connect")[0] == 0
    assert project.run("doctor")[0] == 0
    assert project.run("info", "trap", "--connect")[0] == 4
    assert not canary.exists()


def test_list_as_json_has_every_field(project: Project) -> None:
    project.configure(weather=weather())
    (status,) = project.json("list")
    assert status.pop("approval") == {"standing": "unknown", "when": None, "digest": project.digest("weather")}
    assert status == {
        "name": "weather",
        "displayName": "weather",
        "origin": {"kind": "project", "detail": str(project.directory / "toolbridge.json")},
        "transport": "stdio",
        "state": "needs_approval",
        "enabled": True,
        "tools": None,
        "unseen": 0,
        "lastError": "",
        "problems": [],
    }


def test_an_approved_server_is_connected_and_its_tools_are_remembered(project: Project) -> None:
    project.configure(weather=weather())
    project.approve("weather")
    code, shown, _ = project.run("info", "weather", "--connect")
    assert code == 0
    assert "weather: connected" in shown
    assert "  approval   approved on 20" in shown
    assert "get_forecast  " in shown
    assert "import them from 'host:mcp-weather'" in shown
    (status,) = project.json("list")
    assert (status["state"], status["tools"]) == ("idle", 7)
    assert "as of the last time it was connected" in project.run("info", "weather")[1]
    findings = project.json("doctor")
    assert {"subject": "server weather", "verdict": "ok", "text": "answers, with 7 tools", "fix": ""} in findings


def test_a_changed_argument_needs_another_approval(project: Project) -> None:
    project.configure(weather=weather())
    digest = project.digest("weather")
    project.approve("weather")
    project.configure(weather={"command": sys.executable, "args": [str(WEATHER), "--http", "1"]})
    code, shown, _ = project.run("info", "weather", "--connect")
    assert code == 4
    assert "needed again: args changed since 20" in shown
    assert project.digest("weather") != digest


def test_info_shows_no_value_of_a_variable_or_header(project: Project) -> None:
    project.configure(
        weather=weather(env={"API_KEY": "hunter2hunter2"}),
        web={"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer hunter2hunter2"}},
    )
    for words in (["info", "weather"], ["info", "web"], ["list"], ["doctor"]):
        for more in ([], ["--json"]):
            code, shown, errors = project.run(*words, *more)
            assert code == 0
            assert "hunter2" not in shown + errors
    assert "API_KEY=***" in project.run("info", "weather")[1]


def test_doctor_says_what_to_fix(project: Project) -> None:
    project.configure(
        gone={"command": "no-such-program"},
        unset=weather(env={"TOKEN": "${NOT_SET_ANYWHERE}"}),
    )
    code, shown, _ = project.run("doctor")
    assert code == 4
    assert "there is no program 'no-such-program'" in shown
    assert "'NOT_SET_ANYWHERE' is not set" in shown
    assert shown.endswith("2 problems found.\n")


def test_a_program_that_is_missing_is_told_once_and_with_its_path_only_where_that_was_searched(
    project: Project, tmp_path: Path
) -> None:
    project.configure(gone={"command": "no-such-program"}, path={"command": str(tmp_path / "nothing")})
    shown = project.run("doctor")[1]
    assert shown.count("Its PATH is ") == 1
    assert shown.count("no-such-program") == 1
    assert project.run("info", "gone")[1].count("there is no program 'no-such-program'") == 1


def test_doctor_reports_a_server_that_dies(project: Project) -> None:
    project.configure(dead={"command": sys.executable, "args": ["-c", "import sys; sys.exit('no licence')"]})
    project.approve("dead")
    code, shown, _ = project.run("doctor")
    assert code == 4
    assert "exited with status 1" in shown
    assert "no licence" in shown


@pytest.mark.parametrize("words", [["list"], ["info", "weather"], ["doctor"]])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "toolbridge.json"),
        ('{"mcpServers": {"weather": {"comand": "x"}}}', "'command'"),
        ('{"mcpServers": {"weather": {"command": "x", "url": "http://x"}}}', "weather"),
        ('{"mcpServers": {"mcp": {"command": "x"}}}', "reserved"),
    ],
)
def test_a_broken_configuration_is_named_and_nothing_else_happens(
    project: Project, words: list[str], content: str, says: str
) -> None:
    (project.directory / "toolbridge.json").write_text(content)
    code, shown, errors = project.run(*words)
    assert code == (4 if words == ["doctor"] else 2)
    assert says in shown + errors


def test_a_missing_file_and_an_unknown_server_are_wrong_usage(project: Project) -> None:
    project.configure(weather=weather())
    code, _, errors = project.run("list", "--config", "nowhere.json")
    assert (code, "nowhere.json" in errors) == (2, True)
    code, _, errors = project.run("info", "wether")
    assert (code, errors) == (
        2,
        "Error: No server 'wether' is configured. Did you mean 'weather'? Known servers: weather.\n",
    )


def test_without_any_configuration_the_doctor_names_the_places(project: Project) -> None:
    code, shown, _ = project.run("list")
    assert (code, shown) == (0, "No servers are configured. `toolbridge doctor` shows which files were looked for.\n")
    code, shown, _ = project.run("doctor")
    assert code == 0
    assert ".vscode/mcp.json" in shown
    assert "`toolbridge init` imports those of your clients" in shown
    assert "Nothing is wrong." in shown


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_command_that_is_ended_takes_its_servers_along(
    project: Project, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """Also one that reads no stdin, and so would not notice."""
    started = tmp_path / "started"
    script = f"import os, pathlib, time; pathlib.Path({str(started)!r}).write_text(str(os.getpid())); time.sleep(600)"
    project.configure(deaf={"command": sys.executable, "args": ["-c", script]})
    project.approve("deaf")
    with project.start("info", "deaf", "--connect", "--json") as command:
        until = time.monotonic() + 30
        while not (started.exists() and started.read_text()):
            assert time.monotonic() < until
            time.sleep(0.02)
        command.send_signal(number)
        assert command.wait(60) == code
        assert command.stderr is not None
        assert "Traceback" not in command.stderr.read()
        assert command.stdout is not None
        assert json.loads(command.stdout.read())["error"]["kind"] == {143: "terminated", 130: "interrupted"}[code]
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_more_servers_than_may_be_connected_at_once_are_all_asked(project: Project) -> None:
    """They take turns: that none was left out must not depend on how many there are."""
    names = ["one", "two", "three"]
    servers = {name: weather(connectTimeout=60) for name in names}
    (project.directory / "toolbridge.json").write_text(
        json.dumps({"mcpServers": servers, "limits": {"connections": 1}}), encoding="utf-8"
    )
    for name in names:
        project.approve(name)
    findings = project.json("doctor")
    assert [finding for finding in findings if finding["verdict"] == "problem"] == []
    assert sum(finding["text"] == "answers, with 7 tools" for finding in findings) == 3
    assert {(status["state"], status["tools"]) for status in project.json("list", "--connect")} == {("connected", 7)}


def test_doctor_names_rules_that_match_no_tool(project: Project) -> None:
    entry = weather(connectTimeout=60, labels=["external:send_it", "private:get_forecast"])
    permissions = {"deny": ["mcp__weather__wip", "mcp__weather__get_forecast"]}
    document = {"mcpServers": {"weather": entry}, "permissions": permissions}
    (project.directory / "toolbridge.json").write_text(json.dumps(document), encoding="utf-8")
    project.approve("weather")
    code, shown, _ = project.run("doctor")
    assert code == 4
    assert "permissions.deny: 'mcp__weather__wip' matches no tool." in shown
    assert "the label 'external:send_it' is of a tool that it does not have." in shown
    assert shown.endswith("2 problems found.\n")


@pytest.mark.parametrize("words", [("list",), ("search", "forecast"), ("info", "weather"), ("stubs",), ("audit",)])
def test_every_command_says_that_the_gateway_is_off(words: tuple[str, ...], project: Project) -> None:
    file = project.directory / "toolbridge.json"
    file.write_text(json.dumps({"gateway": False, "mcpServers": {"weather": weather()}}), encoding="utf-8")
    assert project.run(*words)[2].startswith(f"MCP is switched off in {file}: there are no servers.\n")


def test_the_doctor_says_that_the_gateway_is_off(project: Project) -> None:
    file = project.directory / "toolbridge.json"
    file.write_text(json.dumps({"gateway": False}), encoding="utf-8")
    notes = [finding["text"] for finding in project.json("doctor") if finding["subject"] == "configuration"]
    assert notes == [f"MCP is switched off in {file}: there are no servers."]


def test_the_last_error_outlives_the_command_until_the_server_answers(project: Project, tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text("raise SystemExit('no \\x1b[31mluck')")
    project.configure(mortal={"command": sys.executable, "args": [str(script)], "connectTimeout": 60})
    project.approve("mortal")
    assert project.json("list")[0]["state"] == "idle"
    project.run("list", "--connect")
    (status,) = project.json("list")
    assert status["state"] == "error"
    assert "ended before it was connected" in status["lastError"]
    assert "\x1b" not in status["lastError"]
    assert "ended before it was connected" in project.run("list")[1]
    script.write_text(WEATHER.read_text(encoding="utf-8"))  # the approval is of the command
    assert project.run("info", "mortal", "--connect")[0] == 0, project.run("approve", "mortal")
    (status,) = project.json("list")
    assert (status["state"], status["lastError"]) == ("idle", "")


def test_info_shows_schemas_filters_and_instructions(project: Project) -> None:
    project.configure(weather=weather(allowTools=["get_forecast", "big"], denyTools=["big"]))
    project.approve("weather")
    facts = project.json("info", "weather", "--connect")
    assert (facts["allowTools"], facts["denyTools"]) == (["big", "get_forecast"], ["big"])
    (tool,) = facts["exposed"]
    assert tool["inputSchema"]["properties"]["days"]["maximum"] == 14
    assert tool["outputSchema"]["required"] == ["location", "days"]
    shown = project.run("info", "weather")[1]
    assert "  allowTools big, get_forecast\n  denyTools  big\n" in shown
    assert "      - days (integer, default 3, maximum 14, minimum 1)\n" in shown
    assert "      Forecasts, alerts and stations." in shown
    project.configure(weather=weather(allowTools=[]))
    assert "  allowTools none\n" in project.run("info", "weather")[1]


def test_a_server_that_can_not_be_reached_names_its_url_without_secrets(project: Project) -> None:
    project.configure(gone={"url": "http://127.0.0.1:9/mcp?key=hush-hush-hush"})
    project.approve("gone")
    (finding,) = [each for each in project.json("doctor") if each["verdict"] == "problem"]
    assert "could not be reached at http://127.0.0.1:9/mcp?key=***: " in finding["text"]


def test_a_missing_program_is_told_once_and_its_path_by_the_doctor_only(project: Project) -> None:
    project.configure(lost={"command": "no-such-program"})
    program = project.directory / "program.js"
    program.write_text('require("host:mcp-lost")')
    code, out, err = project.run("run", str(program))
    assert (code, out, err.count("there is no program")) == (1, "", 1)
    assert "/bin" not in err
    found = [each for each in project.json("doctor") if each["verdict"] == "problem"]
    assert len(found) == 1
    assert "/bin" in found[0]["fix"]
