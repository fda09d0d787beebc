"""SECURITY: the injection classifier: scores passages of one or two sentences, and alone decides what is a finding.

A linear classifier: a passage is a set of features (words, concepts, and concepts that stand close together, such as
"no" and "telling"); its score is the sum of their weights, and a score from a threshold on is a finding. Negative
weights count only up to a bound, so that harmless words can't outweigh an attack. Short sentences are joined and long
ones cut, so that the number of sums is bounded by the length of the text (T16).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from toolbridge.trust.audit.concepts import MARKS, Mention, bit, without_accents
from toolbridge.trust.audit.lexicon import CONCEPTS
from toolbridge.trust.audit.rules import OUT_OF_PLACE, RULES, Rule, Severity

# Features of a sentence: words, and pairs of words at distances of one to three.
#
# A word counts as it stands and by its stem, so that "sends" and "sending" have something in common. An address, a
# path, a name or a figure counts only as such. In scripts without spaces, features are runs of one to three characters.


_TOKEN = re.compile(
    r"https?://[^\s<>()`'\"]{1,300}|`[^`\n]{1,80}`|(?<![\w/])[~.]{0,2}/[\w.~/*-]{2,80}"
    r"|[^\W_]+(?:[-_'][^\W_]+)*(?:@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4})?"
)
_JOINED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LONGEST_JOINED = 3
_FURTHEST = 3
_ENDINGS = ("'s", "ing", "edly", "ed", "es", "ly", "s", "e")
_SHORTEST_STEM = 3
_LONGEST_STEM = 8
_LONGEST_FOREIGN_STEM = 6
_SPELLED_OUT = {"can't": ("can", "not"), "cannot": ("can", "not"), "won't": ("will", "not")}


def features(sentence: str) -> Iterator[tuple[str, str]]:
    """Yields the features of a sentence, which must be in lower case, each with its words there.

    `tell`, `tell user` and `tell … user` are stems, `tells.` is a word as it stands, `~告诉` is characters,
    `URL` and such are kinds of things.
    """
    tokens: list[tuple[str, str]] = []
    for token in _TOKEN.findall(without_accents(sentence).replace("’", "'")):
        if _JOINED.search(token):
            for length in range(1, _LONGEST_JOINED + 1):
                for start in range(len(token) - length + 1):
                    part = token[start : start + length]
                    yield f"~{part}", part
            tokens.append(("~", "…"))
        else:
            tokens += _stems(token)
    for stem, written in tokens:
        yield stem, written
        if stem != written:
            yield f"{written}.", written
    for distance in range(1, _FURTHEST + 1):
        between = " " if distance == 1 else " … "
        for (one, shown_one), (two, shown_two) in zip(tokens, tokens[distance:], strict=False):
            yield one + between + two, shown_one + between + shown_two


@lru_cache(maxsize=20_000)
def _stems(written: str) -> tuple[tuple[str, str], ...]:
    """Returns the stem of a word, with the word; of a contraction two such pairs."""
    kind = _kind(written)
    if kind:
        return ((kind, kind.lower()),)
    if written in _SPELLED_OUT:
        return tuple((word, word) for word in _SPELLED_OUT[written])
    if written.endswith("n't"):
        return (written[:-3], written[:-3]), ("not", "not")
    return ((_stem(written), written),)


def _kind(written: str) -> str:
    """Returns the kind of a token that counts only as such (`URL`, `PATH`, `NAME` …); empty for an ordinary word."""
    if written.startswith(("http://", "https://")):
        return "URL"
    if written[0] in "/~.":
        return "PATH"
    if "@" in written:
        return "MAIL"
    if written[0] == "`" or "_" in written:
        return "NAME"
    return "NUMBER" if any(character.isdecimal() for character in written) else ""


def _stem(word: str) -> str:
    """Cuts off an English ending, and what exceeds eight letters; a word that is not ASCII is cut after six letters."""
    if not word.isascii():
        return word[:_LONGEST_FOREIGN_STEM]
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            word = word[: -len(ending)]
            break
    return word[:_LONGEST_STEM]


# Weights: data that `bench/audit/fit.py` fits to fixtures/hostile/texts, public attacks and real servers' texts.

DATA = Path(__file__).with_name("audit_weights.txt")
SCALE = 20
"""Weights are whole numbers; this many are one unit of the fit."""
MOST_LIGHTER = 3 * SCALE
"""The bound of all negative weights of a passage: harmless words can't hide an attack."""

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
"""Groups of concepts that are equivalent in meetings."""

