"""Classifies comparisons that are always false, and constants that a tool does not accept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from toolbridge.check.python.program import LogicalLine, Mistake, Program, TyFinding, logical_lines, mistake_at
from toolbridge.check.python.rewriting import Edit, Span
from toolbridge.check.python.text import end_of_bracket, split_outside, start_of_bracket_around
from toolbridge.errors import nearest
from toolbridge.sandbox.typescript import StubLine

# Constants that reach a tool through a variable. A variable may hold one of several constants, and the program may
# exclude one before the call. So a wrong constant is reported only where no branch on its way can exclude it.

_TURN = re.compile(
    r"\b(?:if|elif|else|while|try|except|match|case|continue|break|return|and|or|assert|def|lambda|with)\b"
)
_LONE_CONSTANT = re.compile(r"""(?:[a-z]?"[ \n]*"|[a-z]?'[ \n]*'|-?\d+)""")
_LIST = re.compile(r"^[ \t]*(\w+)[ \t]*=[ \t]*(?=\[)", re.MULTILINE)
_BOUND = re.compile(r"^(\w+)[ \t]*=")
_MOST_LISTS = 50


def constant_list_edits(program: Program) -> Iterator[Edit]:
    """Yields edits that make tuples of lists of constants only iterated: the checker keeps tuples' items apart."""
    code = program.code
    for found, _ in zip(_LIST.finditer(code), range(_MOST_LISTS), strict=False):
        end = end_of_bracket(code, found.end())
        if end is None or not _has_only_constants(code, found.end(), end) or "," not in code[found.end() : end]:
            continue
        mentioned = list(re.finditer(rf"(?<![\w.]){found[1]}\b", code))
        if all(each.start() == found.start(1) or _is_iterated(code, each.start(), each.end()) for each in mentioned):
            yield Edit(found.end(), found.end() + 1, "(")
            yield Edit(end - 1, end, ")")


def locate_wrong_constant(finding: TyFinding, wrong: list[str], program: Program) -> int | None:
    """Returns the index of the first wrong constant that certainly reaches a finding's position.

    `wrong` has them as in the checker's notation. None in doubt, and for a long program.
    """
    for constant in wrong if program.is_small else ():
        plain = constant.strip("\"'")
        quoted = [found.start() for found in re.finditer(rf"""(["']){re.escape(plain)}\1""", program.source)]
        if constant[0] in "\"'" and len(quoted) == 1 and _reaches(quoted[0], finding, program):
            return quoted[0]
    return None


def _reaches(at: int, finding: TyFinding, program: Program) -> bool:
    """Returns whether a constant at an index certainly reaches a finding's position, on every way through."""
    start = program.at(finding)
    end = program.index(finding.end_line, finding.end_column) if finding.end_line else start
    if start <= at < end:
        return True  # in the argument itself: `sort="new" if recent else "odl"`
    code = program.code
    line, used = program.line_around(at), program.line_around(start)
    if line is None or used is None:
        return False
    opening = start_of_bracket_around(code, at)
    is_listed = opening is not None and opening >= line.start and _is_constant_list(code, opening)
    if line == used:
        return is_listed and not re.search(r"\b(?:if|and|or)\b", line.text)
    return _is_chosen(line, start, code) if not is_listed else _is_iterated_to(line, used, start, program)


def _is_chosen(line: LogicalLine, start: int, code: str) -> bool:
    """Returns whether a line is a conditional expression of constants, with no branch between it and the position."""
    is_choice = re.search(r"\bif\b.*\belse\b", line.text) is not None and _BOUND.match(line.text) is not None
    return is_choice and line.end < start and not _TURN.search(code[line.end : start])


def _is_iterated_to(line: LogicalLine, used: LogicalLine, start: int, program: Program) -> bool:
    """Returns whether every constant of a line's list reaches a position in another line."""
    bound = _BOUND.match(line.text)
    loop = line if bound is None else _loop(bound[1], used, program)
    if loop is None:
        return False
    if loop == used:
        return not re.search(r"\bif\b", used.text)
    return loop.end < start and not _TURN.search(program.code[loop.end : start])


def _loop(name: str, used: LogicalLine, program: Program) -> LogicalLine | None:
    """Returns the last loop over a variable up to a line; None without one."""
    through = re.compile(rf"\bfor\b.*\bin[ \t]+{name}\b")
    lines = [each for each in program.logical_lines if each.start <= used.start and through.search(each.text)]
    return lines[-1] if lines else None


