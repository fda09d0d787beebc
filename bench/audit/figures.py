"""How much the audit finds, and how much that is not there: in our texts and in the listings of real servers."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from codegen import corpus
from toolbridge.trust.audit.detector import Finding, audit, listing_texts
from toolbridge.trust.audit.rules import ALL_RULES, RULES
from toolbridge_codegen.catalog import ToolDefinition

TEXTS = corpus.ROOT / "fixtures" / "hostile" / "texts"
DOCUMENT = corpus.ROOT / "docs" / "audit-servers.md"

# The servers that the attacks speak of.
OTHER_TOOLS = {
    "mail": ["send_email"],
    "github": ["create_issue"],
    "filesystem": ["read_file", "write_file"],
    "payments": ["create_payment"],
    "slack": ["post_message"],
}


@dataclass(frozen=True, slots=True)
class Text:
    """A text of the corpus, and where a server would put it."""

    id: str
    place: str
    text: str

    @property
    def held_out(self) -> bool:
        """Whether rules may not be written against it."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).digest()[0] % 3 == 0


@cache
def texts(name: str) -> tuple[Text, ...]:
    """The texts of one file."""
    lines = (TEXTS / f"{name}.jsonl").read_text("utf-8").splitlines()
    return tuple(Text(row["id"], row["place"], row["text"]) for row in map(json.loads, lines))


@cache
def examples() -> list[dict[str, Any]]:
    """The examples of the rules, by rule: texts that must be found, and texts in which nothing may be found."""
    return json.loads((TEXTS / "rule_examples.json").read_text("utf-8"))


@cache
def findings_of(text: Text) -> tuple[Finding, ...]:
    """What is found when a server puts the text where it belongs."""
    schema = {"type": "object"}
    if text.place == "title":
        tool = ToolDefinition("f", schema, title=text.text)
    elif text.place == "parameter":
        tool = ToolDefinition("f", {**schema, "properties": {"p": {"type": "string", "description": text.text}}})
    elif text.place == "default":
        tool = ToolDefinition("f", {**schema, "properties": {"p": {"type": "string", "default": text.text}}})
    else:
        tool = ToolDefinition("f", schema, description=text.text)
    return audit("s", [tool], other_tools=OTHER_TOOLS)


def found(chosen: list[Text]) -> int:
    """How many of these are found."""
    return sum(bool(findings_of(text)) for text in chosen)


def withheld(chosen: list[Text]) -> int:
    """How many of these have a high finding, for which a tool is withheld."""
    return sum(any(finding.severity == "high" for finding in findings_of(text)) for text in chosen)


@dataclass(frozen=True, slots=True)
class FalseAlarms:
    """What is found in the listings of real servers, each audited beside all of the others."""

    tool_texts: int
    in_tool_texts: int
    high_in_tool_texts: int
    parameter_texts: int
    in_parameter_texts: int
    high_in_parameter_texts: int


@cache
def false_alarms() -> FalseAlarms:
    """Counted by texts: titles, descriptions and instructions; titles and descriptions of parameters."""
    listings = [real.listing for real in corpus.real_listings()]
    names = {listing.server: [tool.name for tool in listing.tools] for listing in listings}
    tool_texts = parameter_texts = 0
    alarms: Counter[tuple[bool, bool]] = Counter()
    for listing in listings:
        for place, text in listing_texts(listing.tools, listing.instructions):
            tool_texts += is_tool_text(place)
            parameter_texts += is_parameter_text(place, text)
        findings = audit(listing.server, listing.tools, listing.instructions, names)
        alarms.update((is_tool_text(place), False) for place in {each.place for each in findings})
        high = {each.place for each in findings if each.severity == "high"}
        alarms.update((is_tool_text(place), True) for place in high)
    return FalseAlarms(
        *(tool_texts, alarms[True, False], alarms[True, True]),
        *(parameter_texts, alarms[False, False], alarms[False, True]),
    )


