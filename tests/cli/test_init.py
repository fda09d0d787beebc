"""`toolbridge init`: other clients' servers, without their secrets, and without losing anything."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.projects import WEATHER, Project
from toolbridge import load_config

SECRET = "ghp_0123456789abcdef"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    Path(project.environ["HOME"]).mkdir()
    return project


def client_file(project: Project, path: str, content: str | dict[str, Any]) -> Path:
    file = Path(project.environ["HOME"]) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def written(project: Project) -> dict[str, Any]:
    return json.loads((project.directory / "toolbridge.json").read_text(encoding="utf-8"))["mcpServers"]


def fill(project: Project) -> None:
    """One file of every sort."""
    github = {"command": "npx", "args": ["-y", "gh"], "env": {"GITHUB_TOKEN": SECRET, "DEBUG": "true"}}
    client_file(project, ".cursor/mcp.json", {"mcpServers": {"GitHub": github}})
    local: dict[str, Any] = {"mcpServers": {"local": {"type": "stdio", "command": "here", "args": []}}}
    client_file(
        project, ".claude.json", {"mcpServers": {"GitHub": github}, "projects": {str(project.directory): local}}
    )
    remote = {"serverUrl": "https://x.example/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}}
    client_file(project, ".codeium/windsurf/mcp_config.json", {"mcpServers": {"remote": remote}})
    gemini = {"httpUrl": "https://y.example/mcp", "headers": {"X-Key": "$MY_KEY"}, "includeTools": ["a"], "trust": True}
    client_file(project, ".gemini/settings.json", {"mcpServers": {"gemini": gemini}})
    zed = '{ // z\n "context_servers": {"zed": {"command": {"path": "zz", "args": ["1"]}}}, }'
    client_file(project, ".config/zed/settings.json", zed)
    code = {"type": "stdio", "command": "c", "args": ["${userHome}/x"], "env": {"KEY": "${input:api-key}"}}
    client_file(project, ".config/Code/User/mcp.json", {"servers": {"code": code}})
    codex = '[mcp_servers.codex]\nurl = "https://z.example/mcp"\nbearer_token_env_var = "TOK"\n'
    client_file(project, ".codex/config.toml", codex)
    itself = {"command": "/x/toolbridge", "args": ["serve"]}
    desktop = {"mcpServers": {"GitHub": {"command": "other"}, "self": itself, "bad": 7}}
    client_file(project, ".config/Claude/claude_desktop_config.json", desktop)


def test_servers_of_every_client_are_taken_over_without_secrets(project: Project) -> None:
    fill(project)
    code, out, err = project.run("init", "--yes")
    assert (code, err) == (0, "")
    servers = written(project)
    home = project.environ["HOME"]
    assert servers == {
        "github": {"command": "other"},
        "local": {"command": "here", "args": []},
        "github-claude-code": {
            "command": "npx",
            "args": ["-y", "gh"],
            "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}", "DEBUG": "true"},
        },
        "code": {"command": "c", "args": [f"{home}/x"], "env": {"KEY": "${API_KEY}"}},
        "remote": {"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${REMOTE_AUTHORIZATION}"}},
        "zed": {"command": "zz", "args": ["1"]},
        "gemini": {"url": "https://y.example/mcp", "allowTools": ["a"], "headers": {"X-Key": "${MY_KEY}"}},
        "codex": {"url": "https://z.example/mcp", "headers": {"Authorization": "Bearer ${TOK}"}},
    }
    assert SECRET not in out
    assert "The clients still start these servers themselves, past toolbridge: take them out of " in out
    assert "`toolbridge approve " in out
    assert "Set these variables before you use them: API_KEY, GITHUB_TOKEN, MY_KEY, REMOTE_AUTHORIZATION, TOK" in out
    assert set(load_config(project.directory / "toolbridge.json").servers) == set(servers)
    assert not Path(project.environ["TOOLBRIDGE_STATE_DIR"]).exists()  # nothing is approved

    again = project.run("init", "--yes")
    assert again[0] == 0
    assert "Added" not in again[1]
    assert written(project) == servers


def test_an_existing_file_keeps_everything(project: Project) -> None:
    client_file(project, ".cursor/mcp.json", {"mcpServers": {"mine": {"command": "new"}, "other": {"command": "o"}}})
    before = '{\n  "mcpServers": {"mine": {"command": "old"}},\n  "permissions": {"default": "ask"}\n}\n'
    project.write(before, "toolbridge.json")
    assert project.run("init", "--yes")[0] == 0
    text = (project.directory / "toolbridge.json").read_text(encoding="utf-8")
    config = load_config(project.directory / "toolbridge.json")
    assert {name: server.command for name, server in config.servers.items()} == {
        "mine": "old",
        "mine-cursor": "new",
        "other": "o",
    }
    assert '"permissions": {"default": "ask"}\n}\n' in text
    assert (project.directory / "toolbridge.json.before-toolbridge").read_text(encoding="utf-8") == before


def test_a_dry_run_and_json_change_nothing(project: Project) -> None:
    fill(project)
    code, out, _ = project.run("init", "--dry-run")
    assert code == 0
    assert "npx -y gh" in out
    facts = json.loads(project.run("init", "--json")[1])
    assert SECRET not in json.dumps(facts)
    assert {each["client"] for each in facts["servers"]} >= {"cursor", "codex", "zed", "vscode"} - {"cursor"}
    assert os.listdir(project.directory) == []


def test_where_nobody_can_be_asked_nothing_is_added(project: Project) -> None:
    fill(project)
    code, _, err = project.run("init")
    assert (code, err) == (4, "Nothing was added: nobody can be asked here. --yes adds all of them.\n")
    assert os.listdir(project.directory) == []


def test_a_person_chooses_and_approves_one_by_one(project: Project) -> None:
    server = {"command": sys.executable, "args": [str(WEATHER)]}
    client_file(project, ".cursor/mcp.json", {"mcpServers": {"weather": server, "unwanted": {"command": "no"}}})
    code, shown = project.at_terminal(
        "init",
        answers=[
            (r"Add weather\? \[y/N\]", "y\n"),
            (r"Add unwanted\? \[y/N\]", "n\n"),
            (r"NOT sandboxed\? \[y/N\]", "y\n"),
        ],
    )
    assert code == 0
    assert "Approved weather." in shown
    assert list(written(project)) == ["weather"]
    assert json.loads(project.run("list", "--json")[1])[0]["approval"]["standing"] == "approved"


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": 7}'])
def test_a_broken_file_is_left_alone(project: Project, text: str) -> None:
    client_file(project, ".cursor/mcp.json", {"mcpServers": {"a": {"command": "b"}}})
    project.write(text, "toolbridge.json")
    code, _, err = project.run("init", "--yes")
    assert code == 2
    assert "can't be added to" in err
    assert (project.directory / "toolbridge.json").read_text(encoding="utf-8") == text


def test_a_client_file_that_cannot_be_read_is_a_warning(project: Project) -> None:
    client_file(project, ".cursor/mcp.json", "{ not json")
    code, _, err = project.run("init", "--dry-run")
    assert code == 0
    assert "mcp.json can't be read" in err


def test_an_entry_that_would_spoil_the_file_is_left_out_and_told(project: Project) -> None:
    client_file(project, ".cursor/mcp.json", {"mcpServers": {"good": {"command": "npx"}, "odd": {"command": 5}}})
    code, shown, _ = project.run("init", "--yes")
    assert code == 0
    assert "it can't be used here: " in shown
    assert list(written(project)) == ["good"]
    assert project.run("list")[0] == 0
