"""SECURITY: what in a server's own words looks like an attack on the model that reads them.

Advisory: it finds what is said in known ways, and a text without findings is not thereby safe. What holds without it
is that nothing runs unapproved, unpinned or past the gate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolbridge.trust.audit_rules import OTHER_TOOL_RULES, RULES, SEVERITIES, Rule, Severity
from toolbridge.trust.audit_signs import SIGN_RULES
from toolbridge.trust.audit_text import OtherTools, TextFinding, findings_in
from toolbridge.trust.sanitise import for_error
from toolbridge_codegen.catalog import ToolDefinition

INCOMPLETE = Rule("incomplete", "high", "has more text than the audit reads; the rest was not looked at")
ALL_RULES: tuple[Rule, ...] = (*RULES, *OTHER_TOOL_RULES, *SIGN_RULES, INCOMPLETE)
"""Every rule there is, for reports."""

MOST_TEXTS = 50_000
MOST_CHARACTERS = 8_000_000
_DEEPEST = 100
"""Levels that a place names: what is deeper is read, too, and said to be there."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that an honest server has no reason to write."""

    rule: str
    severity: Severity
    server: str
    place: str
    """`instructions`, or such as `serverInfo/title` or `tools/get_forecast/description`."""
    excerpt: str
    """On one line, with everything hidden made visible."""
    why: str
    tool: str | None = None
    """The tool whose text it is, by its own name; None for what the server says of itself."""


def audit(
    server: str,
    tools: Iterable[ToolDefinition],
    instructions: str = "",
    other_tools: Mapping[str, Iterable[str]] | None = None,
    about: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """What is found in every string that a server supplies, the gravest first.

    `other_tools` are the names of the tools of the other servers, by server: a text that speaks of them is found, too.
    `about` are further texts about the server itself, by place (`Listing.about`).
    """
    tools = tuple(tools)
    others = _others(server, tools, other_tools or {})
    known: dict[str, tuple[TextFinding, ...]] = {}  # most strings of a listing are there many times: "string", "type"
    findings: list[Finding] = []
    characters = 0
    for texts, (tool, place, text) in enumerate(_texts(tools, instructions, about or {}), start=1):
        characters += len(text)
        if texts > MOST_TEXTS or characters > MOST_CHARACTERS:
            rule = INCOMPLETE
            findings.append(Finding(rule.id, rule.severity, server, _shown(place), "", rule.why, tool))
            break
        found = known.get(text)
        if found is None:
            found = known[text] = findings_in(text, others)
        findings += [
            Finding(each.rule.id, each.severity, server, _shown(place), each.excerpt, each.why, tool) for each in found
        ]
    # Stable: within a severity they stay in the order of the listing.
    return tuple(sorted(findings, key=lambda finding: -SEVERITIES.index(finding.severity)))


def listing_texts(tools: Iterable[ToolDefinition], instructions: str = "") -> Iterator[tuple[str, str]]:
    """Every string that a server supplies, with its place: keys and values, at any depth."""
    for _, place, text in _texts(tools, instructions, {}):
        yield place, text


def _texts(
    tools: Iterable[ToolDefinition], instructions: str, about: Mapping[str, str]
) -> Iterator[tuple[str | None, str, str]]:
    if instructions:
        yield None, "instructions", instructions
    for tool in tools:
        for place, text in _tool_texts(tool):
            yield tool.name, place, text
    # At the end: no model is given it, and it must not take up what is read of the tools.
    for place, text in about.items():
        yield None, place, text


def _tool_texts(tool: ToolDefinition) -> Iterator[tuple[str, str]]:
    begin = f"tools/{tool.name}"
    yield f"{begin}/name", tool.name
    if tool.title:
        yield f"{begin}/title", tool.title
    if tool.description:
        yield f"{begin}/description", tool.description
    yield from _strings(f"{begin}/inputSchema", tool.input_schema)
    if tool.output_schema is not None:
        yield from _strings(f"{begin}/outputSchema", tool.output_schema)
    if tool.annotations:
        yield from _strings(f"{begin}/annotations", tool.annotations)


def _strings(begin: str, value: object) -> Iterator[tuple[str, str]]:
    # Not recursive: the depth is the server's choice.
    waiting: list[tuple[str, object, int]] = [(begin, value, 0)]
    while waiting:
        place, value, depth = waiting.pop()
        if isinstance(value, str):
            yield place, value
            continue
        if isinstance(value, Mapping):
            members = dict(cast("Mapping[str, Any]", value))
        elif isinstance(value, (list, tuple)):
            members = {str(number): element for number, element in enumerate(cast("list[Any]", value))}
        else:
            continue
        if depth >= _DEEPEST:
            yield place, ""  # counted, so that a listing of nothing but depth ends, too
        places = {key: f"{place}/{key}" if depth < _DEEPEST else place for key in members}
        if isinstance(value, Mapping):
            for key, inner in places.items():
                yield inner, str(key)
        waiting.extend((places[key], member, depth + 1) for key, member in reversed(members.items()))


def _others(server: str, tools: tuple[ToolDefinition, ...], other_tools: Mapping[str, Iterable[str]]) -> OtherTools:
    elsewhere = {name: list(names) for name, names in other_tools.items() if name != server}
    own = {tool.name.lower() for tool in tools}
    return OtherTools(
        frozenset(tool.lower() for names in elsewhere.values() for tool in names) - own,
        frozenset(name.lower() for name in elsewhere),
    )


def _shown(place: str) -> str:
    return for_error(place, limit=200)


def counted(findings: Iterable[Finding]) -> str:
    """How many there are of each severity: `2 high, 1 low`."""
    counts = Counter(finding.severity for finding in findings)
    return ", ".join(f"{counts[severity]} {severity}" for severity in reversed(SEVERITIES) if counts[severity])


def at_least(findings: Iterable[Finding], severity: Severity) -> tuple[Finding, ...]:
    """Those of this severity or a graver one."""
    least = SEVERITIES.index(severity)
    return tuple(finding for finding in findings if SEVERITIES.index(finding.severity) >= least)
