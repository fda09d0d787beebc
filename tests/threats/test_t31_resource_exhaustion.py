"""T31, resource exhaustion by the guest: loops, recursion, memory, output, sleeping, floods of calls.

Each ends at its limit, the host is unharmed, and the next run is unaffected: fixtures/hostile has the programs.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time

import anyio
import pytest

from growth import patience
from threats.hostile_programs import MOST_LATENESS, Contain, HostileProgram, programs_for
from threats.malicious_guest import FINE, MaliciousGuest, outcome
from threats.process_memory import highest_memory, needs_proc, open_descriptors, resident_bytes
from toolbridge import Limits, RunResult, Sandbox

MIB = 2**20
RUNS = 1000


@pytest.mark.parametrize("program", programs_for("T31"), ids=lambda program: program.name)
def test_a_program_that_exhausts_a_resource_is_ended_at_its_limit(program: HostileProgram, contain: Contain) -> None:
    contain(program)


# ---- time


def test_cpu_time_is_limited_apart_from_wall_time(demo_sandbox: Sandbox) -> None:
    result = demo_sandbox.run_sync("while (true) {}", limits=Limits(wall_seconds=20.0, cpu_seconds=0.2))
    assert result.failure is not None
    assert result.failure.kind == "timeout"
    assert "CPU" in result.failure.message
    assert result.usage.wall_seconds < patience(5.0)


def test_waiting_for_the_host_costs_no_cpu_time(demo_sandbox: Sandbox) -> None:
    program = 'import { block, sleep } from "host:demo"; block(0.15); sleep(0.15); "done"'
    result = demo_sandbox.run_sync(program, limits=Limits(wall_seconds=20.0, cpu_seconds=0.1))
    assert result.value == "done"


@pytest.mark.parametrize(
    "program", ["while (true) {}", 'import { sleep } from "host:demo"; sleep(60)', "setInterval(() => {}, 1)"]
)
def test_a_run_that_is_awaited_ends_within_50_ms_of_being_cancelled(demo_sandbox: Sandbox, program: str) -> None:
    async def main() -> float:
        with anyio.move_on_after(0.2) as scope:
            await demo_sandbox.run(program)
        assert scope.cancelled_caught
        return time.perf_counter()

    began = time.perf_counter()
    took = asyncio.run(main()) - began
    assert took < 0.2 + patience(0.05 + 0.1)  # the last for the event loop's own beginning


def test_hostile_runs_that_are_awaited_at_once_all_end_in_time(demo_sandbox: Sandbox) -> None:
    limits = Limits(wall_seconds=0.5, cpu_seconds=0.5, memory_bytes=16 * MIB)
    programs = [
        "while (true) {}",
        "await new Promise(() => setInterval(() => {}, 1))",
        "/^(a+)+$/.test('a'.repeat(40) + 'b')",
    ]

    async def main() -> list[RunResult]:
        return await asyncio.gather(*(demo_sandbox.run(program, limits=limits) for program in programs * 4))

    began = time.perf_counter()
    results = asyncio.run(main())
    assert [result.failure and result.failure.kind for result in results] == ["timeout"] * 12
    assert time.perf_counter() - began < limits.wall_seconds + patience(MOST_LATENESS + 0.1)


# ---- memory


@pytest.mark.parametrize(
    "program",
    ["new Uint8Array(40 * 2 ** 20).fill(1).length", "'x'.repeat(40 * 2 ** 20).length", "Array(6e6).fill(0.5).length"],
)
def test_what_needs_more_memory_than_a_run_may_use_fails_for_that_alone(demo_sandbox: Sandbox, program: str) -> None:
    refused = demo_sandbox.run_sync(program, limits=Limits(memory_bytes=32 * MIB))
    assert refused.failure is not None
    assert refused.failure.kind == "out_of_memory"
    assert demo_sandbox.run_sync(program, limits=Limits(memory_bytes=256 * MIB)).failure is None


# ---- what the host keeps for a guest


@needs_proc
def test_arguments_of_started_calls_do_not_pile_up_in_the_host(demo_sandbox: Sandbox) -> None:
    """A small guest can start thousands of calls with megabytes of arguments: the host must not hold them all."""
    program = """
    import { sleep } from "host:demo/async";
    const large = "x".repeat(4_000_000);
    for (let i = 0; i < 100; i++) sleep(60, large).catch(() => {});
    """
    limits = Limits(wall_seconds=2.0, cpu_seconds=2.0, memory_bytes=32 * MIB, calls_in_flight=4)
    peak = highest_memory(lambda: demo_sandbox.run_sync(program, limits=limits))
    assert peak < 130 * MIB, f"the host held {peak / MIB:.0f} MiB for a guest of 32 MiB"


@needs_proc
def test_replies_that_nobody_takes_do_not_pile_up_in_the_host(demo_sandbox: Sandbox) -> None:
    program = """
    import { repeat } from "host:demo/async";
    import { sleep } from "host:demo";
    for (let i = 0; i < 100; i++) repeat("x", 4_000_000);
    sleep(60);
    """
    limits = Limits(wall_seconds=2.0, cpu_seconds=2.0, memory_bytes=32 * MIB, calls_in_flight=4)
    peak = highest_memory(lambda: demo_sandbox.run_sync(program, limits=limits))
    assert peak < 130 * MIB, f"the host held {peak / MIB:.0f} MiB for a guest of 32 MiB"


def test_a_guest_whose_started_calls_have_to_wait_for_room_can_still_call(demo_sandbox: Sandbox) -> None:
    """Holding started calls back must not hold back the one call that the guest waits for."""
    program = """
    import { repeat } from "host:demo/async";
    import { sleep } from "host:demo";
    const started = Array.from({ length: 30 }, () => repeat("x", 4_000_000).then((text) => text.length, () => 0));
    sleep(0.01);
    export default (await Promise.all(started)).length;
    """
    limits = Limits(wall_seconds=10.0, cpu_seconds=10.0, calls_in_flight=4)
    assert demo_sandbox.run_sync(program, limits=limits).value == 30


@needs_proc
def test_names_of_functions_that_do_not_exist_do_not_pile_up_in_the_host() -> None:
    """What the host remembers of calls is bounded, however long and however many their names are."""
    head, tail = b'{"op":"call","module":"host:demo","function":"', b'","arguments":[]}'
    at, name_bytes = 200_000, 1_000_000
    length = len(head) + name_bytes + len(tail)
    body = f"""
    (drop (memory.grow (i32.const 32)))
    (memory.copy (i32.const {at}) (i32.const 0) (i32.const {len(head)}))
    (memory.fill (i32.const {at + len(head)}) (i32.const 97) (i32.const {name_bytes}))
    (memory.copy (i32.const {at + len(head) + name_bytes}) (i32.const {len(head)}) (i32.const {len(tail)}))
    (loop $again
      (i32.store8 (i32.const {at + len(head)}) (i32.add (i32.const 97) (local.get $i)))
      (drop (call $call (i32.const {at}) (i32.const {length}) (i32.const 65536) (i32.const 4)))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 20)))
    )"""
    guest = MaliciousGuest(body + outcome(FINE), request=head + tail)
    before = resident_bytes()
    seen = guest.look()
    held = resident_bytes() - before
    assert (seen.trapped, seen.ending) == (False, None)
    assert held < 10 * MIB, f"the host still holds {held / MIB:.0f} MiB of 20 names"


@pytest.mark.slow
@needs_proc
def test_a_thousand_runs_leave_memory_threads_and_descriptors_flat(demo_sandbox: Sandbox) -> None:
    programs = (
        'import { add } from "host:demo"; add(1, 2)',
        'import { add } from "host:demo/async"; await add(1, 2)',
        'import { fail } from "host:demo"; fail("x")',
        "'x'.repeat(1 << 20).length",
        "throw new Error('x')",
        "function f() { return f() + 1 } f()",
        "const kept = []; for (;;) kept.push(new Uint8Array(1 << 20))",
        "const const",
    )

    def run_all(count: int) -> None:
        for index in range(count):
            demo_sandbox.run_sync(programs[index % len(programs)], limits=limits)

    limits = Limits(wall_seconds=5.0, cpu_seconds=5.0, memory_bytes=16 * MIB)
    run_all(200)
    gc.collect()
    before = resident_bytes(), threading.active_count(), open_descriptors()
    run_all(RUNS)
    gc.collect()
    after = resident_bytes(), threading.active_count(), open_descriptors()
    assert after[0] - before[0] < 12 * MIB
    assert after[1] <= before[1] + 1
    assert after[2] <= before[2] + 1


@pytest.mark.slow
@needs_proc
def test_runs_that_are_stopped_leave_memory_threads_and_descriptors_flat(demo_sandbox: Sandbox) -> None:
    limits = Limits(wall_seconds=0.02, cpu_seconds=0.02, memory_bytes=16 * MIB)
    program = "const kept = new Uint8Array(8 << 20).fill(1); while (true) {}"

    def run_all(count: int) -> None:
        for _ in range(count):
            result = demo_sandbox.run_sync(program, limits=limits)
            assert result.failure is not None

    run_all(30)
    before = resident_bytes(), threading.active_count(), open_descriptors()
    run_all(100)
    after = resident_bytes(), threading.active_count(), open_descriptors()
    assert after[0] - before[0] < 12 * MIB
    assert after[1] <= before[1] + 1
    assert after[2] <= before[2] + 1
