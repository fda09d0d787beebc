"""How much work something is, without saying seconds: how it grows with its input, and next to other work of this run.

CPU time of this thread, the best of several tries: other work on the machine only ever adds.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

T = TypeVar("T")

TRIES = 6
NOISE = 0.002
"""Seconds of CPU time by which measurements of little work differ."""


@contextmanager
def _uncollected() -> Generator[None]:
    """Suspend garbage collection: a full one walks the objects of every test before, a second in a long run."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()


def cpu_seconds(work: Callable[[], object]) -> float:
    """The CPU time of one try."""
    with _uncollected():
        began = time.thread_time()
        work()
        return time.thread_time() - began


def is_at_most(times: float, work: Callable[[], object], other: Callable[[], object]) -> bool:
    """If some work takes at most so many times the CPU time of the other, measured by turns and as often as needed."""
    least, least_of_other = float("inf"), float("inf")
    for _ in range(TRIES):
        least_of_other = min(least_of_other, cpu_seconds(other))
        least = min(least, cpu_seconds(work))
        if least <= times * least_of_other + NOISE:
            return True
    return False


def linear(work: Callable[[T], object], make: Callable[[int], T], size: int) -> None:
    """Assert that twice the input is at most two and a half times the work; four times would be quadratic.

    Memory is given out in steps, so that any one doubling may cost more: of three, one has to be in proportion.
    """
    for least in (size, 2 * size, 4 * size):
        small, large = make(least), make(2 * least)
        if is_at_most(2.5, lambda: work(large), lambda: work(small)):  # noqa: B023  # called at once
            return
    raise AssertionError(f"twice the input is more than 2.5 times the work, from a size of {size:,} on")


PLAIN_SECONDS = 0.01


def plain_python() -> None:
    """The unit of work: `PLAIN_SECONDS` of an unhurried machine."""
    words: dict[str, int] = {}
    for number in range(60_000):
        word = f"word {number % 997}"
        words[word] = words.get(word, 0) + len(word)


@cache
def _measured_once() -> float:
    return cpu_seconds(plain_python)


@contextmanager
def work_within(seconds: float) -> Generator[None]:
    """Assert that a block takes no more CPU time than plain Python work does that is about so many seconds of it.

    For what is bounded rather than proportional: a budget that ends it, or a cut before it begins.
    """
    with _uncollected():
        began = time.thread_time()
        yield
        took = time.thread_time() - began
    if took > seconds / PLAIN_SECONDS / 2 * _measured_once():  # half of it: worth to be looked at closely
        most = seconds / PLAIN_SECONDS * max(cpu_seconds(plain_python) for _ in range(5))
        assert took <= most, f"it took {took:.3f} s of CPU time, where plain work took {most:.3f} s"


def patience(seconds: float) -> float:
    """So many seconds of an unhurried machine, on this one at this moment: how long it takes for the same plain work.

    For what has to be over within some time of the clock: a deadline, or a wait that must not be a longer one.
    """
    slowness = [1.0]
    for _ in range(5):
        began = time.perf_counter()
        plain_python()
        slowness.append((time.perf_counter() - began) / PLAIN_SECONDS)
    return 4 * seconds * max(slowness)
