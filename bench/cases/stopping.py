"""How long after its deadline, or after being cancelled, an endless loop is really gone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from time import perf_counter

from bench.case import MOST, Bench
from bench.measure import against_constant, take_turns
from bench.report import Finding, Row
from toolbridge import Limits, Sandbox

_ENDLESS = "for (;;) {}"
_WALL_SECONDS = 0.05
_MOST_LATENESS = 0.25
_MOST_CANCELLATION = 0.05


def measure(bench: Bench) -> Iterable[Finding]:
    """Against the most that it may be."""
    limits = Limits(wall_seconds=_WALL_SECONDS)
    with Sandbox() as sandbox:
        contenders = {
            "deadline": lambda: _lateness(sandbox, limits),
            "cancelled": lambda: asyncio.run(_cancellation(sandbox)),
        }
        samples = take_turns(contenders, bench.rounds(50))
    findings: list[Finding] = []
    for name, what, most in (
        ("deadline", "endless loop, past its deadline", _MOST_LATENESS),
        ("cancelled", "endless loop, until cancelled", _MOST_CANCELLATION),
    ):
        seconds = samples[name]
        findings.append(Row(f"{what}, median", MOST, against_constant(seconds, most), 1.0))
        worst = against_constant([max(seconds)], most)
        findings.append(Row(f"{what}, worst of {len(seconds)}", MOST, worst, 1.0))
    return findings


def _lateness(sandbox: Sandbox, limits: Limits) -> float:
    began = perf_counter()
    result = sandbox.run_sync(_ENDLESS, limits=limits)
    seconds = perf_counter() - began
    assert result.failure is not None
    assert result.failure.kind == "timeout"
    return seconds - _WALL_SECONDS


async def _cancellation(sandbox: Sandbox) -> float:
    task = asyncio.create_task(sandbox.run(_ENDLESS))
    await asyncio.sleep(0.02)  # the guest is in its loop
    began = perf_counter()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return perf_counter() - began
