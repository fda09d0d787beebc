"""A run's time: what is billed to guest code, and what is not."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from toolbridge.boundary.run_time import RunTime, Ticks
from toolbridge.limits import Limits

TICK = 0.005


@pytest.fixture
def ticks() -> Ticks:
    return Ticks(TICK)


@pytest.fixture
def run(ticks: Ticks) -> RunTime:
    return RunTime(Limits(cpu_seconds=0.1), ticks)


def compute(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def stretch(run: RunTime, ticks: Ticks, passed: int, seconds: float = 0.0) -> None:
    """Guest code that computes so long, while so many ticks pass."""
    run.enter_guest()
    compute(seconds)
    ticks.count += passed
    run.leave_guest()


def test_guest_code_in_which_no_tick_passes_is_not_billed(run: RunTime, ticks: Ticks) -> None:
    stretch(run, ticks, 0)
    assert (run.cpu_seconds(), run.has_ticked()) == (0.0, False)


def test_ticks_outside_guest_code_are_not_billed(run: RunTime, ticks: Ticks) -> None:
    stretch(run, ticks, 0)
    ticks.count += 100
    stretch(run, ticks, 0)
    assert run.cpu_seconds() == 0.0


def test_guest_code_is_billed_the_ticks_that_passed_in_it(run: RunTime, ticks: Ticks) -> None:
    stretch(run, ticks, 1)
    stretch(run, ticks, 4, 6 * TICK)
    assert run.cpu_seconds() == pytest.approx(5 * TICK)  # pyright: ignore[reportUnknownMemberType]
    assert run.has_ticked()
    assert not run.exceeds_cpu_limit()
    stretch(run, ticks, 16, 17 * TICK)
    assert run.exceeds_cpu_limit()


def test_waiting_for_a_processor_is_not_billed(run: RunTime, ticks: Ticks) -> None:
    stretch(run, ticks, 1)
    for _ in range(5):
        stretch(run, ticks, 1000)
    assert run.cpu_seconds() < 10 * TICK
    assert not run.exceeds_cpu_limit()


def test_a_run_that_goes_on_on_another_thread_is_billed_there(run: RunTime, ticks: Ticks) -> None:
    stretch(run, ticks, 1)
    with ThreadPoolExecutor(1) as other:
        other.submit(stretch, run, ticks, 2).result()
    assert run.cpu_seconds() == pytest.approx(3 * TICK)  # pyright: ignore[reportUnknownMemberType]


def test_time_spent_before_the_guest_counts(ticks: Ticks) -> None:
    limits = Limits(cpu_seconds=0.1)
    fresh, spent = RunTime(limits, ticks), RunTime(limits, ticks, (0.25, 0.0625))
    assert fresh.deadline - spent.deadline == pytest.approx(0.25, abs=0.01)  # pyright: ignore[reportUnknownMemberType]
    assert (spent.cpu_seconds(), spent.exceeds_cpu_limit()) == (0.0625, False)
    assert RunTime(limits, ticks, (0.0, 0.125)).exceeds_cpu_limit()
