"""T31, resource exhaustion by computing: the processor's time has a limit of its own, whatever the clock's is."""

from __future__ import annotations

import time

import pytest

from toolbridge import Limits, Sandbox

LIMITS = Limits(cpu_seconds=0.3, wall_seconds=30)
PROGRAMS = {
    "a loop": "for (;;) {}",
    "a loop that catches everything": "for (;;) { try { throw 1 } catch {} finally { continue } }",
    "promises": "for (;;) await Promise.resolve().then(() => 1)",
    "a getter": "const o = { get x() { return this.x2 + 1 }, x2: 0 }; for (;;) o.x",
    "sorting": "for (;;) Array.from({ length: 1e4 }, (_, i) => -i).sort((a, b) => a - b)",
    "an expression": '/(x+x+)+y/.test("x".repeat(60))',
    "host calls in between": 'import { add } from "host:demo"; for (let i = 0;; i++) if (i % 1e5 === 0) add(1, 2);',
    "timers in between": "for (;;) { await new Promise((d) => setTimeout(d, 0)); for (let i = 0; i < 1e6; i++); }",
}


def add(one: int, other: int) -> int:
    return one + other


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_computes_too_long_is_ended_although_there_is_time_left(name: str) -> None:
    with Sandbox({"host:demo": {"add": add}}, limits=LIMITS) as sandbox:
        assert sandbox.run_sync("1 + 1").value == 2
        result = sandbox.run_sync(PROGRAMS[name])
        assert result.failure is not None
        assert result.failure.kind == "timeout"
        assert "CPU time" in str(result.failure)
        assert sandbox.run_sync("6 * 7").value == 42


def test_waiting_is_not_computing() -> None:
    with Sandbox({"host:demo": {"wait": lambda: time.sleep(0.5)}}, limits=LIMITS) as sandbox:
        result = sandbox.run_sync('import { wait } from "host:demo"; wait(); "done"')
    assert (result.failure, result.value) == (None, "done")
