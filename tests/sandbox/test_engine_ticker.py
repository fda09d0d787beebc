"""The epoch ticker: it ticks while runs do, and at no other time."""

from __future__ import annotations

import threading
import time

import pytest

from toolbridge import Sandbox
from toolbridge.sandbox.engine import TICK_SECONDS, EpochTicker, shared_engine


@pytest.fixture
def ticker() -> EpochTicker:
    return EpochTicker(shared_engine().pointer)


def until(condition: object, seconds: float = 60.0) -> bool:
    """Whether a condition comes true: nothing announces that a thread has gone to sleep."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.002)
    return bool(condition())


def test_it_does_not_tick_before_the_first_run(ticker: EpochTicker) -> None:
    assert not ticker.is_ticking
    assert ticker.ticks.count == 0
    assert ticker.ticks.seconds == TICK_SECONDS


def test_it_ticks_while_a_run_lasts(ticker: EpochTicker) -> None:
    ticker.enter()
    assert ticker.is_ticking
    assert until(lambda: ticker.ticks.count >= 20)
    assert ticker.is_ticking
    ticker.leave()


def test_ticks_that_it_was_late_for_are_counted(ticker: EpochTicker) -> None:
    """As many ticks as there was time for, although threads of the host's keep the interpreter's lock."""
    stop = threading.Event()

    def keep_busy() -> None:
        while not stop.is_set():
            sum(range(1000))

    threads = [threading.Thread(target=keep_busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        ticker.enter()
        began, before = time.monotonic(), ticker.ticks.count
        assert until(lambda: ticker.ticks.count >= before + 60)
        took = time.monotonic() - began
    finally:
        ticker.leave()
        stop.set()
        for thread in threads:
            thread.join()
    assert ticker.ticks.count - before > 0.6 * took / TICK_SECONDS


def test_it_stops_soon_after_the_last_of_several_runs(ticker: EpochTicker) -> None:
    for _ in range(3):
        ticker.enter()
    ticker.leave()
    ticker.leave()
    count = ticker.ticks.count
    assert until(lambda: ticker.ticks.count > count + 15)
    assert ticker.is_ticking
    ticker.leave()
    assert until(lambda: not ticker.is_ticking)


def test_the_epoch_stands_still_once_it_has_stopped(ticker: EpochTicker) -> None:
    ticker.enter()
    ticker.leave()
    assert until(lambda: not ticker.is_ticking)
    count = ticker.ticks.count
    time.sleep(10 * TICK_SECONDS)
    assert ticker.ticks.count <= count + 1


def test_it_starts_again_with_the_next_run_on_the_same_thread(ticker: EpochTicker) -> None:
    ticker.enter()
    thread = ticker._thread
    ticker.leave()
    assert until(lambda: not ticker.is_ticking)
    ticker.enter()
    count = ticker.ticks.count
    assert ticker.is_ticking
    assert ticker._thread is thread
    assert until(lambda: ticker.ticks.count > count + 5)
    ticker.leave()


def test_runs_that_come_and_go_on_many_threads_leave_it_stopped(ticker: EpochTicker) -> None:
    def come_and_go() -> None:
        for _ in range(200):
            ticker.enter()
            ticker.leave()

    threads = [threading.Thread(target=come_and_go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert until(lambda: not ticker.is_ticking)


def test_a_real_run_starts_it_and_the_end_of_the_run_stops_it(sandbox: Sandbox) -> None:
    ticker = shared_engine().ticker
    assert sandbox.run_sync("1").value == 1
    assert until(lambda: not ticker.is_ticking)
    count = ticker.ticks.count
    assert sandbox.run_sync("const t = performance.now(); while (performance.now() - t < 50); 1").value == 1
    assert ticker.ticks.count > count
    assert until(lambda: not ticker.is_ticking)
