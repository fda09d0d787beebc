"""A process that gets a private directory, no environment, and only so much time, memory and output."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio
from anyio.abc import Process

# The shell is the portable way to limit a process before it begins; it then becomes that process.
_LIMITED = 'ulimit -v "$1" 2>/dev/null; ulimit -t "$2" 2>/dev/null; ulimit -c 0 2>/dev/null; shift 2; exec "$@"'


class ProcessFailed(Exception):  # noqa: N818  # a fact about the process, told as a warning
    """It did not end well; the text goes on after the process's name."""


class ProcessTooSlow(ProcessFailed):
    """It used up its CPU time."""


class ProcessTooLarge(ProcessFailed):
    """It aborted, as native code does without memory or stack."""


async def run_bounded(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    cpu_seconds: float,
    memory_bytes: int,
    most_output: int,
) -> bytes:
    """What a process writes to its standard output. Cancelling ends it, with all that it started.

    Raises:
        ProcessFailed: it could not be started, crashed, used too much CPU time or wrote too much.
    """
    if os.name == "posix":
        limits = [str(memory_bytes // 1024), str(int(cpu_seconds) + 1)]
        command = ["/bin/sh", "-c", _LIMITED, "sh", *limits, *command]
    try:
        process = await anyio.open_process(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=directory,
            env=_with_system_root(environment),
            start_new_session=True,
        )
    except OSError as error:
        raise ProcessFailed(f"could not be started ({error.strerror})") from error
    try:
        output = await _read(process, most_output)
        code = await process.wait()
    finally:
        _kill(process)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    if os.name == "posix" and code in (-signal.SIGXCPU, -signal.SIGKILL):  # the limit, and the limit after it
        raise ProcessTooSlow(f"took longer than {cpu_seconds:g} s of CPU time")
    if os.name == "posix" and code == -signal.SIGABRT:
        raise ProcessTooLarge("ran out of memory or stack")
    if code:
        raise ProcessFailed(f"ended with exit code {code}")
    return output


async def _read(process: Process, most: int) -> bytes:
    assert process.stdout is not None
    output = bytearray()
    async for chunk in process.stdout:
        output += chunk
        if len(output) > most:
            raise ProcessFailed(f"wrote more than {most} bytes")
    return bytes(output)


def _kill(process: Process) -> None:
    """Ends it and what it started; one that has ended already is no problem."""
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()


def _with_system_root(environment: Mapping[str, str]) -> dict[str, str]:
    """Windows can't start a process without its own directory."""
    root = os.environ.get("SYSTEMROOT")
    return {**environment, "SYSTEMROOT": root} if os.name == "nt" and root else dict(environment)
