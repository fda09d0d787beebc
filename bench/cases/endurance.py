"""A thousand runs, one after another: what is left behind."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from bench.case import Bench
from bench.measure import against_constant
from bench.probes import probe
from bench.report import Finding, Row, Skipped

_WHAT = "after 1,000 runs"
# The allocator's own coming and going.
_FLAT_MEMORY = 1.02


def measure(bench: Bench) -> Iterable[Finding]:
    """Against the same process before them, in which a hundred had already run."""
    del bench  # a thousand are a thousand
    if not sys.platform.startswith("linux"):
        return [Skipped(_WHAT, "needs Linux's /proc/self")]
    found = probe("many_runs")
    before, after = found["before"], found["after"]

    def row(name: str, fact: str, target: float) -> Row:
        comparison = against_constant([float(after[fact])], float(before[fact]))
        return Row(f"{name} {_WHAT}", "before them", comparison, target, "B" if fact == "resident" else "count")

    return [
        row("resident memory", "resident", _FLAT_MEMORY),
        row("threads", "threads", 1.0),
        row("open descriptors", "descriptors", 1.0),
    ]
