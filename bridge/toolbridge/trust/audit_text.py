"""SECURITY: one text against all rules."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from toolbridge.trust.audit_concepts import Mention, bit, first_matches, mentions
from toolbridge.trust.audit_marks import marks
from toolbridge.trust.audit_rules import OUT_OF_PLACE, RULES, Rule
from toolbridge.trust.audit_signs import ENCODED, TOO_LONG, decoded_texts, signs
from toolbridge.trust.audit_weighing import Passage, heaviest, passages
from toolbridge.trust.audit_weights import LEAST_FOR_RULES
from toolbridge.trust.sanitise import for_terminal
from toolbridge_codegen.hidden_characters import HIDDEN

LONGEST_READ = 24_000
"""Of a longer text only the two ends are read."""
_EXCERPT = 160

_BY_ID: Mapping[str, Rule] = {rule.id: rule for rule in RULES}
_NAMING = frozenset({"shadowing", "names-other-server"})
"""Rules that find names, which are not weighed."""
_NEAR = {rule.id: rule.near for rule in RULES if rule.near}

_IDENTIFIER = re.compile(r"[a-z0-9]+(?:[_.-]+[a-z0-9]+)*")
_QUALIFIED = re.compile(r"mcp__([a-z0-9-]{1,64}?)__")

# The look-alikes of Latin letters that are used to get past rules such as these.
_LOOK_ALIKES = str.maketrans("аеорсухіјѕԁһӏмтвкн", "aeopcyxijsdhlmtbkh")
_DIGITS = str.maketrans("013457@$", "oieastas")
_WITH_FIGURES = re.compile(r"(?<![\w-])(?=[a-z0-9]{0,20}[a-z])(?=[a-z0-9]{0,20}[01345])[a-z0-9]{3,20}(?![\w-])")
_LEAST_WITH_FIGURES = 3
_NO_LETTER = re.compile(r"[^a-z]+")
# Words pulled apart or run together still spell these.
_SPELLED = {
    "instruction-override": (
        "ignorepreviousinstructions",
        "ignoreallpreviousinstructions",
        "ignoreallpriorinstructions",
        "ignoretheaboveinstructions",
        "ignoreallinstructions",
        "ignoreyourinstructions",
        "disregardpreviousinstructions",
        "disregardallpreviousinstructions",
        "forgetallpreviousinstructions",
        "forgetpreviousinstructions",
        "overridesystemprompt",
        "revealyoursystemprompt",
        "printyoursystemprompt",
    ),
    "secrecy": ("donottelltheuser", "donttelltheuser", "nevertelltheuser", "hidethisfromtheuser"),
}


@dataclass(frozen=True, slots=True)
class TextFinding:
    """What a rule has found in a text."""

    rule: Rule
    excerpt: str
    details: str = ""
    """What there is to add to the rule's reason."""

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


def weighed_passages(text: str) -> Iterator[Passage]:
    """The passages of a text as they are weighed, for whoever fits the weights."""
    _, folded = _read(text)
    return passages(folded, mentions(folded) + marks(folded))


def _read(text: str) -> tuple[str, str]:
    """The text without what is hidden in it, and the same in small letters with all undone that disguises words."""
    plain = _plain(text)
    lower = plain.lower()
    if len(lower) != len(plain):  # a few capitals are two letters when small
        plain = lower
    return plain, without_figures(lower if lower.isascii() else _folded(lower))


def _said(text: str, others: OtherTools | None) -> Iterator[TextFinding]:
    """What its words say, with everything undone that only hides them."""
    plain, folded = _read(text)
    found = mentions(folded) + marks(folded)
    if others is not None and others.servers:
        named = list(_other_tools(folded, others))
        found = [*_outside(found, named), *named]
    weighed = heaviest(folded, found)
    spans = first_matches(_NEAR, found)
    if weighed is None or weighed.score < LEAST_FOR_RULES:
        # Words that are known from attacks, in a text that otherwise speaks like any tool's.
        spans = {name: span for name, span in spans.items() if name in _NAMING}
    for rule, pattern in _patterns():
        if rule.id not in spans and (match := pattern.search(folded)):
            spans[rule.id] = match.span()
    letters = _NO_LETTER.sub("", folded.translate(_DIGITS))
    for name, phrases in _SPELLED.items():
        if name not in spans and any(phrase in letters for phrase in phrases):
            spans[name] = (0, len(folded))
    if "shadowing" in spans:  # it says the same and more
        spans.pop("names-other-server", None)
    for name, (start, end) in spans.items():
        yield TextFinding(_BY_ID[name], _excerpt(plain, start, end))
    # What a rule has said need not be said again in general.
    if weighed is not None and weighed.score >= 0 and not spans.keys() - {"names-other-server"}:
        yield TextFinding(OUT_OF_PLACE, _excerpt(plain, weighed.start, weighed.end), f": {weighed.because}")


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


@cache
def _patterns() -> tuple[tuple[Rule, re.Pattern[str]], ...]:
    return tuple((rule, re.compile(pattern, re.MULTILINE)) for rule in RULES for pattern in rule.patterns)


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
            yield start, end, bit("other tool")


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
