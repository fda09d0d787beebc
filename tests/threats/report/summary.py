"""All that a report says, before it has a form."""

from __future__ import annotations

from dataclasses import dataclass

from threats.report.case_results import Outcome, ThreatResult, Verdict


@dataclass(frozen=True, slots=True)
class Facts:
    """Of what, where and when."""

    when: str
    version: str
    python: str
    system: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """One row for each threat."""

    facts: Facts
    rows: tuple[ThreatResult, ...]

    def count(self, outcome: Outcome) -> int:
        """How many cases came out so."""
        return sum(row.count(outcome) for row in self.rows)

    def threats(self, verdict: Verdict) -> list[str]:
        """Which threats came out so."""
        return [row.threat.id for row in self.rows if row.verdict == verdict]

    @property
    def is_whole(self) -> bool:
        """Whether every threat was tested enough, and holds."""
        return len(self.threats("holds")) == len(self.rows)

    @property
    def sentence(self) -> str:
        """What it comes to."""
        held = len(self.threats("holds"))
        parts = [f"{held} of {len(self.rows)} threats held, in {sum(len(row.cases) for row in self.rows):,} cases."]
        if broken := self.threats("broken"):
            parts.append(f"BROKEN: {', '.join(broken)}.")
        if untested := self.threats("untested"):
            parts.append(f"Not tested: {', '.join(untested)}.")
        if skipped := [f"{row.threat.id} ({row.skipped})" for row in self.rows if row.skipped]:
            parts.append(f"Not all was tried here: {', '.join(skipped)}.")
        return " ".join(parts)


def duration(seconds: float) -> str:
    """For people."""
    if seconds >= 60:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{seconds:.1f} s" if seconds >= 0.1 else f"{seconds * 1000:.0f} ms"
