"""T28, orphans: whatever a server started is gone with it, however either of them came to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from servers.live_processes import left_after, processes, processes_by_a_word
from servers.scripted_server import Conversation, conversation, scripted
from toolbridge.servers.failures import ChannelClosedError

pytestmark = pytest.mark.anyio

needs_marks = pytest.mark.skipif(
    sys.platform != "linux", reason="who left its session and its parent is found on Linux"
)

DEAF = "for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)"

# How a server comes to have a second process, which would outlive it by far.
FAMILIES = {
    "a child": "if os.fork() == 0: linger()",
    "a child without its pipes": "if os.fork() == 0: os.close(0); os.close(1); os.close(2); linger()",
    "a deaf child": f"if os.fork() == 0:\n    {DEAF}\n    linger()",
    "a child in a group of its own": "if os.fork() == 0: os.setpgid(0, 0); linger()",
    "a deaf child in a session of its own": f"if os.fork() == 0:\n    {DEAF}\n    os.setsid(); linger()",
    "a wrapper": "if os.fork() != 0:\n    os.close(0); os.close(1)\n    while True: os.wait()",
    "a daemon": """
if os.fork() == 0:
    os.setsid()
    if os.fork() != 0: os._exit(0)
    os.close(0); os.close(1); os.close(2)
    linger()
os.wait()
""",
}


def families(*words: str, parent_dies: bool = False) -> list[object]:
    """The families with one of these words in their name; those that only Linux shows are marked."""
    return [
        pytest.param(
            body, id=name, marks=[needs_marks] if name == "a daemon" or (parent_dies and "own" in name) else []
        )
        for name, body in FAMILIES.items()
        if not words or any(word in name for word in words)
    ]


@pytest.fixture
def word() -> Generator[str]:
    """In the command line of every process of a test; who still has it afterwards is killed."""
    with processes_by_a_word() as word:
        yield word


@asynccontextmanager
async def family(directory: Path, body: str, word: str) -> AsyncGenerator[Conversation]:
    """A server with its second process at work."""
    async with conversation(scripted(directory, f"{body}\nserve()", word)) as talk:
        with anyio.fail_after(60):
            assert await talk.ask("hello") == "hello"
            while len(processes(word)) < 2:  # noqa: ASYNC110  # another process's start is no event
                await anyio.sleep(0.01)
        yield talk


@pytest.mark.parametrize("body", families())
async def test_who_a_server_started_goes_when_it_is_closed(body: str, word: str, tmp_path: Path) -> None:
    async with family(tmp_path, body, word):
        pass
    assert await left_after(word, 0) == {}


@pytest.mark.parametrize("body", families("deaf", "daemon"))
async def test_who_a_server_started_goes_when_the_hosts_task_fails(body: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup) as raised:
        async with family(tmp_path, body, word):
            raise ZeroDivisionError
    assert raised.group_contains(ZeroDivisionError)
    assert await left_after(word, 0) == {}


@pytest.mark.parametrize("body", families("deaf", "daemon"))
async def test_who_a_server_started_goes_when_the_host_is_cancelled(body: str, word: str, tmp_path: Path) -> None:
    with anyio.CancelScope() as scope:
        async with family(tmp_path, body, word):
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert await left_after(word, 0) == {}


@pytest.mark.parametrize("body", families(parent_dies=True))
async def test_who_a_server_started_goes_when_the_server_itself_dies(body: str, word: str, tmp_path: Path) -> None:
    async with family(tmp_path, body, word) as talk:
        os.kill(min(processes(word)), signal.SIGKILL)
        with anyio.fail_after(60):
            await talk.ended.wait()
        with pytest.raises(ChannelClosedError):
            await talk.ask()
    assert await left_after(word, 0) == {}


async def test_a_server_that_leaves_by_itself_takes_its_deaf_child_along(word: str, tmp_path: Path) -> None:
    body = f"{FAMILIES['a deaf child']}\nanswer(hear()); sys.exit(0)"
    async with conversation(scripted(tmp_path, body, word)) as talk:
        assert await talk.ask("hello") == "hello"
        with anyio.fail_after(60):
            await talk.ended.wait()
    assert await left_after(word, 0) == {}


HOST = """
    import sys, anyio
    from pathlib import Path
    from servers.scripted_server import conversation, scripted

    async def main():
        async with conversation(scripted(Path(sys.argv[1]), "serve()", sys.argv[2])) as talk:
            print(await talk.ask("ready"), flush=True)
            await anyio.sleep_forever()

    anyio.run(main)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_server_sees_the_end_of_its_stdin_when_the_whole_host_is_killed(
    number: signal.Signals, word: str, tmp_path: Path
) -> None:
    """All that can be done then: nothing of ours runs any more. Only an interrupt is still seen by Python."""
    command = [sys.executable, "-c", textwrap.dedent(HOST), str(tmp_path), word]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as host:
        assert host.stdout is not None
        try:
            assert host.stdout.readline() == b"ready\n"
            host.send_signal(number)
            host.wait(60)
        finally:
            host.kill()
    assert anyio.run(left_after, word) == {}
