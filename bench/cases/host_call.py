"""One synchronous host call from guest code: an object in, the same object out, both as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from time import perf_counter
from typing import Any

from bench.case import NATIVE_PEER, NODE_PEER, SPAWN, Bench, spawn_python
from bench.measure import Batch, batch, compare, take_turns
from bench.peer_packages import Missing
from bench.report import Finding, Row, Skipped
from toolbridge import Limits, Sandbox

_WHAT = "host call, JSON in and out"
_PLAIN = "the same call in Python, with json"
_CALLS = 1000
_ARGUMENT = {"city": "Oslo", "days": 3}
# 20 µs (better still: 12) on a machine where `python -c pass` takes 16 ms.
_REFERENCE_SPAWN = 16e-3
_TARGET = 20e-6 / _REFERENCE_SPAWN
_STRETCH = 12e-6 / _REFERENCE_SPAWN

_PROGRAM = f"""
import {{ echo }} from "host:demo";
let reply;
for (let i = 0; i < {_CALLS}; i++) reply = echo({{ city: "Oslo", days: 3 }});
reply
"""
_NATIVE_PROGRAM = f"""
let reply;
for (let i = 0; i < {_CALLS}; i++) reply = JSON.parse(echo(JSON.stringify({{ city: "Oslo", days: 3 }})));
reply.city
"""


def measure(bench: Bench) -> Iterable[Finding]:
    """Against the process yardstick, plain Python, and the peers' own host functions."""
    sandbox = Sandbox({"host:demo": {"echo": _echo}}, limits=Limits(host_calls=2 * _CALLS))
    contenders: dict[str, Batch] = {
        "ours": lambda: _ours(sandbox),
        SPAWN: batch(spawn_python),
        _PLAIN: batch(_plain, _CALLS),
    }
    skipped: list[Finding] = []
    if isinstance(bench.node, Missing):
        skipped.append(Skipped(f"{_WHAT} against {NODE_PEER}", bench.node.reason))
    else:
        contenders[NODE_PEER] = bench.node.batch("hostCall", _CALLS)
    if isinstance(bench.native, Missing):
        skipped.append(Skipped(f"{_WHAT} against {NATIVE_PEER}", bench.native.reason))
    else:
        contenders[NATIVE_PEER] = _native(bench.native)
    with sandbox:
        samples = take_turns(contenders, bench.rounds(50))

    ours = samples.pop("ours")
    rows = [
        Row(_WHAT, name, compare(ours, theirs), _TARGET if name == SPAWN else None) for name, theirs in samples.items()
    ]
    spawn = compare(ours, samples[SPAWN])
    scaled = spawn.ratio * _REFERENCE_SPAWN * 1e6
    note = f"{scaled:.1f} µs where `{SPAWN}` takes 16 ms"
    stretch = Row(f"{_WHAT} (stretch)", SPAWN, spawn, _STRETCH, note=note)
    return [rows[0], stretch, *rows[1:], *skipped]


def _echo(value: Any) -> Any:
    return value


def _ours(sandbox: Sandbox) -> float:
    """A fresh guest makes all the calls: its share is less than a microsecond each."""
    began = perf_counter()
    result = sandbox.run_sync(_PROGRAM)
    seconds = perf_counter() - began
    assert result.value == _ARGUMENT, result.failure
    return seconds / _CALLS


def _plain() -> Any:
    return json.loads(json.dumps(_echo(json.loads(json.dumps(_ARGUMENT)))))


def _native(quickjs: Any) -> Batch:
    def host_function(text: str) -> str:
        return json.dumps(_echo(json.loads(text)))

    def run() -> float:
        began = perf_counter()
        context = quickjs.Context()
        context.add_callable("echo", host_function)
        city = context.eval(_NATIVE_PROGRAM)
        seconds = perf_counter() - began
        assert city == "Oslo"
        return seconds / _CALLS

    return run
