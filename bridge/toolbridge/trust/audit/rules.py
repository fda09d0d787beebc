"""SECURITY: the audit's rules as data: the reasons and severities of findings.

The scorer alone decides what is a finding in words, and its grade. A rule in `RULES` explains such a finding: it holds
for a passage with all features of one of its `signs`. Its expressions are features of the scorer under the rule's
name; each begins with a literal or a small class and repeats only with bounds, so that the time is linear (T16).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high")
"""From the least."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Text that an honest server has no reason to write. Examples: `fixtures/hostile/texts/rule_examples.json`."""

    id: str
    severity: Severity
    """The severity of its findings; for a rule with `signs` the least, which the score may raise."""
    why: str
    signs: tuple[tuple[str, ...], ...] = ()
    """Alternatives: features of the scorer, without their `=`, that must all be in the passage."""
    patterns: tuple[str, ...] = ()
    """Expressions on the text in lower case."""


OUT_OF_PLACE = Rule("out-of-place", "medium", "speaks of several things together that are not a tool's job")
"""The reason where no other rule holds."""

RULES: tuple[Rule, ...] = (
    Rule(
        *("instruction-override", "medium", "asks the model to drop the instructions it was given"),
        signs=(
            ("dropping rules + rules",),
            ("dropping rules", "its instructions"),
            ("rules + what came before", "no"),
            ("from now on", "obeying"),
            ("no + obeying", "the user"),
        ),
    ),
    Rule(
        *("role-override", "medium", "tells the model to be somebody else"),
        signs=(("another role",), ("special rights + addressee",)),
    ),
    Rule(
        *("chat-markup", "medium", "imitates the marks between a model's instructions, its user and itself"),
        signs=(("chat-markup",),),
        patterns=(
            r"<\|[\w ]{1,30}\|>",
            r"\[/?inst\]|<</?sys>>",
            r"^[ \t]{0,8}(?:#{1,4} )?(?:system|human|assistant)[ \t]?:[ \t]",
            r"^[ \t]{0,8}#{1,4} (?:instruction|response)s?:[ \t]*$",
            r"</?(?:system|assistant|human)>",
            r"\{\{[#/]?[ ]?(?:system|assistant)",
        ),
    ),
    Rule(
        *("hidden-directive", "medium", "puts directions for the model where a person hardly sees them"),
        signs=(("hidden-directive",),),
        patterns=(
            r"</?[ ]?[\w-]{0,30}(?:important|secret|instruction|directive|override|hidden|llm|confidential|system[-_])"
            r"[\w-]{0,30}(?:[ ][^<>\n]{0,100})?>",
            r"<[ ]?[\w-]{1,30}[ ][\w-]{1,20}=[\"']?(?:llm|ai|assistant|model|agent)s?[\"']?[ >]",
            r"<!--[ \t\n]{0,20}(?:[^\s>-]{1,40}[ \t\n]{1,20}){4}",
            r"<[\w-]{0,20}(?:agent|assistant|llm|model|ai)[_-][\w-]{1,30}>",
            r"\[//\]:[ ]?#",
            r"style[ ]?=[ ]?[\"'][^\"'\n]{0,60}"
            r"(?:display:[ ]?none|visibility:[ ]?hidden|font-size:[ ]?[01]|opacity:[ ]?0)",
            r"<details>[ ]?<summary>[ ]?</summary>",
            r"\[[ ]?(?:system|hidden|admin|secret)(?: [\w ]{1,30})?\]",
        ),
    ),
    Rule(
        *("addressed-to-the-model", "medium", "gives orders to the model instead of describing a tool"),
        signs=(("the model", "obligation"),),
    ),
    Rule(
        *("secrecy", "medium", "asks the model to keep something from its user"),
        signs=(("no + telling",), ("silence",)),
    ),
    Rule(
        "data-exfiltration",
        "medium",
        "asks for what the model knows of its user, its instructions or other tools, or to send it somewhere",
        signs=(
            ("passing on + what was said",),
            ("passing on + what is private",),
            ("a field + what was said",),
            ("a field + what is private",),
            ("getting it out of the user + what is private",),
            ("reading + what is private", "passing on + somewhere"),
            ("its instructions", "putting it in"),
            ("a link with data",),
        ),
    ),
    Rule(
        *("fixed-destination", "medium", "has something sent to an address that is written into the text"),
        signs=(("passing on + somewhere",),),
    ),
    Rule(
        *("credential-access", "medium", "names a file that holds credentials, and asks to read it or pass it on"),
        signs=(
            ("a file of secrets", "reading"),
            ("a file of secrets", "sending it on"),
            ("a file of secrets", "putting it in"),
        ),
    ),
    Rule(
        *("consent-bypass", "medium", "tells the model that nobody has to be asked"),
        signs=(("no + consent",), ("consent is there",)),
    ),
    Rule(
        *("pressure", "medium", "threatens or hurries the model into a call"),
        signs=(("threat", "you"), ("authority", "this text's own"), ("authority", "obligation")),
    ),
    Rule(
        *("tool-preference", "medium", "pushes itself in front of other tools"),
        signs=(("ranking + tools",), ("blame + tools",), ("each time", "this text's own"), ("no", "other tools")),
    ),
    Rule(
        *("obey-results", "medium", "asks the model to treat what a tool returns as orders"),
        signs=(("obeying", "what comes back"), ("running things + what comes back", "you")),
    ),
    Rule(
        *("command-execution", "medium", "contains a command that fetches and runs code, or destroys files"),
        signs=(("command-execution",), ("doing + shell code",)),
        patterns=(
            r"(?:curl|wget|iwr|fetch)\b[^\n|]{0,200}\|[ ]?(?:sudo[ ])?(?:ba|z|da)?sh\b",
            r"(?:exec|eval)\([^\n]{0,80}(?:urlopen|requests\.get|fetch\(|atob\(|b64decode)",
            r">>?[ ]?~/\.(?:ssh|bashrc|zshrc|profile)",
            r"[ ]-c [\"']?\$\((?:curl|wget)",
            r"chmod (?:-r )?777\b",
            r"rm -(?:rf|fr)[ ]+(?:--no-preserve-root[ ]+)?[~/*]",
            r"(?:execute|run|eval)[ ]?:?[ ]?atob\(",
            r"powershell[^\n]{0,40} -e(?:nc|ncodedcommand)? ",
        ),
    ),
    OUT_OF_PLACE,
)

