"""T23: what was approved is what runs, whatever is changed between the question and the start."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from toolbridge.config.config import Config, load_config
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import ServerError, ServerNotApprovedError
from toolbridge.servers.lifecycle import approved_start, prepare
from toolbridge.servers.manager import ServerManager
from toolbridge.trust.approval.approver import Approval, ApprovalRequest
from toolbridge.trust.approval.approvers import StoredApprovals
from toolbridge.trust.approval.store import ApprovalStore

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the programs are shell scripts")


class Meanwhile:
    """Approves, after something was done behind its back."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act
        self.asked: list[ApprovalRequest] = []

    async def approve(self, request: ApprovalRequest) -> Approval:
        self.asked.append(request)
        self.act()
        return Approval(True)


def script(path: Path, says: Path) -> Path:
    """A program that writes down that it ran, where, and with what."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "$0|$PWD|$TOKEN|$*" >> {says}\n')
    path.chmod(0o700)
    return path


def run(server: ServerConfig, approver: Any, environ: dict[str, str] | None = None) -> None:
    async def main() -> None:
        async with ServerManager(Config({server.name: server}), approver=approver, environ=environ) as manager:
            with pytest.raises(ServerError):
                await manager.connect(server.name)  # it is no MCP server

    anyio.run(main)


def test_the_file_may_be_changed_while_the_question_is_asked(tmp_path: Path) -> None:
    log, file = tmp_path / "log", tmp_path / "toolbridge.json"
    good, evil = script(tmp_path / "good", log), script(tmp_path / "evil", log)
    file.write_text(f'{{"mcpServers": {{"one": {{"command": "{good}"}}}}}}')
    config = load_config(file, directory=tmp_path)
    approver = Meanwhile(lambda: file.write_text(file.read_text().replace(str(good), str(evil))))
    run(config.servers["one"], approver)
    assert log.read_text().startswith(f"{good}|")
    assert "evil" not in log.read_text()


def test_a_look_alike_that_appears_on_the_path_meanwhile_is_not_run(tmp_path: Path) -> None:
    log = tmp_path / "log"
    good = script(tmp_path / "later" / "server", log)
    (tmp_path / "earlier").mkdir()
    environ = {"PATH": f"{tmp_path}/earlier:{tmp_path}/later:/usr/bin:/bin"}
    approver = Meanwhile(lambda: script(tmp_path / "earlier" / "server", log))
    run(ServerConfig.stdio("one", "server"), approver, environ)
    assert approver.asked[0].executable == str(good)
    assert log.read_text().startswith(f"{good}|")


def test_a_change_of_the_hosts_directory_meanwhile_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, here, there = tmp_path / "log", tmp_path / "here", tmp_path / "there"
    for directory in (here, there):
        script(directory / "server", log)
    monkeypatch.chdir(here)
    approver = Meanwhile(lambda: os.chdir(there))
    run(ServerConfig.stdio("one", "./server"), approver)
    assert approver.asked[0].directory == str(here)
    assert set(log.read_text().splitlines()) == {f"{here}/server|{here}||"}


def test_an_environment_that_changes_meanwhile_changes_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    environ = {"PATH": "/usr/bin:/bin", "TOKEN_SOURCE": "before"}
    server = ServerConfig.stdio("one", str(script(tmp_path / "server", log)), env={"TOKEN": "${TOKEN_SOURCE}"})
    run(server, Meanwhile(lambda: environ.update(TOKEN_SOURCE="after", LD_PRELOAD="/x.so")), environ)
    assert "|before|" in log.read_text()


@pytest.mark.parametrize("field", ["args", "env", "env_required"])
def test_what_a_host_gave_can_not_be_changed_afterwards(tmp_path: Path, field: str) -> None:
    given: dict[str, Any] = {"args": ["a"], "env": {"TOKEN": "a"}, "env_required": ["PATH"]}
    server = ServerConfig("one", "stdio", command=str(script(tmp_path / "server", tmp_path / "log")), **given)
    before = prepare(server, {"PATH": "/bin"})[0].digest

    def act() -> None:
        given[field].update(TOKEN="b") if field == "env" else given[field].append("b")

    run(server, Meanwhile(act), {"PATH": "/usr/bin:/bin"})
    assert (tmp_path / "log").read_text().endswith("|a|a\n")
    assert prepare(server, {"PATH": "/bin"})[0].digest == before


def test_the_request_can_not_be_changed_by_who_is_asked(tmp_path: Path) -> None:
    server = ServerConfig.stdio("one", sys.executable, env={"A": "b"})
    request, _ = prepare(server, os.environ)
    unfrozen: Any = request
    for act in (
        lambda: setattr(unfrozen, "executable", "/evil"),
        lambda: setattr(unfrozen.server, "args", ("evil",)),
        lambda: unfrozen.server.env.update(LD_PRELOAD="/evil"),
    ):
        with pytest.raises((AttributeError, TypeError)):
            act()


def test_an_approval_that_was_stored_holds_for_what_was_shown_and_not_for_what_is_there_later(tmp_path: Path) -> None:
    log, file = tmp_path / "log", tmp_path / "toolbridge.json"
    good, evil = script(tmp_path / "good", log), script(tmp_path / "evil", log)
    file.write_text(f'{{"mcpServers": {{"one": {{"command": "{good}"}}}}}}')
    shown, _ = prepare(load_config(file, directory=tmp_path).servers["one"], os.environ)
    file.write_text(file.read_text().replace(str(good), str(evil)))
    store = ApprovalStore(tmp_path / "approvals")
    store.approve(shown)

    server = load_config(file, directory=tmp_path).servers["one"]

    async def main() -> None:
        with pytest.raises(ServerNotApprovedError, match="command"):
            await approved_start(server, StoredApprovals(store), os.environ)

    anyio.run(main)
    assert not log.exists()


def test_a_program_that_moves_on_the_path_after_approval_asks_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script(tmp_path / "later" / "server", log)
    environ = {"PATH": f"{tmp_path}/earlier:{tmp_path}/later"}
    server = ServerConfig.stdio("one", "server", cwd="/")
    store = ApprovalStore(tmp_path / "approvals")
    store.approve(prepare(server, environ)[0])
    script(tmp_path / "earlier" / "server", log)
    answer = store.answer(prepare(server, environ)[0])
    assert (answer.standing, answer.changes) == ("changed", ("program",))


def test_a_directory_that_is_gone_is_an_error_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(ServerError, match="current directory no longer exists"):
        prepare(ServerConfig.stdio("one", "sh"), os.environ)
