"""The self-test as a command: see `run_selftest.py`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from threats.selftest.mitigations import MITIGATIONS
from threats.selftest.switched_off import SwitchedOff
from threats.selftest.trial import Trial, switch_off_and_run

ROOT = Path(__file__).resolve().parents[3]


def main(words: Sequence[str]) -> int:
    """0 if each of them turned a test red, 1 if not."""
    parser = argparse.ArgumentParser(description="Switch each mitigation off in turn.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at once")
    parser.add_argument("--report", type=Path, default=ROOT / "dist" / "threats" / "selftest.md")
    parser.add_argument("threats", nargs="*", metavar="ID", help="only these threats")
    options = parser.parse_args(words)
    chosen = [each for each in MITIGATIONS if not options.threats or each.threat in options.threats]
    began = time.perf_counter()
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(zip(chosen, pool.map(_tried, chosen), strict=True))
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(_page(results, time.perf_counter() - began), encoding="utf-8")
    noticed = sum(trial.verdict == "noticed" for _, trial in results)
    _say(f"\n{noticed} of {len(results)} mitigations, switched off, turned a test red. {options.report}\n")
    return 0 if noticed == len(results) else 1


def _tried(switched: SwitchedOff) -> Trial:
    trial = switch_off_and_run(switched, ROOT)
    result = "red, as it should be" if trial.verdict == "noticed" else trial.verdict.upper()
    words = f"{result} ({trial.seconds:.0f} s) {trial.first}".rstrip()
    _say(f"{switched.threat:4} without “{switched.what}”: {words}\n")
    return trial


def _page(results: Sequence[tuple[SwitchedOff, Trial]], seconds: float) -> str:
    noticed = sum(trial.verdict == "noticed" for _, trial in results)
    rows = [
        f"| {each.threat} | {each.what} | `{each.file}` | {trial.verdict} | `{_cell(trial.first)}` |"
        for each, trial in results
    ]
    head = [
        *("# Self-test of the threat suite", ""),
        f"{noticed} of {len(results)} mitigations, each switched off by itself, were noticed ({seconds:.0f} s).",
        "The test that failed then passes against the unchanged source.",
        *("", "| ID | switched off | in | result | first test to fail |", "|---|---|---|---|---|"),
    ]
    return "\n".join([*head, *rows, ""])


def _cell(text: str) -> str:
    return text.replace("|", "¦").replace("`", "'").replace("\n", " ") or "-"


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
