"""Whether a value that can't be used as the program does may also be another one, which can.

Of a value that is one of several types, the checker often names only the one that is in the way. A list of different
tools' results has such values, and their program knows which is which. So the checker is asked a second time, for the
whole type of each value that it complained about: the program is given to it again, with `reveal_type` around them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from toolbridge.check.python_program import QUOTED, Finding, Mistake, Program
from toolbridge.check.python_text import split_outside, start_of_last_bracket, without_texts

_NAMES_ONE = {"not-subscriptable", "not-callable", "not-iterable"}
_INDEX = "cannot be called with key of type"
_ASK = "_whole_type_of"
_HEAD = f"from typing import reveal_type as {_ASK}\n"
_MOST_COPIES = 3
_LONGEST = 5000
_REVEALED = re.compile(r"Revealed type: `(.*)`", re.DOTALL)


class _Place(NamedTuple):
    """Where a value stands in the program."""

    start: int
    end: int


class Alternatives:
    """The questions about the values of some findings, and which of the findings are sure once they are answered."""

    def __init__(self, findings: Iterable[Finding], mistakes: Iterable[Mistake], program: Program, before: str) -> None:
        # Only where something would be reported: there are few of these, however many findings there are.
        reported = {(each.line, each.column) for each in mistakes}
        self._findings = list(findings)
        self._subjects: dict[Finding, _Place] = {}
        self._failing: dict[_Place, set[str]] = {}
        """The types that are in the way."""
        for each in self._findings:
            is_asked = (each.line, each.column) in reported and _names_one(each)
            place = _subject(each, program) if is_asked else None
            if place is not None:
                self._subjects[each] = place
                self._failing.setdefault(place, set()).update(_owners(each))
        self._copies = [_Copy(before, program.source, places) for places in _apart(self._failing)]
        self.files = {f"asked_{number}.py": copy.text for number, copy in enumerate(self._copies)}
        """What the checker is to be given; nothing if there is nothing to ask."""

    def sure(self, answers: Mapping[str, list[Finding]]) -> list[Finding]:
        """The findings without those about a value that may be another one, or of which nothing was answered."""
        types: dict[_Place, set[str]] = {}
        for name, copy in zip(self.files, self._copies, strict=True):
            for answer in answers.get(name, []):
                place, revealed = copy.places.get((answer.line, answer.column)), _REVEALED.search(answer.message)
                if place is not None and revealed is not None:
                    types.setdefault(place, set()).update(_members(revealed[1]))
        return [each for each in self._findings if not _names_one(each) or self._is_sure(each, types)]

    def _is_sure(self, finding: Finding, types: Mapping[_Place, set[str]]) -> bool:
        place = self._subjects.get(finding)
        members = set[str]() if place is None else types.get(place, set[str]())
        return place is not None and (len(members) == 1 or (bool(members) and members <= self._failing[place]))


class _Copy:
    """The program with questions about values of which none is part of another."""

    def __init__(self, before: str, source: str, places: Iterable[_Place]) -> None:
        parts = [_HEAD, before]
        lengths: dict[int, _Place] = {}
        length, written = len(_HEAD) + len(before), 0
        for place in sorted(places):
            asked = [source[written : place.start], f"{_ASK}("]
            length += sum(map(len, asked))
            lengths[length] = place
            value = source[place.start : place.end] + ")"
            length, written = length + len(value), place.end
            parts += [*asked, value]
        self.text = "".join([*parts, source[written:]])
        self.places = {_position(self.text, at): place for at, place in lengths.items()}
        """Line and column of each value."""


def _position(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _apart(places: Iterable[_Place]) -> list[list[_Place]]:
    """Groups in which no place overlaps another: asking about a part may change what is known of the whole."""
    groups: list[list[_Place]] = []
    for place in sorted(places):
        group = next((each for each in groups if each[-1].end <= place.start), None)
        if group is not None:
            group.append(place)
        elif len(groups) < _MOST_COPIES:
            groups.append([place])
    return groups


def _names_one(finding: Finding) -> bool:
    return finding.rule in _NAMES_ONE or (finding.rule == "invalid-argument-type" and _INDEX in finding.message)


def _subject(finding: Finding, program: Program) -> _Place | None:
    """The value that a finding is about."""
    if not 0 < finding.line <= finding.end_line <= len(program.lines):
        return None
    start, end = program.at(finding), program.index(finding.end_line, finding.end_column)
    if end - start > _LONGEST:
        return None
    if finding.rule in ("not-subscriptable", "not-callable"):
        # These are about the whole, with what stands in brackets after the value.
        opening = start_of_last_bracket(without_texts(program.source[start:end]))
        end = start if opening is None else start + opening
    return _Place(start, end) if program.source[start:end].strip() else None


def _owners(finding: Finding) -> set[str]:
    names = QUOTED.findall(finding.message)
    is_index = _INDEX in finding.message
    return _members(names[-1] if is_index else names[0]) if names else set()


def _members(text: str) -> set[str]:
    """The types of a union, other than None, each constant for itself."""
    members: set[str] = set()
    for part in split_outside(text, " | "):
        plain = part.strip().rstrip("*")
        inside = plain.removeprefix("Literal[")
        if inside != plain:
            members.update(f"Literal[{each.strip()}]" for each in split_outside(inside[:-1], ","))
        else:
            members.add(plain)
    return members - {"None"}
