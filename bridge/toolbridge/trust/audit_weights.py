"""The scorer's features and their weights: concepts, concepts that stand close together, words.

The weights are data (`audit_weights.txt`), fitted by tests/trust/fit_audit.py to the texts in fixtures/hostile/texts
that may be learned from, to public attacks and to real servers' texts (out of tests/trust/audit_packages.txt).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DATA = Path(__file__).with_name("audit_weights.txt")
SCALE = 20
"""Weights are whole numbers: so many are one in the fit."""
MOST_LIGHTER = 3 * SCALE
"""All that makes a passage lighter counts for no more than this: harmless words can't hide what an attack says."""

GROUPS: Mapping[str, tuple[str, ...]] = {
    "passing on": ("sending it on", "putting it in"),
    "what is private": ("secrets", "private data", "a file of secrets"),
    "what was said": ("the conversation", "its instructions"),
    "addressee": ("you", "the model"),
    "somewhere": ("a link", "an address", "a link with data"),
    "doing": ("running things", "weakening", "changing"),
    "when": ("before the job", "each time", "from now on", "set to go off"),
    "tools": ("other tools", "this text's own"),
    "reasons": ("authority", "excuse", "threat"),
}
"""Concepts that count alike where they meet others."""

MEETINGS: tuple[tuple[str, str, int], ...] = (
    ("a field", "what is private", 80),
    ("a field", "what was said", 80),
    ("a name", "passing on", 50),
    ("addressee", "passing on", 50),
    ("addressee", "what is private", 50),
    ("blame", "tools", 60),
    ("changing", "money and addressee", 60),
    ("consent", "the user", 40),
    ("consent is there", "the user", 60),
    ("doing", "consent", 60),
    ("doing", "shell code", 60),
    ("dropping rules", "rules", 60),
    ("getting it out of the user", "what is private", 60),
    ("no", "consent", 35),
    ("no", "obeying", 30),
    ("no", "passing on", 30),
    ("no", "rules", 40),
    ("no", "telling", 35),
    ("no", "the user", 30),
    ("no", "tools", 50),
    ("obeying", "addressee", 40),
    ("obligation", "passing on", 40),
    ("obligation", "tools", 40),
    ("passing on", "somewhere", 100),
    ("passing on", "what is private", 80),
    ("passing on", "what was said", 80),
    ("pretending", "the user", 50),
    ("ranking", "tools", 60),
    ("reading", "somewhere", 60),
    ("reading", "what is private", 60),
    ("reasons", "passing on", 100),
    ("reasons", "what was said", 100),
    ("rules", "what came before", 40),
    ("running things", "what comes back", 60),
    ("silence", "doing", 80),
    ("silence", "passing on", 80),
    ("silence", "the user", 60),
    ("silence", "what was said", 80),
    ("special rights", "addressee", 60),
    ("telling", "the user", 30),
    ("the whole", "what was said", 40),
    ("third persons", "what is private", 30),
    ("when", "passing on", 80),
    ("when", "tools", 60),
)
"""Two things that begin within so many characters of each other, in one sentence."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each feature weighs, and from which sums on a passage is a medium and a high finding."""

    medium: int
    high: int
    of: Mapping[str, int]
    """By feature: words as `audit_features` writes them, a concept with `=` before its name."""


def concept_feature(name: str) -> str:
    """What a concept is called among the weights."""
    return f"={name}"


def meeting_feature(one: str, two: str) -> str:
    """What two things that meet are called among the weights."""
    return f"={one} + {two}"


@cache
def weights() -> Weights:
    """The weights, read when they are first needed."""
    return read_weights(DATA.read_text("utf-8"))


def read_weights(text: str) -> Weights:
    """The weights as they are written: the two thresholds in the first lines, then a weight and a feature in each."""
    medium, high, *lines = text.splitlines()
    rows = (line.partition(" ") for line in lines)
    of = {feature: int(weight) for weight, _, feature in rows}
    return Weights(int(medium.rpartition(" ")[2]), int(high.rpartition(" ")[2]), of)


def written(weights: Weights) -> str:
    """The same as text, the heaviest first."""
    rows = sorted(weights.of.items(), key=lambda row: (-row[1], row[0]))
    lines = [f"{weight} {feature}" for feature, weight in rows]
    return "\n".join([f"medium from {weights.medium}", f"high from {weights.high}", *lines]) + "\n"
