"""SECURITY: weighs what a few sentences speak of together: many small signs in one place are a sign.

Each sentence alone, and each with the next, is a set of concepts (bits of a number); the weights of those, of pairs
and of what stands close together ("no", "telling") are added up. Short sentences are taken together and long ones cut,
so that the number of sums is bounded by the length of the text (T16).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from toolbridge.trust.audit_concepts import OTHER_SIGNS, Mention, bit
from toolbridge.trust.audit_intents import INTENTS
from toolbridge.trust.audit_weights import GROUPS, MEETINGS, PAIRS, SINGLES, THRESHOLD

_END = re.compile(r"[.!?…]['\")\]`]{0,2}\s|[。！？।؟]|\n\s*|;\s|\s[-–—]{1,3}\s")
_ONE_LINK = re.compile(r"https?://\S+")
_SHORTEST = 24
_LONGEST = 400
"""A sentence that goes on is cut: in a very long one everything comes together."""
_MOST_TOGETHER = 480


@dataclass(frozen=True, slots=True)
class Passage:
    """A place in a text and what it speaks of."""

    start: int
    end: int
    concepts: int


@dataclass(frozen=True, slots=True)
class Weighed:
    """A passage that weighs enough, and what made it so: the heaviest first."""

    start: int
    end: int
    score: int
    speaks_of: tuple[str, ...]


def passages(text: str, found: Sequence[Mention]) -> Iterator[Passage]:
    """Each sentence, and each with the next."""
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
        passage = Passage(start, end, concepts | _meetings(inside, concepts))
        yield passage
        if before is not None and end - before.start <= _MOST_TOGETHER:
            yield Passage(before.start, end, before.concepts | passage.concepts)
        before = passage


def heaviest(text: str, found: Sequence[Mention]) -> Weighed | None:
    """The passage that weighs most, if that is enough."""
    if _ONE_LINK.fullmatch(text):
        return None
    best, most = None, THRESHOLD - 1
    known: dict[int, int] = {}
    for passage in passages(text, found):
        concepts = passage.concepts
        score = known.get(concepts)
        if score is None:
            score = known[concepts] = sum(weight for needed, weight in _weights() if concepts & needed == needed)
        if score > most:
            best, most = passage, score
    return None if best is None else Weighed(best.start, best.end, most, _speaks_of(best.concepts))


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


def _meetings(inside: Sequence[Mention], concepts_of_all: int) -> int:
    """Which things stand close together among the mentions of a sentence, as bits."""
    met = 0
    for number, (one, two, within) in enumerate(_meeting_bits()):
        if not concepts_of_all & one or not concepts_of_all & two:
            continue
        last_one = last_two = -within - 1
        for start, _, concepts in inside:
            # The same word may stand for two things, but not for both at once.
            if (concepts & two and 0 < start - last_one <= within) or (
                concepts & one and 0 < start - last_two <= within
            ):
                met |= _meeting_bit(number)
                break
            if concepts & one:
                last_one = start
            if concepts & two:
                last_two = start
    return met


@cache
def _meeting_bits() -> tuple[tuple[int, int, int], ...]:
    return tuple((_group_bits(one), _group_bits(two), within) for one, two, within in MEETINGS)


def _group_bits(name: str) -> int:
    bits = 0
    for concept in GROUPS.get(name, (name,)):
        bits |= bit(concept)
    return bits


def _meeting_bit(number: int) -> int:
    return 1 << (512 + number)


@cache
def _weighed_bits() -> int:
    bits = 0
    for concept in _weighed_concepts():
        bits |= bit(concept)
    return bits


@cache
def _weights() -> tuple[tuple[int, int], ...]:
    singles = [(bit(concept), weight) for concept, weight in SINGLES.items()]
    pairs = [(bit(one) | bit(two), weight) for (one, two), weight in PAIRS.items()]
    meetings = [(_meeting_bit(number), weight) for number, weight in enumerate(MEETINGS.values())]
    return (*singles, *pairs, *meetings)


def _speaks_of(concepts: int) -> tuple[str, ...]:
    """The concepts that made it heavy, the heaviest first: each with its share of what it weighs with others."""
    weights = {concept: 2 * SINGLES.get(concept, 0) for concept in _weighed_concepts() if concepts & bit(concept)}
    for (one, two), weight in PAIRS.items():
        if one in weights and two in weights:
            weights[one] += weight
            weights[two] += weight
    for number, ((one, two, _), weight) in enumerate(MEETINGS.items()):
        if concepts & _meeting_bit(number):
            for concept in weights.keys() & {*GROUPS.get(one, (one,)), *GROUPS.get(two, (two,))}:
                weights[concept] += weight
    return tuple(sorted((concept for concept in weights if weights[concept] > 0), key=lambda name: -weights[name]))


def _weighed_concepts() -> tuple[str, ...]:
    return (*INTENTS, *OTHER_SIGNS)
