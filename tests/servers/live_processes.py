"""Processes of a test, found by a word in their arguments or variables: servers, and whatever they leave behind."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio

_PROC = Path("/proc")


@contextmanager
def processes_by_a_word() -> Generator[str]:
    """A word for servers; whoever still has it at the end is killed, so that no test leaves anything behind."""
    word = f"word-{secrets.token_hex(8)}"
    try:
        yield word
    finally:
        kill_processes(word)


def processes(word: str) -> dict[int, str]:
    """The live processes with this word, by number, with their command lines."""
    if (_PROC / "self" / "environ").exists():
        texts = {int(entry.name): _about(entry) for entry in _PROC.iterdir() if entry.name.isdigit()}
    else:
        listed = subprocess.run(["ps", "-axwwE", "-o", "pid=,command="], capture_output=True, text=True, check=True)
        texts = {int(line.split()[0]): (line, "") for line in listed.stdout.splitlines()}
    return {pid: line for pid, (line, variables) in texts.items() if word in line + variables and pid != os.getpid()}


def _about(entry: Path) -> tuple[str, str]:
    """A process's command line, and its environment."""
    try:
        command, variables = ((entry / name).read_bytes() for name in ("cmdline", "environ"))
    except OSError:  # it ended just now, or is somebody else's
        return "", ""
    return command.replace(b"\0", b" ").decode(errors="replace"), variables.decode(errors="replace")


def zombies() -> int:
    """How many children of this process have ended and were never waited for."""
    listed = subprocess.run(["ps", "-ax", "-o", "ppid=,stat="], capture_output=True, text=True, check=True)
    return sum(1 for line in listed.stdout.splitlines() if line.split()[0] == str(os.getpid()) and "Z" in line)


def kill_processes(word: str) -> None:
    """Kill every process with this word."""
    for number in processes(word):
        try:
            os.kill(number, signal.SIGKILL)
        except ProcessLookupError:
            continue


async def left_after(word: str, seconds: float = 60.0) -> dict[int, str]:
    """The processes with this word that are still there after so long; looks away as soon as there are none."""
    deadline = time.monotonic() + seconds
    while (left := processes(word)) and time.monotonic() < deadline:  # noqa: ASYNC110  # a grandchild's end is no event
        await anyio.sleep(0.02)
    return left
