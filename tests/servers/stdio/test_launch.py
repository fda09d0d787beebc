"""Where a server's command is found, and what is said when it can't be run."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from toolbridge.config.server_config import ServerConfig, checked_server
from toolbridge.errors import ServerConnectError
from toolbridge.servers.stdio.launch import Launch, find_executable, why_not_started


def stdio(command: str, cwd: str | None = None) -> ServerConfig:
    return checked_server(name="weather", transport="stdio", command=command, cwd=cwd)


def program(path: Path, mode: int = 0o755) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return str(path)


def refusal(command: str, path: str = "", cwd: str | None = None) -> str:
    with pytest.raises(ServerConnectError) as raised:
        find_executable(stdio(command, cwd), path)
    assert str(raised.value).startswith("Server 'weather' can't be started: ")
    return str(raised.value)


def test_an_absolute_path_is_taken_as_it_is(tmp_path: Path) -> None:
    file = program(tmp_path / "serve")
    assert find_executable(stdio(file), "/nowhere") == file


def test_a_symbolic_link_is_not_resolved(tmp_path: Path) -> None:
    program(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    assert find_executable(stdio(str(tmp_path / "link")), "") == str(tmp_path / "link")


def test_a_relative_path_is_taken_from_the_servers_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = program(tmp_path / "project" / "bin" / "serve")
    assert find_executable(stdio("./bin/serve", str(tmp_path / "project")), "") == file
    assert find_executable(stdio("../project/bin/serve", str(tmp_path / "project")), "") == file
    monkeypatch.chdir(tmp_path / "project")
    assert find_executable(stdio("bin/serve"), "") == file


def test_a_bare_name_is_looked_for_on_the_servers_path_in_its_order(tmp_path: Path) -> None:
    first, second = program(tmp_path / "a" / "serve"), program(tmp_path / "b" / "serve")
    path = os.pathsep.join((str(tmp_path / "none"), str(tmp_path / "b"), str(tmp_path / "a")))
    assert find_executable(stdio("serve"), path) == second
    os.chmod(second, 0o644)
    assert find_executable(stdio("serve"), path) == first


@pytest.mark.parametrize("path", [".", "", "bin", "./bin"])
def test_the_current_directory_never_chooses_what_runs(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "serve")
    program(tmp_path / "bin" / "serve")
    monkeypatch.chdir(tmp_path)
    assert "no program 'serve'" in refusal("serve", path)
    assert "no program 'serve'" in refusal("serve", os.pathsep.join((path, "/nowhere")))


@pytest.mark.parametrize(
    ("command", "fix"),
    [
        ("npx", "Node.js"),
        ("uvx", "Install uv"),
        ("python", "`python3`"),
        ("npx -y server", "`args`"),
        ("weather-server", "whole path"),
    ],
)
def test_a_missing_program_is_named_with_what_to_do(command: str, fix: str) -> None:
    message = refusal(command, "/no/bin:/no/sbin")
    assert f"no program {command!r} on its PATH. " in message
    assert fix in message


def test_python_is_python3_where_that_is_there(tmp_path: Path) -> None:
    program(tmp_path / "python3")
    assert refusal("python", str(tmp_path)).endswith("Write `python3`, which is there.")


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    assert "no file" in refusal(str(tmp_path / "none"))
    assert "`~` is not expanded" in refusal("~/bin/serve", cwd=str(tmp_path))
    assert "no regular file" in refusal(str(tmp_path))
    if os.geteuid() != 0 or os.name == "posix":  # root may run nothing without an x bit either
        assert "chmod +x" in refusal(program(tmp_path / "data", 0o644))


@pytest.mark.parametrize("command", ["", "a\0b", "/bin/\0sh"])
def test_an_impossible_command_is_refused(command: str) -> None:
    assert "NUL" in refusal(command)


def test_control_characters_in_a_command_are_shown_not_obeyed() -> None:
    assert "\x1b" not in refusal("x\x1b[2J", "/\x1b[2J")


def test_a_launch_shows_names_of_variables_only() -> None:
    launch = Launch("/bin/serve", ("--port", "1"), {"TOKEN": "hunter2"}, "/srv")
    assert repr(launch) == "Launch('/bin/serve', args=['--port', '1'], env=['TOKEN'], cwd='/srv')"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "permission"),
        (errno.ENOEXEC, "`#!`"),
        (errno.E2BIG, "args and env"),
        (errno.EMFILE, "files are open"),
        (errno.EAGAIN, "no more processes"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_why_the_system_refused_is_said_in_words(number: int, words: str) -> None:
    launch = Launch("/bin/sh", (), {}, None)
    assert words in why_not_started(launch, OSError(number, os.strerror(number)))
