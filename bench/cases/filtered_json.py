"""A megabyte of JSON from a tool, filtered by guest code so that a line of it is left."""

from __future__ import annotations

import gc
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from bench.case import Bench
from bench.measure import Batch, compare, take_turns
from bench.report import Finding, Row
from bench.runtimes import calling_runtime
from toolbridge import ServerConfig

_SERVER = Path(__file__).parents[1] / "probes" / "prepared_server.py"
_PLAIN = "json.loads and the same filter in Python"
_TARGET = 4.0
_BYTES = 1_000_000
_CHEAP = 120.0
_FILTER = f".filter((one) => one.open && one.price < {_CHEAP}).map((one) => one.name)"
_PROGRAMS = {
    "text block": f'require("host:mcp-shop").as_text(){_FILTER}',
    "structured content": f'require("host:mcp-shop").as_data().records{_FILTER}',
}


def measure(bench: Bench) -> Iterable[Finding]:
    """Against the least that a host program could do with the same text, already in its memory."""
    text = _records()
    expected = _filtered(text)
    assert 0 < len(expected) < 500
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "records.json"
        file.write_text(text, "utf-8")
        server = ServerConfig.stdio("shop", sys.executable, ["-S", "-E", str(_SERVER), str(file)])
        with calling_runtime(server) as ours:
            cpu: dict[str, list[float]] = {name: [] for name in (*_PROGRAMS, _PLAIN)}
            contenders = {name: ours.program(source, expected, cpu=cpu[name]) for name, source in _PROGRAMS.items()}
            contenders[_PLAIN] = _in_python(text, cpu[_PLAIN])
            gc.freeze()  # else a full collection, of what was imported, falls to either side now and then: 60 ms
            try:
                samples = take_turns(contenders, bench.rounds(30))
            finally:
                gc.unfreeze()
    note = "Ours has the way from the server in it: a pipe, and the message around the records."
    for name in _PROGRAMS:
        what = f"1 MB of JSON filtered by guest code, {name}"
        yield Row(what, _PLAIN, compare(samples[name], samples[_PLAIN]), _TARGET, note=note)
        yield Row(f"{what}, CPU time", _PLAIN, compare(cpu[name][1:], cpu[_PLAIN][1:]))


def _in_python(text: str, cpu: list[float]) -> Batch:
    def run() -> float:
        computed, began = process_time(), perf_counter()
        _filtered(text)
        seconds = perf_counter() - began
        cpu.append(process_time() - computed)
        return seconds

    return run


def _filtered(text: str) -> list[str]:
    return [one["name"] for one in json.loads(text) if one["open"] and one["price"] < _CHEAP]


def _records() -> str:
    """What a tool might return: many small records, some text that isn't ASCII."""
    records: list[dict[str, Any]] = []
    size = 2
    while size < _BYTES:
        number = len(records)
        record = {
            "id": number,
            "name": f"Tromsø {number}",
            "price": 100 + number * 7919 % 5_000 / 4,
            "tags": ["a", "b"],
            "open": number % 3 > 0,
        }
        size += len(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()) + 1
        records.append(record)
    return json.dumps(records, ensure_ascii=False, separators=(",", ":"))
