"""T24: a look-alike on PATH, the current directory, variables that load code, loose packages: shown and hashed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from toolbridge.config.config import load_config
from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.errors import ServerConnectError
from toolbridge.servers.lifecycle import prepare
from toolbridge.trust.approval.approver import ApprovalRequest
from toolbridge.trust.approval.approvers import approval_prompt
from toolbridge.trust.approval.store import ApprovalStore, StoredAnswer
from toolbridge.trust.approval.warnings import approval_warnings
from trust.approval.approval_requests import request, stdio

posix_only = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o700)
    return path


def shown(asked: ApprovalRequest) -> str:
    """The prompt, with its lines put together."""
    return " ".join(approval_prompt(asked, StoredAnswer("unknown"), width=1000).split())


@posix_only
def test_a_look_alike_earlier_on_the_path_is_shown_and_hashed(tmp_path: Path) -> None:
    real, fake = program(tmp_path / "bin" / "npx"), program(tmp_path / "evil" / "npx")
    server = ServerConfig.npm("one", "pkg@1.2.3")
    before, _ = prepare(server, {"PATH": str(real.parent)})
    after, _ = prepare(server, {"PATH": f"{fake.parent}:{real.parent}"})
    assert before.digest != after.digest
    assert f"Program {real}" in shown(before)
    assert f"Program {fake}" in shown(after)


@posix_only
@pytest.mark.parametrize("entry", [".", "", "bin", "./bin", "../project"])
def test_the_current_directory_on_the_path_is_not_searched(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "project" / "npx")
    program(tmp_path / "project" / "bin" / "npx")
    monkeypatch.chdir(tmp_path / "project")
    with pytest.raises(ServerConnectError):
        prepare(ServerConfig.npm("one", "pkg@1.2.3"), {"PATH": entry})


@posix_only
def test_a_command_of_the_current_directory_is_shown_by_its_whole_path_and_pointed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = program(tmp_path / "server")
    asked, _ = prepare(ServerConfig.stdio("one", "./server"), {})
    assert f"Program {file}" in shown(asked)
    assert "The command is a file of the directory" in shown(asked)


@posix_only
@pytest.mark.parametrize("command", ["./server", "bin/server", "{project}/server"])
@pytest.mark.parametrize("origin", [Origin("code"), Origin("project", "{project}/toolbridge.json")])
def test_a_command_of_the_project_that_becomes_a_link_elsewhere_is_shown_and_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, origin: Origin
) -> None:
    project, evil = tmp_path / "project", program(tmp_path / "elsewhere" / "evil")
    monkeypatch.chdir(program(project / "server").parent)
    program(project / "bin" / "server")
    origin = Origin(origin.kind, origin.detail.format(project=project))
    server = ServerConfig("one", "stdio", command=command.format(project=project), origin=origin)
    before, _ = prepare(server, {})
    assert before.target is None
    if command.startswith("bin"):  # the directory is replaced, and the command in it is no link
        (project / "bin").rename(project / "old")
        program(tmp_path / "elsewhere" / "server")
        (project / "bin").symlink_to(tmp_path / "elsewhere")
        evil = tmp_path / "elsewhere" / "server"
    else:
        (project / "server").unlink()
        (project / "server").symlink_to(evil)
    after, _ = prepare(server, {})
    assert (before.executable, before.directory) == (after.executable, after.directory)
    assert before.digest != after.digest
    assert f"a link to {evil}" in shown(after)
    store = ApprovalStore(tmp_path / "state" / "approvals")
    store.approve(before)
    answer = store.answer(after)
    assert (answer.standing, answer.changes) == ("changed", ("target",))


@posix_only
def test_a_program_that_is_installed_elsewhere_may_be_upgraded_and_a_project_may_lie_behind_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = program(tmp_path / "cellar" / "1" / "npx"), program(tmp_path / "cellar" / "2" / "npx")
    (tmp_path / "bin").mkdir()
    link = tmp_path / "bin" / "npx"
    digests: set[str] = set()
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    for target in (one, two):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        digests.add(prepare(ServerConfig.npm("one", "pkg@1.2.3"), {"PATH": str(link.parent)})[0].digest)
    assert len(digests) == 1
    program(tmp_path / "project" / "server")
    (tmp_path / "link").symlink_to(tmp_path / "project")
    asked, _ = prepare(ServerConfig.stdio("one", "./server", cwd=str(tmp_path / "link")), {})
    assert asked.target is None


@posix_only
def test_a_program_found_inside_the_directory_is_pointed_out(tmp_path: Path) -> None:
    file = program(tmp_path / "node_modules" / ".bin" / "npx")
    asked, _ = prepare(ServerConfig.stdio("one", "npx", cwd=str(tmp_path)), {"PATH": str(file.parent)})
    assert "was found inside the directory" in shown(asked)


@posix_only
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o703])
def test_a_program_where_everybody_can_write_is_pointed_out(tmp_path: Path, mode: int) -> None:
    file = program(tmp_path / "open" / "server")
    file.parent.chmod(mode)
    asked, _ = prepare(ServerConfig.stdio("one", str(file)), {})
    assert "every user of this machine can write" in shown(asked)


@posix_only
def test_a_program_that_everybody_can_change_is_pointed_out(tmp_path: Path) -> None:
    file = program(tmp_path / "server")
    file.chmod(0o777)
    asked, _ = prepare(ServerConfig.stdio("one", str(file)), {})
    assert "can change the program" in shown(asked)


def test_a_server_of_the_users_file_is_bound_to_the_directory_that_it_runs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`node server.js` of a user's file runs another server.js in every repository."""
    users, one, two = tmp_path / "users", tmp_path / "one", tmp_path / "two"
    for directory in (users, one, two):
        directory.mkdir()
        (directory / "server.js").write_text("")
    entry = '{"mcpServers": {"mine": {"command": "/bin/sh", "args": ["server.js"]}}}'
    (users / "config.json").write_text(entry)
    environ = {"TOOLBRIDGE_CONFIG_DIR": str(users), "PATH": "/bin"}
    store = ApprovalStore(tmp_path / "approvals")

    def asked_in(directory: Path) -> ApprovalRequest:
        monkeypatch.chdir(directory)
        return prepare(load_config(directory=directory, environ=environ).servers["mine"], environ)[0]

    first = asked_in(one)
    assert f"Directory {one} (the current one)" in shown(first)
    assert "This approval is for that directory only" in shown(first)
    assert "Files are taken from the directory" in shown(first)
    store.approve(first)
    assert store.answer(asked_in(one)).standing == "approved"
    assert store.answer(asked_in(two)).standing == "changed"

    (users / "config.json").write_text(entry.replace('"args"', f'"cwd": "{users}", "args"'))
    store.approve(asked_in(one))
    assert store.answer(asked_in(two)).standing == "approved"