def _is_constant_list(code: str, opening: int) -> bool:
    """Returns whether the bracket holds constants only, and is a value: assigned, or after `in`."""
    end = end_of_bracket(code, opening)
    before = code[max(0, opening - 40) : opening].rstrip()
    is_value = before.endswith("=") or re.search(r"\bin\Z", before) is not None
    return end is not None and is_value and _has_only_constants(code, opening, end)


def _has_only_constants(code: str, opening: int, end: int) -> bool:
    """Returns whether the parts of a bracket are all constants, of which it has at least one."""
    parts = [part.strip() for part in split_outside(code[opening + 1 : end - 1], ",")]
    return any(parts) and all(not part or _LONE_CONSTANT.fullmatch(part) for part in parts)


def _is_iterated(code: str, start: int, end: int) -> bool:
    """Returns whether a span is all that stands right of an `in`: a membership test or a loop."""
    before = code[max(0, start - 20) : start]
    return (
        re.search(r"\bin\s+\Z", before) is not None
        and re.match(r"\s*(?:$|[:)\]},\n]|if\b|for\b|and\b|or\b)", code[end : end + 20]) is not None
    )


# Strings that may be long integers in digits, which the host repairs. Only an identifier from a tool's result is one:
# its server may declare a string there, and a number elsewhere. A string made by the program, or another field, is
# none.

_MADE_HERE = re.compile(
    r"""[rbuf]{0,2}["']|str\(|repr\(|format\(|.*["']\.(?:join|format)\(|.*["']\s*%"""
    r"""|.*\.(?:strip|lower|upper|title|isoformat|strftime|replace|format|zfill|removeprefix|removesuffix)\([^()]*\)\Z""",
    re.IGNORECASE | re.DOTALL,
)
_LAST_WORD = re.compile(r"""(?:^|[.\s(])(\w+)\s*\Z|(?:\[|\.get\()\s*["']([^"'\n]*)["']\s*[\])]\Z""")
_INDEXED = re.compile(r"(\w+)\[[^\[\]\"']*\]\Z")
_IDENTIFIER = re.compile(
    r"(?:^|_|\b)(?:u?u?ids?|numbers?|num|nr|no|keys?|refs?|references?|codes?|tokens?|cursor|sha|pk)\Z|[a-z](?:Ids?|Key|Number)\Z"
    r"|\A(?:\w{1,2}|values?|items?|entry|element|each|arg|text|word|part|match|result|target|current|it|one)\Z",
    re.IGNORECASE,
)
_DEEPEST = 2
_MOST_ASSIGNMENTS = 8


def may_be_digits(text: str, program: Program, depth: int = 0) -> bool:
    """Returns whether an expression may be an integer in digits; true in doubt, and for a long program.

    False for a string made by the program, and for a key or variable unlike an identifier's name. Follows variables
    through two assignments (`depth` counts them).
    """
    text = text.strip()
    if not program.is_small:
        return True
    if _MADE_HERE.match(text):
        return False
    indexed = _INDEXED.search(text)
    word = _LAST_WORD.search(text) if indexed is None else indexed
    if word is None or depth >= _DEEPEST:
        return True
    name = word[1] or (word[2] if indexed is None else "")
    if _IDENTIFIER.search(name):
        return True
    if word[1] is None or indexed is not None or name != text:
        return word[1] is not None and indexed is None
    return _may_variable_be(name, program, depth)


def _may_variable_be(name: str, program: Program, depth: int) -> bool:
    """Returns whether a variable may be digits: by any of its assignments or loops, or as a parameter."""
    assigned = re.findall(rf"(?<![\w.]){name}[ \t]*(?::[^=\n]*)?=(?!=)([^\n#]*)", program.source)
    looped = re.findall(rf"\bfor[ \t]+{name}[ \t]+in[ \t]+([^\n:#]*?)(?:\)|\]|\}}|:|\bif\b|$)", program.source)
    if len(assigned) + len(looped) > _MOST_ASSIGNMENTS:
        return True
    is_parameter = re.search(rf"\bdef\b[^\n]*[(,][ \t]*{name}\b", program.code) is not None
    return is_parameter or any(may_be_digits(each, program, depth + 1) for each in (*assigned, *looped))


# Comparisons, read as text: an operand, and the constants that it is compared with.

