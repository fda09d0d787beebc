"""The report as Markdown: one table, then what was tried for each threat."""

from __future__ import annotations

from threats.report.case_results import ThreatResult, Tried
from threats.report.summary import Report, duration

_RESULT = {"holds": "holds", "broken": "**BROKEN**", "untested": "**not tested enough**"}


def markdown_page(report: Report) -> str:
    """All of it."""
    facts = report.facts
    lines = [
        "# Threat report",
        "",
        f"**{report.sentence}**",
        "",
        f"toolbridge {facts.version}, Python {facts.python}, {facts.system}, {facts.when}, {duration(facts.seconds)}.",
        f"{report.count('passed'):,} cases passed, {report.count('failed')} failed, {report.count('skipped')} skipped.",
        "",
        "| ID | threat | severity | tests | cases | result | time |",
        "|---|---|---|--:|--:|---|--:|",
        *(_row(row) for row in report.rows),
        "",
        "# What was tried",
        "",
    ]
    for row in report.rows:
        lines += [f"## {row.threat.id}: {row.threat.title}", "", row.threat.promise, ""]
        lines += [_tried(tried) for tried in row.tried] or ["- nothing"]
        lines += [*_failures(row), ""]
    return "\n".join(lines)


def _row(row: ThreatResult) -> str:
    threat = row.threat
    cells = [threat.id, threat.title, threat.severity, len(row.tried), len(row.cases), _result(row)]
    return f"| {' | '.join(map(str, cells))} | {duration(row.seconds)} |"


def _result(row: ThreatResult) -> str:
    skipped = f"; {row.skipped.replace('|', '/')}" if row.skipped else ""
    return f"{_RESULT[row.verdict]}{skipped}"


def _tried(tried: Tried) -> str:
    many = f" ({len(tried.cases)} cases)" if len(tried.cases) > 1 else ""
    ends = [f"{tried.count(outcome)} {outcome}" for outcome in ("failed", "skipped") if tried.count(outcome)]
    return f"- {tried.sentence}{many}{': **' + ', '.join(ends) + '**' if ends else ''}"


def _failures(row: ThreatResult) -> list[str]:
    lines: list[str] = []
    for case in row.cases:
        if case.outcome == "failed":
            where = f"{case.file}:{case.line} {case.name}".replace("`", "'")
            # Tildes: what a failure quotes may well have backquotes in it.
            lines += ["", f"`{where}`", "", "~~~~~~", case.detail.replace("~~~", "~ ~ ~"), "~~~~~~"]
    return lines
