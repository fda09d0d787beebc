"""SECURITY: finds the concepts of the lexicon in a text; each word is looked up once, so the time is linear (T16)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from toolbridge.trust.audit.lexicon import CONCEPTS
from toolbridge.trust.audit.rules import RULES

Mention = tuple[int, int, int]
"""A place of a text that mentions concepts: start, end, and the concepts as bits."""

OTHER_TOOL = "other tool"
"""The name of another server's tool: never scored."""
MARKS = (
    "a link",
    "an address",
    "a file of secrets",
    "a link with data",
    "shell code",
    "marks of a role",
    "a name",
    "what it does",
    *(rule.id for rule in RULES if rule.patterns),
)
"""Concepts that expressions find (`obfuscation.marks`)."""
_BITS = {concept: 1 << number for number, concept in enumerate((OTHER_TOOL, *CONCEPTS, *MARKS))}

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_ELISION = re.compile(r"\b([cdjlmnst]|qu|all|dall|dell|nell)['’](?=\w)")
_ARABIC = re.compile("[\u0621-\u064a]")
_ARABIC_JOINED = re.compile("^(?:[وف](?=\\w{4}))?(?:[بك]?ال|لل)?(?=\\w{3})")
_PLAIN_LETTERS = {
    code: plain[0]
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00), 0x451, *range(0x622, 0x626))
    if (plain := unicodedata.normalize("NFD", chr(code))) != chr(code)
} | {ord("ı"): "i", ord("ø"): "o", ord("ł"): "l"}


def bit(concept: str) -> int:
    """The bit of a concept."""
    return _BITS[concept]


@dataclass(frozen=True, slots=True)
class _Lexicon:
    words: Mapping[str, int]
    beginnings: Mapping[str, int]
    lengths: tuple[int, ...]
    phrases: Mapping[str, _Phrases]
    joined: Mapping[str, _Joined]
    """Terms of scripts without spaces, by their first two characters."""
    joined_first: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class _Phrase:
    middle: list[str]
    """Its words but the first and the last."""
    last: str
    is_beginning: bool
    """Whether the last word is a prefix (`word*`)."""
    concepts: int

    def ends_with(self, word: str) -> bool:
        return word.startswith(self.last) if self.is_beginning else word == self.last


@dataclass(frozen=True, slots=True)
class _Phrases:
    """Phrases with the same first word."""

    by_second: dict[str, list[_Phrase]]
    unfinished: list[_Phrase]
    """Phrases of two words of which the second is a prefix."""

    def with_second(self, word: str) -> list[_Phrase]:
        return self.by_second.get(word, []) + self.unfinished


@dataclass(frozen=True, slots=True)
class _Joined:
    lengths: tuple[int, ...]
    terms: Mapping[str, int]


@cache
def _lexicon() -> _Lexicon:
    """Compiles the terms of the lexicon into lookup tables, once per process."""
    words: dict[str, int] = {}
    beginnings: dict[str, int] = {}
    phrases: dict[str, _Phrases] = {}
    joined: dict[str, dict[str, int]] = {}
    for concept, terms in CONCEPTS.items():
        for term in dict.fromkeys(without_accents(terms).split()):
            is_beginning = term.endswith("*") or (len(term) > 3 and _ARABIC.match(term) is not None)
            spaced = _spaced(term)
            if _is_without_spaces(term):
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
    """Returns where a text, which must be in lower case, mentions concepts: unsorted, and possibly overlapping."""
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
            for phrase in lexicon.phrases[word].with_second(words[place + 1]):
                last = place + 1 + len(phrase.middle)
                if last < len(words) and words[place + 1 : last] == phrase.middle and phrase.ends_with(words[last]):
                    found.append((spans[place][0], spans[last][1], phrase.concepts))
    return found if text.isascii() else found + _joined_mentions(text, lexicon)


def _joined_mentions(text: str, lexicon: _Lexicon) -> list[Mention]:
    """Finds terms of scripts without spaces, also inside of other words; they may overlap."""
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
    """Returns the text without accents, each letter in its place: authors often leave them out."""
    return text if text.isascii() else text.translate(_PLAIN_LETTERS)


def _spaced(text: str) -> str:
    """Splits `auto_approve` and `l'utilisateur` into two words, each letter in its place."""
    return _ELISION.sub(r"\1 ", text.replace("_", " ")).replace("’", "'")


def _bare(word: str) -> str:
    """Returns a word without its possessive, or without the Arabic article and conjunctions."""
    if word.endswith("'s"):
        return word[:-2]
    return _ARABIC_JOINED.sub("", word) if _ARABIC.match(word) else word


def _concepts_of(word: str, lexicon: _Lexicon) -> int:
    """Returns the concepts of a bare word as bits: of the word itself, and of each prefix (`word*`) it begins with."""
    concepts = lexicon.words.get(word, 0)
    for length in lexicon.lengths:
        if length > len(word):
            break
        concepts |= lexicon.beginnings.get(word[:length], 0)
    return concepts


def _is_without_spaces(term: str) -> bool:
    """Whether a term is of a script that puts no spaces between words, joins endings to them, or writes with marks."""
    return any(
        "\u3040" <= letter <= "\u9fff" or "\uac00" <= letter <= "\ud7a3" or "\u0900" <= letter <= "\u097f"
        for letter in term
    )
