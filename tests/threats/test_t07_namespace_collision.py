"""T7, namespace collision: reserved, native and twin names are rejected at load, from every source of servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cases import each
from toolbridge.config.config import Config, load_config
from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.errors import ConfigError

RESERVED = ["mcp", "gateway", "wink", "bridge", "fs-read", "fs-write", "fetch"]
DISGUISED = ["MCP", "Fetch", "fs_read", "FS-WRITE", "fs.read", "fs read", "ｆｅｔｃｈ", ".mcp", "gateway!", "_bridge_"]
PREFIXED = ["host:weather", "host:mcp-weather", "ha:light", "HOST:weather", "Ha:light"]
SEPARATED = ["a__b", "mcp__weather", "acme__shared-fs", "A__b", "a__b.c"]


def load(directory: Path, names: list[str], form: str = "mcpServers") -> Config:
    servers = {name: {"command": "true"} for name in names}
    return load_file(directory / "toolbridge.json", {form: servers})


def load_file(path: Path, document: dict[str, Any]) -> Config:
    path.write_text(json.dumps(document), encoding="utf-8")
    return load_config(path, environ={"HOME": str(path.parent / "home")})


def test_an_ordinary_name_is_loaded(tmp_path: Path) -> None:
    """The measure for all the others."""
    assert list(load(tmp_path, ["weather", "hostess", "fetcher", "mcp-tools"]).servers) == [
        "weather",
        "hostess",
        "fetcher",
        "mcp-tools",
    ]


@pytest.mark.parametrize("form", ["mcpServers", "servers"])
@pytest.mark.parametrize("name", [*RESERVED, *DISGUISED, *PREFIXED])
def test_a_reserved_name_is_rejected_in_every_disguise(tmp_path: Path, name: str, form: str) -> None:
    with pytest.raises(ConfigError, match="reserved") as caught:
        load(tmp_path, ["weather", name], form)
    assert (caught.value.file, caught.value.server) == (str(tmp_path / "toolbridge.json"), name)


@pytest.mark.parametrize("name", SEPARATED)
def test_the_separator_of_plugins_and_tools_is_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="contains '__'"):
        load(tmp_path, [name])


@pytest.mark.parametrize(
    ("one", "other", "problem"),
    [
        ("my-db", "my_db", "'my-db' only by '-' and '_'"),
        ("a-b-c", "a_b-c", "'a-b-c' only by '-' and '_'"),
        ("GitHub", "github", "becomes 'github', as does 'GitHub'"),
        ("github", "GITHUB", "becomes 'github', as does 'github'"),
        ("file.system", "file_system", "becomes 'file_system', as does 'file.system'"),
        ("file.system", "file-system", "'file.system' only by '-' and '_'"),
        ("my server", "my.server", "becomes 'my_server', as does 'my server'"),
    ],
)
def test_names_that_would_share_a_module_are_rejected_and_both_are_named(
    tmp_path: Path, one: str, other: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, [one, "weather", other])
    assert problem in str(caught.value)
    assert caught.value.server == other


def test_a_twin_in_the_users_file_is_rejected_and_both_files_are_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"my-db": {"command": "evil"}}}', encoding="utf-8")
    (home / "config.json").write_text('{"mcpServers": {"my_db": {"command": "good"}}}', encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(directory=tmp_path, environ={"TOOLBRIDGE_CONFIG_DIR": str(home)})
    assert str(tmp_path / ".mcp.json") in str(caught.value)
    assert str(home / "config.json") in str(caught.value)


@each("name", [*RESERVED, *DISGUISED, *PREFIXED, *SEPARATED, "weather\n", "Weather"])
def test_code_can_not_make_such_a_server_either(name: str) -> None:
    with pytest.raises(ConfigError):
        ServerConfig.stdio(name, "true")


def test_code_can_not_put_twins_together() -> None:
    twins = ServerConfig.stdio("my-db", "true"), ServerConfig.stdio("my_db", "true")
    with pytest.raises(ConfigError, match="only by '-' and '_'"):
        Config.of(*twins)
    with pytest.raises(ConfigError, match="has the name of another server"):
        Config.of(twins[0], ServerConfig.http("my-db", "https://example.com"))


def test_a_plugins_server_can_not_pass_for_a_users() -> None:
    plugin = Origin("plugin", "acme")
    with pytest.raises(ConfigError, match="<plugin>__<server>"):
        ServerConfig.stdio("db", "true", origin=plugin)
    theirs = ServerConfig.stdio("acme__db", "true", origin=plugin)
    with pytest.raises(ConfigError, match="only by '-' and '_'"):
        Config.of(theirs, ServerConfig.stdio("acme--db", "true"))
