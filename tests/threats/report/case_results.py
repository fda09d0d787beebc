"""What came of every case, gathered by threat."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from threats.threat_table import THREATS, Threat

Outcome: TypeAlias = Literal["passed", "failed", "skipped"]
Verdict: TypeAlias = Literal["holds", "broken", "untested"]

_LONGEST_DETAIL = 8_000


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case of one test."""

    file: str
    """From the repository's root."""
    test: str
    """The test's name: a sentence, in snake case."""
    case: str
    """What distinguishes it from the others of its test."""
    outcome: Outcome
    seconds: float
    line: int = 1
    detail: str = ""
    """Why it failed or was skipped."""

    @property
    def name(self) -> str:
        """As pytest has it."""
        return f"{self.test}[{self.case}]" if self.case else self.test

    @property
    def sentence(self) -> str:
        """The test's name for people."""
        return sentence_of(self.test)


@dataclass(slots=True)
class Tried:
    """One test, over all of its cases."""

    sentence: str
    file: str
    cases: list[CaseResult] = field(default_factory=list[CaseResult])

    def count(self, outcome: Outcome) -> int:
        """How many cases came out so."""
        return sum(case.outcome == outcome for case in self.cases)


@dataclass(frozen=True, slots=True)
class ThreatResult:
    """One row of the report."""

    threat: Threat
    tried: tuple[Tried, ...]

    @property
    def cases(self) -> list[CaseResult]:
        """All cases."""
        return [case for tried in self.tried for case in tried.cases]

    @property
    def seconds(self) -> float:
        """All of their time."""
        return sum(case.seconds for case in self.cases)

    def count(self, outcome: Outcome) -> int:
        """How many cases came out so."""
        return sum(tried.count(outcome) for tried in self.tried)

    @property
    def skipped(self) -> str:
        """What was not tried, and why: for everything else the verdict holds. Empty where all was."""
        reasons = dict.fromkeys(case.detail for case in self.cases if case.outcome == "skipped")
        return f"{self.count('skipped')} skipped: {'; '.join(reasons)}" if reasons else ""

    @property
    def verdict(self) -> Verdict:
        """Broken as soon as one case failed; untested where none was run that could say that it holds."""
        if self.count("failed"):
            return "broken"
        return "holds" if self.count("passed") else "untested"


def by_threat(results: Iterable[tuple[Threat, CaseResult]]) -> tuple[ThreatResult, ...]:
    """A row for every threat there is, whether or not it was tested."""
    found: dict[str, dict[tuple[str, str], Tried]] = {threat.id: {} for threat in THREATS}
    for threat, result in results:
        tests = found[threat.id]
        tests.setdefault((result.file, result.test), Tried(result.sentence, result.file)).cases.append(result)
    return tuple(ThreatResult(threat, tuple(found[threat.id].values())) for threat in THREATS)


def sentence_of(test: str) -> str:
    """`test_a_bad_tool_costs_itself` → `A bad tool costs itself`."""
    words = test.removeprefix("test_").replace("_", " ")
    return words[:1].upper() + words[1:]


def without_paths(text: str, root: str) -> str:
    """What a failure says, without where on this machine: reports are passed around."""
    text = text.replace(root + "/", "").replace(root, ".")
    text = re.sub(r"/(?:home|root|Users)/[^\s:'\"]+", "…", text)
    return text if len(text) <= _LONGEST_DETAIL else f"{text[:_LONGEST_DETAIL]}\n…"
