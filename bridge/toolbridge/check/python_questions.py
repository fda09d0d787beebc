"""Questions to the checker: what type has the value at a place? It is given the program again, with `reveal_type`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from toolbridge.check.python_program import Finding
from toolbridge.check.python_rewriting import Edit, Rewriting

_ASK = "_whole_type_of"
_HEAD = f"from typing import reveal_type as {_ASK}\n"
_MOST_COPIES = 3
_REVEALED = re.compile(r"Revealed type: `(.*)`", re.DOTALL)


class Place(NamedTuple):
    """Where a value stands in the program."""

    start: int
    end: int


class Questions:
    """The program again, with questions about values. None of a copy's is part of another."""

    def __init__(self, source: str, edits: Iterable[Edit], before: str, places: Iterable[Place]) -> None:
        known = list(edits)
        self._copies = [
            (group, Rewriting(source, [*known, *_asked(group)], _HEAD + before)) for group in _apart(set(places))
        ]
        self.files = {f"asked_{number}.py": copy.text for number, (_, copy) in enumerate(self._copies)}
        """What the checker is to be given; nothing if there is nothing to ask."""

    def types(self, answers: Mapping[str, list[Finding]]) -> dict[Place, str]:
        """The types that the checker answered."""
        types: dict[Place, str] = {}
        for name, (group, copy) in zip(self.files, self._copies, strict=True):
            starts = {place.start: place for place in group}
            for answer in answers.get(name, []):
                revealed = _REVEALED.search(answer.message)
                at = copy.source_index(answer.line, answer.column) if revealed else None
                place = _at(at, starts, copy.source) if at is not None else None
                if place is not None and revealed is not None:
                    types.setdefault(place, revealed[1])
        return types


def _at(at: int, starts: Mapping[int, Place], source: str) -> Place | None:
    """The place that begins at an index: the checker doesn't count the brackets around a value to it."""
    while at not in starts and at > 0 and source[at - 1] in "( \t\n":
        at -= 1
    return starts.get(at)


def _asked(places: Iterable[Place]) -> list[Edit]:
    edits: list[Edit] = []
    for place in places:
        edits += [Edit(place.start, place.start, f"{_ASK}(("), Edit(place.end, place.end, "))")]
    return edits


def _apart(places: Iterable[Place]) -> list[list[Place]]:
    """Groups in which no place overlaps another: asking about a part may change what is known of the whole."""
    groups: list[list[Place]] = []
    for place in sorted(places):
        group = next((each for each in groups if each[-1].end <= place.start), None)
        if group is not None:
            group.append(place)
        elif len(groups) < _MOST_COPIES:
            groups.append([place])
    return groups
