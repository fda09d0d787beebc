"""SECURITY: detects prompt injection in the text of servers: tool poisoning, shadowing, obfuscation (T3, T12, T14).

Obfuscation and orders about other servers' tools are found by expressions, everything else by the injection classifier
(`scorer.py`). Advisory: a text without findings is not thereby safe; approval, pins and the gate hold without it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from toolbridge import __version__
from toolbridge.trust.audit.concepts import OTHER_TOOL, Mention, bit, mentions
from toolbridge.trust.audit.obfuscation import decoded_views, marks, obfuscations
from toolbridge.trust.audit.rules import (
    ALL_RULES,
    ENCODED,
    INCOMPLETE,
    NAMING,
    OUT_OF_PLACE,
    SAYS_HOW,
    SEVERITIES,
    SHADOWING,
    TOO_LONG,
    Rule,
    Severity,
)
from toolbridge.trust.audit.scorer import Passage, highest, meet, passages, reasons
from toolbridge.trust.sanitise import for_error, for_terminal
from toolbridge_codegen.catalog import ToolDefinition
from toolbridge_codegen.escaping import HIDDEN

# Findings in one text.

LONGEST_READ = 24_000
"""The detector reads only the two ends of a longer text."""
_EXCERPT = 160

_NEAR = 90
"""Characters between the name of another server's tool and what makes it an order."""

_IDENTIFIER = re.compile(r"[a-z0-9]+(?:[_.-]+[a-z0-9]+)*")
_QUALIFIED = re.compile(r"mcp__([a-z0-9-]{1,64}?)__")

# Confusables (homoglyphs): Cyrillic letters that look like Latin ones, and leetspeak.
_CONFUSABLES = str.maketrans("аеорсухіјѕԁһӏмтвкн", "aeopcyxijsdhlmtbkh")
_DIGITS = str.maketrans("013457@$", "oieastas")
_WITH_FIGURES = re.compile(r"(?<![\w-])(?=[a-z0-9]{0,20}[a-z])(?=[a-z0-9]{0,20}[01345])[a-z0-9]{3,20}(?![\w-])")
_LEAST_WITH_FIGURES = 3
_JOINED_WORDS = re.compile(r"[^\W_]{1,40}(?:[_-][^\W_]{1,40}){2,20}")


@dataclass(frozen=True, slots=True)
class TextFinding:
    """A finding in a text, and the rule that explains it."""

    rule: Rule
    excerpt: str
    severity: Severity
    why: str


@dataclass(frozen=True, slots=True)
class OtherTools:
    """Names of other servers and their tools, in lower case: a text of this server has no reason to mention them."""

    names: frozenset[str] = frozenset()
    """Tools. A name that is an ordinary word counts only where the text calls it a tool."""
    servers: frozenset[str] = frozenset()


def findings_in(text: str, others: OtherTools | None = None) -> tuple[TextFinding, ...]:
    """Returns the findings in a text and what it encodes, each rule at most once. Never raises; the time is linear.

    With `others`, mentions of their tools are findings too. Of a text longer than `LONGEST_READ` only the two ends are
    read, which is a finding itself.
    """
    if len(text) < 4 and text.isascii() and text.isprintable():
        return ()
    found: dict[str, TextFinding] = {}
    if len(text) > LONGEST_READ:
        found[TOO_LONG.id] = _finding(TOO_LONG, _excerpt(text, 0, 80))
        text = _ends(text)
    for sign in obfuscations(text):
        found.setdefault(sign.rule.id, _finding(sign.rule, _excerpt(text, sign.start, sign.end)))
    for start, end, decoded in decoded_views(text):
        found.setdefault(ENCODED.id, _finding(ENCODED, _excerpt(f"{text[start:end][:40]}… = {decoded}", 0, 200)))
        for finding in _findings_in_words(decoded, others):
            found.setdefault(finding.rule.id, finding)
    for finding in _findings_in_words(text, others):
        found.setdefault(finding.rule.id, finding)
    return tuple(found.values())


def _finding(rule: Rule, excerpt: str) -> TextFinding:
    return TextFinding(rule, excerpt, rule.severity, rule.why)


