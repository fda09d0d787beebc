"""Which known words a misspelt one may be meant for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import islice

_MOST_WORDS = 20_000
_CANDIDATES = 40
_ALIKE = 0.72
_AS_GOOD = 0.08
"""How much less alike than the best another word may be."""


class Spelling:
    """Known words by the pairs of letters that they are made of."""

    def __init__(self, known: Iterable[str]) -> None:
        # Names come first: when there are too many words, it is descriptions that are left out.
        self._words = list(islice(dict.fromkeys(word for word in known if 3 <= len(word) <= 30), _MOST_WORDS))
        self._by_pair: dict[str, list[int]] = {}
        for number, word in enumerate(self._words):
            for pair in _pairs(word):
                self._by_pair.setdefault(pair, []).append(number)

    def nearest(self, word: str, most: int = 2) -> tuple[str, ...]:
        """The known words that are most like this one, if any is."""
        if len(word) < 3:
            return ()
        shared = Counter(number for pair in _pairs(word) for number in self._by_pair.get(pair, ()))
        # Those of about the same length first: long words share pairs with everything.
        likely = sorted(shared, key=lambda number: (abs(len(self._words[number]) - len(word)) - shared[number], number))
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(word)
        alike: list[tuple[float, int]] = []
        for number in likely[:_CANDIDATES]:
            matcher.set_seq1(self._words[number])
            if (ratio := matcher.ratio()) >= _ALIKE:
                alike.append((-ratio, number))
        alike.sort()
        return tuple(self._words[number] for distance, number in alike[:most] if distance <= alike[0][0] + _AS_GOOD)


def _pairs(word: str) -> set[str]:
    edged = f" {word} "
    return {edged[start : start + 2] for start in range(len(edged) - 1)}