_EQUAL = re.compile(r"(?:==|!=)\s*|(?<![\w.])(?:not\s+)?in\b\s*(?=[(\[{])")
_CONTAINED = re.compile(r"(?<=[\"'])\s+(?:not\s+)?in\s+(?=[^\W\d])")
_CONSTANT = re.compile(r"""(?:"[^"\\\n{}]*"|'[^'\\\n{}]*'|-?\d+|True|False)(?![\w.])""")
_PART = re.compile(r"\s*,?\s*")
_AFTER = re.compile(r"""\s*(?:$|[)\]},:;#\n]|(?:and|or|if|else|for)\b|==|!=)""")
_WORD_BEFORE = re.compile(r"[\w.]+\Z")
_KEYWORDS = "if|elif|while|and|or|not|return|else|lambda|assert|yield|in|case|match|is"
# Text that may precede a whole operand; anything else binds more tightly, or is a loop.
_BEFORE = re.compile(rf"(?:^|[(\[{{,:=;]|\b(?:{_KEYWORDS}))\s*\Z")
_LOOP = re.compile(r"\bfor\b(?:(?!\bin\b)[^()\[\]{}:\n])*\Z")
_CHAIN = re.compile(r"(?:[<>!=]=|[<>]|\bin|\bis)\s*\Z")
_MATCH = re.compile(r"match[ \t]+(.+?)[ \t]*:\Z")
_CASE = re.compile(r"case\b[ \t]*")
_OPERAND_NEAR = 200
_LONGEST = 2000


class Comparison(NamedTuple):
    """A comparison of a value with constants."""

    operand: Span
    constants: tuple[str, ...]
    """As written in the source."""
    at: int
    """The index of the first constant."""
    is_item: bool = False
    """Whether the constant is searched in the value (`in`)."""


def comparisons(source: str, code: str) -> Iterator[Comparison]:
    """Yields the comparisons with constants: `==`, `in` and `match`; `code` is the source with blanked strings."""
    yield from _equality_comparisons(source, code)
    yield from _containment_comparisons(source, code)
    yield from _match_comparisons(source, code)


def _equality_comparisons(source: str, code: str) -> Iterator[Comparison]:
    """Yields `value == constant` and `value in (constants)`, and their negations."""
    for found in _EQUAL.finditer(code):
        constants, _ = _constants(source, code, found.end())
        operand = operand_before(code, found.start()) if constants else None
        if operand is not None:
            yield Comparison(operand, constants, found.end())


def _containment_comparisons(source: str, code: str) -> Iterator[Comparison]:
    """Yields `constant in value`, and its negation."""
    for found in _CONTAINED.finditer(code):
        start = code.rfind(code[found.start() - 1], 0, found.start() - 1) if code[found.start() - 1] in "\"'" else -1
        constant = _CONSTANT.match(source, start) if start >= 0 else None
        operand = operand_at(code, found.end())
        before = code[max(0, start - _OPERAND_NEAR) : max(0, start)]
        if constant is not None and operand is not None and _BEFORE.search(before):
            yield Comparison(operand, (constant[0],), start, is_item=True)


def _match_comparisons(source: str, code: str) -> Iterator[Comparison]:
    """Yields the cases with constants of each `match`."""
    lines = logical_lines(code) if "match" in code and "case" in code else []
    for number, line in enumerate(lines):
        subject = _MATCH.match(line.text)
        if subject is None:
            continue
        inner = next((each.indent for each in lines[number + 1 : number + 2]), 0)
        for each in lines[number + 1 :]:
            if each.indent <= line.indent:
                break
            case = _CASE.match(each.text) if each.indent == inner else None
            constants, end = _constants(source, code, each.start + case.end()) if case else ((), 0)
            if case and constants and re.match(r"\s*(?::|if\b)", code[end : end + _OPERAND_NEAR]):
                place = Span(line.start + subject.start(1), line.start + subject.end(1))
                yield Comparison(place, constants, each.start + case.end())


def _constants(source: str, code: str, at: int) -> tuple[tuple[str, ...], int]:
    """Returns the constants at an index (alone, in a bracket or with bars) and their end; none if mixed with values."""
    constant = _CONSTANT.match(source, at)
    if constant is not None:
        found, end = [constant[0]], constant.end()
        while (bar := re.match(r"\s*\|\s*", code[end : end + _OPERAND_NEAR])) and (
            more := _CONSTANT.match(source, end + bar.end())
        ):
            found.append(more[0])
            end = more.end()
        return (tuple(found), end) if _AFTER.match(code, end) else ((), 0)
    end = end_of_bracket(code, at, _LONGEST) if code[at : at + 1] in ("(", "[", "{") else None
    if end is None or end - at > _LONGEST or not _AFTER.match(code, end):
        return (), 0
    found, place = list[str](), at + 1
    while place < end - 1:
        place = _PART.match(code, place).end()  # type: ignore[union-attr]
        constant = _CONSTANT.match(source, place)
        if constant is None:
            break
        found.append(constant[0])
        place = constant.end()
    return (tuple(found), end) if not code[place : end - 1].strip(" ,\n\t") else ((), 0)


