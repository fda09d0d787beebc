"""T1: an unapproved server is never started, by any path: the file that it would make stays absent.

The server that could be started is a shell that makes a file. An approval of something else, or one that was taken
back, is no approval of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.fault_servers import fault_server
from toolbridge.config.config import Config
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import ServerClosedError, ServerDisconnectedError, ServerError, ServerNotApprovedError
from toolbridge.servers.lifecycle import prepare
from toolbridge.servers.manager import ServerManager
from toolbridge.trust.approval.approver import Approval, ApprovalRequest, DenyAll
from toolbridge.trust.approval.approvers import CallbackApprover, StoredApprovals, TerminalApprover
from toolbridge.trust.approval.store import ApprovalStore

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the trap is a shell")

Way = Callable[[ServerManager], Awaitable[object]]


class Trap:
    """A server that leaves a file behind when it is started, and the store that does not know it."""

    def __init__(self, directory: Path) -> None:
        self.canary = directory / "started"
        self.store = ApprovalStore(directory / "approvals")
        self.server = ServerConfig.stdio("trap", "/bin/sh", ["-c", f"echo started >> {self.canary}"])

    def manager(self, *servers: ServerConfig, approver: Any = None) -> ServerManager:
        config = Config({server.name: server for server in (servers or (self.server,))})
        return ServerManager(config, approver=approver or StoredApprovals(self.store))

    def check_absent(self) -> None:
        assert not self.canary.exists(), "an unapproved server was started"


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


async def connect(manager: ServerManager) -> None:
    await manager.connect("trap")


async def call(manager: ServerManager) -> None:
    await manager.call("trap", "anything", {})


async def start_all(manager: ServerManager) -> None:
    await manager.start_all()


async def reload(manager: ServerManager) -> None:
    server = replace(manager._slots["trap"].server, args=("-c", manager._slots["trap"].server.args[1] + ";"))
    await manager.reload(Config({"trap": server}))
    await manager.connect("trap")


async def close_and_connect(manager: ServerManager) -> None:
    await manager.close_server("trap")
    await manager.connect("trap")


async def again_and_again(manager: ServerManager) -> None:
    for _ in range(6):
        with contextlib.suppress(ServerError):
            await manager.connect("trap")


async def all_at_once(manager: ServerManager) -> None:
    async def one() -> None:
        with contextlib.suppress(ServerError):
            await manager.connect("trap")

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(one)


async def look(manager: ServerManager) -> None:
    assert manager.statuses()
    assert manager.catalog.modules == ()
    assert manager.listing("trap") is manager.exposed("trap") is None


PATHS: list[Way] = [connect, call, start_all, reload, close_and_connect, again_and_again, all_at_once, look]


async def _raises(request: ApprovalRequest) -> bool:
    raise RuntimeError("no")


async def _odd(request: ApprovalRequest) -> Any:
    return "yes"


APPROVERS: dict[str, Callable[[ApprovalStore], Any]] = {
    "none": lambda store: DenyAll(),
    "the store": StoredApprovals,
    "a terminal that is not there": TerminalApprover,
    "a function that raises": lambda store: CallbackApprover(_raises),
    "a function that answers oddly": lambda store: CallbackApprover(_odd, store=store),
}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
@pytest.mark.parametrize("approver", APPROVERS)
def test_an_unapproved_server_is_never_started(trap: Trap, path: Way, approver: str) -> None:
    async def main() -> None:
        async with trap.manager(approver=APPROVERS[approver](trap.store)) as manager:
            with contextlib.suppress(ServerNotApprovedError):
                await path(manager)
            assert manager.status("trap").state in ("idle", "needs_approval")

    anyio.run(main)
    trap.check_absent()


def test_the_trap_goes_off_once_it_is_approved(trap: Trap) -> None:
    """Else the tests above would show nothing."""

    async def main() -> None:
        trap.store.approve(prepare(trap.server, os.environ)[0])
        async with trap.manager() as manager:
            with pytest.raises(ServerError):
                await manager.connect("trap")  # it is no MCP server

    anyio.run(main)
    assert trap.canary.exists()


CHANGES: dict[str, Callable[[ServerConfig], ServerConfig]] = {
    "args": lambda server: replace(server, args=(*server.args, "x")),
    "no args": lambda server: replace(server, args=server.args[:1]),
    "another command": lambda server: replace(server, command="/bin/bash"),
    "a bare command": lambda server: replace(server, command="sh"),
    "cwd": lambda server: replace(server, cwd="/"),
    "env": lambda server: replace(server, env={"BASH_ENV": "/tmp/x"}),
    "inheritEnv": lambda server: replace(server, inherit_env=True),
    "name": lambda server: replace(server, name="trap2"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_is_changed_after_approval_asks_again(trap: Trap, change: str) -> None:
    trap.store.approve(prepare(trap.server, os.environ)[0])
    changed = CHANGES[change](trap.server)

    async def main() -> None:
        async with trap.manager(changed) as manager:
            with pytest.raises(ServerNotApprovedError, match="ApproveDigests"):
                await manager.connect(changed.name)

    anyio.run(main)
    trap.check_absent()


def test_a_revoked_server_is_not_started_again(trap: Trap) -> None:
    """Approved, connected, revoked and closed: no path opens it again."""
    server = fault_server("trap", "fine")
    trap.store.approve(prepare(server, os.environ)[0])

    async def main() -> None:
        async with trap.manager(server) as manager:
            await manager.connect("trap")
            trap.store.revoke("trap")
            await manager.close_server("trap")
            for path in (connect, call):
                with pytest.raises(ServerNotApprovedError, match="revoked"):
                    await path(manager)
            (status,) = await manager.start_all()
            assert status.state == "needs_approval"

    anyio.run(main)


def test_a_server_that_died_is_asked_about_before_it_is_started_again(trap: Trap) -> None:
    """Respawning is a start like any other: an approval that was taken back in between holds no longer."""
    server = fault_server("trap", "exit-at-call")
    trap.store.approve(prepare(server, os.environ)[0])

    async def main() -> None:
        async with trap.manager(server) as manager:
            with pytest.raises(ServerDisconnectedError):
                await manager.call("trap", "faulty", {"text": "x"})
            trap.store.revoke("trap")
            with pytest.raises(ServerNotApprovedError):
                await manager.call("trap", "faulty", {"text": "x"})

    anyio.run(main)


def test_a_server_that_is_disabled_while_the_host_runs_is_not_started(trap: Trap) -> None:
    trap.store.approve(prepare(trap.server, os.environ)[0])
    trap.store.set_enabled(trap.server, False)

    async def main() -> None:
        async with trap.manager() as manager:
            with pytest.raises(ServerNotApprovedError, match="you disabled it"):
                await manager.connect("trap")
        async with trap.manager(replace(trap.server, enabled=False)) as manager:
            with pytest.raises(ServerClosedError):
                await manager.connect("trap")

    anyio.run(main)
    trap.check_absent()


def test_signing_in_needs_approval_too(trap: Trap) -> None:
    async def main() -> None:
        def sign_in(server: str, url: str) -> None:
            raise AssertionError(f"asked to sign in to {server} at {url}")

        async with trap.manager(ServerConfig.http("trap", "https://example.invalid/mcp")) as manager:
            with pytest.raises(ServerNotApprovedError):
                await manager.sign_in("trap", sign_in)

    anyio.run(main)


def test_an_approval_that_is_not_exactly_true_is_none(trap: Trap) -> None:
    class Truthy:
        async def approve(self, request: ApprovalRequest) -> Approval:
            answer: Any = [True]
            return Approval(answer)

    async def main() -> None:
        async with trap.manager(approver=Truthy()) as manager:
            with pytest.raises(ServerNotApprovedError):
                await manager.connect("trap")

    anyio.run(main)
    trap.check_absent()


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["list", "--connect"],
        ["info", "trap", "--connect"],
        ["doctor"],
        ["stubs", "--connect"],
        ["enable", "trap"],
        ["approve", "trap"],
        ["approve", "trap", "--hash", "sha256:" + "0" * 64, "--yes"],
        ["approve", "trap", "--yes"],
    ],
    ids=" ".join,
)
def test_no_command_starts_an_unapproved_server(tmp_path: Path, words: list[str]) -> None:
    canary = tmp_path / "started"
    shells = {
        "trap": {"command": "/bin/sh", "args": ["-c", f"echo > {canary}"]},
        "injected": {"command": f"sh -c 'echo > {canary}'"},
        "substituted": {"command": "true", "args": [f"$(echo > {canary})", f"`echo > {canary}`", f"; echo > {canary}"]},
    }
    (tmp_path / "toolbridge.json").write_text(json.dumps({"mcpServers": shells}))
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TOOLBRIDGE_STATE_DIR": str(tmp_path / "state")}
    command = [sys.executable, "-c", "from toolbridge.cli import main; main()", *words]
    done = subprocess.run(
        command, cwd=tmp_path, env=environ, input="y\ny\n", capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in done.stderr
    assert not canary.exists()


def test_arguments_are_never_read_by_a_shell(tmp_path: Path) -> None:
    """An approved server gets its arguments as they are."""
    canary = tmp_path / "started"
    server = ServerConfig.stdio(
        "trap", "/bin/true", [f"; echo > {canary}", f"$(echo > {canary})", f"| echo > {canary}"]
    )
    store = ApprovalStore(tmp_path / "approvals")
    store.approve(prepare(server, os.environ)[0])

    async def main() -> None:
        async with ServerManager(Config({"trap": server}), approver=StoredApprovals(store)) as manager:
            with pytest.raises(ServerError):
                await manager.connect("trap")

    anyio.run(main)
    assert not canary.exists()
