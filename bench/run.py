"""`make bench`: measures everything in one run and prints ratios. A missed target is reported, not a failure."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.case import Bench
from bench.cases import CASES
from bench.report import Finding, Skipped, as_json, table


def main() -> int:
    """Runs the benchmarks that were asked for."""
    options = _options()
    names: list[str] = options.only or list(CASES)
    bench = Bench(quick=options.quick)
    findings: list[Finding] = []
    try:
        for number, name in enumerate(names, 1):
            _progress(f"[{number}/{len(names)}] {name} …")
            _measure(name, bench, findings)
    except KeyboardInterrupt:
        _progress("")
        print("Interrupted.", file=sys.stderr)
        return 130
    finally:
        bench.close()
    _progress("")
    print(table(findings))
    if options.json is not None:
        text = json.dumps(as_json(findings, quick=options.quick), ensure_ascii=False, indent=2)
        options.json.write_text(text + "\n", "utf-8")
    return int(any(isinstance(finding, Skipped) and finding.broke for finding in findings))


def _measure(name: str, bench: Bench, findings: list[Finding]) -> None:
    """One benchmark that breaks doesn't cost the others."""
    try:
        findings.extend(CASES[name](bench))
    except Exception as error:
        first_line = str(error).partition("\n")[0]
        findings.append(Skipped(name, f"{type(error).__name__}: {first_line}", broke=True))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure toolbridge beside other ways of doing the same.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results as JSON")
    parser.add_argument("--quick", action="store_true", help="a fifth of the rounds: for a look, not for a record")
    parser.add_argument("--only", action="append", choices=list(CASES), metavar="NAME", help="one of: %(choices)s")
    options = parser.parse_args()
    if options.json is not None and not options.json.parent.is_dir():
        parser.error(f"there is no directory {options.json.parent}")  # said before the measuring, not after
    return options


def _progress(text: str) -> None:
    """One line that is overwritten, for people who watch."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
