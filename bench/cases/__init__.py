"""One benchmark per file, each with a function `measure`, in the order of the report."""

from __future__ import annotations

from bench.case import Case
from bench.cases import (
    big_json,
    cold_start,
    endurance,
    fan_out,
    fresh_sandbox,
    host_call,
    memory,
    stopping,
)

CASES: dict[str, Case] = {
    "fresh_sandbox": fresh_sandbox.measure,
    "host_call": host_call.measure,
    "big_json": big_json.measure,
    "fan_out": fan_out.measure,
    "memory": memory.measure,
    "cold_start": cold_start.measure,
    "stopping": stopping.measure,
    "endurance": endurance.measure,
}
