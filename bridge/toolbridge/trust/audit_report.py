"""Findings for programs: JSON of our own, and SARIF 2.1.0 for code scanning."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from toolbridge.trust.audit import ALL_RULES, Finding
from toolbridge.trust.audit_rules import Severity
from toolbridge.version import __version__

_LEVELS: Mapping[Severity, str] = {"high": "error", "medium": "warning", "low": "note"}
# What code scanning sorts by: 7 and more is shown as high.
_SCORES: Mapping[Severity, str] = {"high": "8.0", "medium": "5.0", "low": "2.0"}


def finding_as_json(finding: Finding) -> dict[str, str]:
    """One finding."""
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "server": finding.server,
        "place": finding.place,
        "excerpt": finding.excerpt,
        "why": finding.why,
    }


def findings_as_sarif(findings: Sequence[Finding], files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A SARIF log with one run; `files` has the file that a server's listing was read from, where it was."""
    numbers = {rule.id: number for number, rule in enumerate(ALL_RULES)}
    rules = [
        {
            "id": rule.id,
            "name": "".join(part.title() for part in rule.id.split("-")),
            "shortDescription": {"text": f"The text {rule.why}."},
            "defaultConfiguration": {"level": _LEVELS[rule.severity]},
            "properties": {"tags": ["security", "mcp"], "security-severity": _SCORES[rule.severity]},
        }
        for rule in ALL_RULES
    ]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "toolbridge", "semanticVersion": __version__, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, numbers[finding.rule], files or {}) for finding in findings],
            }
        ],
    }


def _result(finding: Finding, number: int, files: Mapping[str, str]) -> dict[str, Any]:
    location: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": f"{finding.server}/{finding.place}", "kind": "member"}]
    }
    if finding.server in files:
        location["physicalLocation"] = {"artifactLocation": {"uri": _uri(files[finding.server])}}
    text = f"{finding.server}: {finding.place} {finding.why}: {finding.excerpt}"
    identity = "\0".join((finding.rule, finding.server, finding.place))
    return {
        "ruleId": finding.rule,
        "ruleIndex": number,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [location],
        "partialFingerprints": {"place/v1": hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()},
    }


def _uri(path: str) -> str:
    from urllib.parse import quote

    # Of a relative path: with an absolute one, the report would tell where this machine keeps things.
    return quote(path.replace("\\", "/").rpartition("/")[2] if path.startswith(("/", "\\")) else path)
