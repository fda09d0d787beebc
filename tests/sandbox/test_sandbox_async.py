"""`await sandbox.run`: on asyncio and on trio, cancelled, side by side; and runs from many threads."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from growth import patience
from toolbridge import Limits, Sandbox
from toolbridge.errors import SandboxClosedError
from toolbridge.sandbox import sandbox as sandbox_module
from toolbridge.sandbox.engine import Engine, shared_engine
from toolbridge.sandbox.outcome import SandboxLanguage
from toolbridge_guest import GuestImage


async def wait_until(condition: Any, seconds: float = 60.0) -> None:
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110  # nothing announces that a run has begun
            await anyio.sleep(0.005)


def active_runs() -> int:
    return shared_engine().ticker._active


async def slow(milliseconds: float) -> float:
    await anyio.sleep(milliseconds / 1000)
    return milliseconds


class Meeting:
    """Calls that end when so many of them are there: they have to overlap."""

    def __init__(self) -> None:
        self._there = 0

    async def meet(self, count: int) -> int:
        self._there += 1
        await wait_until(lambda: self._there >= count)
        return count


@pytest.mark.anyio
async def test_a_program_runs_and_gives_its_value() -> None:
    with Sandbox() as sandbox:
        assert (await sandbox.run("[1, 2].map((n) => n * 2)")).value == [2, 4]


class SlowLoading:
    """An engine of its own, whose images take until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.let_go = threading.Event(), threading.Event()
        self._engine = Engine()
        self._load = self._engine._load
        monkeypatch.setattr(sandbox_module, "shared_engine", lambda: self._engine)
        monkeypatch.setattr(self._engine, "_load", self.load)

    def load(self, image: GuestImage, *others: Any, **named: Any) -> int:
        self.begun.set()
        if not self.let_go.wait(60):
            raise TimeoutError("the event loop stands still")
        return self._load(image, *others, **named)


@pytest.mark.anyio
@pytest.mark.parametrize("language", ["javascript", "python"])
async def test_the_loop_goes_on_while_an_image_is_compiled(
    language: SandboxLanguage, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading = SlowLoading(monkeypatch)
    values: list[Any] = []

    async def run() -> None:
        values.append((await sandbox.run("1 + 1", language=language)).value)

    with Sandbox() as sandbox:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await anyio.to_thread.run_sync(loading.begun.wait, 10)
            loading.let_go.set()
    assert values == [2]


def test_an_image_does_not_wait_for_another_to_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    loading = SlowLoading(monkeypatch)
    engine = loading._engine
    with ThreadPoolExecutor(1) as threads:
        python = threads.submit(engine.python_image)
        assert loading.begun.wait(60)
        monkeypatch.setattr(engine, "_load", loading._load)
        assert engine.image("javascript")
        assert not python.done()
        loading.let_go.set()
        assert python.result()


@pytest.mark.anyio
async def test_coroutine_functions_run_on_the_callers_own_loop_and_thread() -> None:
    threads: list[threading.Thread] = []

    async def where() -> str:
        threads.append(threading.current_thread())
        await anyio.lowlevel.checkpoint()
        return "here"

    with Sandbox({"host:demo": {"where": where}}) as sandbox:
        result = await sandbox.run('[require("host:demo").where(), await require("host:demo/async").where()]')
    assert result.value == ["here", "here"]
    assert threads == [threading.current_thread()] * 2


@pytest.mark.anyio
async def test_the_loop_goes_on_while_a_guest_computes() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.005)
            ticks += 1

    with Sandbox() as sandbox:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tick)
            result = await sandbox.run("for (;;);", limits=Limits(wall_seconds=0.3))
            assert result.failure is not None
            assert result.failure.kind == "timeout"
            tasks.cancel_scope.cancel()
    assert ticks >= 5


@pytest.mark.anyio
async def test_runs_that_are_awaited_together_overlap() -> None:
    results: list[Any] = []
    program = 'import { meet } from "host:demo"; meet(8)'
    with Sandbox({"host:demo": {"meet": Meeting().meet}}) as sandbox:

        async def run() -> None:
            results.append((await sandbox.run(program)).value)

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(run)
    assert results == [8] * 8


@pytest.mark.anyio
async def test_fifty_calls_overlap() -> None:
    program = (
        'import { meet } from "host:demo/async"; (await Promise.all(Array.from({ length: 50 }, () => meet(50)))).length'
    )
    with Sandbox({"host:demo": {"meet": Meeting().meet}}) as sandbox:
        assert (await sandbox.run(program)).value == 50


