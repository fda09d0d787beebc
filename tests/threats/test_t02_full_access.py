"""T2: a server has all of the user's permissions: whoever approves one has read so, and can put a wall around it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from cases import each
from toolbridge.config.config import Config
from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.servers.lifecycle import prepare
from toolbridge.servers.manager import ServerManager
from toolbridge.trust.approval.approver import ApprovalRequest, Terminal
from toolbridge.trust.approval.approvers import StoredApprovals, TerminalApprover, approval_prompt, question
from toolbridge.trust.approval.store import ApprovalStore, StoredAnswer
from trust.approval.approval_requests import http, request, stdio

WARNING = "⚠️ This MCP server runs as a full OS process with YOUR permissions. It is NOT sandboxed."
"""Written out here: this exact sentence is what is promised."""
ROOT = Path(__file__).resolve().parents[2]
WEATHER = ROOT / "bridge" / "toolbridge" / "demo" / "weather.py"

ANSWERS = [
    StoredAnswer("unknown"),
    StoredAnswer("changed", "2026-01-02T03:04:05Z", ("args",)),
    StoredAnswer("revoked", "2026-01-02T03:04:05Z"),
]
SERVERS: dict[str, ServerConfig] = {
    "plain": stdio(),
    "of the user": stdio(origin=Origin("user", "/home/me/config.json")),
    "of a plugin": stdio(origin=Origin("plugin", "acme")),
    "of a program": stdio(origin=Origin("code")),
    "with a thousand arguments": stdio("weather", *map(str, range(1000))),
    "with one enormous argument": stdio("weather", "x" * 1_000_000),
    "with lines in its arguments": stdio("weather", "\n" * 500),
    "that clears the screen": stdio("weather", "\x1b[2J\x1b[3J\x1b[H"),
    "that hides what follows": stdio("weather", "\x1b[8m", "\x1b]0;", "\x1bP", "\x9d"),
    "that calls itself sandboxed": stdio("weather", display_name="sandboxed", description="It is sandboxed."),
    "with a thousand variables": stdio(env={f"V{number}": "x" for number in range(1000)}),
    "in a container": stdio("weather", "run", "--rm", "-i", "image", command="docker"),
}


@each("answer", ANSWERS)
@each("server", SERVERS)
@each("width", [40, 80, 200])
def test_the_exact_warning_is_the_last_thing_before_the_question(server: str, answer: StoredAnswer, width: int) -> None:
    text = approval_prompt(request(SERVERS[server]), answer, width=width)
    assert text.rstrip("\n").split("\n")[-1].strip() == WARNING
    assert "NOT sandboxed" in question(SERVERS[server])


def test_a_remote_server_is_not_said_to_be_a_process() -> None:
    text = approval_prompt(request(http()), ANSWERS[0])
    assert WARNING not in text
    assert "leaves your control" in text.rstrip("\n").split("\n")[-1]


def test_nobody_is_asked_without_the_warning(tmp_path: Path) -> None:
    """What the terminal gets to show has it."""
    shown: list[str] = []

    class Screen(Terminal):
        @property
        def is_there(self) -> bool:
            return True

        async def ask(self, text: str, question: str) -> str:
            shown.append(text)
            return "n"

    for server in SERVERS.values():
        approver = TerminalApprover(ApprovalStore(tmp_path / "approvals"), terminal=Screen())
        anyio.run(approver.approve, request(server))
    assert len(shown) == len(SERVERS)
    assert all(WARNING in text for text in shown)


# ---- a wall around a server: documented in docs/operate-safely.md


def connects(server: ServerConfig, tmp_path: Path) -> ApprovalRequest:
    """Approve a server and list its tools."""
    store = ApprovalStore(tmp_path / "approvals")
    asked, _ = prepare(server, os.environ)
    store.approve(asked)

    async def main() -> None:
        async with ServerManager(Config({server.name: server}), approver=StoredApprovals(store)) as manager:
            listing = await manager.connect(server.name)
            assert "get_forecast" in {tool.name for tool in listing.tools}

    anyio.run(main)
    return asked


@pytest.mark.skipif(os.name != "posix", reason="the wrapper is a shell script")
def test_a_wrapper_command_works_and_is_what_is_shown_and_approved(tmp_path: Path) -> None:
    wrapper = tmp_path / "wall"
    wrapper.write_text('#!/bin/sh\necho "$@" > "$(dirname "$0")/walled"\nexec "$@"\n')
    wrapper.chmod(0o700)
    server = ServerConfig.stdio("weather", str(wrapper), [sys.executable, str(WEATHER)])
    asked = connects(server, tmp_path)
    assert (tmp_path / "walled").read_text().split() == [sys.executable, str(WEATHER)]
    text = approval_prompt(asked, ANSWERS[0], width=400)
    assert f"Command     {wrapper} {sys.executable} {WEATHER}" in text
    without = ServerConfig.stdio("weather", sys.executable, [str(WEATHER)])
    assert prepare(without, os.environ)[0].digest != asked.digest


def _works(*command: str) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run([*command, "true"], capture_output=True, timeout=20, check=False).returncode == 0


WALLS = {
    line.split()[0]: line.split()
    for line in (
        "bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --unshare-all --die-with-parent",
        "unshare --map-root-user --net --pid --fork --kill-child",
    )
}


@pytest.mark.parametrize("wall", WALLS)
def test_a_real_wall_works(wall: str, tmp_path: Path) -> None:
    command, *args = WALLS[wall]
    if not _works(command, *args):
        pytest.skip(f"{command} is not here, or may not be used")
    options: dict[str, Any] = {"cwd": str(ROOT)}
    connects(ServerConfig.stdio("weather", command, [*args, sys.executable, str(WEATHER)], **options), tmp_path)


def test_the_document_says_what_is_not_promised() -> None:
    assert WARNING in (ROOT / "docs" / "approve-and-pin.md").read_text(encoding="utf-8")
