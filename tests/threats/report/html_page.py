"""The report as one page that needs nothing else: no script, no font, no picture from anywhere."""

from __future__ import annotations

from html import escape

from threats.report.case_results import ThreatResult, Tried
from threats.report.page_style import STYLE
from threats.report.summary import Report, duration

_RESULT = {"holds": "holds", "broken": "broken", "untested": "too few cases"}


def html_page(report: Report) -> str:
    """All of it."""
    facts = report.facts
    about = f"toolbridge {facts.version} · Python {facts.python} · {facts.system} · {facts.when}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>toolbridge: threat report</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<header>
<h1>Threat report</h1>
<p class="about">{escape(about)}</p>
</header>
<p class="verdict {"good" if report.is_whole else "bad"}">{escape(report.sentence)}</p>
<dl class="figures">
{_figure("threats held", f"{len(report.threats('holds'))} / {len(report.rows)}")}
{_figure("cases", f"{sum(len(row.cases) for row in report.rows):,}")}
{_figure("failed", str(report.count("failed")))}
{_figure("skipped", str(report.count("skipped")))}
{_figure("time", duration(facts.seconds))}
</dl>
<p>Each row is one threat of <code>docs/THREAT-MODEL.md</code>. Open it to see what was tried. A test here fails when
the mitigation is taken away: <code>make threats-selftest</code> takes each away in turn.</p>
<div class="head" aria-hidden="true"><span>ID</span><span>Threat</span><span>Severity</span>
<span class="number">Tests</span><span class="number">Cases</span><span>Result</span>
<span class="number">Time</span></div>
{"".join(map(_row, report.rows))}
</main>
</body>
</html>
"""


def _figure(label: str, value: str) -> str:
    return f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>"


def _row(row: ThreatResult) -> str:
    threat = row.threat
    is_open = ' open=""' if row.verdict != "holds" or row.skipped else ""
    colour = "skipped" if row.skipped and row.verdict == "holds" else row.verdict
    result = _RESULT[row.verdict] + (f", {row.count('skipped')} skipped" if row.skipped else "")
    return f"""<details id="{threat.id}"{is_open}>
<summary><span class="id">{threat.id}</span><span class="title">{escape(threat.title)}</span>
<span class="severity {threat.severity}">{threat.severity}</span><span class="number">{len(row.tried)}</span>
<span class="number">{len(row.cases)}</span><span class="result {colour}">{result}</span>
<span class="number">{duration(row.seconds)}</span></summary>
<div class="tried"><p class="promise">{escape(threat.promise)}</p>
<ul>{"".join(map(_tried, row.tried)) or "<li>nothing</li>"}</ul>{_skipped(row)}{_failures(row)}</div>
</details>
"""


def _tried(tried: Tried) -> str:
    marks = ""
    if failed := tried.count("failed"):
        marks += f' <span class="result broken">{failed} failed</span>'
    if skipped := tried.count("skipped"):
        reasons = sorted({case.detail for case in tried.cases if case.outcome == "skipped"})
        marks += f' <span class="result skipped" title="{escape("; ".join(reasons))}">{skipped} skipped</span>'
    many = f' <span class="many">{len(tried.cases)} cases</span>' if len(tried.cases) > 1 else ""
    return f"<li>{escape(tried.sentence)}{many}{marks}</li>"


def _skipped(row: ThreatResult) -> str:
    return f"<p>{escape(row.skipped)}</p>" if row.skipped else ""


def _failures(row: ThreatResult) -> str:
    failures = [case for case in row.cases if case.outcome == "failed"]
    return "".join(
        f"<p><code>{escape(f'{case.file}:{case.line} {case.name}')}</code></p><pre>{escape(case.detail)}</pre>"
        for case in failures
    )
