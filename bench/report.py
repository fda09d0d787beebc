"""What a benchmark says: rows of one table, for people and as JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bench.measure import Comparison

Unit = Literal["s", "B", "count"]

# The middle half of the ratios, as a part of their median.
_FAR_APART = 0.5


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. A target is the highest ratio that meets it."""

    what: str
    against: str
    comparison: Comparison
    target: float | None = None
    unit: Unit = "s"
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        return None if self.target is None else self.comparison.ratio <= self.target

    @property
    def is_uncertain(self) -> bool:
        """Whether noise could have decided: the target lies among the rounds, or they are far apart."""
        found = self.comparison
        if self.target is not None:
            return found.low <= self.target < found.high
        return found.high - found.low > _FAR_APART * found.ratio

    @property
    def title(self) -> str:
        """What is compared with what."""
        return f"{self.what}, against {self.against}"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A comparison that could not be made here, and why."""

    what: str
    reason: str
    broke: bool = False
    """It should have been possible: something is wrong with us."""


Finding = Row | Skipped

_SCALES: dict[Unit, tuple[tuple[float, str], ...]] = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "B": ((1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "count": ((1.0, ""),),
}


def amount(value: float, unit: Unit) -> str:
    """A quantity with three digits that mean something: `271 µs`, `1.25 MB`."""
    scale, name = next((pair for pair in _SCALES[unit] if abs(value) >= pair[0]), _SCALES[unit][-1])
    return f"{_three_digits(value / scale)} {name}".rstrip()


def ratio(value: float) -> str:
    """`1/62` for less, `3.2 ×` for more."""
    return f"1/{_three_digits(1 / value)}" if 0 < value < 0.5 else f"{_three_digits(value)} ×"


def _three_digits(value: float) -> str:
    size = abs(value)
    digits = 0 if size >= 100 or value == int(value) else 1 if size >= 10 else 2
    return f"{value:.{digits}f}"


_HEADER = ("what", "ours", "against", "theirs", "ratio", "target", "met")


def table(findings: Sequence[Finding]) -> str:
    """The whole report as text."""
    rows = [finding for finding in findings if isinstance(finding, Row)]
    lines = _aligned([_HEADER, *(_cells(row) for row in rows)])
    lines += _section("Missed targets", [f"{row.title}: {_gap(row)}" for row in rows if row.met is False])
    lines += _section("Notes", [f"{row.title}: {row.note}" for row in rows if row.note])
    lines += _section("Uncertain: measure again", [_spread(row) for row in rows if row.is_uncertain])
    skipped = [finding for finding in findings if isinstance(finding, Skipped)]
    lines += _section("Skipped", [f"{item.what}: {item.reason}" for item in skipped if not item.broke])
    lines += _section("BROKEN", [f"{item.what}: {item.reason}" for item in skipped if item.broke])
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    found = row.comparison
    target = "–" if row.target is None else f"≤ {ratio(row.target)}"
    met = {None: "–", True: "yes", False: "NO"}[row.met]
    ours, theirs = amount(found.ours, row.unit), amount(found.theirs, row.unit)
    return row.what, ours, row.against, theirs, ratio(found.ratio), target, met


def _aligned(cells: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rights = {1, 3, 4, 5}
    lines = [
        "  ".join(
            text.rjust(width) if column in rights else text.ljust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
    return [lines[0], "─" * max(map(len, lines)), *lines[1:]]


def _section(title: str, lines: list[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {line}" for line in lines)] if lines else []


def _gap(row: Row) -> str:
    assert row.target is not None
    return f"{ratio(row.comparison.ratio)}, target {ratio(row.target)}"


def _spread(row: Row) -> str:
    low, high = ratio(row.comparison.low), ratio(row.comparison.high)
    return f"{row.title}: half of the rounds between {low} and {high}"


def as_json(findings: Sequence[Finding], *, quick: bool) -> dict[str, Any]:
    """The whole report for programs. Times are in seconds, sizes in bytes."""
    return {
        "machine": _machine(),
        "quick": quick,
        "rows": [
            {**asdict(row), "met": row.met, "uncertain": row.is_uncertain} for row in findings if isinstance(row, Row)
        ],
        "skipped": [asdict(item) for item in findings if isinstance(item, Skipped)],
    }


def _machine() -> dict[str, Any]:
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
    }
