"""`toolbridge serve` as a process: nothing but the protocol on stdout, and nothing left at the end."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from cli.projects import COMMAND, Project
from servers.fault_servers import FIXTURES, PYTHON
from servers.live_processes import left_after, processes_by_a_word

INITIALIZE: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "raw", "version": "1"},
}


class Served:
    """A process, spoken to by hand."""

    def __init__(self, project: Project, *words: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "serve", *words],
            cwd=project.directory,
            env=project.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()

    def end(self) -> tuple[int, str, str]:
        """Closes stdin, if that is open; gives exit code, the rest of stdout, and stderr."""
        out, err = self.process.communicate(timeout=90)
        return self.process.returncode, out, err

    def send(self, method: str, params: dict[str, Any], number: int | None = None) -> None:
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        self.write({**body, "id": number} if number is not None else body)

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def message(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.lines.append(line)
        return json.loads(line)

    def begin(self) -> None:
        self.send("initialize", INITIALIZE, 1)
        assert self.answer_to(1)["result"]["serverInfo"]["name"] == "toolbridge"
        self.send("notifications/initialized", {})

    def answer_to(self, number: int) -> dict[str, Any]:
        """Agrees to whatever is asked on the way."""
        while True:
            message = self.message()
            if message.get("method") == "elicitation/create":
                agreed = {"action": "accept", "content": {"agree": True}}
                self.write({"jsonrpc": "2.0", "id": message["id"], "result": agreed})
            elif message.get("id") == number:
                return message


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def configure(project: Project, mode: str, word: str) -> None:
    args = [*PYTHON[1:], str(FIXTURES / "fault_stdio.py"), mode, word]
    project.configure({"noisy": {"command": PYTHON[0], "args": args, "connectTimeout": 60}})


@pytest.mark.parametrize("how", ["stdin", "SIGTERM", "SIGINT"])
def test_every_line_is_protocol_and_nothing_is_left(project: Project, how: str) -> None:
    with processes_by_a_word() as word:
        configure(project, "ask-ping", word)
        with Served(project) as served:
            served.begin()
            code = 'console.log("printed"); require("host:mcp-noisy").echo({ text: "hello" })'
            served.send("tools/call", {"name": "run_code", "arguments": {"code": code}}, 2)
            assert served.answer_to(2)["result"]["structuredContent"]["value"] == "hello"
            loop = {"name": "run_code", "arguments": {"code": "for (;;) {}"}}
            served.send("tools/call", loop, 3)  # still under way at the end
            time.sleep(0.3)
            if how != "stdin":
                served.process.send_signal(getattr(signal, how))
                served.process.wait(30)
            code, rest, shown = served.end()
        assert code == {"stdin": 0, "SIGTERM": 143, "SIGINT": 130}[how]
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in [*served.lines, *rest.splitlines()])
        assert "Traceback" not in shown
        assert anyio.run(left_after, word) == {}


def test_a_hang_up_that_nohup_ignores_ends_nothing(project: Project) -> None:
    project.configure({})
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        served = Served(project)
    finally:
        signal.signal(signal.SIGHUP, before)
    with served:
        served.begin()
        served.process.send_signal(signal.SIGHUP)
        served.send("tools/call", {"name": "run_code", "arguments": {"code": "6 * 7"}}, 2)
        assert served.answer_to(2)["result"]["structuredContent"]["value"] == 42
        assert served.end()[0] == 0


def test_lines_that_are_no_messages_do_no_harm(project: Project) -> None:
    project.configure({})
    with Served(project) as served:
        assert served.process.stdin is not None
        served.process.stdin.write('not json\n[]\n{"jsonrpc": "1.0"}\n\n' + "x" * 100_000 + "\n")
        served.begin()
        served.send("tools/call", {"name": "run_code", "arguments": {"code": "6 * 7"}}, 2)
        assert served.answer_to(2)["result"]["structuredContent"]["value"] == 42
        assert served.end()[0] == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--http", "--host", "0.0.0.0"], "a token is needed"),
        (["--http", "--host", "192.0.2.1"], "a token is needed"),
        (["--metrics"], "go only with --http"),
        (["--http", "--token-file", "nowhere"], "can't be read"),
        (["--http", "--token-file", "short.txt"], "at least 16 characters"),
        (["--http", "--token-file", "shared.txt"], "run `chmod 600` on it"),
        (["--http", "--host", "0.0.0.0", "--token-file", "token.txt"], "say which with --allow-host"),
        (["--config", "nowhere.json"], "nowhere.json"),
    ],
)
def test_what_cannot_be_meant_is_said_before_anything_starts(project: Project, words: list[str], problem: str) -> None:
    project.configure({})
    for name, token, mode in (
        ("short.txt", "too-short\n", 0o600),
        ("token.txt", "long-enough-for-a-token\n", 0o600),
        ("shared.txt", "long-enough-for-a-token\n", 0o640),
    ):
        (project.directory / project.write(token, name)).chmod(mode)
    code, out, err = project.run("serve", *words)
    assert (code, out) == (2, "")
    assert problem in err


def test_without_stdin_there_is_nobody_to_serve(project: Project) -> None:
    project.configure({})
    words = " ".join(shlex.quote(word) for word in [*COMMAND, "serve"])
    done = subprocess.run(
        ["sh", "-c", f"{words} <&-"], cwd=project.directory, env=project.environ, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"stdin or stdout is closed" in done.stderr


def test_a_port_that_is_taken_is_an_error(project: Project) -> None:
    project.configure({})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, err = project.run("serve", "--http", "--port", str(taken.getsockname()[1]))
    assert code == 4
    assert "Choose another --port" in err


def test_a_client_that_is_not_there_ends_it_at_once(project: Project) -> None:
    project.configure({})
    served = subprocess.run(
        [*COMMAND, "serve"],
        cwd=project.directory,
        env=project.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (served.returncode, served.stdout) == (0, "")
    assert "(unattended: allow)" in served.stderr


@pytest.mark.parametrize("words", [("--host", "0.0.0.0"), ("--port", "99"), ("--allow-host", "a.example")])
def test_what_is_for_http_is_refused_without_it(project: Project, words: tuple[str, ...]) -> None:
    code, _, errors = project.run("serve", *words)
    assert (code, "go only with --http" in errors) == (2, True)
