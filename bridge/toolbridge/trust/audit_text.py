"""SECURITY: the findings in one text: obfuscation, orders about other servers' tools, and what the scorer finds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from toolbridge.trust.audit_concepts import OTHER_TOOL, Mention, bit, mentions
from toolbridge.trust.audit_marks import marks
from toolbridge.trust.audit_rules import NAMING, OUT_OF_PLACE, SAYS_HOW, SHADOWING, Rule, Severity
from toolbridge.trust.audit_signs import ENCODED, TOO_LONG, decoded_texts, signs
from toolbridge.trust.audit_weighing import Passage, highest, meet, passages, reasons
from toolbridge.trust.sanitise import for_terminal
from toolbridge_codegen.hidden_characters import HIDDEN

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