def operand_before(code: str, at: int) -> Span | None:
    """Returns the span of the name or call before an operator; None for a part of a larger operand."""
    near = code[max(0, at - _OPERAND_NEAR) : at]
    end = at - len(near) + len(near.rstrip())
    start = end
    while start > 0:
        if code[start - 1] in ")]":
            opening = start_of_bracket_around(code, start - 1)
            if opening is None:
                return None
            start = opening
            if not (code[start - 1 : start].isalnum() or code[start - 1 : start] in ("_", ")", "]")):
                break
            continue
        word = _WORD_BEFORE.search(code, max(0, start - _OPERAND_NEAR), start)
        if word is None:
            break
        start = word.start()
        if not word[0].startswith("."):
            break
    before = code[max(0, start - _OPERAND_NEAR) : start]
    is_whole = start < end and _BEFORE.search(before) and not _LOOP.search(before) and not _CHAIN.search(before)
    has_name = re.match(r"[^\W\d]", code[start : start + 1])
    return Span(start, end) if is_whole and has_name else None


def operand_at(code: str, at: int) -> Span | None:
    """Returns the span of the operand at an index: a name with its accesses and calls; None for others."""
    end = at
    while end < len(code):
        word = re.compile(r"\.?\w+").match(code, end)
        if word is not None and (end == at or word[0].startswith(".")):
            end = word.end()
        elif code[end] in "([" and end > at:
            closed = end_of_bracket(code, end)
            if closed is None:
                return None
            end = closed
        else:
            break
    return Span(at, end) if end > at and _AFTER.match(code, end) else None


REDUNDANT_CONDITION = "redundant-condition-strict"
"""The checker's rule about conditions that are always true or always false."""
_KEY = re.compile(r"""(?:\[\s*|\.get\(\s*)(["'])([^"'\n]+)\1\s*(?:\]|\)|,[^()]*\))\Z""")
_ATTRIBUTE = re.compile(r"\.(\w+)\Z")
_CONDITION = re.compile(r"\b(?:if|elif|while|and|or|not|assert)\s*\Z")
_NAME = re.compile(r"[^\W\d]\w*")
_TAKEN_BY_KEY = re.compile(r"""\[\s*["'][^"'\n]+["']\s*\]\s*\Z""")
_WITHOUT_TEXTS = {"int", "float", "bool"}
_NEAR = 20
_MOST = 200


