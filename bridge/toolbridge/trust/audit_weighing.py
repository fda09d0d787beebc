"""SECURITY: the scorer: a linear classifier over passages of one or two sentences. It alone decides what is found.

A passage is a set of features: words (`audit_features`), concepts, and concepts that stand close together ("no",
"telling"). The score is the sum of their weights; negative weights count only up to a bound, so that an attack can't be
outweighed by harmless words. Short sentences are joined and long ones cut, so that the number of sums is bounded by the
length of the text (T16).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from toolbridge.trust.audit_concepts import MARKS, Mention, bit
from toolbridge.trust.audit_features import features
from toolbridge.trust.audit_intents import INTENTS
from toolbridge.trust.audit_rules import OUT_OF_PLACE, RULES, Rule, Severity
from toolbridge.trust.audit_weights import (
    GROUPS,
    MEETINGS,
    MOST_LIGHTER,
    concept_feature,
    meeting_feature,
    weights,
)

_END = re.compile(r"[.!?…]['\")\]`]{0,2}\s|[。！？।؟]|\n\s*|;\s|\s[-–—]{1,3}\s")
_ONE_LINK = re.compile(r"https?://\S+")
_SHORTEST = 24
_LONGEST = 400
"""A sentence that goes on is cut: in a very long one everything comes together."""
_MOST_TOGETHER = 480
# Of "in the" nobody learns anything.
_TELLING = re.compile(r"[^\W\d_]{4}|[^\x00-\u02ff]{2}")
_MOST_CONCEPTS = 5
_MOST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Passage:
    """A place in a text and what is weighed there: each feature with the words that it stands for."""

    start: int
    end: int
    features: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Scored:
    """The passage of a text with the highest score."""

    passage: Passage
    score: int
    severity: Severity | None
    """None: nothing is found."""
    because: str
    """What made it heavy: concepts by their names, words as they stand there, each the heaviest first."""


def passages(text: str, found: Sequence[Mention]) -> Iterator[Passage]:
    """Each sentence (of a text in lower case), and each with the next."""
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
    """The passage with the highest score, whether or not that makes it a finding."""
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
    """The rules that explain a passage."""
    said = passage.features
    known = tuple(
        rule for rule in RULES if any(all(concept_feature(sign) in said for sign in signs) for signs in rule.signs)
    )
    return known or (OUT_OF_PLACE,)


def meet(mentions: Sequence[Mention], one: Iterable[str], two: Iterable[str], within: int) -> bool:
    """Whether a concept of each group begin so close to each other, among mentions in their order."""
    return _meet(mentions, _bits(one), _bits(two), within)


def _weight(passage: Passage, known: Mapping[str, int]) -> int:
    """The sum, with what makes it lighter counted up to a bound."""
    heavier = lighter = 0
    for feature in passage.features:
        weight = known.get(feature, 0)
        if weight > 0:
            heavier += weight
        else:
            lighter -= weight
    return heavier - min(lighter, MOST_LIGHTER)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
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
    """The concepts of a sentence, and which of them stand close together."""
    for feature, bits in _concept_bits():
        if concepts & bits:
            yield feature
    for feature, one, two, within in _meeting_bits():
        if concepts & one and concepts & two and _meet(inside, one, two, within):
            yield feature


def _meet(inside: Sequence[Mention], one: int, two: int, within: int) -> bool:
    last_one = last_two = -within - 1
    for start, _, concepts in inside:
        # The same word may stand for two things, but not for both at once.
        if (concepts & two and 0 < start - last_one <= within) or (concepts & one and 0 < start - last_two <= within):
            return True
        if concepts & one:
            last_one = start
        if concepts & two:
            last_two = start
    return False


@cache
def _concept_bits() -> tuple[tuple[str, int], ...]:
    return tuple((concept_feature(concept), bit(concept)) for concept in (*INTENTS, *MARKS))


@cache
def _meeting_bits() -> tuple[tuple[str, int, int, int], ...]:
    return tuple(
        (meeting_feature(one, two), _group_bits(one), _group_bits(two), within) for one, two, within in MEETINGS
    )


def _group_bits(name: str) -> int:
    return _bits(GROUPS.get(name, (name,)))


def _bits(concepts: Iterable[str]) -> int:
    bits = 0
    for concept in concepts:
        bits |= bit(concept)
    return bits


@cache
def _weighed_bits() -> int:
    return _bits((*INTENTS, *MARKS))


def _because(passage: Passage, known: Mapping[str, int]) -> str:
    heavy = {name: known[name] for name in passage.features if known.get(name, 0) > 0}
    concepts = _shares(passage, heavy)
    words = [name for name in heavy if not name.startswith("=")]
    words = [name for name in words if _TELLING.search(passage.features[name])] or words
    shown = dict.fromkeys(f"“{passage.features[name]}”" for name in sorted(words, key=lambda name: -heavy[name]))
    named = sorted(concepts, key=lambda name: -concepts[name])
    return ", ".join([*named[:_MOST_CONCEPTS], *list(shown)[:_MOST_WORDS]])


def _shares(passage: Passage, heavy: Mapping[str, int]) -> dict[str, int]:
    """What each concept of a passage weighs, with its share of what it weighs with others."""
    shares: dict[str, int] = {}
    for concept in (*INTENTS, *MARKS):
        feature = concept_feature(concept)
        if feature in passage.features:
            shares[concept] = 2 * heavy.get(feature, 0)
    for one, two, _ in MEETINGS:
        weight = heavy.get(meeting_feature(one, two), 0)
        for concept in shares.keys() & {*GROUPS.get(one, (one,)), *GROUPS.get(two, (two,))}:
            shares[concept] += weight
    return {concept: share for concept, share in shares.items() if share}
