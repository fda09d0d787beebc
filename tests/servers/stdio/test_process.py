"""A server's process: what it is started with, why it can't be, how it ended, and that nothing of it is left."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from growth import patience
from servers.live_processes import left_after, processes_by_a_word, zombies
from servers.scripted_server import open_descriptors, scripted
from toolbridge.errors import ServerConnectError
from toolbridge.servers.stdio import process as process_module
from toolbridge.servers.stdio.launch import Launch
from toolbridge.servers.stdio.process import ServerProcess, start_process
from toolbridge.servers.stdio.process_tree import MARK

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def started(launch: Launch, seconds: float = 0.3) -> AsyncGenerator[ServerProcess]:
    process = await start_process("weather", launch)
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            await process.close(seconds)


async def read_line(process: ServerProcess) -> bytes:
    data = b""
    with anyio.fail_after(60):
        while b"\n" not in data:
            chunk = await process.receive()
            assert chunk, process.how_it_ended()
            data += chunk
    return data


async def why_not(launch: Launch) -> str:
    before = open_descriptors()
    with pytest.raises(ServerConnectError) as raised:
        await start_process("weather", launch)
    assert open_descriptors() == before
    assert str(raised.value).startswith("Server 'weather' can't be started: ")
    return str(raised.value)


# ---- the start


async def test_a_process_gets_exactly_its_environment_and_a_mark(tmp_path: Path) -> None:
    body = (
        "say({'env': dict(os.environ), 'argv': sys.argv[1:], 'cwd': os.getcwd(), 'sid': os.getsid(0) == os.getpid()})"
    )
    env = {"TOKEN": "a b=ü", "EMPTY": ""}
    launch = scripted(tmp_path, body, "one", "two words", "", env=env)
    async with started(Launch(launch.executable, launch.args, launch.env, str(tmp_path))) as process:
        facts = json.loads(await read_line(process))
    # LC_CTYPE is set by Python itself where the locale is C.
    assert {name: value for name, value in facts["env"].items() if name not in (MARK, "LC_CTYPE")} == env
    assert len(facts["env"][MARK]) == 32
    assert facts["argv"] == ["one", "two words", ""]
    assert facts["cwd"] == str(tmp_path)
    assert facts["sid"]


async def test_a_process_inherits_no_descriptor_of_ours(tmp_path: Path) -> None:
    async with started(scripted(tmp_path, "linger()")):
        body = """
def is_open(number):
    try:
        return bool(os.fstat(number))
    except OSError:
        return False
