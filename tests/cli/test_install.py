"""`toolbridge install`: one entry more, and nothing else different."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from toolbridge.cli.client_files import CLIENTS, SpliceError, read_json, user_path, with_member
from toolbridge.cli.commands import toolbridge

ENTRY = {"command": "/bin/toolbridge", "args": ["serve"]}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.chdir(place)
    return place


def invoke(*words: str) -> Result:
    return CliRunner().invoke(toolbridge, list(words), standalone_mode=False)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_without_a_file_gets_one(client: object) -> None:
    assert client in CLIENTS
    known = next(each for each in CLIENTS if each is client)
    assert invoke("install", known.name).return_value == 0
    path = user_path(known, os.environ)
    assert path is not None
    text = Path(path).read_text(encoding="utf-8")
    document = tomllib.loads(text) if known.form == "toml" else json.loads(text)
    entry = document[known.key]["toolbridge"]
    assert entry["args"] == ["serve"]
    assert os.path.isabs(entry["command"])
    assert oct(os.stat(path).st_mode & 0o777) == "0o600"
    again = invoke("install", known.name)
    assert "has it already" in again.output


FILE = """\
{
  // what I like
  "theme": "dark", /* and so on */
  "mcpServers": {
    "mine": {"command": "x", "args": ["}", "//", "\\"{"]}, // the best one
  },
  "number": 1e3,
}
"""


def test_everything_else_in_the_file_stays(home: Path) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(FILE, encoding="utf-8")
    os.chmod(file, 0o640)
    assert invoke("install", "cursor").return_value == 0
    text = file.read_text(encoding="utf-8")
    added = text[text.index('    "toolbridge"') : text.index('    "mine"')]
    assert text.replace(added, "") == FILE
    assert set(read_json(text)["mcpServers"]) == {"toolbridge", "mine"}
    assert (file.parent / "mcp.json.before-toolbridge").read_text(encoding="utf-8") == FILE
    assert file.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "text",
    ["not json", "[]", '{"mcpServers": []}', '{"mcpServers": {"toolbridge": {"command": "other"}}}', '{"a": 1,, }'],
)
def test_a_file_that_cannot_be_changed_safely_is_left_alone(home: Path, text: str) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    result = invoke("install", "cursor")
    assert result.return_value == 4
    assert "was left as it is" in result.stderr
    assert '"mcpServers"' in result.stderr
    assert file.read_text(encoding="utf-8") == text
    assert os.listdir(file.parent) == ["mcp.json"]


def test_a_link_stays_a_link(home: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}", encoding="utf-8")
    (home / ".claude.json").symlink_to(real)
    assert invoke("install", "claude-code").return_value == 0
    assert (home / ".claude.json").is_symlink()
    assert "toolbridge" in real.read_text(encoding="utf-8")


def test_toml_keeps_its_comments(home: Path) -> None:
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    before = '# mine\nmodel = "x"  # this one\n\n[mcp_servers.other]\ncommand = "y"'
    file.write_text(before, encoding="utf-8")
    assert invoke("install", "codex").return_value == 0
    text = file.read_text(encoding="utf-8")
    assert text.startswith(before)
    assert set(tomllib.loads(text)["mcp_servers"]) == {"other", "toolbridge"}


def test_print_and_json_change_nothing(home: Path) -> None:
    (home / "toolbridge.json").write_text('{"mcpServers": {}}', encoding="utf-8")
    printed = invoke("install", "vscode", "--print").output
    assert '"servers": {' in printed
    assert "--config" in printed
    facts = json.loads(invoke("install", "zed", "--json").output)
    assert facts["key"] == "context_servers"
    assert os.listdir(home) == ["toolbridge.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "{}",
        '{"mcpServers": {}}',
        '{"mcpServers":{"a":{}}}',
        '\ufeff{"b": [1, {"c": "}"}]}',
        '{\n\t"b": 1\n}\n',
    ],
)
def test_a_member_is_added_to_any_object(text: str) -> None:
    changed = with_member(text, "mcpServers", "toolbridge", ENTRY)
    before = read_json(text)
    assert read_json(changed) == {**before, "mcpServers": {**before.get("mcpServers", {}), "toolbridge": ENTRY}}


def test_a_key_that_is_there_twice_is_not_guessed_at() -> None:
    with pytest.raises(SpliceError):
        with_member('{"mcpServers": {"a": {}}, "mcpServers": {}}', "mcpServers", "toolbridge", ENTRY)


def test_a_projects_file_has_no_path_of_this_machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = home / "project"
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / "toolbridge.json").write_text('{"mcpServers": {}}', encoding="utf-8")
    monkeypatch.chdir(project)

    def entry(*words: str) -> dict[str, Any]:
        return json.loads(invoke("install", "claude-code", *words, "--json").output)["entry"]

    monkeypatch.setattr("shutil.which", {"toolbridge": "/opt/bin/toolbridge"}.get)
    assert entry("--project")["command"] == "toolbridge"
    assert entry("--project")["args"] == ["serve", "--config", "toolbridge.json"]
    assert entry()["command"] == "/opt/bin/toolbridge"
    assert entry()["args"][-1] == str(project / "toolbridge.json")
    monkeypatch.setattr("shutil.which", {"toolbridge": str(project / ".venv" / "bin" / "toolbridge")}.get)
    assert entry("--project")["command"] == os.path.join(".venv", "bin", "toolbridge")
    (home / "other.json").write_text("{}", encoding="utf-8")
    other = str(home / "other.json")
    assert entry("--project", "--config", other)["args"][-1] == other
    (home / ".git").mkdir()
    assert entry("--project", "--config", other)["args"][-1] == os.path.join(os.pardir, "other.json")
    assert entry("--config", other)["args"][-1] == other


def test_a_configuration_that_is_not_there_is_not_installed(home: Path) -> None:
    problem = invoke("install", "cursor", "--config", "none.json").exception
    assert isinstance(problem, click.ClickException)
    assert problem.message == "There is no file none.json."
    assert os.listdir(home) == []
