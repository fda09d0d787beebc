"""Judges of comparisons: a value that is compared with something that it never is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice

from toolbridge.check.python_operands import Comparison, comparisons
from toolbridge.check.python_program import Finding, Mistake, Program, mistake_at
from toolbridge.check.python_questions import Place
from toolbridge.check.python_text import split_outside
from toolbridge.check.spelling import nearest
from toolbridge.sandbox.compiler import StubLine

ALWAYS = "redundant-condition-strict"
"""The checker's rule about conditions that are always true, or never."""
_KEY = re.compile(r"""(?:\[\s*|\.get\(\s*)(["'])([^"'\n]+)\1\s*(?:\]|\)|,[^()]*\))\Z""")
_ATTRIBUTE = re.compile(r"\.(\w+)\Z")
_CONDITION = re.compile(r"\b(?:if|elif|while|and|or|not|assert)\s*\Z")
_NAME = re.compile(r"[^\W\d]\w*")
_TAKEN_BY_KEY = re.compile(r"""\[\s*["'][^"'\n]+["']\s*\]\s*\Z""")
_WITHOUT_TEXTS = {"int", "float", "bool"}
_NEAR = 20
_MOST = 200


class Comparisons:
    """The comparisons of a program that may be with something that a value never is."""

    def __init__(self, findings: Iterable[Finding], program: Program) -> None:
        self._program = program
        ranges = [_range(each, program) for each in findings if each.rule == ALWAYS]
        found = list(islice(comparisons(program.source, program.code), _MOST)) if program.is_readable else []
        self._all = found
        self._asked = [each for each in found if self._is_asked(each, ranges)]

    @property
    def places(self) -> list[Place]:
        """The values whose types are asked for."""
        return [each.operand for each in self._asked]

    def mistakes(self, types: Mapping[Place, str]) -> list[Mistake]:
        """The comparisons with something that a value of the answered type never is."""
        found = (self._judge(each, types.get(each.operand, "")) for each in self._asked)
        return [each for each in found if each is not None]

    def _is_asked(self, each: Comparison, ranges: list[Place]) -> bool:
        if any(place.start <= each.operand.start and each.operand.end <= place.end for place in ranges):
            return True  # the checker says so itself
        code = self._program.code
        if re.match(r"match\b", code[max(0, each.operand.start - 6) : each.operand.start]):
            return True
        fields = self._fields(each)
        without = [line for line in fields if _is_never(each, line)]
        before = code[max(0, each.operand.start - _NEAR) : each.operand.start]
        if not each.is_item and _CONDITION.search(before):
            return bool(fields) and without == fields  # otherwise, conditions are the checker's own affair
        return bool(without)

    def _judge(self, each: Comparison, kind: str) -> Mistake | None:
        members = _members(kind, is_item=each.is_item)
        if not members or any(_can_be(one, member) for one in each.constants for member in members):
            return None
        constants = {member for member in members if not _NAME.match(member)}
        is_narrowed = any(
            constants <= known and any(_text(one) in known for one in each.constants)
            for known in self._program.stubs.literals
        )
        if (constants and is_narrowed) or not self._is_of_result(each, members):
            return None
        if self._is_one_of_several(each, members, constants) or self._is_overwritten(each):
            return None
        if any(self._is_default(one) for one in each.constants):
            return None
        line, column = self._program.position(each.at)
        place = Finding(line, column, "comparison", "")
        return mistake_at(place, self._stub(each, constants), _message(each, members, kind))

    def _is_of_result(self, each: Comparison, members: set[str]) -> bool:
        """Whether a value's type is what the stubs say, and not what the program made of it."""
        program = self._program
        text = program.source[each.operand.start : each.operand.end]
        if any(not _NAME.match(member) and member not in program.constants for member in members):
            return True  # a constant that nobody has written here
        if _KEY.search(text):
            return True
        if _NAME.fullmatch(text) is None:
            return False
        assigned = re.findall(rf"(?<![\w.]){text}[ \t]*=(?!=)([^\n]*)", program.source)
        is_named_elsewhere = re.search(rf"(?<![\w.]){text}[ \t]*(?::(?!\n)|\+=|:=)", program.code)
        return len(assigned) == 1 and _TAKEN_BY_KEY.search(assigned[0]) is not None and not is_named_elsewhere

    def _is_overwritten(self, each: Comparison) -> bool:
        """Whether the program may have put another value there: `row["state"] = "late"`."""
        source = self._program.source
        text = source[each.operand.start : each.operand.end]
        key = _KEY.search(text)
        name = re.escape(key[2]) if key else ""
        owners = re.findall(rf"""(\w+)\s*\[\s*["']{name}["']\s*\]\s*=(?!=)""", source) if key else []
        compared = [one for other in self._all for one in other.constants]
        is_written = any(
            len(re.findall(rf"""["']{re.escape(one[1:-1])}["']""", source)) > compared.count(one)
            for one in each.constants
        )
        return bool(owners) and (is_written or text.startswith(tuple(f"{owner}[" for owner in owners)))

    def _is_default(self, constant: str) -> bool:
        """Whether the program itself puts a constant where a result has none: `row.get("state", "none")`."""
        if not constant.startswith(("'", '"')):
            return False
        text = re.escape(constant[1:-1])
        given = rf"""(?:\.get\([^()\n]*,|\bor|\belse|(?<![=!<>])=)\s*(["']){text}\1"""
        return re.search(given, self._program.source) is not None

    def _is_one_of_several(self, each: Comparison, members: set[str], constants: set[str]) -> bool:
        """Whether the same is also compared with what it can be: `s == "done" or s == "closed"`, to be safe."""
        program = self._program
        # The checker leaves out what an earlier comparison of the line has ruled out.
        can_be = members.union(*(known for known in program.stubs.literals if constants and constants <= known))
        own = program.source[each.operand.start : each.operand.end]
        line = program.line_around(each.at)
        return line is not None and any(
            line.start <= other.at < line.end
            and program.source[other.operand.start : other.operand.end] == own
            and any(_can_be(one, member) for one in other.constants for member in can_be)
            for other in self._all
        )

    def _fields(self, each: Comparison) -> list[StubLine]:
        """The lines of the stubs for fields of the name that the value is taken by."""
        text = self._program.source[each.operand.start : each.operand.end]
        key, attribute = _KEY.search(text), _ATTRIBUTE.search(text)
        name = key[2] if key else attribute[1] if attribute else ""
        return self._program.stubs.fields_named(name) if name else []

    def _stub(self, each: Comparison, constants: set[str]) -> StubLine | None:
        lines = self._fields(each)
        return next((line for line in lines if constants and all(one in line.text for one in constants)), None)