say([number for number in range(1000) if is_open(number)])
"""
        async with started(scripted(tmp_path, body)) as process:
            assert json.loads(await read_line(process)) == [0, 1, 2]


async def test_each_reason_for_not_starting_says_what_to_do(tmp_path: Path) -> None:
    shell = Launch("/bin/sh", (), {}, None)
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    text = tmp_path / "text"
    text.write_bytes(b"\x7fELF but not really")
    text.chmod(0o755)
    assert "no file" in await why_not(Launch("/no/such/program", (), {}, None))
    assert "does not exist. Create it" in await why_not(Launch("/bin/sh", (), {}, str(tmp_path / "none")))
    assert "does not exist. Create it" in await why_not(Launch("/bin/sh", (), {}, str(script)))
    assert "interpreter that the first line" in await why_not(Launch(str(script), (), {}, None))
    assert "no program for this system" in await why_not(Launch(str(text), (), {}, None))
    assert "permission" in await why_not(Launch(str(tmp_path), (), {}, None))
    assert "longer than the system allows" in await why_not(Launch("/bin/sh", ("x" * 10_000_000,), {}, None))
    for args, env, cwd in (
        (("a\0b",), {}, None),
        (("\ud800",), {}, None),
        ((), {"A": "b\0c"}, None),
        ((), {"A=B": "c"}, None),
        ((), {"A\0": "c"}, None),
        ((), {}, "/tmp\0"),
    ):
        assert "NUL character" in await why_not(Launch(shell.executable, args, env, cwd))


async def test_no_descriptors_left_is_a_reason_too(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = os.pipe, 0

    def pipe() -> tuple[int, int]:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return real()

    before = open_descriptors()
    monkeypatch.setattr("toolbridge.servers.stdio.process.os.pipe", pipe)
    with pytest.raises(ServerConnectError, match="too many files are open"):
        await start_process("weather", Launch("/bin/sh", (), {}, None))
    assert open_descriptors() == before


async def test_a_cancelled_start_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> object:
        raise AssertionError

    monkeypatch.setattr(process_module.anyio, "open_process", never)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await start_process("weather", Launch("/bin/sh", (), {}, None))
    assert scope.cancelled_caught


# ---- the end


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sys.exit(3)", "it exited with status 3"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "it was ended by SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "it was ended by SIGKILL"),
        ("sys.exit('no licence\\n')", "it exited with status 1; it last wrote to stderr: no licence"),
        (
            "write(b'x' * 10_000_000, 2); write(b'\\nat last\\n', 2); os._exit(0)",
            "it exited with status 0; it last wrote to stderr: at last",
        ),
    ],
)
async def test_how_it_ended_is_told_with_its_last_words(body: str, words: str, tmp_path: Path) -> None:
    told = tmp_path / "told"
    body = f"while not os.path.exists({str(told)!r}): time.sleep(0.01)\n{body}"
    async with started(scripted(tmp_path, body)) as process:
        assert process.how_it_ended() == ""
        told.touch()
        with anyio.fail_after(60):
            await process.attend()
        assert process.how_it_ended() == words


async def test_it_has_ended_when_it_has_though_a_child_holds_its_pipes(tmp_path: Path) -> None:
    with processes_by_a_word() as word:
        body = "write(b'last words\\n', 2); os.fork() == 0 and linger(); os._exit(7)"
        async with started(scripted(tmp_path, body, word)) as process:
            with anyio.fail_after(60):
                await process.attend()
            assert process.how_it_ended() == "it exited with status 7; it last wrote to stderr: last words"
        assert await left_after(word, 0) == {}


IGNORE = "for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)\n"


@pytest.mark.parametrize(
    ("body", "most"),
    [
        ("hear()", 0.7),
        ("signal.signal(signal.SIGTERM, lambda *_: os._exit(0)); say(1); linger()", 1.0),
        (IGNORE + "say(1); linger()", 1.5),
        (IGNORE + "say(1)\nwhile True: write(b'x' * 65536)", 1.5),
        (IGNORE + "say(1)\nwhile True: write(b'x' * 65536, 2)", 1.5),
        ("say(1); os.kill(os.getpid(), signal.SIGSTOP)", 1.5),
        (IGNORE + "os.fork(); os.fork(); say(1); linger()", 1.5),
        ("while os.fork() == 0 and time.monotonic() < BEGAN + 5: time.sleep(0.01)\nlinger()", 1.5),
    ],
    ids=["leaves", "obeys", "ignores", "floods stdout", "floods stderr", "stopped", "children ignore", "keeps forking"],
)
async def test_closing_ends_it_all_and_is_never_late(body: str, most: float, tmp_path: Path) -> None:
    before = open_descriptors()
    with processes_by_a_word() as word:
        process = await start_process("weather", scripted(tmp_path, body, word))
        if "say(1)" in body:
            await read_line(process)
        began = anyio.current_time()
        await process.close(0.3)
        took = anyio.current_time() - began
        assert await left_after(word, 0) == {}
        await process.close(0.3)
    assert took < patience(most + 0.5)
    assert open_descriptors() == before
    assert zombies() == 0


async def test_a_server_may_write_what_it_has_before_it_leaves(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    body = f"sys.stdin.read(); write(b'x' * 500_000); write(b'x' * 500_000, 2); open({str(proof)!r}, 'w')"
    async with started(scripted(tmp_path, body)):
        pass
    assert proof.exists()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_close_that_is_torn_off_kills_at_once(tmp_path: Path) -> None:
    """A native cancellation of asyncio heeds no shield."""
    import asyncio

    before = open_descriptors()
    with processes_by_a_word() as word:
        process = await start_process("weather", scripted(tmp_path, IGNORE + "os.fork(); say(1); linger()", word))
        await read_line(process)
        task = asyncio.ensure_future(process.close(30))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await left_after(word, 1) == {}
        with anyio.fail_after(60):
            await process._process.wait()
    assert open_descriptors() == before


async def test_a_process_that_was_killed_from_outside_is_closed_like_any_other(tmp_path: Path) -> None:
    async with started(scripted(tmp_path, "say(1); linger()")) as process:
        await read_line(process)
        os.kill(process.pid, signal.SIGKILL)
        assert await process.receive() == b""
    assert process.how_it_ended() == "it was ended by SIGKILL"


async def test_the_pipes_are_private(tmp_path: Path) -> None:
    async with started(scripted(tmp_path, "hear()")) as process:
        for end in (process._pipes.stdin, process._pipes.stdout, process._pipes.stderr):
            assert stat.S_ISFIFO(os.fstat(end).st_mode)
            assert not os.get_inheritable(end)
