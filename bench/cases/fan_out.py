"""Fifty calls of 50 ms at once, through a module's `/async` twin and a coroutine function."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from time import perf_counter

from bench.case import Bench
from bench.measure import Batch, against_constant, compare, take_turns
from bench.report import Finding, Row
from toolbridge import Limits, Sandbox

_CALLS = 50
_SECONDS = 0.05
_TARGET = 70e-3 / _SECONDS
_PROGRAM = f"""
import {{ fetch }} from "host:demo/async";
const replies = await Promise.all(Array.from({{ length: {_CALLS} }}, (_, i) => fetch(i)));
replies.length
"""


async def _fetch(number: int) -> int:
    await asyncio.sleep(_SECONDS)
    return number


def measure(bench: Bench) -> Iterable[Finding]:
    """Against one call's own time, and against what asyncio needs for the same."""
    what, rounds = "50 parallel calls of 50 ms", bench.rounds(20)
    with Sandbox({"host:demo": {"fetch": _fetch}}, limits=Limits(wall_seconds=2.0)) as sandbox:
        contenders: dict[str, Batch] = {
            "run_sync": lambda: _run_sync(sandbox),
            "gather": lambda: asyncio.run(_gather()),
        }
        samples = take_turns(contenders, rounds)
        yield Row(f"{what}, run_sync", "one call", against_constant(samples["run_sync"], _SECONDS), _TARGET)
        yield Row(f"{what}, run_sync", "asyncio.gather", compare(samples["run_sync"], samples["gather"]))

        samples = take_turns({"run": lambda: asyncio.run(_run(sandbox)), "gather": contenders["gather"]}, rounds)
        yield Row(f"{what}, await run", "one call", against_constant(samples["run"], _SECONDS), _TARGET)
        yield Row(f"{what}, await run", "asyncio.gather", compare(samples["run"], samples["gather"]))


def _run_sync(sandbox: Sandbox) -> float:
    began = perf_counter()
    result = sandbox.run_sync(_PROGRAM)
    seconds = perf_counter() - began
    assert result.value == _CALLS, result.failure
    return seconds


async def _run(sandbox: Sandbox) -> float:
    began = perf_counter()
    result = await sandbox.run(_PROGRAM)
    seconds = perf_counter() - began
    assert result.value == _CALLS, result.failure
    return seconds


async def _gather() -> float:
    began = perf_counter()
    await asyncio.gather(*(_fetch(number) for number in range(_CALLS)))
    return perf_counter() - began
