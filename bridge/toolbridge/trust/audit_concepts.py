"""SECURITY: finds the concepts that a text speaks of, and where several of them stand close together.

The time is that of reading the text, whatever is in it (T16): each word is looked up once; the text is divided into
short stretches, each with the set of its concepts as bits of a number; only where a few neighbours together have all
that a combination needs are single words looked at, and that a bounded number of times.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product

from toolbridge.trust.audit_intents import INTENTS
from toolbridge.trust.audit_words import CONCEPTS, is_without_spaces

Mention = tuple[int, int, int]
"""Where a text speaks of something: start, end, and the concepts as bits."""

OTHER_CONCEPTS = ("url", "address", "secret file", "other tool", "double no")
"""What is no words: whoever reads a text finds them."""
OTHER_SIGNS = (
    "a link",
    "an address",
    "a file of secrets",
    "a link with data",
    "shell code",
    "marks of a role",
    "a name",
    "what it does",
)
"""The same, for weighing."""
_BITS = {concept: 1 << number for number, concept in enumerate((*CONCEPTS, *OTHER_CONCEPTS, *INTENTS, *OTHER_SIGNS))}

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_ELISION = re.compile(r"\b([cdjlmnst]|qu|all|dall|dell|nell)['’](?=\w)")
_ARABIC = re.compile("[\u0621-\u064a]")
_ARABIC_JOINED = re.compile("^(?:[وف](?=\\w{4}))?(?:[بك]?ال|لل)?(?=\\w{3})")
_PLAIN_LETTERS = {
    code: plain[0]
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00), 0x451, *range(0x622, 0x626))
    if (plain := unicodedata.normalize("NFD", chr(code))) != chr(code)
} | {ord("ı"): "i", ord("ø"): "o", ord("ł"): "l"}
_SHORTLY_BEFORE = 40
_STRETCH = 32
_MOST_LOOKS = 600
"""More places that nearly say something are not looked at one by one: such a text is found as it is."""
_MOST_PLACES = 6
"""Of one concept in one place: the last ones."""


def bit(concept: str) -> int:
    """The bit that stands for a concept."""
    return _BITS[concept]


@dataclass(frozen=True, slots=True)
class Near:
    """Concepts that tell something when they begin within so many characters of each other."""

    concepts: tuple[str, ...]
    within: int
    ordered: bool = False
    unless: str = ""
    """A concept that takes the sense away when it stands among them or shortly before."""


@dataclass(frozen=True, slots=True)
class _Lexicon:
    words: Mapping[str, int]
    beginnings: Mapping[str, int]
    lengths: tuple[int, ...]
    phrases: Mapping[str, _Phrases]
    """By their first word."""
    joined: Mapping[str, _Joined]
    """Terms of scripts without spaces, by their first two characters; those of one by that."""
    joined_first: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class _Phrase:
    middle: list[str]
    """Its words but the first and the last."""
    last: str
    is_beginning: bool
    """Whether the last word may go on."""
    concepts: int

    def ends_with(self, word: str) -> bool:
        """Whether this may be its last word."""
        return word.startswith(self.last) if self.is_beginning else word == self.last


@dataclass(frozen=True, slots=True)
class _Phrases:
    """Those that begin with the same word: many do, and few go on alike."""

    by_second: dict[str, list[_Phrase]]
    unfinished: list[_Phrase]
    """Two words of which the second may go on."""

    def that_may_follow(self, word: str) -> list[_Phrase]:
        """Those that this word may be the second of."""
        return self.by_second.get(word, []) + self.unfinished


@dataclass(frozen=True, slots=True)
class _Joined:
    lengths: tuple[int, ...]
    terms: Mapping[str, int]


@cache
def _lexicon() -> _Lexicon:
    words: dict[str, int] = {}
    beginnings: dict[str, int] = {}
    phrases: dict[str, _Phrases] = {}
    joined: dict[str, dict[str, int]] = {}
    for concept, terms in (*CONCEPTS.items(), *INTENTS.items()):
        for term in dict.fromkeys(without_accents(terms).split()):
            is_beginning = term.endswith("*") or (len(term) > 3 and _ARABIC.match(term) is not None)
            spaced = _spaced(term)
            if is_without_spaces(term):
                known = joined.setdefault(spaced[:2], {})
                known[spaced] = known.get(spaced, 0) | _BITS[concept]
                continue
            first, *rest = [_bare(word) for word in _WORD.findall(spaced)]
            if rest:
                phrase = _Phrase(rest[:-1], rest[-1], is_beginning, _BITS[concept])
                known_phrases = phrases.setdefault(first, _Phrases({}, []))
                if is_beginning and not phrase.middle:
                    known_phrases.unfinished.append(phrase)
                else:
                    known_phrases.by_second.setdefault(rest[0], []).append(phrase)
            elif is_beginning:
                beginnings[first] = beginnings.get(first, 0) | _BITS[concept]
            else:
                words[first] = words.get(first, 0) | _BITS[concept]
    return _Lexicon(
        words,
        beginnings,
        tuple(sorted({len(begin) for begin in beginnings})),
        phrases,
        {first: _Joined(tuple(sorted({len(term) for term in terms})), terms) for first, terms in joined.items()},
        re.compile(f"[{''.join(sorted({begin[0] for begin in joined}))}]"),
    )


def mentions(text: str) -> list[Mention]:
    """What a text (in lower case) speaks of."""
    lexicon = _lexicon()
    text = without_accents(text)
    spaced = _spaced(text)
    written: list[str] = _WORD.findall(spaced)
    bare = {word: _bare(word) for word in set(written)}
    known = {word: _concepts_of(word, lexicon) for word in set(bare.values())}
    telling = {word for word, concepts in known.items() if concepts or word in lexicon.phrases}
    found: list[Mention] = []
    if telling:  # most texts of a listing are names and types
        words = [bare[word] for word in written]
        spans = [match.span() for match in _WORD.finditer(spaced)]
        for place, word in enumerate(words):
            if word not in telling:
                continue
            if concepts := known[word]:
                found.append((*spans[place], concepts))
            if word not in lexicon.phrases or place + 1 == len(words):
                continue
            for phrase in lexicon.phrases[word].that_may_follow(words[place + 1]):
                last = place + 1 + len(phrase.middle)
                if last < len(words) and words[place + 1 : last] == phrase.middle and phrase.ends_with(words[last]):
                    found.append((spans[place][0], spans[last][1], phrase.concepts))
    return found if text.isascii() else found + _joined_mentions(text, lexicon)


def _joined_mentions(text: str, lexicon: _Lexicon) -> list[Mention]:
    found: list[Mention] = []
    for match in lexicon.joined_first.finditer(text):
        start = match.start()
        for begin in {text[start], text[start : start + 2]}:
            joined = lexicon.joined.get(begin)
            if joined is None:
                continue
            for length in joined.lengths:
                concepts = joined.terms.get(text[start : start + length])
                if concepts:
                    found.append((start, start + length, concepts))
    return found


def without_accents(text: str) -> str:
    """The text with plain letters for accented ones, each in its place: many leave the accents out."""
    return text if text.isascii() else text.translate(_PLAIN_LETTERS)


def _spaced(text: str) -> str:
    """`auto_approve` is two words, and so is `l'utilisateur`."""
    return _ELISION.sub(r"\1 ", text.replace("_", " ")).replace("’", "'")


def _bare(word: str) -> str:
    """A word without what is only joined to it: the possessive, or the article and the conjunctions of Arabic."""
    if word.endswith("'s"):
        return word[:-2]
    return _ARABIC_JOINED.sub("", word) if _ARABIC.match(word) else word


def _concepts_of(word: str, lexicon: _Lexicon) -> int:
    concepts = lexicon.words.get(word, 0)
    for length in lexicon.lengths:
        if length > len(word):
            break
        concepts |= lexicon.beginnings.get(word[:length], 0)
    return concepts


class _Looks:
    """How often single words may still be looked at."""

    def __init__(self) -> None:
        self.left = _MOST_LOOKS


def first_matches(rules: Mapping[str, tuple[Near, ...]], found: Sequence[Mention]) -> dict[str, tuple[int, int]]:
    """Where each rule's combinations are first met, by the rule's name."""
    found = sorted(found)
    if not found:
        return {}
    stretches = [0] * (found[-1][0] // _STRETCH + 1)
    for start, _, concepts in found:
        stretches[start // _STRETCH] |= concepts
    together = {1: stretches}
    looks = _Looks()
    matches: dict[str, tuple[int, int]] = {}
    for name, combinations in rules.items():
        for near in combinations:
            span = _first_match(near, found, _together(together, near.within // _STRETCH + 2), looks)
            if span is not None:
                matches[name] = span
                break
    return matches


def _together(known: dict[int, list[int]], count: int) -> list[int]:
    """What each stretch and those before it, so many in all, speak of together."""
    if count not in known:
        one, rest = known[1], _together(known, count - 1)
        known[count] = [
            concepts | (one[place - count + 1] if place >= count - 1 else 0) for place, concepts in enumerate(rest)
        ]
    return known[count]


def _first_match(near: Near, found: list[Mention], stretches: list[int], looks: _Looks) -> tuple[int, int] | None:
    needed = 0
    for concept in near.concepts:
        needed |= _BITS[concept]
    places = [place for place, concepts in enumerate(stretches) if concepts & needed == needed]
    for place in places:
        start = (place + 1) * _STRETCH - near.within - 2 * _STRETCH
        inside = found[bisect_left(found, (start, 0, 0)) : bisect_left(found, ((place + 1) * _STRETCH, 0, 0))]
        if looks.left <= 0:
            return inside[0][0], inside[-1][1]
        looks.left -= 1
        span = _exact_match(near, inside, found)
        if span is not None:
            return span
    return None


def _exact_match(near: Near, inside: list[Mention], found: list[Mention]) -> tuple[int, int] | None:
    """The combination among a few mentions. One word may stand for two concepts, but not for both at once."""
    choices = [[each for each in inside if each[2] & _BITS[concept]][-_MOST_PLACES:] for concept in near.concepts]
    for chosen in product(*choices):
        ordered = sorted(chosen)
        if ordered[-1][0] - ordered[0][0] > near.within or (near.ordered and ordered != list(chosen)):
            continue
        if any(one[0] == two[0] for one, two in pairwise(ordered)):
            continue
        if near.unless and _stands_near(_BITS[near.unless], ordered[0][0], ordered[-1][0], found):
            continue
        return ordered[0][0], max(each[1] for each in chosen)
    return None


def _stands_near(concept: int, start: int, end: int, found: list[Mention]) -> bool:
    before = bisect_left(found, (start - _SHORTLY_BEFORE, 0, 0))
    return any(each[2] & concept for each in found[before : bisect_left(found, (end + 1, 0, 0))])


def special(starts: Iterable[re.Match[str]], concept: str) -> list[Mention]:
    """What expressions have found, as mentions of a concept."""
    return [(match.start(), match.end(), _BITS[concept]) for match in starts]