MEETINGS: tuple[tuple[str, str, int], ...] = (
    ("a field", "what is private", 80),
    ("a field", "what was said", 80),
    ("a name", "passing on", 50),
    ("addressee", "passing on", 50),
    ("blame", "tools", 60),
    ("changing", "money and addressee", 60),
    ("consent is there", "the user", 60),
    ("doing", "shell code", 60),
    ("dropping rules", "rules", 60),
    ("getting it out of the user", "what is private", 60),
    ("no", "consent", 35),
    ("no", "obeying", 30),
    ("no", "passing on", 30),
    ("no", "telling", 35),
    ("no", "the user", 30),
    ("passing on", "somewhere", 100),
    ("passing on", "what is private", 80),
    ("passing on", "what was said", 80),
    ("pretending", "the user", 50),
    ("ranking", "tools", 60),
    ("reading", "somewhere", 60),
    ("reading", "what is private", 60),
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
"""Pairs of concepts or groups, and the characters within which both must begin, in one sentence."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each feature, and the thresholds of a medium and a high finding."""

    medium: int
    high: int
    of: Mapping[str, int]
    """By feature: words as `features` writes them, a concept with `=` before its name."""


def concept_feature(name: str) -> str:
    """The feature of a concept."""
    return f"={name}"


def meeting_feature(one: str, two: str) -> str:
    """The feature of two concepts that stand close together."""
    return f"={one} + {two}"


@cache
def weights() -> Weights:
    """Returns the weights; reads their file at first use and caches them."""
    return read_weights(DATA.read_text("utf-8"))


def read_weights(text: str) -> Weights:
    """Parses weights: the two thresholds in the first lines, then a weight and a feature per line.

    Raises:
        ValueError: a weight or threshold is no whole number, or the first lines are missing.
    """
    medium, high, *lines = text.splitlines()
    rows = (line.partition(" ") for line in lines)
    of = {feature: int(weight) for weight, _, feature in rows}
    return Weights(int(medium.rpartition(" ")[2]), int(high.rpartition(" ")[2]), of)


_END = re.compile(r"[.!?…]['\")\]`]{0,2}\s|[。！？।؟]|\n\s*|;\s|\s[-–—]{1,3}\s")
_ONE_LINK = re.compile(r"https?://\S+")
_SHORTEST = 24
_LONGEST = 400
"""A sentence that goes on is cut: in a very long one everything comes together."""
_MOST_TOGETHER = 480
# "in the" explains nothing.
_TELLING = re.compile(r"[^\W\d_]{4}|[^\x00-\u02ff]{2}")
_MOST_CONCEPTS = 5
_MOST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Passage:
    """A place in a text with its features, each with its words there."""

    start: int
    end: int
    features: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Scored:
    """The passage of a text with the highest score."""

    passage: Passage
    score: int
    severity: Severity | None
    """None below both thresholds."""
    because: str
    """The concepts and words with the highest weights."""


def passages(text: str, found: Sequence[Mention]) -> Iterator[Passage]:
    """Yields each sentence of a text in lower case, and each with the next unless too long; none for a bare link.

    `found` are the text's mentions, in any order.
    """
    if _ONE_LINK.fullmatch(text):
        return
    found = sorted(mention for mention in found if mention[2] & _weighed_bits())
    before: Passage | None = None
    place = 0
    for start, end in _sentences(text):
        inside: list[Mention] = []
        while place < len(found) and found[place][0] < end:
            inside.append(found[place])
            place += 1
        concepts = 0
        for mention in inside:
            concepts |= mention[2]
        said = dict(features(text[start:end]))
        said.update((feature, "") for feature in _concept_features(inside, concepts))
        passage = Passage(start, end, said)
        yield passage
        if before is not None and end - before.start <= _MOST_TOGETHER:
            yield Passage(before.start, end, {**before.features, **said})
        before = passage


def highest(text: str, found: Sequence[Mention]) -> Scored | None:
    """Returns the passage with the highest score, also below the thresholds; None for a text without passages."""
    best: Passage | None = None
    known, most = weights(), 0
    for passage in passages(text, found):
        weight = _weight(passage, known.of)
        if best is None or weight > most:
            best, most = passage, weight
    if best is None:
        return None
    severity: Severity | None = "high" if most >= known.high else "medium" if most >= known.medium else None
    return Scored(best, most, severity, _because(best, known.of) if severity else "")


def reasons(passage: Passage) -> tuple[Rule, ...]:
    """Returns the rules that explain a passage: those whose signs it has, else `OUT_OF_PLACE`."""
    said = passage.features
    known = tuple(
        rule for rule in RULES if any(all(concept_feature(sign) in said for sign in signs) for signs in rule.signs)
    )
    return known or (OUT_OF_PLACE,)


def meet(mentions: Sequence[Mention], one: Iterable[str], two: Iterable[str], within: int) -> bool:
    """Whether a concept of one group begins within this distance of one of the other; the mentions must be sorted."""
    return _meet(mentions, _bits(one), _bits(two), within)


def _weight(passage: Passage, known: Mapping[str, int]) -> int:
    """Returns the score: the sum of the weights, the negative ones only up to `MOST_LIGHTER`."""
    heavier = lighter = 0
    for feature in passage.features:
        weight = known.get(feature, 0)
        if weight > 0:
            heavier += weight
        else:
            lighter -= weight
    return heavier - min(lighter, MOST_LIGHTER)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yields the start and end of each sentence: short ones are joined to the next, long ones cut."""
    start = 0
    for match in _END.finditer(text):
        if match.end() - start >= _SHORTEST:
            yield from _cut(start, match.end())
            start = match.end()
    if start < len(text):
        yield from _cut(start, len(text))


def _cut(start: int, end: int) -> Iterator[tuple[int, int]]:
    for begin in range(start, end, _LONGEST):
        yield begin, min(end, begin + _LONGEST)


def _concept_features(inside: Sequence[Mention], concepts: int) -> Iterator[str]:
    """Yields the features of a sentence's concepts, alone and close together."""
    for feature, bits in _concept_bits():
        if concepts & bits:
            yield feature
    for feature, one, two, within in _meeting_bits():
        if concepts & one and concepts & two and _meet(inside, one, two, within):
            yield feature


def _meet(inside: Sequence[Mention], one: int, two: int, within: int) -> bool:
    """Whether a concept of one group (as bits) begins this close to one of the other, among sorted mentions."""
    last_one = last_two = -within - 1
    for start, _, concepts in inside:
        # One word may mention two concepts, but not meet itself.
        if (concepts & two and 0 < start - last_one <= within) or (concepts & one and 0 < start - last_two <= within):
            return True
        if concepts & one:
            last_one = start
        if concepts & two:
            last_two = start
    return False


@cache
def _concept_bits() -> tuple[tuple[str, int], ...]:
    return tuple((concept_feature(concept), bit(concept)) for concept in (*CONCEPTS, *MARKS))


@cache
def _meeting_bits() -> tuple[tuple[str, int, int, int], ...]:
    """Returns `MEETINGS` compiled: the feature, the concepts of both sides as bits, and the distance."""
    return tuple(
        (meeting_feature(one, two), _group_bits(one), _group_bits(two), within) for one, two, within in MEETINGS
    )


def _group_bits(name: str) -> int:
    return _bits(GROUPS.get(name, (name,)))


def _bits(concepts: Iterable[str]) -> int:
    """Returns several concepts as bits."""
    bits = 0
    for concept in concepts:
        bits |= bit(concept)
    return bits


@cache
def _weighed_bits() -> int:
    return _bits((*CONCEPTS, *MARKS))


def _because(passage: Passage, known: Mapping[str, int]) -> str:
    """Names the concepts and the words of a passage with the highest positive weights."""
    heavy = sorted((name for name in passage.features if known.get(name, 0) > 0), key=lambda name: -known[name])
    concepts = dict.fromkeys(each for name in heavy if name.startswith("=") for each in name[1:].split(" + "))
    words = [passage.features[name] for name in heavy if not name.startswith("=")]
    words = list(dict.fromkeys(word for word in words if _TELLING.search(word))) or words
    return ", ".join([*list(concepts)[:_MOST_CONCEPTS], *(f"“{word}”" for word in words[:_MOST_WORDS])])
