"""A user with a project: a directory with a configuration, in which commands are run as real processes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-c", "from toolbridge.cli import main; main()"]
# A terminal has to be a process's own for Ctrl-C to become a signal.
_TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
WEATHER = Path(__file__).resolve().parents[2] / "bridge" / "toolbridge" / "demo" / "weather.py"


def weather(**more: Any) -> dict[str, Any]:
    """The friendly server, with time to start on a busy machine."""
    return {"command": sys.executable, "args": [str(WEATHER)], "connectTimeout": 60, **more}


class Project:
    """The compiled engine is this machine's; everything else of the user is new."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "project"
        self.directory.mkdir()
        cache = os.environ.get("TOOLBRIDGE_CACHE_DIR")
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory / "home"),
            "TERM": "xterm",
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
            "TOOLBRIDGE_CONFIG_DIR": str(directory / "config"),
            "TOOLBRIDGE_STATE_DIR": str(directory / "state"),
            **({"TOOLBRIDGE_CACHE_DIR": cache} if cache else {}),
        }

    def configure(self, servers: dict[str, Any], **more: Any) -> None:
        text = json.dumps({"mcpServers": servers, **more})
        (self.directory / "toolbridge.json").write_text(text, encoding="utf-8")

    def write(self, source: str, name: str = "program.js") -> str:
        (self.directory / name).write_text(source, encoding="utf-8")
        return name

    def approve(self, *names: str) -> None:
        """As a script would."""
        for name in names:
            _, out, _ = self.run("approve", name)
            (digest,) = set(re.findall(r"sha256:[0-9a-f]{64}", out))
            code, out, err = self.run("approve", name, "--hash", digest, "--yes")
            assert (code, out.partition("\n")[0], err) == (0, f"Approved {name}.", "")

    def start(self, *words: str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *words],
            cwd=self.directory,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a command without a terminal."""
        process = self.start(*words)
        out, err = process.communicate(timeout=90)
        assert "Traceback" not in err
        return process.returncode, out, err

    def at_terminal(
        self, *words: str, answers: Sequence[tuple[str, str]] = (), command: Sequence[str] = COMMAND
    ) -> tuple[int, str]:
        """Exit code, and what the terminal showed. Whenever the next pattern is shown, its answer is typed."""
        leader, follower = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-c", _TAKE_TERMINAL, *command, *words],
            cwd=self.directory,
            env=self.environ,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
        )
        os.close(follower)
        shown, waiting, seen, deadline = b"", list(answers), 0, time.monotonic() + 90
        with contextlib.suppress(OSError):  # all of the terminal's users are gone
            while time.monotonic() < deadline:
                if not select.select([leader], [], [], 1)[0]:
                    continue
                data = os.read(leader, 65536)
                if not data:
                    break
                shown += data
                if waiting and re.search(waiting[0][0], shown[seen:].decode(errors="replace")):
                    seen = len(shown)
                    os.write(leader, waiting.pop(0)[1].encode())
        try:
            code = process.wait(timeout=60)
        finally:
            process.kill()
            os.close(leader)
        text = shown.decode(errors="replace").replace("\r\n", "\n")
        assert "Traceback" not in text
        assert waiting == [], text
        return code, text
