"""Fits the audit's weights: `python -m bench.audit.fit`, after `python -m bench.audit.corpus`.

A logistic regression over the features of passages, with negative weights clipped as in the scorer. Of an attack only
the passage with the highest score counts as one (multiple-instance learning): the rest of it may be as harmless as it
looks. Harmless are all passages of harmless texts, of real servers' texts and of the rules' examples that must pass.
The thresholds come from cross-validation by whole servers. In a fixed order and with rounded results, so that the same
texts give the same file.
"""

from __future__ import annotations

import hashlib
import math
import multiprocessing
import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from bench.audit import corpus as audit_corpus
from bench.audit import sources as audit_sources
from bench.audit.figures import examples, held_out, is_parameter_text, is_tool_text, texts
from codegen import corpus
from toolbridge.trust.audit.detector import listing_texts, scored_passages
from toolbridge.trust.audit.scorer import DATA, MOST_LIGHTER, SCALE, Weights

MEDIUM_SHARE = 0.037
HIGH_SHARE = 0.0025
"""Tool texts of servers left out that may score a medium or a high finding."""
MOST_FEATURES = 4000
LEAST_TEXTS = 3
"""A feature that is in fewer texts says more of them than of attacks."""
OWN_WEIGHT = 2.0
"""The weight of our texts: attacks by tools' texts, and harmless ones that were written to be mistaken for them."""
EXAMPLE_WEIGHT = 10.0
PUBLIC_WEIGHT = 0.7
"""The weight of public attacks: many are attacks on a chat, and some are none."""
_FOLDS = 3
_RIDGE = 1.0
_ROUNDS = (1, 2)
"""Of choosing passages and fitting to them: to select the features, and to fit those."""
_EPOCHS = 6
_STEP = 0.3
_EASY = 5.0
"""A passage that scores so far on its own side is passed over: it moves next to nothing."""
_MOST_LIGHTER = MOST_LIGHTER / SCALE


@dataclass(frozen=True, slots=True)
class Sample:
    """A text to learn from."""

    text: str
    is_attack: bool
    weight: float = 1.0
    server: str = ""
    is_tool_text: bool = False

    @property
    def fold(self) -> int:
        """The fold of its server, which is left out with it; -1 for other texts."""
        return hashlib.sha256(self.server.encode()).digest()[1] % _FOLDS if self.server else -1


@dataclass(frozen=True, slots=True)
class _Row:
    """One passage."""

    text: int
    features: tuple[int, ...]
    is_attack: bool
    weight: float


def own_texts() -> list[Sample]:
    """Our texts that may be learned from, and the examples of the rules."""
    bad = [text for text in texts("attacks") if not text.held_out]
    for name in ("later", "wordings", "short", "independent", "five_authors"):
        bad += texts(f"attacks_{name}")
    good = list(texts("benign"))
    for name in ("wordings", "servers", "independent", "five_authors"):
        good += texts(f"benign_{name}")
    samples = [
        *(Sample(text.text, is_attack=True, weight=OWN_WEIGHT) for text in bad),
        *(Sample(text.text, is_attack=False, weight=OWN_WEIGHT) for text in good),
        *(Sample(text, is_attack=True, weight=EXAMPLE_WEIGHT) for rule in examples() for text in rule["found"]),
        *(Sample(text, is_attack=False, weight=EXAMPLE_WEIGHT) for rule in examples() for text in rule["passed"]),
    ]
    counted = {text.text for text in (*held_out("attacks"), *held_out("benign"))}
    counted |= {text.text for text in texts("attacks") if text.held_out}
    return [sample for sample in samples if sample.text not in counted]  # some plain texts have two authors


def listed_texts() -> list[Sample]:
    """The texts of the listings of real servers; none where there are no listings."""
    return [
        Sample(text, is_attack=False, server=real.listing.server, is_tool_text=is_tool_text(place))
        for real in (corpus.real_listings() if corpus.real_listing_files() else ())
        for place, text in listing_texts(real.listing.tools, real.listing.instructions)
        if is_tool_text(place) or is_parameter_text(place, text)
    ]


def package_texts() -> list[Sample]:
    """The public attacks and the servers in packages that are not kept for judging."""
    found = [
        Sample(text, is_attack=True, weight=PUBLIC_WEIGHT)
        for source, attacks in audit_sources.attacks().items()
        for text in attacks
        if source not in audit_sources.JUDGED
    ]
    for server in audit_corpus.servers():
        if not server.is_judged:
            found += [Sample(text, False, server=server.name, is_tool_text=True) for text in server.tool_texts]
            found += [Sample(text, False, server=server.name) for text in server.parameter_texts]
    return found


def fit(samples: Sequence[Sample]) -> tuple[dict[str, float], float]:
    """The weights that tell the attacks among these texts from the rest, and what every passage is given."""
    counts = _counts(samples)
    names = sorted(feature for feature, count in counts.items() if count >= LEAST_TEXTS)
    found, _ = _fitted(samples, names, _ROUNDS[0])
    by_worth = sorted(names, key=lambda name: (-abs(found[name]) * math.sqrt(counts[name]), name))
    return _fitted(samples, sorted(by_worth[:MOST_FEATURES]), _ROUNDS[1])


