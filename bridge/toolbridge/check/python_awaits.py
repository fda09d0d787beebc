"""Where an `await` was forgotten: at the call, though it shows where its result is used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from toolbridge.check.python_functions import Line
from toolbridge.check.python_program import Finding, Mistake, Program, mistake_at
from toolbridge.check.python_text import start_of_bracket_around

_CALL = re.compile(r"(?<![\w.])(?:\w+\.)*(\w+)[ \t]*\(")
_AWAITED = re.compile(r"\bawait[\s(]*\Z")
_GIVEN_ON = re.compile(r"(?:gather|create_task|ensure_future|wait_for|shield|run|as_completed|wait|timeout)\s*\Z")
_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")
_COROUTINE = re.compile(r"`(?:CoroutineType|Coroutine)\[")
_GATHER = re.compile(r"(?<![\w.])asyncio\.gather[ \t]*(?=\()")
_TAKES = "zip|dict|list|tuple|set|enumerate|sorted|reversed|sum|max|min|len|any|all"
_GOES_THROUGH = re.compile(rf"(?<![\w.])(?:{_TAKES})\Z")
_NEAR = 100
_MOST_CALLS = 200
_DEEPEST = 6


def is_about_coroutine(message: str) -> bool:
    """Whether the checker speaks of a call that was not awaited."""
    return _COROUTINE.search(message) is not None


def where_forgotten(mistake: Mistake, finding: Finding, program: Program) -> Mistake:
    """The mistake at the call that is not awaited, if it is known which one that is."""
    if not program.is_readable:
        return mistake
    start, end = program.at(finding), program.at(finding)
    if 0 < finding.end_line <= len(program.lines):
        end = program.index(finding.end_line, finding.end_column)
    at = _forgotten_call(program, start, end)
    if at is None:
        return mistake
    line, column = program.position(at)
    used = "" if line == mistake.line else f" Its result is used in line {mistake.line}."
    return mistake._replace(line=line, column=column, message=mistake.message + used)


def _forgotten_call(program: Program, start: int, end: int) -> int | None:
    code = program.code
    calls = list(islice(_calls(program), _MOST_CALLS))
    if any(start <= at < end for at in calls):
        return next(at for at in calls if start <= at < end)
    for name in dict.fromkeys(_NAME.findall(code[start : max(end, start + 1)])):
        assigned = re.compile(rf"(?<![\w.]){re.escape(name)}[ \t]*(?::[^=\n]*)?:?=[ \t(]*(?=[^\s=])")
        ends = [found.end() for found in assigned.finditer(code, 0, start)]
        if ends:
            return ends[-1] if ends[-1] in calls else None
    return calls[0] if len(calls) == 1 else None


def _calls(program: Program) -> Iterator[int]:
    """The calls of coroutine functions whose results nothing near them awaits."""
    code = program.code
    own = {each.name for each in program.functions if each.is_async}
    for call in _CALL.finditer(code):
        is_tool = program.stubs.function(call[1]) is not None and "aio" in program.source
        before = code[max(0, call.start() - _NEAR) : call.start()]
        is_awaited = _AWAITED.search(before) or before.rstrip().endswith("def")
        if (call[1] in own or is_tool) and not is_awaited and not _is_given_on(code, call.start()):
            yield call.start()


def _is_given_on(code: str, at: int) -> bool:
    """Whether something that awaits it gets a call's result: `asyncio.gather(one(), *[other(x) for x in xs])`."""
    for _ in range(_DEEPEST):
        opening = start_of_bracket_around(code, at)
        if opening is None:
            return False
        if code[opening] == "(" and _GIVEN_ON.search(code[max(0, opening - _NEAR) : opening]):
            return True
        at = opening
    return False


def forgotten_gathers(program: Program) -> Iterator[Mistake]:
    """`asyncio.gather(…)` whose results are used without an `await`: the checker takes them for whatever one likes."""
    code = program.code
    is_asked = program.is_readable and "asyncio" in code
    for found in islice(_GATHER.finditer(code), _MOST_CALLS) if is_asked else ():
        before = code[max(0, found.start() - _NEAR) : found.start()]
        line = program.line_around(found.start())
        if line is None or _AWAITED.search(before) or not _are_results_used(found.start(), before, line, program):
            continue
        place = Finding(*program.position(found.start()), "forgotten-await", "")
        yield mistake_at(place, None, "`asyncio.gather` is not awaited: it has no results yet. Did you forget `await`?")


def _are_results_used(at: int, before: str, line: Line, program: Program) -> bool:
    code = program.code
    if re.search(r"\bin\s+\Z", before) or re.match(r"[\w*() \t]+,[\w*(), \t]*=\s*\Z", code[line.start : at]):
        return True
    opening = start_of_bracket_around(code, at)
    if opening is not None and opening >= line.start:
        return _GOES_THROUGH.search(code[max(0, opening - _NEAR) : opening]) is not None
    named = re.match(r"(\w+)[ \t]*=[ \t]*\Z", code[line.start : at])
    if named is None:
        return False
    uses = [each for each in program.logical_lines if re.search(rf"(?<![\w.]){named[1]}\b", each.text)]
    is_waited_for = any(re.search(r"\b(?:await|return|yield|append)\b", each.text) for each in uses if each != line)
    used = re.compile(rf"\bin[ \t]+{named[1]}\b|(?<![\w.]){named[1]}\[|\b(?:{_TAKES})\((?:[^()]*,[ \t]*)?{named[1]}\b")
    return not is_waited_for and any(used.search(each.text) for each in uses)