def is_tool_text(place: str) -> bool:
    """Whether it is a title, a description or the instructions."""
    return place == "instructions" or (place.count("/") == 2 and place.endswith(("/description", "/title")))


def is_parameter_text(place: str, text: str) -> bool:
    """Whether it is the title or description of a parameter, and not the key itself."""
    last = place.rpartition("/")[2]
    return not is_tool_text(place) and last in {"description", "title"} and text != last


def held_out(kind: str) -> list[Text]:
    """The attacks, or harmless texts, of those whose texts nobody here reads."""
    return [*texts(f"{kind}_held_out"), *texts(f"{kind}_held_out_later")]


def figures_table() -> str:
    """The table of figures as it is in the document."""
    attacks, alarms = texts("attacks"), false_alarms()
    rows = [
        ("attacks by three others, held out: never read, only counted", held_out("attacks")),
        ("of these, by the one who wrote first", list(texts("attacks_held_out"))),
        ("harmless texts by the three, held out (false alarms)", held_out("benign")),
        (
            "attacks by six others, learned from",
            [*texts("attacks_independent"), *texts("attacks_five_authors")],
        ),
        (
            "harmless texts by the six, learned from (false alarms)",
            [*texts("benign_independent"), *texts("benign_five_authors")],
        ),
        ("our attacks that rules were written against", [text for text in attacks if not text.held_out]),
        ("our attacks held out, every third by hash", [text for text in attacks if text.held_out]),
        ("our attacks in other words, learned from afterwards", list(texts("attacks_later"))),
        (
            "our attacks in few or far-fetched words, learned from",
            [*texts("attacks_wordings"), *texts("attacks_short")],
        ),
        ("our attacks written after the first rules, never learned from", list(texts("attacks_unseen"))),
        ("attacks by one more, written after the fit, never learned from", list(texts("attacks_unseen_later"))),
        (
            "our harmless texts in the same words, learned from (false alarms)",
            [*texts("benign"), *texts("benign_wordings")],
        ),
        ("our harmless texts in the style of real servers, learned from (false alarms)", list(texts("benign_servers"))),
    ]
    counted = [(name, found(chosen), withheld(chosen), len(chosen)) for name, chosen in rows]
    counted += [
        (
            "titles, descriptions and instructions of real servers (false alarms)",
            alarms.in_tool_texts,
            alarms.high_in_tool_texts,
            alarms.tool_texts,
        ),
        (
            "parameters of real servers (false alarms)",
            alarms.in_parameter_texts,
            alarms.high_in_parameter_texts,
            alarms.parameter_texts,
        ),
    ]
    lines = [
        f"| {name} | {count} of {of} | {100 * count / of:.1f} % | {100 * high / of:.1f} % |"
        for name, count, high, of in counted
    ]
    return "\n".join(["| texts | found | share | high |", "|---|---|---|---|", *lines]) + "\n"


def rules_table() -> str:
    """The table of rules as it is in the document."""
    grades = {rule.id: "by score" if rule in RULES else rule.severity for rule in ALL_RULES}
    lines = [f"| `{rule.id}` | {grades[rule.id]} | {rule.why} |" for rule in ALL_RULES]
    return "\n".join(["| rule | severity | the text … |", "|---|---|---|", *lines]) + "\n"


def table_in(document: str, name: str) -> str:
    """A table that stands in the document between its marks."""
    return document.partition(f"<!-- table: {name} -->\n")[2].partition("<!-- end -->")[0]


def write_document(path: Path = DOCUMENT) -> None:
    """Put the tables of today into the document: `python -m bench.audit.figures`."""
    document = path.read_text("utf-8")
    for name, table in (("figures", figures_table()), ("rules", rules_table())):
        mark = f"<!-- table: {name} -->\n"
        document = document.replace(mark + table_in(document, name), mark + table)
    path.write_text(document, "utf-8")


if __name__ == "__main__":
    write_document()
