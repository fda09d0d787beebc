"""Prints the process's facts before and after a thousand runs."""

from __future__ import annotations

import json

from bench.probes.process_facts import process_facts
from toolbridge import Sandbox


def _echo(value: int) -> int:
    return value


async def _later(value: int) -> int:
    return value


# Values, a thrown error and both kinds of call, so that whatever a run may leave behind has its chance.
_PROGRAMS = (
    "1+1",
    'import { echo } from "host:demo"; echo(1)',
    'import { later } from "host:demo/async"; await later(1)',
    'throw new Error("on purpose")',
)


def _runs(sandbox: Sandbox, count: int) -> None:
    for number in range(count):
        sandbox.run_sync(_PROGRAMS[number % len(_PROGRAMS)])


with Sandbox({"host:demo": {"echo": _echo, "later": _later}}) as shared:
    _runs(shared, 100)
    before = process_facts()
    _runs(shared, 1000)
    after = process_facts()
print(json.dumps({"before": before._asdict(), "after": after._asdict()}))
