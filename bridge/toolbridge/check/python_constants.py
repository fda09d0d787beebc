"""Constants that a program gives to a tool by way of a variable: one of several that can't be what the tool takes.

Of a variable that is one of several constants, one may be there to be left out before the call. So one that is wrong is
reported only where nothing on its way to the call can leave it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolbridge.check.python_functions import Line
from toolbridge.check.python_program import Finding, Program
from toolbridge.check.python_rewriting import Edit
from toolbridge.check.python_text import end_of_bracket, split_outside, start_of_bracket_around

_TURN = re.compile(
    r"\b(?:if|elif|else|while|try|except|match|case|continue|break|return|and|or|assert|def|lambda|with)\b"
)
_CONSTANT = re.compile(r"""(?:[a-z]?"[ \n]*"|[a-z]?'[ \n]*'|-?\d+)""")
_LIST = re.compile(r"^[ \t]*(\w+)[ \t]*=[ \t]*(?=\[)", re.MULTILINE)
_BOUND = re.compile(r"^(\w+)[ \t]*=")
_MOST_LISTS = 50


def constant_lists(program: Program) -> Iterator[Edit]:
    """Lists of constants that are only gone through, as tuples: the checker keeps a tuple's constants apart."""
    code = program.code
    for found, _ in zip(_LIST.finditer(code), range(_MOST_LISTS), strict=False):
        end = end_of_bracket(code, found.end())
        if end is None or not _is_of_constants(code, found.end(), end) or "," not in code[found.end() : end]:
            continue
        mentioned = list(re.finditer(rf"(?<![\w.]){found[1]}\b", code))
        if all(
            each.start() == found.start(1) or _is_gone_through(code, each.start(), each.end()) for each in mentioned
        ):
            yield Edit(found.end(), found.end() + 1, "(")
            yield Edit(end - 1, end, ")")


def wrong_constant(finding: Finding, wrong: list[str], program: Program) -> int | None:
    """Where one of these constants is written that surely comes to the place of a finding."""
    for constant in wrong if program.is_readable else ():
        plain = constant.strip("\"'")
        quoted = [found.start() for found in re.finditer(rf"""(["']){re.escape(plain)}\1""", program.source)]
        if constant[0] in "\"'" and len(quoted) == 1 and _comes(quoted[0], finding, program):
            return quoted[0]
    return None


def _comes(at: int, finding: Finding, program: Program) -> bool:
    start = program.at(finding)
    end = program.index(finding.end_line, finding.end_column) if finding.end_line else start
    if start <= at < end:
        return True  # written in the argument itself: `sort="new" if recent else "odl"`
    code = program.code
    line, used = program.line_around(at), program.line_around(start)
    if line is None or used is None:
        return False
    opening = start_of_bracket_around(code, at)
    is_listed = opening is not None and opening >= line.start and _is_listed(code, opening)
    if line == used:
        return is_listed and not re.search(r"\b(?:if|and|or)\b", line.text)
    return _is_chosen(line, start, code) if not is_listed else _is_gone_through_to(line, used, start, program)


def _is_chosen(line: Line, start: int, code: str) -> bool:
    """Whether a line chooses one of two constants, and nothing stands between it and a place that leaves one out."""
    is_choice = re.search(r"\bif\b.*\belse\b", line.text) is not None and _BOUND.match(line.text) is not None
    return is_choice and line.end < start and not _TURN.search(code[line.end : start])


def _is_gone_through_to(line: Line, used: Line, start: int, program: Program) -> bool:
    """Whether each constant of a line's list comes to a place in another line."""
    bound = _BOUND.match(line.text)
    loop = line if bound is None else _loop(bound[1], used, program)
    if loop is None:
        return False
    if loop == used:
        return not re.search(r"\bif\b", used.text)
    return loop.end < start and not _TURN.search(program.code[loop.end : start])


def _loop(name: str, used: Line, program: Program) -> Line | None:
    """The last line that goes through a variable, before a line or in it."""
    through = re.compile(rf"\bfor\b.*\bin[ \t]+{name}\b")
    lines = [each for each in program.logical_lines if each.start <= used.start and through.search(each.text)]
    return lines[-1] if lines else None


def _is_listed(code: str, opening: int) -> bool:
    end = end_of_bracket(code, opening)
    before = code[max(0, opening - 40) : opening].rstrip()
    is_value = before.endswith("=") or re.search(r"\bin\Z", before) is not None
    return end is not None and is_value and _is_of_constants(code, opening, end)


def _is_of_constants(code: str, opening: int, end: int) -> bool:
    parts = [part.strip() for part in split_outside(code[opening + 1 : end - 1], ",")]
    return any(parts) and all(not part or _CONSTANT.fullmatch(part) for part in parts)


def _is_gone_through(code: str, start: int, end: int) -> bool:
    before = code[max(0, start - 20) : start]
    return (
        re.search(r"\bin\s+\Z", before) is not None
        and re.match(r"\s*(?:$|[:)\]},\n]|if\b|for\b|and\b|or\b)", code[end : end + 20]) is not None
    )
