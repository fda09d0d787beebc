"""SECURITY: what in a server's own words looks like an attack on the model that reads them.

Advisory: it finds what is said in known ways, and a text without findings is not thereby safe. What holds without it
is that nothing runs unapproved, unpinned or past the gate.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from toolbridge.trust.audit.concepts import OTHER_TOOL, Mention, bit, mentions
from toolbridge.trust.audit.obfuscation import ENCODED, SIGN_RULES, TOO_LONG, decoded_texts, marks, signs
from toolbridge.trust.audit.rules import (
    NAMING,
    OTHER_TOOL_RULES,
    OUT_OF_PLACE,
    RULES,
    SAYS_HOW,
    SEVERITIES,
    SHADOWING,
    Rule,
    Severity,
)
from toolbridge.trust.audit.scorer import Passage, highest, meet, passages, reasons
from toolbridge.trust.text.sanitise import for_error, for_terminal
from toolbridge.version import __version__
from toolbridge_codegen.catalog import ToolDefinition
from toolbridge_codegen.escaping import HIDDEN

# SECURITY: the findings in one text: obfuscation, orders about other servers' tools, and what the scorer finds.


LONGEST_READ = 24_000
"""Of a longer text only the two ends are read."""
_EXCERPT = 160

_NEAR = 90
"""Characters between the name of another server's tool and what makes it an order."""

_IDENTIFIER = re.compile(r"[a-z0-9]+(?:[_.-]+[a-z0-9]+)*")
_QUALIFIED = re.compile(r"mcp__([a-z0-9-]{1,64}?)__")

# The look-alikes of Latin letters that are used to get past rules such as these.
_LOOK_ALIKES = str.maketrans("аеорсухіјѕԁһӏмтвкн", "aeopcyxijsdhlmtbkh")
_DIGITS = str.maketrans("013457@$", "oieastas")
_WITH_FIGURES = re.compile(r"(?<![\w-])(?=[a-z0-9]{0,20}[a-z])(?=[a-z0-9]{0,20}[01345])[a-z0-9]{3,20}(?![\w-])")
_LEAST_WITH_FIGURES = 3
_JOINED_WORDS = re.compile(r"[^\W_]{1,40}(?:[_-][^\W_]{1,40}){2,20}")


@dataclass(frozen=True, slots=True)
class TextFinding:
    """A finding in a text, and the rule that explains it."""

    rule: Rule
    excerpt: str
    details: str = ""
    """What there is to add to the rule's reason."""
    score: Severity | None = None
    """The scorer's grade, for what it has found."""

    @property
    def severity(self) -> Severity:
        """The scorer's grade, else the rule's."""
        return self.score or self.rule.severity

    @property
    def why(self) -> str:
        """The rule's reason, and what there is to add."""
        return self.rule.why + self.details


@dataclass(frozen=True, slots=True)
class OtherTools:
    """Names that belong to other servers: a text of this one has no reason to speak of them."""

    names: frozenset[str] = frozenset()
    """In lower case. A name that is an ordinary word counts only where it is called a tool."""
    servers: frozenset[str] = frozenset()


