"""T31, resource exhaustion by programs in Python: each ends at its limit, and neither host nor next run notices."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

import anyio
import pytest

from growth import patience
from threats.hostile_programs import MOST_LATENESS, Contain, HostileProgram, python_programs_for
from threats.process_memory import highest_memory, needs_proc, open_descriptors, resident_bytes
from toolbridge import Limits, RunResult, Sandbox

MIB = 2**20


@pytest.mark.parametrize("program", python_programs_for("T31"), ids=lambda program: program.name)
def test_a_program_that_exhausts_a_resource_is_ended_at_its_limit(
    program: HostileProgram, contain_python: Contain
) -> None:
    contain_python(program)


def test_cpu_time_is_limited_apart_from_wall_time(python_sandbox: Sandbox) -> None:
    limits = Limits(wall_seconds=20.0, cpu_seconds=0.2)
    result = python_sandbox.run_sync("while True: pass", language="python", limits=limits)
    assert result.failure is not None
    assert result.failure.kind == "timeout"
    assert "CPU" in result.failure.message
    assert result.usage.wall_seconds < patience(5.0)


@pytest.mark.parametrize(
    "waiting",
    [
        "from host.demo import block, sleep\nblock(0.15)\nsleep(0.15)",
        "import time\ntime.sleep(0.3)",
        "import asyncio\nawait asyncio.sleep(0.3)",
        "import asyncio\nfrom host.demo.aio import sleep\nawait asyncio.gather(sleep(0.3), sleep(0.3))",
    ],
)
def test_waiting_costs_no_cpu_time(python_sandbox: Sandbox, waiting: str) -> None:
    limits = Limits(wall_seconds=20.0, cpu_seconds=0.2)
    result = python_sandbox.run_sync(f"{waiting}\n'done'", language="python", limits=limits)
    assert result.value == "done", str(result.failure)


@pytest.mark.parametrize(
    "program",
    [
        "while True: pass",
        "from host.demo import sleep\nsleep(60)",
        "import time\ntime.sleep(60)",
        "import asyncio\nawait asyncio.sleep(60)",
    ],
)
def test_a_run_that_is_awaited_ends_soon_after_being_cancelled(python_sandbox: Sandbox, program: str) -> None:
    async def main() -> float:
        with anyio.move_on_after(0.2) as scope:
            await python_sandbox.run(program, language="python")
        assert scope.cancelled_caught
        return time.perf_counter()

    began = time.perf_counter()
    took = asyncio.run(main()) - began
    assert took < 0.2 + patience(0.05 + 0.1)  # the last for the event loop's own beginning


def test_hostile_runs_that_are_awaited_at_once_all_end_in_time(python_sandbox: Sandbox) -> None:
    limits = Limits(wall_seconds=0.8, cpu_seconds=0.8, memory_bytes=48 * MIB)
    programs = [
        "while True: pass",
        "import asyncio\nawait asyncio.sleep(60)",
        'import re\nre.match(r"(a+)+$", "a" * 40 + "b")',
    ]

    async def main() -> list[RunResult]:
        runs = (python_sandbox.run(program, language="python", limits=limits) for program in programs * 3)
        return await asyncio.gather(*runs)

    began = time.perf_counter()
    results = asyncio.run(main())
    took = time.perf_counter() - began
    assert [result.failure and result.failure.kind for result in results] == ["timeout"] * 9
    assert took < limits.wall_seconds + patience(MOST_LATENESS)


# ---- what the host keeps for a guest


@needs_proc
@pytest.mark.parametrize(
    "program",
    [
        "import asyncio\nfrom host.demo.aio import sleep\nlarge = 'x' * 4_000_000\n"
        "await asyncio.gather(*(sleep(60, large) for _ in range(60)), return_exceptions=True)",
        "import asyncio\nfrom host.demo.aio import repeat\nfrom host.demo import sleep\n"
        "tasks = [asyncio.ensure_future(repeat('x', 4_000_000)) for _ in range(60)]\n"
        "await asyncio.sleep(0)\nsleep(60)",
    ],
    ids=["arguments", "replies"],
)
def test_started_calls_do_not_pile_up_in_the_host(python_sandbox: Sandbox, program: str) -> None:
    limits = Limits(wall_seconds=1.5, cpu_seconds=1.5, memory_bytes=64 * MIB, calls_in_flight=4)
    peak = highest_memory(lambda: python_sandbox.run_sync(program, language="python", limits=limits))
    assert peak < 180 * MIB, f"the host held {peak / MIB:.0f} MiB for a guest of 64 MiB"


@needs_proc
def test_runs_of_every_ending_leave_memory_threads_and_descriptors_flat(python_sandbox: Sandbox) -> None:
    programs = (
        "from host.demo import add\nadd(1, 2)",
        "from host.demo.aio import add\nawait add(1, 2)",
        "from host.demo import fail\nfail('x')",
        "from host.demo import repeat\nlen(repeat('x', 200_000))",
        "def f(): return f()\nf()",
        "kept = []\nwhile True: kept.append(bytearray(1 << 20))",
        "import faulthandler\nfaulthandler._sigsegv()",
        "import _socket\n_socket.socket()",
        "x = = 1",
    )
    limits = Limits(wall_seconds=5.0, cpu_seconds=5.0, memory_bytes=40 * MIB)

    def run_all(count: int) -> None:
        for index in range(count):
            python_sandbox.run_sync(programs[index % len(programs)], language="python", limits=limits)

    run_all(3 * len(programs))
    gc.collect()
    before = resident_bytes(), threading.active_count(), open_descriptors()
    run_all(10 * len(programs))
    gc.collect()
    after = resident_bytes(), threading.active_count(), open_descriptors()
    assert after[0] - before[0] < 12 * MIB
    assert after[1] <= before[1] + 1
    assert after[2] <= before[2] + 1
