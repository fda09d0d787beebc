"""One benchmark per file, each with a function `measure`, in the order of the report."""

from __future__ import annotations

from bench.case import Case
from bench.cases import (
    big_json,
    bridge_call,
    check,
    cold_start,
    endurance,
    fan_out,
    filtered_json,
    fresh_sandbox,
    host_call,
    in_process_call,
    memory,
    parallel_tools,
    python_guest,
    served_runs,
    server_call,
    stopping,
    stubs,
)

CASES: dict[str, Case] = {
    "fresh_sandbox": fresh_sandbox.measure,
    "host_call": host_call.measure,
    "in_process_call": in_process_call.measure,
    "big_json": big_json.measure,
    "fan_out": fan_out.measure,
    "server_call": server_call.measure,
    "bridge_call": bridge_call.measure,
    "parallel_tools": parallel_tools.measure,
    "filtered_json": filtered_json.measure,
    "memory": memory.measure,
    "cold_start": cold_start.measure,
    "python_guest": python_guest.measure,
    "stopping": stopping.measure,
    "served_runs": served_runs.measure,
    "endurance": endurance.measure,
    "stubs": stubs.measure,
    "check": check.measure,
}
