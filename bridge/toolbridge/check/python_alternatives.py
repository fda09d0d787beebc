"""Whether a value that can't be used as the program does may also be another one, which can.

Of a value that is one of several types, the checker often names only the one that is in the way. A list of different
tools' results has such values, and their program knows which is which. So the checker is asked a second time, for the
whole type of each value that it complained about: the program is given to it again, with `reveal_type` around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from toolbridge.check.python_program import QUOTED, Finding, Mistake, Program
from toolbridge.check.python_questions import Place
from toolbridge.check.python_text import split_outside, start_of_last_bracket, without_texts

_NAMES_ONE = {"not-subscriptable", "not-callable", "not-iterable"}
_INDEX = "cannot be called with key of type"
_LONGEST = 5000


class Alternatives:
    """The questions about the values of some findings, and which of the findings are sure once they are answered."""

    def __init__(self, findings: Iterable[Finding], mistakes: Iterable[Mistake], program: Program) -> None:
        # Only where something would be reported: there are few of these, however many findings there are.
        reported = {each.found_at for each in mistakes}
        self._findings = list(findings)
        self._subjects: dict[Finding, Place] = {}
        self._failing: dict[Place, set[str]] = {}
        """The types that are in the way."""
        for each in self._findings:
            is_asked = (each.line, each.column) in reported and _names_one(each)
            place = _subject(each, program) if is_asked else None
            if place is not None:
                self._subjects[each] = place
                self._failing.setdefault(place, set()).update(_owners(each))

    @property
    def places(self) -> list[Place]:
        """The values whose types are asked for."""
        return list(self._failing)

    def sure(self, types: Mapping[Place, str]) -> list[Finding]:
        """The findings without those about a value that may be another one, or of which nothing was answered."""
        return [each for each in self._findings if not _names_one(each) or self._is_sure(each, types)]

    def _is_sure(self, finding: Finding, types: Mapping[Place, str]) -> bool:
        place = self._subjects.get(finding)
        members = _members(types.get(place, "")) if place is not None else set[str]()
        return place is not None and (len(members) == 1 or (bool(members) and members <= self._failing[place]))


def _names_one(finding: Finding) -> bool:
    return finding.rule in _NAMES_ONE or (finding.rule == "invalid-argument-type" and _INDEX in finding.message)


def _subject(finding: Finding, program: Program) -> Place | None:
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
    return Place(start, end) if program.source[start:end].strip() else None


def _owners(finding: Finding) -> set[str]:
    names = QUOTED.findall(finding.message)
    is_index = _INDEX in finding.message
    return _members(names[-1] if is_index else names[0]) if names else set()


def _members(text: str) -> set[str]:
    """The types of a union, other than None, each constant for itself."""
    members: set[str] = set()
    if not text:
        return members
    for part in split_outside(text, " | "):
        plain = part.strip().rstrip("*")
        inside = plain.removeprefix("Literal[")
        if inside != plain:
            members.update(f"Literal[{each.strip()}]" for each in split_outside(inside[:-1], ","))
        else:
            members.add(plain)
    return members - {"None"}