def score(text: str, weights: dict[str, float], even: float) -> float:
    """The highest score of a passage of the text."""
    return max((_score([weights.get(name, 0.0) for name in each], even)[0] for each in _passages(text)), default=-99.0)


def _score(weights: Iterable[float], even: float) -> tuple[float, bool]:
    """The score of a passage, and whether its negative weights were clipped."""
    heavier, lighter = even, 0.0
    for weight in weights:
        if weight > 0:
            heavier += weight
        else:
            lighter -= weight
    return heavier - min(lighter, _MOST_LIGHTER), lighter > _MOST_LIGHTER


@cache
def _passages(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(dict.fromkeys(tuple(passage.features) for passage in scored_passages(text)))


def _counts(samples: Iterable[Sample]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for sample in samples:
        counts.update({feature: None for passage in _passages(sample.text) for feature in passage}.keys())
    return counts


def _fitted(samples: Sequence[Sample], names: Sequence[str], rounds: int) -> tuple[dict[str, float], float]:
    """The weights after rounds of choosing the passages of attacks and fitting to them."""
    numbers = {name: number for number, name in enumerate(names)}
    rows = [
        _Row(text, tuple(numbers[name] for name in passage if name in numbers), sample.is_attack, sample.weight)
        for text, sample in enumerate(samples)
        for passage in _passages(sample.text)
    ]
    harmless = [(row, row.weight) for row in rows if not row.is_attack]
    hostile = [row for row in rows if row.is_attack]
    many = Counter(row.text for row in hostile)
    weights, even = [0.0] * len(names), -2.0
    chosen = [(row, row.weight / many[row.text]) for row in hostile]
    for _ in range(rounds):
        even = _learn(weights, even, [*harmless, *chosen])
        best: dict[int, tuple[float, _Row]] = {}
        for row in hostile:
            points = _score([weights[number] for number in row.features], even)[0]
            if row.text not in best or points > best[row.text][0]:
                best[row.text] = points, row
        chosen = [(row, row.weight) for _, row in best.values()]
    return dict(zip(names, weights, strict=True)), even


def _learn(weights: list[float], even: float, chosen: list[tuple[_Row, float]]) -> float:
    """Move the weights by one passage after the other, each less the more it was moved already (AdaGrad)."""
    moved, moved_even = [1e-3] * len(weights), 1e-3
    counts = Counter(number for row, _ in chosen for number in row.features)
    ridge = [_RIDGE / max(1, counts[number]) for number in range(len(weights))]
    chance = random.Random(1)
    for epoch in range(_EPOCHS):
        chance.shuffle(chosen)
        step = _STEP / (1 + epoch / 4)
        for row, counted in chosen:
            points, is_clipped = _score([weights[number] for number in row.features], even)
            if points > _EASY if row.is_attack else points < -_EASY:
                continue
            slope = counted * (1 / (1 + math.exp(-max(-30.0, min(30.0, points)))) - row.is_attack)
            for number in row.features:
                weight = weights[number]
                change = ridge[number] * weight
                if not (is_clipped and weight < 0):
                    change += slope
                moved[number] += change * change
                weights[number] = weight - step * change / math.sqrt(moved[number])
            moved_even += slope * slope
            even -= step * slope / math.sqrt(moved_even)
    return even


def written(weights: Weights) -> str:
    """The text of a file of weights, the heaviest first."""
    rows = sorted(weights.of.items(), key=lambda row: (-row[1], row[0]))
    lines = [f"{weight} {feature}" for feature, weight in rows]
    return "\n".join([f"medium from {weights.medium}", f"high from {weights.high}", *lines]) + "\n"


def _left_out(samples: Sequence[Sample], fold: int) -> list[float]:
    """The scores of tool texts whose servers were left out of the fit."""
    weights, even = fit([sample for sample in samples if sample.fold != fold])
    outside = [sample for sample in samples if sample.fold == fold and sample.is_tool_text]
    return [score(sample.text, weights, even) for sample in outside]


def fitted_text() -> str:
    """The file of weights as it should be."""
    samples = [*own_texts(), *listed_texts(), *package_texts()]
    _counts(samples)  # read once, before there are four processes
    with multiprocessing.Pool(_FOLDS + 1) as pool:
        folds = pool.starmap_async(_left_out, [(samples, fold) for fold in range(_FOLDS)], chunksize=1)
        found, even = pool.apply(fit, (samples,))
        scores = sorted((points for fold in folds.get() for points in fold), reverse=True)
    whole = {name: round(SCALE * weight) for name, weight in found.items()}
    allowed = (scores[int(share * len(scores))] for share in (MEDIUM_SHARE, HIGH_SHARE))
    medium, high = (math.ceil(SCALE * (points - even)) for points in allowed)
    return written(Weights(medium, high, {name: weight for name, weight in whole.items() if weight}))


if __name__ == "__main__":
    if not corpus.real_listing_files():
        sys.exit("There are no listings of real servers here (TOOLBRIDGE_TOOL_LISTS): the weights would be others.")
    DATA.write_text(fitted_text(), "utf-8")
