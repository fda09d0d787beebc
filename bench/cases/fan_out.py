"""Fifty calls of 50 ms at once, through a module's `/async` twin and a coroutine function."""

from __future__ import annotations

import asyncio
from time import perf_counter

from bench.case import Bench
from bench.measure import against_constant, compare, take_turns
from bench.report import Finding, Row
from toolbridge import Sandbox

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


def measure(bench: Bench) -> list[Finding]:
    """Against one call's own time, and against what asyncio needs for the same."""
    with Sandbox({"host:demo": {"fetch": _fetch}}) as sandbox:
        contenders = {
            "run_sync": lambda: _run_sync(sandbox),
            "await run": lambda: asyncio.run(_run(sandbox)),
            "gather": lambda: asyncio.run(_gather()),
        }
        samples = take_turns(contenders, bench.rounds(20))
    what = "50 parallel calls of 50 ms"
    return [
        Row(f"{what}, run_sync", "one call", against_constant(samples["run_sync"], _SECONDS), _TARGET),
        Row(f"{what}, await run", "one call", against_constant(samples["await run"], _SECONDS), _TARGET),
        Row(f"{what}, await run", "asyncio.gather", compare(samples["await run"], samples["gather"])),
    ]


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
