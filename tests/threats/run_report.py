"""Runs the threat tests and writes a report into a directory: `python tests/threats/run_report.py [DIRECTORY]`.

`make threats` is this. What follows the directory is passed on to pytest.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent

if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))


def main(words: list[str]) -> int:
    """Whether every threat holds: 0, or pytest's own code, or 1 where something was not tested enough."""
    from threats.report.collector import ThreatReport

    directory = Path(words[0] if words else ROOT / "dist" / "threats").resolve()
    threat_report = ThreatReport(ROOT, directory)
    options = ["-q", "--rootdir", str(ROOT), "--junitxml", str(directory / "junit.xml"), "-o", "junit_family=xunit2"]
    code = pytest.main([*options, *(words[1:] or [str(TESTS / "threats")])], plugins=[threat_report])
    is_whole = threat_report.report is not None and threat_report.report.is_whole
    return int(code) or (0 if is_whole else 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
