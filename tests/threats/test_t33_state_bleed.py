"""T33, state bleed between runs: what one run leaves is invisible to the next."""

from __future__ import annotations

import asyncio
import threading

import pytest
from anyio import to_thread

from threats.hostile_programs import PROGRAMS, Contain, HostileProgram, load, programs_for
from toolbridge import Limits, Sandbox

PROBE = """
const names = [...Reflect.ownKeys(globalThis)].map(String);
const builtins = [Object, Array, Function, String, Promise, RegExp, Error, Map, Date, Math, JSON, Reflect, Symbol];
for (const object of builtins) {
  for (const target of [object, object.prototype]) {
    if (!target) continue;
    for (const key of Reflect.ownKeys(target)) {
      const { value, get } = Object.getOwnPropertyDescriptor(target, key);
      names.push(`${String(key)} ${typeof value} ${typeof get} ${typeof value === "function" ? value.toString() : ""}`);
    }
  }
}
export default names;
"""


@pytest.mark.parametrize("program", programs_for("T33"), ids=lambda program: program.name)
def test_what_a_program_leaves_behind_is_gone_when_it_runs_again(program: HostileProgram, contain: Contain) -> None:
    contain(program)
    contain(program)


@pytest.mark.parametrize("program", programs_for("T33"), ids=lambda program: program.name)
def test_every_builtin_is_as_it_was_after_a_program_that_leaves_things_behind(
    program: HostileProgram, demo_sandbox: Sandbox
) -> None:
    before = demo_sandbox.run_sync(PROBE)
    demo_sandbox.run_sync(program.source, limits=program.limits)
    after = demo_sandbox.run_sync(PROBE)
    assert before.failure is None
    assert len(before.value) > 400
    assert after.value == before.value


@pytest.mark.parametrize(
    "name", ["memory_array_push", "loop_while_true", "recursion_uncaught", "pollute_global_object"]
)
def test_a_program_that_was_stopped_leaves_nothing_behind(name: str, demo_sandbox: Sandbox) -> None:
    before = demo_sandbox.run_sync(PROBE)
    program = load(PROGRAMS / f"{name}.js")
    demo_sandbox.run_sync("globalThis.leaked = 1;\n" + program.source, limits=program.limits)
    assert demo_sandbox.run_sync(PROBE).value == before.value


def test_random_numbers_differ_from_run_to_run(demo_sandbox: Sandbox) -> None:
    program = "[Math.random(), crypto.randomUUID(), Math.random()].join()"
    values = [demo_sandbox.run_sync(program).value for _ in range(20)]
    assert len(set(values)) == 20


def test_random_numbers_of_a_run_do_not_tell_those_of_the_next(demo_sandbox: Sandbox) -> None:
    """The generator goes on within a run, and is seeded anew for each: no value is seen twice."""
    program = "Array.from({ length: 100 }, () => crypto.randomUUID())"
    values = [uuid for _ in range(10) for uuid in demo_sandbox.run_sync(program).value]
    assert len(set(values)) == 1000


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(demo_sandbox: Sandbox) -> None:
    program = "[Math.random(), crypto.randomUUID()].join()"
    one, again = (demo_sandbox.run_sync(program, seed=b"1" * 32).value for _ in range(2))
    other = demo_sandbox.run_sync(program, seed=b"2" * 32).value
    assert one == again != other


def test_a_session_is_seeded_anew_for_every_run(demo_sandbox: Sandbox) -> None:
    with demo_sandbox.session() as session:
        values = [session.run_sync("Math.random()").value for _ in range(5)]
    assert len(set(values)) == 5


def test_sessions_do_not_see_each_other(demo_sandbox: Sandbox) -> None:
    with demo_sandbox.session() as one, demo_sandbox.session() as other:
        one.run_sync("globalThis.leaked = 'one'; Object.prototype.leaked = 'one'; Array.prototype.map = null;")
        assert other.run_sync("[typeof globalThis.leaked, typeof [].map]").value == ["undefined", "function"]
        assert one.run_sync("leaked").value == "one"
        assert demo_sandbox.run_sync("typeof globalThis.leaked").value == "undefined"


@pytest.mark.parametrize(
    "stopped",
    [
        "while (true) {}",
        'import { add } from "host:demo"; for (;;) add(1, 2)',
        "await new Promise((d) => setTimeout(d, 1e9))",
    ],
)
def test_a_session_whose_run_was_stopped_starts_afresh(demo_sandbox: Sandbox, stopped: str) -> None:
    """A guest that was stopped in the middle of anything may be in any state: it is never used again."""
    limits = Limits(wall_seconds=0.2, cpu_seconds=0.2, host_calls=100)
    with demo_sandbox.session(limits=limits) as session:
        session.run_sync("globalThis.mine = 1;")
        result = session.run_sync(stopped)
        assert result.failure is not None
        assert any("state is lost" in note for note in result.failure.notes)
        assert session.run_sync("typeof mine").value == "undefined"
        assert session.run_sync('import { add } from "host:demo"; add(1, 2)').value == 3


def test_a_session_whose_run_failed_by_itself_goes_on_whole(demo_sandbox: Sandbox) -> None:
    limits = Limits(memory_bytes=16 * 2**20)
    with demo_sandbox.session(limits=limits) as session:
        session.run_sync("globalThis.mine = 1;")
        for failing in (
            "throw new Error('x')",
            "const kept = []; for (;;) kept.push(new Uint8Array(1 << 20))",
            "const",
        ):
            assert session.run_sync(failing).failure is not None
            assert session.run_sync("typeof mine").value == "number"


def test_a_reply_that_comes_late_does_not_reach_the_sessions_next_run() -> None:
    """Both runs number their calls from one: the first one's reply must not settle the second one's call."""
    released = threading.Event()

    async def slow(text: str) -> str:
        await to_thread.run_sync(released.wait)
        return text

    async def quick(text: str) -> str:
        await asyncio.sleep(0.05)
        return text

    with Sandbox(modules={"host:demo": {"slow": slow, "quick": quick}}) as sandbox, sandbox.session() as session:
        first = session.run_sync('import { slow } from "host:demo/async"; slow("late"); throw new Error("stop")')
        assert first.failure is not None
        released.set()
        second = session.run_sync('import { quick } from "host:demo/async"; await quick("in time")')
        assert second.value == "in time"


def test_timers_of_a_sessions_run_do_not_fire_in_the_next(demo_sandbox: Sandbox) -> None:
    with demo_sandbox.session() as session:
        session.run_sync("globalThis.fired = 0; setInterval(() => fired++, 1); throw new Error('stop')")
        result = session.run_sync("await new Promise((done) => setTimeout(done, 20)); fired")
    assert result.value == 0


def test_runs_at_the_same_time_do_not_see_each_other(demo_sandbox: Sandbox) -> None:
    program = """
    import { sleep } from "host:demo";
    const found = globalThis.mark;
    globalThis.mark = Object.prototype.mark = "MARK";
    sleep(0.01);
    export default [found ?? null, globalThis.mark];
    """

    async def main() -> list[object]:
        runs = (demo_sandbox.run(program.replace("MARK", str(index))) for index in range(20))
        return [result.value for result in await asyncio.gather(*runs)]

    assert asyncio.run(main()) == [[None, str(index)] for index in range(20)]


def test_output_of_one_run_is_not_in_the_next(demo_sandbox: Sandbox) -> None:
    first = demo_sandbox.run_sync("console.group('a'); console.log('one'); console.count('x')")
    second = demo_sandbox.run_sync("console.log('two'); console.count('x')")
    assert "one" in first.stdout
    assert second.stdout == "two\nx: 1\n"