class Comparisons:
    """The comparisons of a program that may be always false."""

    def __init__(self, findings: Iterable[TyFinding], program: Program) -> None:
        self._program = program
        redundant = (each for each in findings if each.rule == REDUNDANT_CONDITION)
        ranges = [Span(program.at(each), program.index(each.end_line, each.end_column)) for each in redundant]
        found = list(islice(comparisons(program.source, program.code), _MOST)) if program.is_small else []
        self._all = found
        self._query_edits = [each for each in found if self._is_worth_querying(each, ranges)]

    @property
    def spans(self) -> list[Span]:
        """The values whose types are queried."""
        return [each.operand for each in self._query_edits]

    def mistakes(self, types: Mapping[Span, str]) -> list[Mistake]:
        """Returns the comparisons that are always false, given the types of their operands."""
        found = (self._classify(each, types.get(each.operand, "")) for each in self._query_edits)
        return [each for each in found if each is not None]

    def _is_worth_querying(self, each: Comparison, ranges: list[Span]) -> bool:
        """Returns whether a comparison may be always false, so that its operand's type is queried.

        It is if the checker reports it (`ranges`), in a `match`, or if the stubs give the field only other constants:
        in a condition every field of its name, elsewhere one of them.
        """
        if any(place.start <= each.operand.start and each.operand.end <= place.end for place in ranges):
            return True  # the checker reports it itself
        code = self._program.code
        if re.match(r"match\b", code[max(0, each.operand.start - 6) : each.operand.start]):
            return True
        fields = self._fields(each)
        without = [line for line in fields if _is_never(each, line)]
        before = code[max(0, each.operand.start - _NEAR) : each.operand.start]
        if not each.is_item and _CONDITION.search(before):
            return bool(fields) and without == fields  # other conditions are narrowed by the checker
        return bool(without)

    def _classify(self, each: Comparison, kind: str) -> Mistake | None:
        """Returns the mistake if a comparison is certainly false for an operand of this type; else None."""
        members = _members(kind, is_item=each.is_item)
        if not members or any(_may_equal(one, member) for one in each.constants for member in members):
            return None
        constants = {member for member in members if not _NAME.match(member)}
        is_narrowed = any(
            constants <= known and any(_text(one) in known for one in each.constants)
            for known in self._program.stubs.literals
        )
        if (constants and is_narrowed) or not self._is_of_result(each, members):
            return None
        if self._is_alternative(each, members, constants) or self._is_overwritten(each):
            return None
        if any(self._is_default(one) for one in each.constants):
            return None
        line, column = self._program.position(each.at)
        place = TyFinding(line, column, "comparison", "")
        return mistake_at(place, self._declaring_line(each, constants), _message(each, members, kind))

    def _is_of_result(self, each: Comparison, members: set[str]) -> bool:
        """Returns whether an operand's type comes from the stubs, and not from the program."""
        program = self._program
        text = program.source[each.operand.start : each.operand.end]
        if any(not _NAME.match(member) and member not in program.constants for member in members):
            return True  # a literal that the program does not contain
        if _KEY.search(text):
            return True
        if _NAME.fullmatch(text) is None:
            return False
        assigned = re.findall(rf"(?<![\w.]){text}[ \t]*=(?!=)([^\n]*)", program.source)
        is_named_elsewhere = re.search(rf"(?<![\w.]){text}[ \t]*(?::(?!\n)|\+=|:=)", program.code)
        return len(assigned) == 1 and _TAKEN_BY_KEY.search(assigned[0]) is not None and not is_named_elsewhere

    def _is_overwritten(self, each: Comparison) -> bool:
        """Returns whether the program may have assigned another value: `row["state"] = "late"`."""
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
        """Returns whether the program uses the constant as a default: `row.get("state", "none")`."""
        if not constant.startswith(("'", '"')):
            return False
        text = re.escape(constant[1:-1])
        given = rf"""(?:\.get\([^()\n]*,|\bor|\belse|(?<![=!<>])=)\s*(["']){text}\1"""
        return re.search(given, self._program.source) is not None

    def _is_alternative(self, each: Comparison, members: set[str], constants: set[str]) -> bool:
        """Returns whether the same line also compares with a possible value: `s == "done" or s == "closed"`."""
        program = self._program
        # The checker excludes members that earlier comparisons of the line have narrowed.
        can_be = members.union(*(known for known in program.stubs.literals if constants and constants <= known))
        own = program.source[each.operand.start : each.operand.end]
        line = program.line_around(each.at)
        return line is not None and any(
            line.start <= other.at < line.end
            and program.source[other.operand.start : other.operand.end] == own
            and any(_may_equal(one, member) for one in other.constants for member in can_be)
            for other in self._all
        )

    def _fields(self, each: Comparison) -> list[StubLine]:
        """Returns the lines of the stubs that declare fields of the name that the operand reads; often none."""
        text = self._program.source[each.operand.start : each.operand.end]
        key, attribute = _KEY.search(text), _ATTRIBUTE.search(text)
        name = key[2] if key else attribute[1] if attribute else ""
        return self._program.stubs.fields_named(name) if name else []

    def _declaring_line(self, each: Comparison, constants: set[str]) -> StubLine | None:
        lines = self._fields(each)
        return next((line for line in lines if constants and all(one in line.text for one in constants)), None)


def _is_never(each: Comparison, field: StubLine) -> bool:
    """Whether a field's type is a literal type without these constants."""
    return "Literal[" in field.text and not any(_text(one) in field.text for one in each.constants)


def _text(constant: str) -> str:
    """A constant in the notation of the stubs."""
    return f'"{constant[1:-1]}"' if constant[0] in "\"'" else constant


def _members(kind: str, *, is_item: bool) -> set[str]:
    """Returns a type's members but None (with `is_item`, its items'), each literal alone; empty if any is unknown."""
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


def _may_equal(constant: str, member: str) -> bool:
    """Returns whether a constant may equal a value of a member: a literal, or a type of numbers."""
    text = _text(constant)
    if member in ("True", "False", *_WITHOUT_TEXTS):
        return not text.startswith('"')
    return member == text


def _message(each: Comparison, members: set[str], kind: str) -> str:
    """Returns the message for a comparison that is never true, with the nearest possible value, or all."""
    written = sorted(one for one in members if one.startswith('"'))
    said = " or ".join(_text(one) for one in each.constants[:3])
    guess = nearest(_text(each.constants[0])[1:-1], [one[1:-1] for one in written])
    meant = f' Did you mean "{guess}"?' if guess else f" It is: {', '.join(written[:20]) or kind}."
    return f"This is never {said}.{meant}"
