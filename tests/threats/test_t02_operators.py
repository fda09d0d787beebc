"""T2, for operators: the steps of docs/operate-safely.md work as written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import anyio
import click
import pytest

from servers.fault_servers import FIXTURES, PYTHON, fault_server, manager_of
from toolbridge import Config, ServerConfig, ServerManager, load_config
from toolbridge.cli.commands import toolbridge
from toolbridge.servers.lifecycle import prepare
from toolbridge.trust.approval.approvers import StoredApprovals
from toolbridge.trust.approval.store import ApprovalStore

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "operate-safely.md").read_text(encoding="utf-8")
COMMANDS = sorted(
    {*re.findall(r"`(toolbridge [a-z][^`]*)`", TEXT), *re.findall(r"^ +(toolbridge .*)$", TEXT, re.MULTILINE)}
)

posix_only = pytest.mark.skipif(os.name != "posix", reason="the wrapper is a shell script")


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    return found


def test_every_command_and_option_exists() -> None:
    """A value that is left to the reader (`NAME`, `sha256:…`) counts as given."""
    for words in COMMANDS:
        _, name, *arguments = words.split()
        command = toolbridge.get_command(click.Context(toolbridge), name)
        assert command is not None, words
        with click.Context(command, info_name=name) as context:
            command.parse_args(context, arguments)


def test_the_steps_are_there() -> None:
    steps = TEXT.partition("## When a server is compromised")[2].partition("## A wall")[0]
    found = [words.split()[1] for words in re.findall(r"^ +(toolbridge .*)$", steps, re.MULTILINE)]
    assert found == ["disable", "revoke", "sign-out", "audit", "enable", "approve", "lock", "lock"]
    checklist = TEXT.partition("## Checklist")[2].partition("\n## ")[0]
    assert 10 <= len(re.findall(r"^\d+\. ", checklist, re.MULTILINE)) <= 15


def test_a_compromised_server_is_stopped_and_comes_back_only_as_a_new_one(tmp_path: Path) -> None:
    """Disabled and revoked it is started by no command; enabled, it still has to be approved."""
    canary = tmp_path / "started"
    server = {"command": "/bin/sh", "args": ["-c", f"echo >> {canary}"], "cwd": "/"}
    (tmp_path / "toolbridge.json").write_text(f'{{"mcpServers": {{"bad": {str(server).replace(chr(39), chr(34))}}}}}')
    environ = {
        **os.environ,
        **{f"TOOLBRIDGE_{name}_DIR": str(tmp_path / name.lower()) for name in ("STATE", "CONFIG", "CACHE")},
    }

    def run(*words: str) -> tuple[int, str]:
        command = [sys.executable, "-c", "from toolbridge.cli import main; main()", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    digest = prepare(load_config(directory=tmp_path, environ=environ).servers["bad"], environ)[0].digest
    assert run("approve", "bad", "--hash", digest, "--yes")[0] == 0
    run("list", "--connect")
    assert canary.exists(), "it is started once it is approved"
    canary.unlink()
    assert run("disable", "bad")[0] == 0
    assert "Revoked bad" in run("revoke", "bad")[1]
    for words in (["list", "--connect"], ["lock", "--check", "bad"]):
        run(*words)
    assert run("enable", "bad")[0] == 0
    assert "never approved" in (shown := run("list", "--connect")[1]) or "revoked" in shown or "needs" in shown
    assert not canary.exists()


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are looked for in /proc")
def test_what_a_server_started_is_found_as_the_document_says() -> None:
    (search,) = re.findall(r"^ +(grep -lz .*)$", TEXT, re.MULTILINE)

    async def main() -> str:
        async with manager_of([fault_server("one", "fine")]) as manager:
            await manager.connect("one")
            done = await anyio.run_process(["/bin/sh", "-c", search], check=False)
            return done.stdout.decode()

    found = anyio.run(main)
    assert re.search(r"^/proc/\d+/environ$", found, re.MULTILINE)


def test_the_configurations_load(tmp_path: Path) -> None:
    (tmp_path / "toolbridge.json").write_text(block("json"), encoding="utf-8")
    servers = load_config(directory=tmp_path, environ={}).servers
    assert servers["walled"].command == "wall"
    assert "--network" in servers["contained"].args


@posix_only
def test_the_wall_starts_the_server_that_it_is_given_and_hides_the_rest(tmp_path: Path) -> None:
    """With the real bubblewrap where there is one, else with a stand-in that notes what it was told."""
    wall, told = tmp_path / "bin" / "wall", tmp_path / "told"
    wall.parent.mkdir()
    wall.write_text(block("sh"))
    stand_in = wall.with_name("bwrap")
    stand_in.write_text(
        f'#!/bin/sh\necho "$@" > {told}\nwhile [ "$1" != -- ]; do shift; done; shift\nexec "$@"\n', encoding="utf-8"
    )
    for each in (wall, stand_in):
        each.chmod(0o700)
    words = [*PYTHON, str(FIXTURES / "fault_stdio.py"), "fine"]
    path = f"{wall.parent}:/usr/bin:/bin"
    server = ServerConfig.stdio("walled", "wall", words, cwd=str(tmp_path), env={"PATH": path})
    store = ApprovalStore(tmp_path / "approvals")
    request, _ = prepare(server, os.environ)
    assert request.executable == str(wall)
    store.approve(request)

    async def main() -> None:
        async with ServerManager(Config({"walled": server}), approver=StoredApprovals(store)) as manager:
            await manager.call("walled", "echo", {"text": "x"})

    anyio.run(main)
    options, _, command = told.read_text().partition(" -- ")
    assert command.split() == words
    assert "--unshare-all --die-with-parent" in options
    assert f"--bind {tmp_path} {tmp_path}" in options
