"""VS Code's own variables in its own file: filled in where values are, and nowhere in what runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolbridge.config.config import load_config
from toolbridge.config.references import resolve_environment
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import ServerEnvironmentError

ENVIRON = {"HOME": "/home/somebody", "PATH": "/bin", "TOKEN": "t"}


def server_of(directory: Path, entry: dict[str, Any], file: str = ".vscode/mcp.json") -> ServerConfig:
    path = directory / file
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(json.dumps({"servers": {"one": entry}}), encoding="utf-8")
    return load_config(directory=directory, environ=ENVIRON).servers["one"]


def test_they_are_filled_in_in_env_and_cwd(tmp_path: Path) -> None:
    project = tmp_path / "${odd}"
    env = {
        "DATABASE": "${workspaceFolder}${pathSeparator}db${/}x ${TOKEN}",
        "NAME": "${workspaceFolderBasename}",
        "HOME_OF": "${userHome}",
        "PLAIN": "$${workspaceFolder}",
    }
    server = server_of(project, {"command": "x", "cwd": "${workspaceFolder}/sub", "env": env})
    assert server.cwd == str(project / "sub")
    resolved = resolve_environment(server, ENVIRON)
    assert resolved.env["DATABASE"] == f"{project}/db/x t"
    assert (resolved.env["NAME"], resolved.env["HOME_OF"]) == ("${odd}", "/home/somebody")
    assert resolved.env["PLAIN"] == "${workspaceFolder}"
    assert resolved.warnings == ()


def test_they_are_filled_in_in_headers(tmp_path: Path) -> None:
    headers = {"X-Project": "${workspaceFolderBasename}"}
    server = server_of(tmp_path / "shop", {"url": "https://h.example/mcp", "headers": headers})
    assert resolve_environment(server, ENVIRON).headers["X-Project"] == "shop"


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "node", "args": ["${workspaceFolder}/server.js"]},
        {"command": "${userHome}/bin/server"},
        {"url": "https://h.example/${workspaceFolderBasename}"},
    ],
)
def test_a_server_with_one_in_what_runs_or_is_reached_is_refused_with_advice(
    tmp_path: Path, entry: dict[str, Any]
) -> None:
    server = server_of(tmp_path, entry)
    with pytest.raises(ServerEnvironmentError, match=r"'\$\{.*where nothing is filled in. Write the path itself"):
        resolve_environment(server, ENVIRON)


def test_in_any_other_file_they_are_variables_like_all(tmp_path: Path) -> None:
    server = server_of(tmp_path, {"command": "x", "env": {"A": "${workspaceFolder}"}}, "toolbridge.json")
    assert resolve_environment(server, {**ENVIRON, "workspaceFolder": "mine"}).env["A"] == "mine"
