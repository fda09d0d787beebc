"""Makes the weights of the audit from the texts that may be learned from: `python -m trust.fit_audit` in tests/.

A logistic regression over the features of passages. Of an attack only the heaviest passage counts as one: the rest of
it may be as harmless as it looks; which one that is, is found in rounds. Harmless are all passages of the harmless
texts, of the listings of real servers and of the rules' examples that must pass. Nothing else takes part. In a fixed
order and with rounded results, so that the same texts give the same file.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from codegen import corpus
from toolbridge.trust.audit import listing_texts
from toolbridge.trust.audit_rules import RULES
from toolbridge.trust.audit_signs import decoded_texts
from toolbridge.trust.audit_text import weighed_passages
from toolbridge.trust.audit_weights import DATA, MOST_LIGHTER, SCALE, Weights, written
from trust.audit_figures import Text, is_parameter_text, is_tool_text, texts

MARGIN = 0.5
"""How much more than even a passage must weigh: chosen with authors and servers left out (`judge_audit`)."""
MOST_FEATURES = 4000
LEAST_TEXTS = 3
"""A feature that is in fewer texts says more of them than of attacks."""
HARD_WEIGHT = 2.0
"""What a harmless text counts that was written to be mistaken."""
_RIDGE = 1.0
_ROUNDS = 3
_EPOCHS = 12
_STEP = 0.3
_MOST_LIGHTER = MOST_LIGHTER / SCALE


@dataclass(frozen=True, slots=True)
class Sample:
    """A text to learn from."""

    text: str
    is_attack: bool
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class _Row:
    """One passage."""

    text: int
    features: tuple[int, ...]
    is_attack: bool
    weight: float


def authors() -> dict[str, list[Sample]]:
    """The texts that may be learned from, by who wrote them."""
    ours = [text for text in texts("attacks") if not text.held_out]
    by: dict[str, tuple[Sequence[Text], Sequence[Text]]] = {
        "ours": ([*ours, *texts("attacks_later")], texts("benign")),
        "wordings": (texts("attacks_wordings"), texts("benign_wordings")),
        "servers' style": (texts("attacks_short"), texts("benign_servers")),
        "independent": (texts("attacks_independent"), texts("benign_independent")),
    }
    attacks, harmless = texts("attacks_five_authors"), texts("benign_five_authors")
    for name in ("d1", "d2", "d3", "d4", "d5"):
        by[name] = (
            [text for text in attacks if text.id.startswith(name)],
            [text for text in harmless if text.id.startswith(name)],
        )
    return {
        name: [
            *(Sample(text.text, is_attack=True) for text in bad),
            *(Sample(text.text, is_attack=False, weight=HARD_WEIGHT) for text in good),
        ]
        for name, (bad, good) in by.items()
    }


def servers() -> dict[str, list[Sample]]:
    """The texts of real servers, by server."""
    found: dict[str, list[Sample]] = {}
    for real in corpus.real_listings():
        listing = real.listing
        chosen = (
            text
            for place, text in listing_texts(listing.tools, listing.instructions)
            if is_tool_text(place) or is_parameter_text(place, text)
        )
        found[listing.server] = [Sample(text, is_attack=False) for text in dict.fromkeys(chosen)]
    return found


def examples() -> list[Sample]:
    """What the rules themselves say is to be found, and what is not."""
    return [
        *(Sample(text, is_attack=True) for rule in RULES for text in rule.found),
        *(Sample(text, is_attack=False, weight=HARD_WEIGHT) for rule in RULES for text in rule.passed),
    ]


def fit(samples: Sequence[Sample], margin: float = MARGIN) -> Weights:
    """The weights that tell the attacks among these texts from the rest."""
    names = _numbered(_common(samples))
    found, _ = _fitted(_rows(samples, names), len(names), rounds=2)
    names = _kept(samples, names, found)
    found, even = _fitted(_rows(samples, names), len(names), rounds=_ROUNDS)
    whole = {name: round(SCALE * found[number]) for name, number in names.items()}
    return Weights(round(SCALE * (margin - even)), {name: weight for name, weight in whole.items() if weight})


@cache
def _passages(text: str) -> tuple[tuple[str, ...], ...]:
    read = [text, *(decoded for _, _, decoded in decoded_texts(text))]
    return tuple(tuple(passage.features) for each in read for passage in weighed_passages(each))


def _counts(samples: Iterable[Sample]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for sample in samples:
        counts.update({feature: None for passage in _passages(sample.text) for feature in passage}.keys())
    return counts


def _common(samples: Sequence[Sample]) -> list[str]:
    return sorted(feature for feature, count in _counts(samples).items() if count >= LEAST_TEXTS)


def _numbered(features: Iterable[str]) -> dict[str, int]:
    return {feature: number for number, feature in enumerate(features)}


def _kept(samples: Sequence[Sample], names: dict[str, int], found: Sequence[float]) -> dict[str, int]:
    """The features that matter most: by what they weigh and how often they are met."""
    counts = _counts(samples)
    by_worth = sorted(names, key=lambda name: (-abs(found[names[name]]) * math.sqrt(counts[name]), name))
    return _numbered(sorted(by_worth[:MOST_FEATURES]))


def _rows(samples: Sequence[Sample], names: dict[str, int]) -> list[_Row]:
    return [
        _Row(number, tuple(names[name] for name in passage if name in names), sample.is_attack, sample.weight)
        for number, sample in enumerate(samples)
        for passage in _passages(sample.text)
    ]


def _fitted(rows: Sequence[_Row], size: int, rounds: int) -> tuple[list[float], float]:
    """What each feature weighs, and all texts alike, after rounds of choosing the passages and fitting to them."""
    many = Counter(row.text for row in rows if row.is_attack)
    chosen = [(row, row.weight / many[row.text] if row.is_attack else row.weight) for row in rows]
    regression = _Regression(size)
    for _ in range(rounds):
        regression.learn(chosen)
        best: dict[int, tuple[float, _Row]] = {}
        for row in rows:
            if row.is_attack:
                score = regression.score(row.features)[0]
                if row.text not in best or score > best[row.text][0]:
                    best[row.text] = score, row
        chosen = [(row, row.weight) for row in rows if not row.is_attack]
        chosen += [(row, row.weight) for _, row in best.values()]
    return regression.weights, regression.even


class _Regression:
    """Weights that are moved by one passage after the other, each less the more it was moved already (AdaGrad)."""

    def __init__(self, size: int) -> None:
        self.weights = [0.0] * size
        self.even = 0.0

    def score(self, features: Iterable[int]) -> tuple[float, bool]:
        """What a passage weighs, and whether what makes it lighter was cut."""
        heavier, lighter = self.even, 0.0
        for number in features:
            weight = self.weights[number]
            if weight > 0:
                heavier += weight
            else:
                lighter -= weight
        return heavier - min(lighter, _MOST_LIGHTER), lighter > _MOST_LIGHTER

    def learn(self, chosen: Sequence[tuple[_Row, float]]) -> None:
        """Fit to these passages, each with what it counts."""
        weights = self.weights
        moved, moved_even = [1e-3] * len(weights), 1e-3
        counts = Counter(number for row, _ in chosen for number in row.features)
        ridge = [_RIDGE / max(1, counts[number]) for number in range(len(weights))]
        order = list(chosen)
        chance = random.Random(1)
        for epoch in range(_EPOCHS):
            chance.shuffle(order)
            step = _STEP / (1 + epoch / 4)
            for row, counted in order:
                score, is_cut = self.score(row.features)
                slope = counted * (1 / (1 + math.exp(-max(-30.0, min(30.0, score)))) - row.is_attack)
                for number in row.features:
                    weight = weights[number]
                    change = ridge[number] * weight
                    if not (is_cut and weight < 0):
                        change += slope
                    moved[number] += change * change
                    weights[number] = weight - step * change / math.sqrt(moved[number])
                moved_even += slope * slope
                self.even -= step * slope / math.sqrt(moved_even)


def fitted_text() -> str:
    """The file of weights as it should be."""
    everything = [*authors().values(), *servers().values(), examples()]
    return written(fit([sample for samples in everything for sample in samples]))


if __name__ == "__main__":
    DATA.write_text(fitted_text(), "utf-8")
