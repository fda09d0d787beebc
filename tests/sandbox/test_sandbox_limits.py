"""Each limit, and what reaching it looks like from outside and from inside."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from growth import patience
from toolbridge import Failure, Limits, RunResult, Sandbox

MIB = 2**20
entered = threading.Event()
leave = threading.Event()


async def slow(milliseconds: float) -> float:
    await anyio.sleep(milliseconds / 1000)
    return milliseconds


def block(milliseconds: float) -> float:
    time.sleep(milliseconds / 1000)
    return milliseconds


def wait_for_the_test() -> str:
    entered.set()
    leave.wait(60)
    return "left"


def echo(value: Any) -> Any:
    return value


def text(length: int) -> str:
    return "x" * length


MODULES = {"host:demo": {"slow": slow, "block": block, "stuck": wait_for_the_test, "echo": echo, "text": text}}


@pytest.fixture(scope="module")
def demo() -> Iterator[Sandbox]:
    with Sandbox(MODULES) as sandbox:
        yield sandbox


def failure_of(result: RunResult) -> Failure:
    assert result.failure is not None
    assert result.value is None
    return result.failure


# ---- time


@pytest.mark.parametrize(
    "program",
    [
        "for (;;);",
        "await new Promise((resolve) => setTimeout(resolve, 60_000))",
        "setInterval(() => {}, 1)",
        'import { slow } from "host:demo"; slow(60_000)',
        'import { slow } from "host:demo/async"; await slow(60_000)',
    ],
)
def test_the_wall_clock_ends_a_run_whatever_it_does(demo: Sandbox, program: str) -> None:
    began = time.perf_counter()
    failure = failure_of(demo.run_sync(program, limits=Limits(wall_seconds=0.1)))
    assert time.perf_counter() - began < patience(1.0)
    assert (failure.kind, failure.message) == ("timeout", "The run took longer than 0.1 s.")


def test_the_cpu_limit_ends_a_program_that_computes(demo: Sandbox) -> None:
    result = demo.run_sync("for (;;);", limits=Limits(cpu_seconds=0.05))
    failure = failure_of(result)
    assert (failure.kind, failure.message) == (
        "timeout",
        "The program computed for longer than 0.05 s of CPU time.",
    )
    assert 0.05 <= result.usage.cpu_seconds < patience(0.5)


@pytest.mark.parametrize(
    "program",
    [
        'import { block } from "host:demo"; block(200)',
        'import { slow } from "host:demo"; slow(200)',
        'import { slow } from "host:demo/async"; await slow(200)',
        "await new Promise((resolve) => setTimeout(() => resolve(200), 200))",
    ],
)
def test_the_cpu_limit_does_not_count_the_hosts_time(demo: Sandbox, program: str) -> None:
    result = demo.run_sync(program, limits=Limits(cpu_seconds=0.1))
    assert (result.failure, result.value) == (None, 200)
    assert result.usage.cpu_seconds < result.usage.wall_seconds / 2


@pytest.mark.parametrize(
    "program",
    [
        'import { slow } from "host:demo"; slow(60_000)',
        "await new Promise((resolve) => setTimeout(resolve, 60_000))",
    ],
)
def test_the_reported_cpu_time_of_a_run_that_only_waited_is_small(demo: Sandbox, program: str) -> None:
    result = demo.run_sync(program, limits=Limits(wall_seconds=0.3))
    assert failure_of(result).kind == "timeout"
    assert result.usage.cpu_seconds < result.usage.wall_seconds / 2


@pytest.mark.parametrize("limits", [Limits(wall_seconds=0.2), Limits(call_seconds=0.2)])
def test_a_plain_function_that_blocks_past_the_deadline_is_named_and_not_waited_for(
    demo: Sandbox, limits: Limits
) -> None:
    entered.clear()
    leave.clear()
    began = time.perf_counter()
    try:
        result = demo.run_sync('import { echo, stuck } from "host:demo"; echo(1); stuck()', limits=limits)
        assert time.perf_counter() - began < patience(1.5)
    finally:
        leave.set()
    failure = failure_of(result)
    assert failure.kind == "timeout"
    assert failure.message.startswith("stuck of host:demo has not returned after 0.")
    assert failure.notes == (
        "Calls already made (their effects remain):\n  host:demo echo: ok\n  host:demo stuck: unfinished",
    )
    assert [call[:3] for call in result.calls] == [("host:demo", "echo", "ok"), ("host:demo", "stuck", "unfinished")]
    assert demo.run_sync("1").value == 1


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("host:demo", "slow(60_000)"),
        ("host:demo/async", "await slow(60_000)"),
        ("host:demo/async", "await stuck()"),
    ],
)
def test_a_call_that_takes_too_long_is_a_tool_error_that_guest_code_can_catch(
    demo: Sandbox, module: str, call: str
) -> None:
    program = f"""
        import {{ slow, stuck }} from "{module}"
        try {{ {call} }} catch (error) {{ ({{ ...error, text: String(error) }}) }}
    """
    leave.clear()
    try:
        result = demo.run_sync(program, limits=Limits(call_seconds=0.05))
    finally:
        leave.set()
    function = "stuck" if "stuck" in call else "slow"
    assert result.value == {
        "module": "host:demo",
        "function": function,
        "kind": "timeout",
        "text": f"ToolTimeoutError: {function} did not answer within 0.05 s. It may or may not have taken effect.",
    }
    assert [call[:3] for call in result.calls] == [("host:demo", function, "timeout")]


# ---- calls


def test_further_calls_wait_their_turn_and_waiting_does_not_eat_their_time(demo: Sandbox) -> None:
    at_once = most = 0

    async def counted() -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await anyio.sleep(0.2)
        at_once -= 1

    program = """
        import { counted } from "host:demo/async"
        const all = await Promise.all(Array.from({ length: 12 }, () => counted()))
        all.length
    """
    with Sandbox({"host:demo": {"counted": counted}}) as sandbox:
        result = sandbox.run_sync(program, limits=Limits(calls_in_flight=2, call_seconds=1.0))
    assert (result.value, most) == (12, 2)
    assert [call.outcome for call in result.calls] == ["ok"] * 12
    assert max(call.seconds for call in result.calls) < 1.0


def test_waiting_for_a_turn_eats_the_runs_time(demo: Sandbox) -> None:
    program = 'import { slow } from "host:demo/async"; await Promise.all([slow(60_000), slow(1)])'
    result = demo.run_sync(program, limits=Limits(calls_in_flight=1, wall_seconds=0.1))
    assert failure_of(result).kind == "timeout"
    assert [call[:3] for call in result.calls] == [("host:demo", "slow", "unfinished")] * 2


@pytest.mark.parametrize("module", ["host:demo", "host:demo/async"])
def test_one_call_more_than_allowed_ends_the_run_and_can_not_be_caught(demo: Sandbox, module: str) -> None:
    program = f"""
        import {{ echo }} from "{module}"
        try {{ for (let i = 0; i < 6; i++) await echo(i) }} catch {{ "caught" }}
    """
    result = demo.run_sync(program, limits=Limits(host_calls=5))
    failure = failure_of(result)
    assert (failure.kind, failure.message) == ("limit", "The program made more than 5 host calls.")
    assert [call[:3] for call in result.calls] == [("host:demo", "echo", "ok")] * 5


def test_exactly_as_many_calls_as_allowed_are_allowed(demo: Sandbox) -> None:
    program = 'import { echo } from "host:demo"; [1, 2, 3, 4, 5].map((i) => echo(i))'
    result = demo.run_sync(program, limits=Limits(host_calls=5))
    assert (result.failure, result.value) == (None, [1, 2, 3, 4, 5])


# ---- sizes


@pytest.mark.parametrize("module", ["host:demo", "host:demo/async"])
def test_a_call_over_the_frame_limit_is_an_error_that_guest_code_can_catch(demo: Sandbox, module: str) -> None:
    program = f"""
        import {{ echo }} from "{module}"
        try {{ await echo("x".repeat(2000)) }} catch (error) {{ ({{ ...error, text: String(error) }}) }}
    """
    result = demo.run_sync(program, limits=Limits(frame_bytes=1000))
    assert result.value == {
        "module": "host:demo",
        "function": "echo",
        "kind": "limit",
        "text": "ToolLimitError: The call is 2069 bytes, more than the limit of 1000.",
    }


@pytest.mark.parametrize("module", ["host:demo", "host:demo/async"])
def test_a_reply_over_the_frame_limit_is_an_error_that_guest_code_can_catch(demo: Sandbox, module: str) -> None:
    program = (
        f'import {{ text }} from "{module}"; try {{ await text(2000) }} catch (error) {{ [error.kind, String(error)] }}'
    )
    result = demo.run_sync(program, limits=Limits(frame_bytes=1000))
    assert result.value == ["limit", "ToolLimitError: The result of text is 2009 bytes, more than the limit of 1000."]
    assert [call[:3] for call in result.calls] == [("host:demo", "text", "limit")]


def test_a_value_over_the_frame_limit_is_a_failure(demo: Sandbox) -> None:
    failure = failure_of(demo.run_sync('"x".repeat(2000)', limits=Limits(frame_bytes=1000)))
    message = "The run's value is 2021 bytes, more than the limit of 1000. Return less: filter or summarise."
    assert failure == Failure("limit", message)


@pytest.mark.parametrize(("character", "size"), [(" ", 2001), ("é", 2001)])
def test_a_program_over_the_frame_limit_is_a_failure(demo: Sandbox, character: str, size: int) -> None:
    program = "1" + character * (2000 // len(character.encode()))
    failure = failure_of(demo.run_sync(program, limits=Limits(frame_bytes=1000)))
    assert failure == Failure("limit", f"The program is {size} bytes, more than the limit of 1000.")


def test_output_over_its_limit_is_dropped_with_a_marker(demo: Sandbox) -> None:
    program = 'console.log("x".repeat(80)); console.error("y".repeat(80)); 1'
    result = demo.run_sync(program, limits=Limits(output_bytes=100))
    assert result.value == 1
    assert result.stdout == "x" * 80 + "\n"
    assert result.stderr == "y" * 19 + "\n[output limit reached: 62 more bytes were dropped]\n"
    assert result.usage.output_bytes_dropped == 62


def test_output_before_a_failure_is_kept(demo: Sandbox) -> None:
    result = demo.run_sync('console.log("so far"); for (;;);', limits=Limits(wall_seconds=0.1))
    assert (failure_of(result).kind, result.stdout) == ("timeout", "so far\n")


# ---- memory and stack


def test_memory_that_runs_out_is_an_error_that_guest_code_can_catch(demo: Sandbox) -> None:
    program = (
        "let all = []; try { for (;;) all.push(new Uint8Array(2 ** 20)) } catch (error) { all = null; String(error) }"
    )
    result = demo.run_sync(program, limits=Limits(memory_bytes=16 * MIB))
    assert result.value == "InternalError: out of memory"
    assert result.usage.memory_bytes <= 16 * MIB


def test_memory_that_runs_out_uncaught_is_a_failure_that_says_how_much_there_was(demo: Sandbox) -> None:
    program = "const all = [];\nfor (;;) all.push(new Uint8Array(2 ** 20))"
    failure = failure_of(demo.run_sync(program, limits=Limits(memory_bytes=16 * MIB)))
    assert (failure.kind, failure.message, failure.line) == ("out_of_memory", "InternalError: out of memory", 2)
    assert failure.notes == ("The program may use 16 MiB of memory.",)


def test_a_program_too_large_for_its_memory_is_a_failure(demo: Sandbox) -> None:
    program = f"'{'x' * (7 * MIB)}'.length"
    failure = failure_of(demo.run_sync(program, limits=Limits(memory_bytes=8 * MIB)))
    assert failure.kind == "out_of_memory"


@pytest.mark.parametrize("stack_bytes", [64 * 1024, 1 * MIB, 2 * MIB])
def test_a_stack_that_runs_out_is_an_error_that_guest_code_can_catch(demo: Sandbox, stack_bytes: int) -> None:
    program = "let depth = 0; function f() { depth++; f() } try { f() } catch (error) { [String(error), depth] }"
    text, depth = demo.run_sync(program, limits=Limits(stack_bytes=stack_bytes)).value
    assert text == "RangeError: Maximum call stack size exceeded"
    assert stack_bytes / 2000 < depth < stack_bytes / 20
