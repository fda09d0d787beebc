"""Which files are read, how they are merged, and where each server came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolbridge.config.config import Config, load_config
from toolbridge.config.server_config import Origin
from toolbridge.errors import ConfigError


class Places:
    """A project and a user's directory."""

    def __init__(self, directory: Path) -> None:
        self.project, self.user = directory / "project", directory / "user"
        self.project.mkdir()
        self.user.mkdir()
        self.environ = {"TOOLBRIDGE_CONFIG_DIR": str(self.user), "HOME": str(directory)}

    def write(self, path: Path, servers: dict[str, str], **more: Any) -> str:
        path.parent.mkdir(exist_ok=True)
        entries = {name: {"command": command} for name, command in servers.items()}
        path.write_text(json.dumps({"mcpServers": entries, **more}), encoding="utf-8")
        return str(path)

    def load(self, file: Path | None = None) -> Config:
        return load_config(file, directory=self.project, environ=self.environ)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def commands(config: Config) -> dict[str, str | None]:
    return {name: server.command for name, server in config.servers.items()}


def test_without_any_file_there_are_no_servers(places: Places) -> None:
    assert places.load() == Config()


def test_a_projects_entry_wins_over_the_users_and_the_rest_is_merged(places: Places) -> None:
    project = places.write(places.project / "toolbridge.json", {"a": "project-a", "b": "project-b"})
    user = places.write(places.user / "config.json", {"b": "user-b", "c": "user-c"})
    config = places.load()
    assert commands(config) == {"a": "project-a", "b": "project-b", "c": "user-c"}
    assert {name: server.origin for name, server in config.servers.items()} == {
        "a": Origin("project", project),
        "b": Origin("project", project),
        "c": Origin("user", user),
    }
    assert config.files == (project, user)
    assert config.warnings == (f"{user}: server 'b' is hidden by that of {project}.",)


def test_a_mapped_name_is_merged_under_its_mapped_name(places: Places) -> None:
    places.write(places.project / ".mcp.json", {"GitHub": "project"})
    places.write(places.user / "config.json", {"github": "user"})
    assert commands(places.load()) == {"github": "project"}


def test_only_the_first_project_file_is_read(places: Places) -> None:
    first = places.write(places.project / ".agents" / "mcp.json", {"a": "agents"})
    places.write(places.project / ".mcp.json", {"b": "mcp"})
    assert (commands(places.load()), places.load().files) == ({"a": "agents"}, (first,))


def test_a_given_file_is_read_alone(places: Places) -> None:
    places.write(places.project / "toolbridge.json", {"a": "project"})
    places.write(places.user / "config.json", {"b": "user"})
    given = places.write(places.project / "other.json", {"c": "given"})
    config = places.load(Path(given))
    assert (commands(config), config.files) == ({"c": "given"}, (given,))
    assert config.servers["c"].origin == Origin("project", given)


def test_a_relative_file_is_looked_for_in_the_directory(places: Places) -> None:
    places.write(places.project / "other.json", {"c": "given"})
    assert commands(places.load(Path("other.json"))) == {"c": "given"}


def test_a_given_file_that_is_missing_is_an_error(places: Places) -> None:
    places.write(places.project / "toolbridge.json", {"a": "project"})
    with pytest.raises(ConfigError, match=r"gone\.json: there is no such file\."):
        places.load(places.project / "gone.json")


def test_the_same_file_gives_the_same_servers_however_it_was_found(places: Places) -> None:
    """Approvals are bound to the configuration: `--config` must not make another one of it."""
    path = places.write(places.project / "toolbridge.json", {"a": "x"})
    assert places.load().servers == places.load(Path(path)).servers


def test_the_current_directory_and_environment_are_the_defaults(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.write(places.project / "toolbridge.json", {"a": "project"})
    places.write(places.user / "config.json", {"b": "user"})
    monkeypatch.chdir(places.project)
    monkeypatch.setenv("TOOLBRIDGE_CONFIG_DIR", str(places.user))
    assert commands(load_config()) == {"a": "project", "b": "user"}


def test_limits_are_merged_one_by_one_the_projects_winning(places: Places) -> None:
    places.write(places.project / "toolbridge.json", {}, limits={"connections": 2})
    places.write(places.user / "config.json", {}, limits={"connections": 9, "respawns": 9})
    limits = places.load().limits
    assert (limits.connections, limits.respawns, limits.tools) == (2, 9, 1000)


def test_servers_of_both_files_count_together(places: Places) -> None:
    project = places.write(places.project / "toolbridge.json", {f"p{index}": "x" for index in range(30)})
    user = places.write(places.user / "config.json", {f"u{index}": "x" for index in range(21)})
    with pytest.raises(ConfigError, match="51 servers are configured; at most 50 may be") as caught:
        places.load()
    assert caught.value.file == f"{project} and {user}"


def test_a_mistake_in_the_users_file_is_reported_with_its_path(places: Places) -> None:
    places.write(places.project / "toolbridge.json", {"a": "x"})
    user = places.write(places.user / "config.json", {"b": ""})
    with pytest.raises(ConfigError) as caught:
        places.load()
    assert (caught.value.file, caught.value.server, caught.value.field) == (user, "b", "command")


def test_vs_codes_file_may_have_comments(places: Places) -> None:
    (places.project / ".vscode").mkdir()
    text = '{ // comment\n "servers": { "a": { "type": "stdio", "command": "x", }, }, "inputs": [] }'
    (places.project / ".vscode" / "mcp.json").write_text(text)
    config = places.load()
    assert commands(config) == {"a": "x"}
    assert config.servers["a"].cwd == str(places.project)


def test_loading_resolves_nothing_and_keeps_references(places: Places) -> None:
    path = places.project / "toolbridge.json"
    path.write_text('{"mcpServers": {"a": {"command": "${C}", "env": {"T": "${TOKEN}"}}}}')
    config = load_config(path, environ={**places.environ, "TOKEN": "value"})
    assert (dict(config.servers["a"].env), config.servers["a"].command) == ({"T": "${TOKEN}"}, "${C}")


def test_a_configuration_can_not_be_changed_once_read(places: Places) -> None:
    places.write(places.project / "toolbridge.json", {"a": "x"})
    config = places.load()
    with pytest.raises(TypeError):
        config.servers["b"] = config.servers["a"]  # pyright: ignore[reportIndexIssue]
    with pytest.raises(TypeError):
        config.servers["a"].env["X"] = "y"  # pyright: ignore[reportIndexIssue]


def test_the_name_of_a_directory_can_not_write_to_the_terminal(places: Places) -> None:
    evil = places.project / "\x1b[2J"
    evil.mkdir()
    (evil / "toolbridge.json").write_text("{")
    with pytest.raises(ConfigError) as caught:
        load_config(directory=evil, environ=places.environ)
    assert "\x1b" not in str(caught.value)


def test_a_current_directory_that_is_gone_is_a_config_error(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = places.project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="the current directory is gone"):
        load_config(environ=places.environ)


def test_a_projects_file_does_not_lift_a_limit_of_the_user(tmp_path: Path) -> None:
    places = Places(tmp_path)
    places.write(places.user / "config.json", {}, limits={"connections": 2, "respawns": 5})
    places.write(places.project / "toolbridge.json", {}, limits={"connections": 900, "respawns": 1, "tools": 50_000})
    config = load_config(directory=places.project, environ=places.environ)
    assert (config.limits.connections, config.limits.respawns, config.limits.tools) == (2, 1, 50_000)
    (warning,) = config.warnings
    assert "'connections'" in warning
