"""An awaited run stays on the event loop's thread while it asks its host; what it computes goes on elsewhere."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from growth import patience
from toolbridge import Limits, RunResult, Sandbox
from toolbridge.boundary.run_state import RunState
from toolbridge.boundary.run_time import RunTime
from toolbridge.sandbox import instance
from toolbridge.sandbox.engine import shared_engine
from toolbridge.sandbox.instance import FiberCall

pytestmark = [
    pytest.mark.anyio,
]

SPIN = "let sum = 0; for (let i = 0; i < 3_000_000; i++) sum += i % 7; sum"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


async def where() -> str:
    return threading.current_thread().name


async def add(a: int, b: int) -> int:
    return a + b


async def pause(seconds: float) -> float:
    await anyio.sleep(seconds)
    return seconds


async def broken() -> None:
    raise ValueError("no")


FUNCTIONS = {"where": where, "add": add, "pause": pause, "broken": broken}


@pytest.fixture(scope="module")
def demo() -> Iterator[Sandbox]:
    with Sandbox({"host:demo": FUNCTIONS}, clock=lambda: 5.0) as sandbox:
        yield sandbox


@pytest.fixture
def no_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tick finds a guest computing: a run moves only where it has to."""

    def never(_time: RunTime) -> bool:
        return False

    monkeypatch.setattr(RunTime, "has_ticked", never)


def kind_of(result: RunResult) -> str:
    return result.failure.kind if result.failure is not None else "ok"


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("1 + 1", 2),
        ('import { where } from "host:demo"; where()', "MainThread"),
        ('import { add } from "host:demo"; let t = 0; for (let i = 0; i < 50; i++) t = add(t, i); t', 1225),
        ('import { add } from "host:demo/async"; (await Promise.all([add(1, 2), add(3, 4)])).join()', "3,7"),
        ("await new Promise((done) => setTimeout(done, 5)); 'slept'", "slept"),
        ("console.log('printed'); new Date().getTime()", 5000),
        (f"'{'x' * 100_000}'.length", 100_000),
        ("'y'.repeat(50_000)", "y" * 50_000),
        ('import { broken } from "host:demo"; try { broken() } catch (e) { e.message }', "ValueError: no"),
        ('try { await import("host:nothing") } catch (e) { e.name }', "ModuleError"),
    ],
)
async def test_a_program_that_asks_and_waits_needs_no_guest_thread(
    demo: Sandbox, moved: list[str], program: str, value: object
) -> None:
    result = await demo.run(program)
    assert (result.value, result.failure) == (value, None)
    assert moved == []