def _is_never(each: Comparison, field: StubLine) -> bool:
    """Whether a field's line names constants, and none that it is compared with."""
    return "Literal[" in field.text and not any(_text(one) in field.text for one in each.constants)


def _range(finding: Finding, program: Program) -> Place:
    return Place(program.at(finding), program.index(finding.end_line, finding.end_column))


def _text(constant: str) -> str:
    """A constant as the stubs write it."""
    return f'"{constant[1:-1]}"' if constant[0] in "\"'" else constant


def _members(kind: str, *, is_item: bool) -> set[str]:
    """What a value can be, each constant for itself; nothing if it can be something of which nothing is known."""
    plain = kind.rstrip("*")
    if is_item:
        inside = re.fullmatch(r"(?:list|Sequence|set|tuple)\[(.*)\]", plain, re.DOTALL)
        plain = inside[1] if inside and inside[1].startswith("Literal[") else ""
    members: set[str] = set()
    if not plain:
        return members
    for part in split_outside(plain, " | "):
        one = part.strip().rstrip("*")
        if one.startswith("Literal["):
            members.update(each.strip() for each in split_outside(one[len("Literal[") : -1], ","))
        elif one != "None":
            members.add(one)
    is_known = all(not _NAME.match(one) or one in ("True", "False", *_WITHOUT_TEXTS) for one in members)
    return members if is_known and not any("..." in one for one in members) else set()


def _can_be(constant: str, member: str) -> bool:
    text = _text(constant)
    if member in ("True", "False", *_WITHOUT_TEXTS):
        return not text.startswith('"')
    return member == text


def _message(each: Comparison, members: set[str], kind: str) -> str:
    written = sorted(one for one in members if one.startswith('"'))
    said = " or ".join(_text(one) for one in each.constants[:3])
    guess = nearest(_text(each.constants[0])[1:-1], [one[1:-1] for one in written])
    meant = f' Did you mean "{guess}"?' if guess else f" It is: {', '.join(written[:20]) or kind}."
    return f"This is never {said}.{meant}"