SHADOWING = Rule("shadowing", "high", "says how a tool of another server is to be used")
NAMING = Rule("names-other-server", "low", "names a tool of another server")
SAYS_HOW = ("obligation", "each time", "ranking", "sending it on", "dropping rules", "this text's own")
"""Concepts that make the mention of another server's tool an order, if they stand close by."""

INVISIBLE = Rule("invisible-text", "high", "has characters that a model reads and a person does not see")
TURNED = Rule("turned-text", "high", "has characters that make text read otherwise than it is")
TERMINAL = Rule("terminal-control", "high", "has characters that a terminal obeys")
ENCODED = Rule("encoded-text", "medium", "has readable text in an encoding: a model decodes it, a person does not")
MIXED = Rule("mixed-alphabets", "medium", "mixes look-alike letters of two alphabets in one word")
FAR_AWAY = Rule("far-away-text", "medium", "has text behind so much blank space that nobody scrolls there")
TOO_LONG = Rule("too-long", "high", "is so long that only its beginning and its end were read")
INCOMPLETE = Rule("incomplete", "high", "has more text than the audit reads; the rest was not looked at")

ALL_RULES: tuple[Rule, ...] = (
    *(*RULES, SHADOWING, NAMING, INVISIBLE, TURNED, TERMINAL, ENCODED, MIXED, FAR_AWAY, TOO_LONG, INCOMPLETE),
)
"""Every rule, for reports."""