_VARIABLES = """
LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES NODE_OPTIONS NODE_PATH PYTHONPATH PYTHONSTARTUP PYTHONHOME
PERL5OPT PERL5LIB RUBYOPT RUBYLIB JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS BASH_ENV ENV GIT_SSH_COMMAND
DOTNET_STARTUP_HOOKS CLASSPATH PATH HOME NPM_CONFIG_REGISTRY npm_config_registry UV_INDEX_URL UV_DEFAULT_INDEX
PIP_INDEX_URL DOCKER_HOST HTTPS_PROXY https_proxy NODE_TLS_REJECT_UNAUTHORIZED SSL_CERT_FILE
"""


@pytest.mark.parametrize("name", _VARIABLES.split())
def test_a_variable_that_changes_what_runs_is_shown_pointed_out_and_hashed(name: str) -> None:
    plain, with_value = request(), request(env={name: "/tmp/x"})
    assert f"{name}=***" in shown(with_value)
    assert any(name in warning for warning in approval_warnings(with_value))
    assert len({plain.digest, with_value.digest, request(env={name: "/tmp/y"}).digest}) == 3
    forwarded = request(env_required=(name,))
    assert any(name in warning for warning in approval_warnings(forwarded))
    assert forwarded.digest != plain.digest


@pytest.mark.parametrize(
    ("command", "loose", "fixed"),
    [
        ("npx", ("-y", "pkg"), ("-y", "pkg@1.2.3")),
        ("npx", ("-y", "@acme/pkg@latest"), ("-y", "@acme/pkg@1.2.3")),
        ("uvx", ("pkg",), ("pkg==1.2.3",)),
        ("uvx", ("--from", "pkg>=1", "tool"), ("--from", "pkg==1.2.3", "tool")),
        ("docker", ("run", "-i", "image:latest"), ("run", "-i", f"image@sha256:{'0' * 64}")),
    ],
)
def test_a_package_without_a_version_is_pointed_out(
    command: str, loose: tuple[str, ...], fixed: tuple[str, ...]
) -> None:
    assert "without a fixed version" in shown(request(stdio("one", *loose, command=command)))
    assert "without a fixed version" not in shown(request(stdio("one", *fixed, command=command)))


def test_the_whole_environment_is_shown_pointed_out_and_hashed() -> None:
    asked = request(inherit_env=True)
    assert "inheritEnv true: ALL variables" in shown(asked)
    assert "EVERY variable" in shown(asked)
    assert asked.digest != request().digest


def test_relative_arguments_are_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "server.js").write_text("")
    server = stdio("one", "server.js", "./data", "absent.js", command="node", cwd=str(tmp_path))
    assert "started in: server.js, ./data." in shown(request(server))
    assert request(server).digest != request(replace(server, cwd="/elsewhere")).digest