@pytest.mark.anyio
@pytest.mark.parametrize(
    "program",
    [
        "for (;;);",
        "await new Promise((resolve) => setTimeout(resolve, 60_000))",
        'import { forever } from "host:demo"; forever()',
        'import { forever } from "host:demo/async"; await Promise.all([forever(), forever()])',
    ],
)
async def test_cancelling_a_run_ends_its_guest_and_its_calls(program: str) -> None:
    began, cancelled = 0, 0
    started = anyio.Event()

    async def forever() -> None:
        nonlocal began, cancelled
        began += 1
        try:
            await anyio.sleep_forever()
        finally:
            cancelled += 1

    with Sandbox({"host:demo": {"forever": forever}}) as sandbox:
        await sandbox.run("1")
        await wait_until(lambda: active_runs() == 0)
        cancelled_at = 0.0

        async def run() -> None:
            started.set()
            await sandbox.run(program)
            raise AssertionError("a cancelled run gives no result")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await started.wait()
            await wait_until(lambda: active_runs() == 1)
            await wait_until(lambda: began == program.count("forever()"))
            cancelled_at = time.perf_counter()
            tasks.cancel_scope.cancel()
        took = time.perf_counter() - cancelled_at
        await wait_until(lambda: active_runs() == 0)
        assert cancelled == began
        assert took < patience(0.25)
        assert (await sandbox.run("1 + 1")).value == 2


@pytest.mark.anyio
async def test_a_timeout_around_a_run_ends_it() -> None:
    with Sandbox() as sandbox:
        with anyio.move_on_after(0.1) as scope:
            await sandbox.run("for (;;);")
        assert scope.cancelled_caught
        await wait_until(lambda: active_runs() == 0)


@pytest.mark.anyio
async def test_calls_left_over_at_the_end_of_a_failed_run_are_cancelled() -> None:
    cancelled = anyio.Event()

    async def forever() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    with Sandbox({"host:demo": {"forever": forever}}) as sandbox:
        program = (
            'require("host:demo/async").forever(); await null; setTimeout(() => { throw new Error("enough") }, 20)'
        )
        result = await sandbox.run(program)
    assert cancelled.is_set()
    assert result.failure is not None
    assert (result.failure.kind, result.failure.message) == ("raised", "Error: enough")
    assert [call[:3] for call in result.calls] == [("host:demo", "forever", "unfinished")]


@pytest.mark.anyio
async def test_a_plain_function_that_blocks_past_the_deadline_is_not_waited_for() -> None:
    leave = threading.Event()
    with Sandbox({"host:demo": {"stuck": lambda: leave.wait(60)}}) as sandbox:
        began = time.perf_counter()
        try:
            result = await sandbox.run('require("host:demo").stuck()', limits=Limits(wall_seconds=0.2))
            assert time.perf_counter() - began < patience(1.5)
        finally:
            leave.set()
    assert result.failure is not None
    assert result.failure.message.startswith("stuck of host:demo has not returned after 0.")


@pytest.mark.anyio
async def test_a_closed_sandbox_refuses_to_run() -> None:
    sandbox = Sandbox()
    sandbox.close()
    with pytest.raises(SandboxClosedError, match=r"^This sandbox is closed\.$"):
        await sandbox.run("1")


def test_closing_a_sandbox_ends_the_runs_of_other_threads() -> None:
    running = threading.Event()
    sandbox = Sandbox({"host:demo": {"running": running.set}})
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(sandbox.run_sync, 'require("host:demo").running(); for (;;);')
        assert running.wait(60)
        sandbox.close()
        result = future.result(timeout=60)
    assert result.failure is not None
    assert (result.failure.kind, result.failure.message) == ("cancelled", "The run was cancelled.")


@pytest.mark.parametrize("function", ["system_exit", "keyboard_interrupt", "cancelled"])
@pytest.mark.parametrize("module", ["host:demo", "host:demo/async"])
def test_whatever_a_host_function_raises_reaches_guest_code_and_leaves_the_sandbox_working(
    function: str, module: str
) -> None:
    import asyncio

    def system_exit() -> None:
        raise SystemExit(3)

    def keyboard_interrupt() -> None:
        raise KeyboardInterrupt

    def cancelled() -> None:
        raise asyncio.CancelledError

    functions = {
        "system_exit": system_exit,
        "keyboard_interrupt": keyboard_interrupt,
        "cancelled": cancelled,
        "slow": slow,
    }
    with Sandbox({"host:demo": functions}, limits=Limits(wall_seconds=2)) as sandbox:
        program = (
            f'import {{ {function} }} from "{module}"; try {{ await {function}() }} catch (error) {{ error.kind }}'
        )
        assert sandbox.run_sync(program).value == "failed"
        assert sandbox.run_sync('import { slow } from "host:demo/async"; await slow(1)').value == 1


def test_runs_on_many_threads_do_not_mix() -> None:
    def square(number: int) -> int:
        if number % 3 == 0:
            raise ValueError(str(number))
        return number * number

    def expected(number: int) -> object:
        return f"ValueError: {number}" if number % 3 == 0 else number * number

    with Sandbox({"host:demo": {"square": square}}) as sandbox, ThreadPoolExecutor(8) as pool:

        def run(number: int) -> object:
            program = (
                f'import {{ square }} from "host:demo"; try {{ square({number}) }} catch (error) {{ error.message }}'
            )
            return sandbox.run_sync(program).value

        assert list(pool.map(run, range(400))) == [expected(number) for number in range(400)]
