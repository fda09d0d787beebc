"""Commands that change something answer programs, too; and what went wrong is called by its name."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from cli.projects import COMMAND, Project, weather
from toolbridge import cli
from toolbridge.cli.commands import toolbridge


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.configure({"weather": weather(), "remote": {"url": "https://remote.example/mcp"}})
    return project


def answer(project: Project, *words: str) -> tuple[int, Any]:
    code, out, _ = project.run(*words, "--json")
    return code, json.loads(out)


def test_an_approval_is_told_to_programs(project: Project) -> None:
    code, refused = answer(project, "approve", "weather")
    assert (code, refused["approved"]) == (4, False)
    assert refused["error"]["message"].startswith("Not approved: nobody can be asked here.")
    code, given = answer(project, "approve", "weather", "--hash", refused["digest"], "--yes")
    assert code == 0
    assert given == {
        "name": "weather",
        "digest": refused["digest"],
        "approved": True,
        "enabled": True,
        "callable": None,
        "blocked": None,
        "unseen": None,
        "findings": [],
        "error": None,
    }
    code, known = answer(project, "approve", "weather")
    assert (code, known["callable"], known["blocked"]) == (0, 7, 0)
    code, revoked = answer(project, "revoke", "weather")
    assert (code, [each["name"] for each in revoked["revoked"]]) == (0, ["weather"])
    code, nothing = answer(project, "revoke", "weather")
    assert (code, nothing["revoked"], nothing["error"]["message"]) == (4, [], "There is no approval of 'weather'.")


def test_several_approvals_are_told_one_by_one(project: Project) -> None:
    code, given = answer(project, "approve", "weather", "remote")
    assert code == 4
    assert [(each["name"], each["approved"]) for each in given["servers"]] == [("weather", False), ("remote", False)]
    assert all(each["digest"].startswith("sha256:") and each["error"]["message"] for each in given["servers"])
    assert [each["name"] for each in answer(project, "approve", "--all")[1]["servers"]] == ["remote", "weather"]


WITH_JSON = [
    name
    for name in toolbridge.list_commands(click.Context(toolbridge))
    if (found := toolbridge.get_command(click.Context(toolbridge), name)) is not None
    and any("--json" in parameter.opts for parameter in found.params)
]
WORDS = {"run": ["-"], "check": ["-"], "search": ["x"], "call": ["a.b"], "plugins": [], "list": [], "doctor": []} | {
    name: list[str]() for name in ("audit", "lock", "stubs", "init", "install")
}


@pytest.mark.parametrize("wrong", ["--config", "--no-such-option"])
@pytest.mark.parametrize("name", WITH_JSON)
def test_an_error_is_json_with_the_same_exit_code(
    name: str, wrong: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"1")))
    missing = ["--config", str(tmp_path / "none.json")] if wrong == "--config" else [wrong]
    words = [name, *WORDS.get(name, ["server"]), *missing]
    if wrong == "--config" and name in ("init", "install", "doctor", "revoke"):
        pytest.skip("it has no such option, or no configuration is no error of it")
    codes: list[int] = []
    for more in ([], ["--json", "{}"] if name == "call" else ["--json"]):
        monkeypatch.setattr("sys.argv", ["toolbridge", *words, *more])
        codes.append(cli._run())
        out, err = capsys.readouterr()
        assert bool(out) == bool(more), (out, err)
    assert codes[0] == codes[1] != 0
    assert set(json.loads(out)["error"]) == {"kind", "message"}
    assert "--json" not in json.loads(out)["error"]["message"]


@pytest.mark.parametrize("name", WITH_JSON)
def test_where_nothing_is_approved_the_answer_is_json(
    name: str, project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.directory)
    for variable, value in project.environ.items():
        monkeypatch.setenv(variable, value)
    source = b"require('host:mcp-weather').list_stations()"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(source)))
    words = {**WORDS, "call": ["weather.list_stations"], "sign-in": ["remote"]}.get(name, ["weather"])
    monkeypatch.setattr("sys.argv", ["toolbridge", name, *words, "--json", *(["{}"] if name == "call" else [])])
    cli._run()
    assert json.loads(capsys.readouterr().out) is not None


def test_accepting_what_a_lock_pins_is_told_to_programs(project: Project) -> None:
    (code, answered) = answer(project, "lock", "weather", "--trust")
    assert (code, answered) == (1, {"servers": [{"name": "weather", "accepted": None, "findings": []}]})
    project.approve("weather")
    assert project.run("lock", "weather")[0] == 0
    (code, answered) = answer(project, "lock", "weather", "--trust")
    assert (code, answered) == (0, {"servers": [{"name": "weather", "accepted": 7, "findings": []}]})


def test_stubs_that_can_not_be_had_say_why_to_programs(project: Project) -> None:
    code, answered = answer(project, "stubs")
    assert (code, answered["error"]["kind"]) == (4, "unknown_tools")
    assert "`toolbridge approve remote weather`" in answered["error"]["message"]


def test_the_known_clients_are_told_to_programs(project: Project) -> None:
    code, known = answer(project, "install")
    assert code == 0
    assert "claude-code" in [each["client"] for each in known["clients"]]


def test_switching_is_told_to_programs(project: Project) -> None:
    assert answer(project, "disable", "weather") == (0, {"name": "weather", "enabled": False})
    assert answer(project, "enable", "weather") == (0, {"name": "weather", "enabled": True})


def test_signing_out_is_told_to_programs(project: Project) -> None:
    assert answer(project, "sign-out", "remote") == (0, {"name": "remote", "wasSignedIn": False})


@pytest.mark.parametrize("words", [("init",), ("install", "cursor", "--print"), ("install", "cursor", "--project")])
def test_in_a_directory_that_is_gone_that_is_said(project: Project, tmp_path: Path, words: tuple[str, ...]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    inside = "import os, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]); os.execv(sys.argv[2], sys.argv[2:])"
    done = subprocess.run(
        [COMMAND[0], "-c", inside, str(gone), *COMMAND, *words],
        env=project.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        4,
        "Error: The directory that this was started in is gone: go to another one.\n",
    )


@pytest.mark.parametrize("timeout", ["1e300", "inf", "0"])
def test_a_timeout_out_of_range_is_told_its_range(project: Project, timeout: str) -> None:
    code, _, err = project.run("run", project.write("1"), "--timeout", timeout)
    assert (code, err) == (2, "Error: --timeout takes seconds above 0 and below a thousand million.\n")


def test_an_address_that_can_not_be_had_is_not_blamed_on_the_port(project: Project) -> None:
    project.configure({})
    code, _, err = project.run("serve", "--http", "--host", "no-such-host.invalid", "--token-file", token_of(project))
    assert code == 4
    assert err.endswith(" Choose another --host.\n"), err


def token_of(project: Project) -> str:
    file = project.directory / "token"
    file.write_text("a" * 43)
    file.chmod(0o600)
    return str(file)
