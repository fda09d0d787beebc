"""Timing and statistics that hold on a noisy machine.

Contenders take turns, round by round, and each round gives one ratio: what disturbs the machine for
a while disturbs both sides of it. The median of those ratios is what gets reported.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter

Batch = Callable[[], float]
"""Does its work a few times and answers with the seconds that one time took."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two contenders over the same rounds: medians, and the median of the rounds' own ratios."""

    ours: float
    theirs: float
    ratio: float
    low: float
    """A quarter of the rounds had a lower ratio."""
    high: float
    """A quarter of the rounds had a higher ratio."""


def batch(function: Callable[[], object], times: int = 1) -> Batch:
    """A contender that does `function` so many times in a row."""

    def run() -> float:
        began = perf_counter()
        for _ in range(times):
            function()
        return (perf_counter() - began) / times

    return run


def take_turns(contenders: Mapping[str, Batch], rounds: int) -> dict[str, list[float]]:
    """Every contender's samples. The order is reversed every other round; a first round only warms up."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    gc.collect()
    for number in range(rounds + 1):
        for name in names if number % 2 else reversed(names):
            seconds = contenders[name]()
            if number:
                samples[name].append(seconds)
    return samples


def compare(ours: list[float], theirs: list[float]) -> Comparison:
    """The comparison of samples from the same rounds."""
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    low, high = _quartiles(ratios)
    return Comparison(statistics.median(ours), statistics.median(theirs), statistics.median(ratios), low, high)


def against_constant(ours: list[float], constant: float) -> Comparison:
    """The comparison with something that needs no measuring: a time that was asked for, say."""
    return compare(ours, [constant] * len(ours))


def _quartiles(values: list[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high
