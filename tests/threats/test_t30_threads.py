"""T30, boundary abuse: many guests at once never get each other's replies, and really run at once."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable

import pytest

from threats.demo_functions import add, echo
from toolbridge import Limits, Sandbox

THREADS = 8
RUNS = 500

RAISING = """
import { fail } from "host:demo";
try { fail(SERIAL) } catch (error) { error.message }
"""

COMPUTE = "let sum = 0; for (let i = 0; i < 3_000_000; i++) sum += i % 7; sum"


def in_threads(count: int, work: Callable[[int], object]) -> None:
    """Runs `work` on so many threads; the first exception is raised here."""
    raised: list[BaseException] = []

    def guarded(index: int) -> None:
        try:
            work(index)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def test_eight_threads_with_raising_host_functions_never_mix_their_results() -> None:
    def work(index: int) -> None:
        def fail(serial: int) -> None:
            raise ValueError(f"thread {index}, run {serial}")

        with Sandbox(modules={"host:demo": {"fail": fail}}) as sandbox:
            for serial in range(RUNS):
                result = sandbox.run_sync(RAISING.replace("SERIAL", str(serial)))
                assert result.value == f"ValueError: thread {index}, run {serial}"
                assert [(call.function, call.outcome) for call in result.calls] == [("fail", "failed")]

    in_threads(THREADS, work)


def test_threads_that_share_one_sandbox_get_their_own_replies() -> None:
    async def later(tag: str) -> str:
        return tag

    with Sandbox(modules={"host:demo": {"later": later, "now": echo}}) as sandbox:

        def work(index: int) -> None:
            program = """
            import { now } from "host:demo";
            import { later } from "host:demo/async";
            export default [now("TAG"), ...await Promise.all([later("TAG"), later("TAG")])];
            """
            for serial in range(25):
                tag = f"{index}/{serial}"
                assert sandbox.run_sync(program.replace("TAG", tag)).value == [tag] * 3

        in_threads(THREADS, work)


def test_failures_of_every_kind_at_once_stay_with_their_own_run() -> None:
    limits = Limits(wall_seconds=5.0, cpu_seconds=1.0, memory_bytes=16 * 2**20, host_calls=10)
    programs = {
        "while (true) {}": "timeout",
        "const kept = []; for (;;) kept.push('x'.repeat(1000) + kept.length)": "out_of_memory",
        "import { add } from 'host:demo'; for (;;) add(1, 2)": "limit",
        "null.x": "raised",
        "const": "syntax",
    }
    with Sandbox(modules={"host:demo": {"add": add}}, limits=limits) as sandbox:

        def work(index: int) -> None:
            source, kind = list(programs.items())[index % len(programs)]
            for _ in range(2 if kind == "timeout" else 20):
                result = sandbox.run_sync(source)
                assert result.failure is not None
                assert result.failure.kind == kind

        in_threads(len(programs), work)


def test_a_guest_that_computes_does_not_keep_others_from_running() -> None:
    """Wasm runs without the interpreter's lock: with it, nothing else would run until the first guest ends."""
    begun, ended = threading.Event(), threading.Event()
    finished = 0
    with Sandbox({"host:demo": {"begin": begun.set}}) as sandbox:

        def work(index: int) -> None:
            nonlocal finished
            if index == 0:
                program = 'import { begin } from "host:demo"; begin(); while (true) {}'
                sandbox.run_sync(program, limits=Limits(wall_seconds=60.0, cpu_seconds=1.0))
                ended.set()
            else:
                assert begun.wait(60)
                while finished < 20 and not ended.is_set():
                    assert sandbox.run_sync("1 + 1").value == 2
                    finished += 1

        in_threads(2, work)
    assert finished == 20


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor can't overlap anything")
def test_two_threads_running_guests_overlap() -> None:
    """Two guests get clearly more processor time per second than one.

    How much more depends on what else this machine does, so that it is compared with two threads that hash: they run
    without the interpreter's lock for certain.
    """
    limits = Limits(wall_seconds=60, cpu_seconds=60)

    def rate(work: Callable[[int], object], count: int) -> float:
        began = time.perf_counter(), time.process_time()
        in_threads(count, work)
        return (time.process_time() - began[1]) / (time.perf_counter() - began[0])

    def gain(work: Callable[[int], object]) -> float:
        return rate(work, 2) / rate(work, 1)

    with Sandbox() as sandbox:

        def compute(_: int) -> None:
            assert sandbox.run_sync(COMPUTE, limits=limits).value == 8999994

        def hash_something(_: int) -> None:
            hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 400_000)

        compute(0)
        gains: list[tuple[float, float]] = []
        while len(gains) < 8 and not any(guests > 1 + (hashes - 1) / 2 for guests, hashes in gains):
            gains.append((gain(compute), gain(hash_something)))
    assert any(guests > 1 + (hashes - 1) / 2 for guests, hashes in gains), gains
