"""A plugin for pytest that notes what came of every case of a threat, and writes the report at the end."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import toolbridge
from threats.report.case_results import CaseResult, Outcome, by_threat, without_paths
from threats.report.html_page import html_page
from threats.report.markdown_page import markdown_page
from threats.report.sarif import sarif_text
from threats.report.summary import Facts, Report
from threats.threat_table import Threat, threat_of


class ThreatReport:
    """Give it to `pytest.main`: one report for each time that the tests are run."""

    def __init__(self, root: Path, directory: Path) -> None:
        self._root = root
        self._directory = directory
        self._began = time.perf_counter()
        self._results: list[tuple[Threat, CaseResult]] = []
        self.report: Report | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A case is set up, called and torn down; the call tells, and the others where they fail."""
        file, line, _ = report.location
        threat = threat_of(file)
        if threat is None or (report.when != "call" and report.passed):
            return
        test, _, case = report.nodeid.split("::")[-1].partition("[")
        outcome: Outcome = "passed" if report.passed else "skipped" if report.skipped else "failed"
        result = CaseResult(
            *(file, test, case.removesuffix("]"), outcome, report.duration, (line or 0) + 1),
            detail="" if report.passed else without_paths(_words(report), str(self._root)),
        )
        self._results.append((threat, result))

    def pytest_sessionfinish(self) -> None:
        """Write it, in every form."""
        facts = Facts(
            when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            version=toolbridge.__version__,
            python=platform.python_version(),
            system=f"{platform.system()} {platform.machine()}",
            seconds=time.perf_counter() - self._began,
        )
        self.report = Report(facts, by_threat(self._results))
        self._directory.mkdir(parents=True, exist_ok=True)
        forms: dict[str, Callable[[Report], str]] = {
            "report.html": html_page,
            "report.md": markdown_page,
            "report.sarif": sarif_text,
        }
        for name, written in forms.items():
            (self._directory / name).write_text(written(self.report), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say in one line what it comes to, and where it is."""
        if self.report is not None:
            terminalreporter.write_line("")
            terminalreporter.write_line(f"{self.report.sentence} {self._directory / 'report.html'}")


def _words(report: pytest.TestReport) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return report.longreprtext
