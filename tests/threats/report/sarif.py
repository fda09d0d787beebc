"""The report as SARIF 2.1.0, for code scanning: a rule for each threat, a result for each that holds or fails."""

from __future__ import annotations

import json
from typing import Any

from threats.report.case_results import CaseResult, ThreatResult
from threats.report.summary import Report

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# What code scanning sorts by: 9 and more is critical, 7 high, 4 medium.
_SCORES = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "2.0"}


def sarif_text(report: Report) -> str:
    """All of it."""
    driver = {
        "name": "toolbridge-threats",
        "version": report.facts.version,
        "informationUri": "https://modelcontextprotocol.io",
        "rules": [_rule(row) for row in report.rows],
    }
    results = [result for index, row in enumerate(report.rows) for result in _results(row, index)]
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(row: ThreatResult) -> dict[str, Any]:
    threat = row.threat
    return {
        "id": threat.id,
        "name": "".join(word.capitalize() for word in threat.title.replace("/", " ").replace("-", " ").split()),
        "shortDescription": {"text": threat.title},
        "fullDescription": {"text": threat.promise},
        "help": {"text": f"See {threat.id} in docs/THREAT-MODEL.md."},
        "defaultConfiguration": {"level": "error"},
        "properties": {"security-severity": _SCORES[threat.severity], "tags": ["security"]},
    }


def _results(row: ThreatResult, index: int) -> list[dict[str, Any]]:
    if row.verdict == "holds":
        text = f"{row.threat.title}: holds in {row.count('passed')} cases. {row.skipped}".rstrip()
        return [_result(row, index, text, kind="pass", level="none")]
    if row.verdict == "untested":
        return [_result(row, index, f"{row.threat.title}: not tested enough.", kind="open", level="none")]
    return [
        _result(row, index, f"{case.sentence} [{case.case}]: {case.detail[-1000:]}", case)
        for case in row.cases
        if case.outcome == "failed"
    ]


def _result(
    row: ThreatResult,
    index: int,
    text: str,
    case: CaseResult | None = None,
    *,
    kind: str = "fail",
    level: str = "error",
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": row.threat.id,
        "ruleIndex": index,
        "kind": kind,
        "level": level,
        "message": {"text": text},
    }
    file, line = (case.file, case.line) if case else (row.tried[0].file if row.tried else "docs/THREAT-MODEL.md", 1)
    place = {"artifactLocation": {"uri": file}, "region": {"startLine": line}}
    return result | {"locations": [{"physicalLocation": place}]}