def findings_in(text: str, others: OtherTools | None = None) -> tuple[TextFinding, ...]:
    """What the rules find in a text: each rule at most once. Never raises, and reads each part of it a few times."""
    if len(text) < 4 and text.isascii() and text.isprintable():
        return ()
    found: dict[str, TextFinding] = {}
    if len(text) > LONGEST_READ:
        found[TOO_LONG.id] = TextFinding(TOO_LONG, _excerpt(text, 0, 80))
        text = text[: LONGEST_READ // 2] + "\n" + text[-LONGEST_READ // 2 :]
    for sign in signs(text):
        found.setdefault(sign.rule.id, TextFinding(sign.rule, _excerpt(text, sign.start, sign.end)))
    for start, end, decoded in decoded_texts(text):
        found.setdefault(ENCODED.id, TextFinding(ENCODED, _excerpt(f"{text[start:end][:40]}… = {decoded}", 0, 200)))
        for finding in _said(decoded, others):
            found.setdefault(finding.rule.id, finding)
    for finding in _said(text, others):
        found.setdefault(finding.rule.id, finding)
    return tuple(found.values())


def scored_passages(text: str) -> Iterator[Passage]:
    """The passages of a text as they are scored, decoded ones too, for the fit of the weights."""
    if len(text) > LONGEST_READ:
        text = text[: LONGEST_READ // 2] + "\n" + text[-LONGEST_READ // 2 :]
    for each in (text, *(decoded for _, _, decoded in decoded_texts(text))):
        _, folded = _read(each)
        yield from passages(folded, mentions(folded) + marks(folded))


def _read(text: str) -> tuple[str, str]:
    """The text without what is hidden in it, and the same in small letters with all undone that disguises words."""
    plain = _plain(text)
    lower = plain.lower()
    if len(lower) != len(plain):  # a few capitals are two letters when small
        plain = lower
    if _JOINED_WORDS.fullmatch(lower):  # a name may be a sentence, too
        lower = re.sub(r"[_-]", " ", lower)
    return plain, without_figures(lower if lower.isascii() else _folded(lower))


def _said(text: str, others: OtherTools | None) -> Iterator[TextFinding]:
    """What its words say, with everything undone that only hides them."""
    plain, folded = _read(text)
    found = mentions(folded) + marks(folded)
    if others is not None and others.servers:
        named = list(_other_tools(folded, others))
        found = _outside(found, named)
        if named:
            is_order = meet(sorted([*found, *named]), (OTHER_TOOL,), SAYS_HOW, _NEAR)
            yield TextFinding(SHADOWING if is_order else NAMING, _excerpt(plain, *named[0][:2]))
    scored = highest(folded, found)
    if scored is None or scored.severity is None:
        return
    excerpt = _excerpt(plain, scored.passage.start, scored.passage.end)
    for rule in reasons(scored.passage):
        details = f": {scored.because}" if rule is OUT_OF_PLACE else ""
        yield TextFinding(rule, excerpt, details, scored.severity)


def _plain(text: str) -> str:
    text = text.replace("\r\n", "\n")
    if text.isascii():
        return HIDDEN.sub("", text)
    text = HIDDEN.sub("", text)
    wide = unicodedata.normalize("NFKC", text)
    # One character may stand for eighteen.
    return wide if len(wide) <= 2 * len(text) else text


def without_figures(lower: str) -> str:
    """Figures that stand for letters, as letters, where several words are written so."""
    if len(_WITH_FIGURES.findall(lower)) < _LEAST_WITH_FIGURES:
        return lower
    return _WITH_FIGURES.sub(lambda match: match[0].translate(_DIGITS), lower)


_WORD_OF_BOTH = re.compile(r"\w{2,60}")
_LATIN = re.compile(r"[a-z]")


def _folded(lower: str) -> str:
    """Look-alike letters in words that also have Latin ones, as the Latin ones they look like."""

    def latin(match: re.Match[str]) -> str:
        word = match[0]
        return word.translate(_LOOK_ALIKES) if not word.isascii() and _LATIN.search(word) else word

    return _WORD_OF_BOTH.sub(latin, lower)


def _other_tools(text: str, others: OtherTools) -> Iterator[Mention]:
    telling = {word for word in set(_IDENTIFIER.findall(text)) if _may_name(word, others)}
    if not telling:
        return
    for match in _IDENTIFIER.finditer(text):
        word, (start, end) = match[0], match.span()
        if word not in telling:
            continue
        if word in others.servers:
            named = text[end : end + 9].startswith((" server", "-server", "'s server"))
        else:
            named = any(mark in word for mark in "_-.") or _is_called_a_tool(text, start, end)
        if named:
            yield start, end, bit(OTHER_TOOL)


def _may_name(word: str, others: OtherTools) -> bool:
    if word in others.servers or word in others.names or word.rpartition(".")[2] in others.names:
        return True
    qualified = _QUALIFIED.match(word)
    return qualified is not None and qualified[1] in others.servers


def _outside(found: list[Mention], named: list[Mention]) -> list[Mention]:
    """Without the words that are part of a name: `send_email` does not say that anything is sent."""
    inside = {place for start, end, _ in named for place in range(start, end)}
    return [mention for mention in found if mention[0] not in inside]


def _is_called_a_tool(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - 7) : start] + "|" + text[end : end + 7]
    # "Use a web search tool" names none: somebody else's tool is "the search tool" or in quotes.
    return any(sign in around for sign in ("tool |", "tool `|", "the | tool", "|` tool", "|' tool", '|" tool'))


def _excerpt(text: str, start: int, end: int) -> str:
    """The place with something around it, on one line, everything hidden made visible."""
    start = max(0, start - 30)
    cut = text[start : min(len(text), max(end + 30, start + 60), start + _EXCERPT)]
    words = " ".join(for_terminal(cut.encode("utf-8", "backslashreplace").decode()).split())
    return ("…" if start else "") + words[: 2 * _EXCERPT] + ("…" if start + len(cut) < len(text) else "")


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


# Findings for programs: JSON of our own, and SARIF 2.1.0 for code scanning.


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
