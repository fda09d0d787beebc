"""The Python guest: a fresh sandbox, a warm run, a host call, computing, and memory."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from time import perf_counter
from typing import Any

from bench.case import MOST, SPAWN, Bench, spawn_python
from bench.measure import Batch, against_constant, batch, compare, take_turns
from bench.peer_packages import Missing
from bench.probes import probe
from bench.python_peer import eryx_peer
from bench.report import Finding, Row, Skipped
from toolbridge import Limits, Sandbox

_PEER = "pyeryx from PyPI"
_NATIVE = "the same in this Python"
_CALLS = 500
_MOST_MEMORY = 1_500_000.0
# 0.3 ms and 40 µs on a machine where `python -c pass` takes 15 ms.
_REFERENCE_SPAWN = 15e-3

_CALL_PROGRAM = f"""
from host.demo import echo
for _ in range({_CALLS}): reply = echo(city="Oslo", days=3)
reply
"""
_COMPUTE = """
def compute():
    def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
    words = {}
    for i in range(20_000): words[str(i * 7919 % 10_007)] = i
    return fib(18), sum(len(word) * words[word] for word in sorted(words))
"""


def measure(bench: Bench) -> Iterable[Finding]:
    """Against a process, another sandbox of the same kind, and this Python."""
    with Sandbox({"host:demo": {"echo": _echo}}, limits=Limits(host_calls=2 * _CALLS)) as sandbox:
        sandbox.run_sync("1", language="python")  # it is compiled now
        yield from _fresh(bench)
        yield from _warm(bench, sandbox)
        yield from _computing(bench, sandbox)
    if sys.platform.startswith("linux"):
        used = [float(probe("live_python")) for _ in range(bench.rounds(3))]
        yield Row("Python: memory of a live instance", MOST, against_constant(used, _MOST_MEMORY), 1.0, "B")
    else:
        yield Skipped("Python: memory of a live instance", "needs Linux's /proc/self/smaps_rollup")


def _fresh(bench: Bench) -> Iterable[Finding]:
    what = "Python: fresh sandbox, 1+1, close"
    contenders: dict[str, Batch] = {"ours": batch(_fresh_sandbox, 5), SPAWN: batch(spawn_python)}
    peer = eryx_peer()
    if isinstance(peer, Missing):
        yield Skipped(f"{what} against {_PEER}", peer.reason)
        samples = take_turns(contenders, bench.rounds(30))
    else:
        with peer:
            samples = take_turns({**contenders, _PEER: peer.batch("fresh", 5)}, bench.rounds(30))
    targets = {SPAWN: 1 / 5, _PEER: 1.0}
    for name, theirs in samples.items():
        if name != "ours":
            yield Row(what, name, compare(samples["ours"], theirs), targets[name])


def _warm(bench: Bench, sandbox: Sandbox) -> Iterable[Finding]:
    with sandbox.session(language="python") as session:
        session.run_sync("1+1")
        contenders: dict[str, Batch] = {
            "warm": batch(lambda: session.run_sync("1+1"), 20),
            "call": lambda: _calls(sandbox),
            SPAWN: batch(spawn_python),
        }
        samples = take_turns(contenders, bench.rounds(30))
    spawn = samples[SPAWN]
    yield Row("Python: warm run in a session", SPAWN, compare(samples["warm"], spawn), 0.3e-3 / _REFERENCE_SPAWN)
    yield Row("Python: host call, JSON in and out", SPAWN, compare(samples["call"], spawn), 40e-6 / _REFERENCE_SPAWN)


def _computing(bench: Bench, sandbox: Sandbox) -> Iterable[Finding]:
    names: dict[str, Any] = {}
    exec(_COMPUTE, names)  # noqa: S102  # our own program, outside for comparison
    with sandbox.session(language="python") as session:
        session.run_sync(f"{_COMPUTE}\nimport time")
        timed = "began = time.perf_counter()\ncompute()\ntime.perf_counter() - began"
        contenders: dict[str, Batch] = {
            "ours": lambda: float(session.run_sync(timed).value),
            _NATIVE: batch(names["compute"]),
        }
        samples = take_turns(contenders, bench.rounds(20))
    yield Row("Python: computing", _NATIVE, compare(samples["ours"], samples[_NATIVE]), 3.0)


def _fresh_sandbox() -> None:
    with Sandbox() as sandbox:
        assert sandbox.run_sync("1+1", language="python").value == 2


def _calls(sandbox: Sandbox) -> float:
    began = perf_counter()
    assert sandbox.run_sync(_CALL_PROGRAM, language="python").value == {"city": "Oslo", "days": 3}
    return (perf_counter() - began) / _CALLS


def _echo(value: object) -> object:
    return value
