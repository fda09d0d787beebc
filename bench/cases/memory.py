"""Private memory of a live instance after an eval: a hundred sessions in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

from bench.case import MOST, NATIVE_PEER, Bench
from bench.measure import against_constant, compare
from bench.peer_packages import Missing
from bench.probes import probe
from bench.probes.process_facts import process_facts
from bench.report import Finding, Row, Skipped

_WHAT = "memory of a live instance"
_MOST = 300_000.0


def measure(bench: Bench) -> Iterable[Finding]:
    """Against the most it may be, an idle Python process, and a native engine's contexts."""
    if not sys.platform.startswith("linux"):
        return [Skipped(_WHAT, "needs Linux's /proc/self/smaps_rollup")]
    rounds = bench.rounds(5)
    ours: list[float] = [probe("live_instances", "ours") for _ in range(rounds)]
    processes = [_idle_process() for _ in range(rounds)]
    findings: list[Finding] = [
        Row(_WHAT, MOST, against_constant(ours, _MOST), 1.0, "B"),
        Row(_WHAT, "an idle Python process", compare(ours, processes), unit="B"),
    ]
    if isinstance(bench.native, Missing):
        return [*findings, Skipped(f"{_WHAT} against {NATIVE_PEER}", bench.native.reason)]
    native: list[float] = [probe("live_instances", "native") for _ in range(rounds)]
    return [*findings, Row(_WHAT, NATIVE_PEER, compare(ours, native), unit="B")]


def _idle_process() -> float:
    command = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        private = process_facts(process.pid).private
        process.communicate(b"\n")
    return float(private)
