"""Plain functions beside an event loop: their threads, and waiting for the quick ones on the spot."""

from __future__ import annotations

import threading
import time

import anyio
import anyio.lowlevel
import pytest

from toolbridge.concurrency import QUICK_SECONDS, ThreadPool

pytestmark = pytest.mark.anyio


async def test_functions_that_never_return_cost_a_bounded_number_of_threads() -> None:
    threads = ThreadPool(most=2, idle_seconds=0.05)
    free = threading.Event()
    ran: list[int] = []

    def stuck(number: int) -> int:
        ran.append(number)
        free.wait(60)
        return number

    for number in range(5):
        with anyio.move_on_after(0.05):
            await threads.run(lambda number=number: stuck(number))
    assert ran == [0, 1]  # the others gave up while they waited, and never begin
    free.set()
    with anyio.fail_after(60):
        assert (await threads.run(lambda: 7)).value == 7
    assert ran == [0, 1]


async def test_threads_are_used_again_and_end_when_they_are_idle() -> None:
    threads = ThreadPool(idle_seconds=0.1)
    idents = {(await threads.run(threading.get_ident)).value for _ in range(5)}
    assert len(idents) == 1
    deadline = time.monotonic() + 60
    while threads._threads and time.monotonic() < deadline:  # noqa: ASYNC110  # they are threads
        await anyio.sleep(0.02)
    assert (threads._threads, threads._free) == (0, 0)
    assert (await threads.run(lambda: 1)).value == 1


async def test_what_a_function_raises_is_kept() -> None:
    raised = (await ThreadPool().run(lambda: 1 // 0)).error
    assert isinstance(raised, ZeroDivisionError)


async def test_a_function_may_run_an_event_loop_of_its_own() -> None:
    async def seven() -> int:
        await anyio.lowlevel.checkpoint()
        return 7

    for backend in ("asyncio", "trio"):
        returned = await ThreadPool().run(lambda backend=backend: anyio.run(seven, backend=backend))
        assert (returned.value, returned.error) == (7, None)


async def test_a_quick_function_is_waited_for_on_the_spot(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = ThreadPool()
    await threads.run(lambda: 1)  # a thread is there

    def refuse() -> object:
        raise AssertionError("the event loop was left")

    # Half a millisecond is short on a busy machine: what counts is that it is enough at all.
    monkeypatch.setattr("toolbridge.concurrency.QUICK_SECONDS", 10.0)
    monkeypatch.setattr("toolbridge.concurrency.event_loop_poster", refuse)
    assert (await threads.run(lambda: 7, is_quick=True)).value == 7


async def test_a_function_that_is_slow_for_once_does_not_hold_up_the_event_loop() -> None:
    threads = ThreadPool()
    free = threading.Event()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_set_soon, free)  # on the event loop: it must turn for the function to return
            assert (await threads.run(lambda: free.wait(60), is_quick=True)).value is True


async def _set_soon(event: threading.Event) -> None:
    await anyio.sleep(0.01)
    event.set()


async def test_functions_that_end_just_when_the_patience_does_are_all_heard_of() -> None:
    threads = ThreadPool()

    def spin(seconds: float) -> float:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass
        return seconds

    with anyio.fail_after(60):
        for number in range(300):
            seconds = QUICK_SECONDS * (0.8 + number % 40 / 100)
            returned = await threads.run(lambda seconds=seconds: spin(seconds), is_quick=True)
            assert returned.value == seconds


async def test_how_long_a_function_took_tells_how_it_is_waited_for_next_time() -> None:
    threads = ThreadPool()
    assert (await threads.run(lambda: time.sleep(2 * QUICK_SECONDS))).was_quick is False
    assert any([(await threads.run(lambda: None)).was_quick for _ in range(20)])


async def test_one_that_has_to_wait_for_a_thread_is_not_waited_for_on_the_spot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolbridge.concurrency.QUICK_SECONDS", 60.0)
    threads = ThreadPool(most=1)
    free = threading.Event()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(threads.run, lambda: free.wait(60))
            await anyio.sleep(0.01)
            tasks.start_soon(_set_soon, free)
            assert (await threads.run(lambda: 7, is_quick=True)).value == 7
