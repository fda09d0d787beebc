"""What a host forgets to close, forks or interrupts leaves nothing behind, and never hangs."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import anyio
import pytest

from growth import patience
from toolbridge import Limits, MisuseError, Sandbox, ToolbridgeError

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system has no /proc")


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def double(number: int) -> int:
    await anyio.lowlevel.checkpoint()
    return 2 * number


@needs_proc
def test_sessions_that_are_never_closed_are_freed() -> None:
    program = "globalThis.big = new Uint8Array(20e6).fill(1); 1"

    def use_one() -> None:
        with Sandbox() as sandbox:
            assert sandbox.session().run_sync(program).value == 1

    use_one()
    before = resident_bytes()
    for _ in range(10):
        use_one()
    gc.collect()
    assert resident_bytes() - before < 60_000_000


def test_closing_a_sandbox_closes_its_sessions() -> None:
    sandbox = Sandbox()
    session = sandbox.session()
    assert session.run_sync("1").value == 1
    sandbox.close()
    with pytest.raises(ToolbridgeError):
        session.run_sync("1")


def test_sandboxes_that_are_never_closed_leave_no_threads() -> None:
    def use_one() -> None:
        assert (
            Sandbox({"host:demo": {"double": double}}).run_sync('import { double } from "host:demo"; double(2)').value
            == 4
        )

    use_one()
    gc.collect()
    before = threading.active_count()
    for _ in range(20):
        use_one()
    gc.collect()
    for _ in range(200):
        if threading.active_count() <= before + 2:
            break
        time.sleep(0.01)
    assert threading.active_count() <= before + 2


FORK = """
import os, sys
from toolbridge import Limits, Sandbox
async def double(number): return 2 * number
sandbox = Sandbox({"host:demo": {"double": double}}, limits=Limits(cpu_seconds=0.5))
session = sandbox.session()
call = 'import { double } from "host:demo"; double(2)'
assert session.run_sync("let x = 1; x").value == 1 and sandbox.run_sync(call).value == 4
child = os.fork()
if child == 0:
    endless = session.run_sync("for (;;) {}")
    ok = endless.failure.kind == "timeout" and sandbox.run_sync(call).value == 4
    os._exit(0 if ok else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@needs_fork
def test_after_a_fork_guests_are_stopped_and_coroutines_run() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], timeout=30, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_closing_does_not_wait_for_a_plain_function() -> None:
    entered, leave = threading.Event(), threading.Event()

    def stuck() -> None:
        entered.set()
        leave.wait(60)

    sandbox = Sandbox({"host:demo": {"stuck": stuck}})
    kinds: list[str] = []

    def run() -> None:
        failure = sandbox.run_sync('import { stuck } from "host:demo"; stuck()').failure
        assert failure is not None
        kinds.append(failure.kind)

    runner = threading.Thread(target=run)
    runner.start()
    assert entered.wait(60)
    began = time.monotonic()
    sandbox.close()
    runner.join(60)
    took = time.monotonic() - began
    leave.set()
    assert kinds == ["cancelled"]
    assert took < patience(1)


@pytest.mark.anyio
async def test_cancelling_does_not_wait_for_a_plain_function() -> None:
    leave = threading.Event()
    sandbox = Sandbox({"host:demo": {"stuck": lambda: leave.wait(60)}})
    began = time.monotonic()
    with anyio.move_on_after(0.1):
        await sandbox.run('import { stuck } from "host:demo"; stuck()')
    took = time.monotonic() - began
    leave.set()
    assert took < 0.1 + patience(0.5)


def test_a_forged_error_does_not_make_the_host_compute() -> None:
    names = " ".join("ab" * 33 + str(number) for number in range(2000)) + " ".join(
        "ab" * 14 + str(number) for number in range(2000)
    )
    program = f"throw new ReferenceError('{'ab' * 15} is not defined')\n// {names}"
    began = time.monotonic()
    failure = Sandbox(limits=Limits(wall_seconds=1)).run_sync(program).failure
    assert failure is not None
    assert time.monotonic() - began < 1 + patience(0.25)


@pytest.mark.parametrize("source", [None, b"1", ["1"], 1])
def test_a_program_that_is_no_text_is_misuse(source: object) -> None:
    with pytest.raises(MisuseError, match=r"^source is of type \w+: expected the program's text, a str$"):
        Sandbox().run_sync(source)  # pyright: ignore[reportArgumentType]


def test_other_arguments_of_the_wrong_type_are_misuse() -> None:
    with pytest.raises(MisuseError):
        Sandbox().run_sync("1", limits={"wall_seconds": 1})  # pyright: ignore[reportArgumentType]
    with pytest.raises(MisuseError):
        Sandbox().run_sync("1", seed="x" * 32)  # pyright: ignore[reportArgumentType]
    with pytest.raises(MisuseError):
        Sandbox([1])  # pyright: ignore[reportArgumentType]
