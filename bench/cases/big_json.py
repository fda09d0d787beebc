"""A megabyte of JSON across the boundary: as a host call's result, as its argument, as the run's value."""

from __future__ import annotations

import json
from collections.abc import Iterable
from time import perf_counter
from typing import Any

from bench.case import Bench
from bench.measure import Batch, batch, compare, take_turns
from bench.report import Finding, Row
from toolbridge import Sandbox

_PLAIN = "json.dumps and json.loads of it"
_BYTES = 1_000_000


def measure(bench: Bench) -> Iterable[Finding]:
    """Against one trip of the same data through Python's own json."""
    records = _records()
    taken: list[Any] = []
    functions = {"give": lambda: records, "take": taken.append}
    with Sandbox({"host:demo": functions}) as sandbox, sandbox.session() as session:

        def program(source: str) -> Batch:
            def run() -> float:
                began = perf_counter()
                result = session.run_sync(source)
                seconds = perf_counter() - began
                assert result.ok, result.failure
                return seconds

            return run

        session.run_sync('globalThis.demo = require("host:demo"); globalThis.records = demo.give(); 0')
        contenders = {
            "result of a host call, 1 MB": program("demo.give(); 0"),
            "argument of a host call, 1 MB": program("demo.take(records); 0"),
            "value of a run, 1 MB": program("records"),
            _PLAIN: batch(lambda: json.loads(json.dumps(records))),
        }
        samples = take_turns(contenders, bench.rounds(30))
    assert all(value == records for value in taken[-2:])
    plain = samples.pop(_PLAIN)
    return [Row(name, _PLAIN, compare(ours, plain)) for name, ours in samples.items()]


def _records() -> list[dict[str, Any]]:
    """What a tool might return: many small records, some text that isn't ASCII."""
    records: list[dict[str, Any]] = []
    size = 0
    while size < _BYTES:
        number = len(records)
        record = {"id": number, "name": f"Tromsø {number}", "price": number * 0.25, "tags": ["a", "b"], "open": True}
        size += len(json.dumps(record, ensure_ascii=False).encode())
        records.append(record)
    return records