def _ends(text: str) -> str:
    return text if len(text) <= LONGEST_READ else text[: LONGEST_READ // 2] + "\n" + text[-LONGEST_READ // 2 :]


def scored_passages(text: str) -> Iterator[Passage]:
    """Yields the passages that the scorer is given of a text and its decoded views, for the fit of the weights."""
    text = _ends(text)
    for view in (text, *(decoded for _, _, decoded in decoded_views(text))):
        _, folded = _normalised(view)
        yield from passages(folded, mentions(folded) + marks(folded))


def _normalised(text: str) -> tuple[str, str]:
    """Returns two forms of a text, in which each place is the same: for excerpts, and for matching.

    The first is without hidden characters; the second also in lower case, with confusables, figures and joined words
    undone.
    """
    plain = _plain(text)
    lower = plain.lower()
    if len(lower) != len(plain):  # a few capitals are two letters when small
        plain = lower
    if _JOINED_WORDS.fullmatch(lower):  # a name may be a sentence, too
        lower = re.sub(r"[_-]", " ", lower)
    return plain, _without_figures(lower if lower.isascii() else _folded(lower))


def _findings_in_words(text: str, others: OtherTools | None) -> Iterator[TextFinding]:
    """Yields findings about tools of `others`, then the rules that explain the passage with the highest score."""
    plain, folded = _normalised(text)
    found = mentions(folded) + marks(folded)
    if others is not None and others.servers:
        named = list(_other_tools(folded, others))
        found = _outside(found, named)
        if named:
            is_order = meet(sorted([*found, *named]), (OTHER_TOOL,), SAYS_HOW, _NEAR)
            yield _finding(SHADOWING if is_order else NAMING, _excerpt(plain, *named[0][:2]))
    scored = highest(folded, found)
    if scored is None or scored.severity is None:
        return
    excerpt = _excerpt(plain, scored.passage.start, scored.passage.end)
    for rule in reasons(scored.passage):
        why = f"{rule.why}: {scored.because}" if rule is OUT_OF_PLACE else rule.why
        yield TextFinding(rule, excerpt, scored.severity, why)


def _plain(text: str) -> str:
    """Removes hidden characters, writes CRLF as LF, and applies NFKC, unless that more than doubles the length."""
    text = text.replace("\r\n", "\n")
    if text.isascii():
        return HIDDEN.sub("", text)
    text = HIDDEN.sub("", text)
    wide = unicodedata.normalize("NFKC", text)
    # One character may stand for eighteen.
    return wide if len(wide) <= 2 * len(text) else text


def _without_figures(lower: str) -> str:
    """Undoes leetspeak in a text in lower case, if at least three words are written so."""
    if len(_WITH_FIGURES.findall(lower)) < _LEAST_WITH_FIGURES:
        return lower
    return _WITH_FIGURES.sub(lambda match: match[0].translate(_DIGITS), lower)


_WORD_OF_BOTH = re.compile(r"\w{2,60}")
_LATIN = re.compile(r"[a-z]")


def _folded(lower: str) -> str:
    """Confusables (homoglyphs): writes Cyrillic look-alikes as Latin letters, in words that also have Latin letters."""

    def latin(match: re.Match[str]) -> str:
        word = match[0]
        return word.translate(_CONFUSABLES) if not word.isascii() and _LATIN.search(word) else word

    return _WORD_OF_BOTH.sub(latin, lower)


def _other_tools(text: str, others: OtherTools) -> Iterator[Mention]:
    """Yields where a text names another server, or a tool of one.

    A name that is an ordinary word counts only if it is called a tool, and a server only before "server".
    """
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
    """Whether a word is the name of another server or its tool, alone or qualified (`x.tool`, `mcp__server__tool`)."""
    if word in others.servers or word in others.names or word.rpartition(".")[2] in others.names:
        return True
    qualified = _QUALIFIED.match(word)
    return qualified is not None and qualified[1] in others.servers


def _outside(found: list[Mention], named: list[Mention]) -> list[Mention]:
    """Returns the mentions that begin outside of these names: `send_email` is no mention of sending."""
    inside = {place for start, end, _ in named for place in range(start, end)}
    return [mention for mention in found if mention[0] not in inside]


def _is_called_a_tool(text: str, start: int, end: int) -> bool:
    """Whether the text calls the word at this place a tool: `the search tool`, `tool search`, or a quoted name."""
    around = text[max(0, start - 7) : start] + "|" + text[end : end + 7]
    # "Use a web search tool" names no tool: another server's tool is "the search tool" or in quotes.
    return any(sign in around for sign in ("tool |", "tool `|", "the | tool", "|` tool", "|' tool", '|" tool'))


def _excerpt(text: str, start: int, end: int) -> str:
    """Returns the place with its surroundings, on one line, cut (`…`), with hidden characters escaped."""
    start = max(0, start - 30)
    cut = text[start : min(len(text), max(end + 30, start + 60), start + _EXCERPT)]
    words = " ".join(for_terminal(cut.encode("utf-8", "backslashreplace").decode()).split())
    return ("…" if start else "") + words[: 2 * _EXCERPT] + ("…" if start + len(cut) < len(text) else "")


MOST_TEXTS = 50_000
MOST_CHARACTERS = 8_000_000
_DEEPEST = 100
"""Levels that a place names; deeper text is reported at this level."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Text that an honest server has no reason to write."""

    rule: str
    severity: Severity
    server: str
    place: str
    """`instructions`, or such as `serverInfo/title` or `tools/get_forecast/description`."""
    excerpt: str
    """On one line, with hidden characters escaped."""
    why: str
    tool: str | None = None
    """The tool whose text it is, by its own name; None for text about the server itself."""


def audit(
    server: str,
    tools: Iterable[ToolDefinition],
    instructions: str = "",
    other_tools: Mapping[str, Iterable[str]] | None = None,
    about: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """Audits every string that a server supplies; returns the findings, the gravest first.

    `other_tools` are the names of the tools of the other servers, by server: text that mentions them is found, too.
    `about` are further texts about the server itself, by place (`Listing.about`). A listing beyond `MOST_TEXTS` or
    `MOST_CHARACTERS` is read up to there, with a high finding that says so.
    """
    tools = tuple(tools)
    others = _others(server, tools, other_tools or {})
    known: dict[str, tuple[TextFinding, ...]] = {}  # most strings are in a listing many times: "string", "type"
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
    """Yields every string that a server supplies, after its place: keys and values, at any depth."""
    for _, place, text in _texts(tools, instructions, {}):
        yield place, text


def _texts(
    tools: Iterable[ToolDefinition], instructions: str, about: Mapping[str, str]
) -> Iterator[tuple[str | None, str, str]]:
    """Yields the tool (None for text about the server), the place and the text of every string; `about` comes last."""
    if instructions:
        yield None, "instructions", instructions
    for tool in tools:
        for place, text in _tool_texts(tool):
            yield tool.name, place, text
    # At the end: no model reads it, so it must not use up the bounds of the tools.
    for place, text in about.items():
        yield None, place, text


def _tool_texts(tool: ToolDefinition) -> Iterator[tuple[str, str]]:
    """Yields the place and the text of every string in a definition."""
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
    """Yields the place and the text of every string in a JSON value: values and keys, at any depth.

    Below `_DEEPEST` levels, strings share the place of their ancestor there, and each container yields an empty text.
    """
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
    """Returns the names of all other servers and of their tools, without names that this server's tools have too."""
    elsewhere = {name: list(names) for name, names in other_tools.items() if name != server}
    own = {tool.name.lower() for tool in tools}
    return OtherTools(
        frozenset(tool.lower() for names in elsewhere.values() for tool in names) - own,
        frozenset(name.lower() for name in elsewhere),
    )


def _shown(place: str) -> str:
    return for_error(place, limit=200)


def counted(findings: Iterable[Finding]) -> str:
    """Counts the findings of each severity, the gravest first: `2 high, 1 low`; empty for none."""
    counts = Counter(finding.severity for finding in findings)
    return ", ".join(f"{counts[severity]} {severity}" for severity in reversed(SEVERITIES) if counts[severity])


def at_least(findings: Iterable[Finding], severity: Severity) -> tuple[Finding, ...]:
    """Returns the findings of this severity or a graver one, in their order."""
    least = SEVERITIES.index(severity)
    return tuple(finding for finding in findings if SEVERITIES.index(finding.severity) >= least)


# Findings as JSON, and as SARIF 2.1.0 for code scanning.

_LEVELS: Mapping[Severity, str] = {"high": "error", "medium": "warning", "low": "note"}
# Code scanning shows 7 and more as high.
_SCORES: Mapping[Severity, str] = {"high": "8.0", "medium": "5.0", "low": "2.0"}


def finding_as_json(finding: Finding) -> dict[str, str]:
    """A finding as JSON."""
    return {name: getattr(finding, name) for name in ("rule", "severity", "server", "place", "excerpt", "why")}


def findings_as_sarif(findings: Sequence[Finding], files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Returns a SARIF log with one run, and a result for each finding.

    `files` names the files that listings were read from, by server; of an absolute path only the file name is written.
    """
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
    """Returns a finding as a SARIF result; `number` is its rule's index. The fingerprint omits the excerpt."""
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
    """Returns a relative path percent-encoded; of a path that begins with a slash or backslash only the file name."""
    from urllib.parse import quote

    # The name alone of an absolute path: a report must not tell the layout of this machine.
    return quote(path.replace("\\", "/").rpartition("/")[2] if path.startswith(("/", "\\")) else path)