async def test_a_guest_is_put_aside_once_for_each_call(demo: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = 0
    proceed = instance._proceed

    def counted(call: FiberCall, state: RunState) -> bool:
        nonlocal turns
        turns += 1
        return proceed(call, state)

    monkeypatch.setattr(instance, "_proceed", counted)
    program = 'import { add } from "host:demo"; let sum = 0; for (let i = 0; i < 500; i++) sum = add(sum, 1); sum'
    assert (await demo.run(program)).value == 500
    assert 500 < turns < 700  # a tick now and then puts it aside, too


async def test_what_a_program_computes_goes_on_elsewhere_and_its_calls_come_back(
    demo: Sandbox, moved: list[str]
) -> None:
    program = f'import {{ where }} from "host:demo"; {SPIN}; console.log(sum); [sum, where()]'
    result = await demo.run(program)
    assert result.value == [8_999_994, "MainThread"]
    assert result.stdout == "8999994\n"
    assert result.usage.cpu_seconds > 0
    assert moved


async def test_plain_functions_run_on_a_guest_thread(moved: list[str]) -> None:
    functions: dict[str, Callable[..., Any]] = {**FUNCTIONS, "plain": lambda: threading.current_thread().name}
    with Sandbox({"host:demo": functions}) as sandbox:
        result = await sandbox.run('import { plain, where } from "host:demo"; [plain(), where()]')
    assert result.value == ["toolbridge-guest", "MainThread"]
    assert moved == ["run"]


@pytest.mark.parametrize(
    "program",
    ["for (;;);", 'import { add } from "host:demo"; for (;;) add(1, 2)', 'for (;;) console.log("x")'],
    ids=["computing", "calling", "printing"],
)
async def test_a_run_without_end_leaves_the_loop_to_others(demo: Sandbox, program: str) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await anyio.sleep(0.001)
            turns += 1

    result: RunResult | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        result = await demo.run(program, limits=Limits(wall_seconds=1.0, host_calls=10_000_000))
        tasks.cancel_scope.cancel()
    assert result is not None
    assert kind_of(result) == "timeout"
    assert turns >= 2


async def test_a_call_that_takes_too_long_ends_with_the_run_and_is_told_of(demo: Sandbox) -> None:
    began = time.monotonic()
    result = await demo.run('import { pause } from "host:demo"; pause(60)', limits=Limits(wall_seconds=0.2))
    assert kind_of(result) == "timeout"
    assert [(call.function, call.outcome) for call in result.calls] == [("pause", "unfinished")]
    assert time.monotonic() - began < patience(5)


async def test_a_call_has_its_own_time_too(demo: Sandbox) -> None:
    program = 'import { pause } from "host:demo"; try { pause(60) } catch (e) { e.kind }'
    assert (await demo.run(program, limits=Limits(call_seconds=0.05))).value == "timeout"


@pytest.mark.parametrize(
    "program",
    [
        "for (;;);",
        'import { pause } from "host:demo"; pause(60)',
        "await new Promise((done) => setTimeout(done, 60000))",
    ],
    ids=["computing", "calling", "waiting"],
)
async def test_cancelling_ends_the_guest_wherever_it_is(demo: Sandbox, program: str) -> None:
    with anyio.move_on_after(0.1) as scope:
        await demo.run(program)
    assert scope.cancelled_caught
    with anyio.fail_after(60):
        while shared_engine().ticker._active:  # noqa: ASYNC110  # a guest thread ends it
            await anyio.sleep(0.001)
    assert (await demo.run("1 + 1")).value == 2


@pytest.mark.parametrize(
    "program", ["for (;;);", 'import { pause } from "host:demo"; pause(60)'], ids=["computing", "calling"]
)
async def test_closing_the_sandbox_ends_a_run_that_is_awaited(program: str) -> None:
    sandbox = Sandbox({"host:demo": FUNCTIONS})
    results: list[RunResult] = []

    async def run() -> None:
        results.append(await sandbox.run(program))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await anyio.sleep(0.1)
            sandbox.close()
    assert [kind_of(result) for result in results] == ["cancelled"]


async def test_a_session_keeps_its_state_wherever_its_runs_end(demo: Sandbox) -> None:
    async with demo.session() as session:
        assert (await session.run("globalThis.count = 1")).value == 1
        assert (await session.run('import { add } from "host:demo"; count = add(count, 1)')).value == 2
        assert (await session.run(f"{SPIN}; ++count")).value == 3
        assert (await session.run("++count")).value == 4


async def test_runs_at_the_same_time_keep_apart(demo: Sandbox) -> None:
    wrong: list[Any] = []

    async def work(index: int) -> None:
        for serial in range(10):
            spin = SPIN if serial == 5 else "0"
            program = f'import {{ add, pause }} from "host:demo"; pause(0.001); {spin}; add({index}, {serial})'
            value = (await demo.run(program)).value
            if value != index + serial:
                wrong.append((index, serial, value))

    async with anyio.create_task_group() as tasks:
        for index in range(12):
            tasks.start_soon(work, index)
    assert wrong == []


async def test_functions_that_ignore_their_cancellation_do_not_change_the_outcome(demo: Sandbox) -> None:
    async def stubborn() -> str:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.3)
        return "late"

    with Sandbox({"host:demo": {"stubborn": stubborn}}) as sandbox:
        program = 'import { stubborn } from "host:demo"; stubborn()'
        result = await sandbox.run(program, limits=Limits(wall_seconds=0.1))
    assert kind_of(result) == "timeout"


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
async def test_a_cancellation_that_is_not_anyios_ends_the_run_too(demo: Sandbox) -> None:
    run = asyncio.ensure_future(demo.run('import { pause } from "host:demo"; try { pause(60) } catch {}; "went on"'))
    await anyio.sleep(0.1)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
async def test_a_function_that_raises_a_cancellation_of_its_own_cancels_nothing() -> None:
    async def odd() -> None:
        raise asyncio.CancelledError("odd")

    with Sandbox({"host:demo": {"odd": odd}}) as sandbox:
        result = await sandbox.run('import { odd } from "host:demo"; try { odd() } catch (e) { e.message }')
    assert result.value == "CancelledError: odd"


async def test_a_run_that_computes_at_its_deadline_has_timed_out_and_was_not_cancelled(demo: Sandbox) -> None:
    for wall in (0.02, 0.021, 0.023, 0.029):
        assert kind_of(await demo.run("for (;;);", limits=Limits(wall_seconds=wall))) == "timeout"
