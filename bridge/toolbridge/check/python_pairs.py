"""The pairs that a program gives to `parallel`, as calls that the checker can judge.

`parallel([(get_issue, {"id": 1})])` calls get_issue with that input, but no type says so: the pairs of a list may all
be different. So each is also written as a call, in a function that is never called, before the program. Whatever is
not written out in the dictionary is a parameter there, of which nothing is known.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from toolbridge.check.python_program import Finding, Mistake, Program, mistake_at
from toolbridge.check.python_text import end_of_bracket, new_meanings, parts

_PARALLEL = re.compile(r"\bparallel\s*(?=\()")
_PAIR = re.compile(r"\(\s*((?:\w+\.)*(\w+))\s*,\s*(?=\{)")
_END_OF_PAIR = re.compile(r"\s*,?\s*\)")
_GIVEN = re.compile(r"\(\s*([^\W\d]\w*)\s*[,)]")
_NAME = re.compile(r"[^\W\d]\w*")
_OPTION = re.compile(r"\s*(\w+)[ \t]*=(?!=)[ \t]*(.*?)\s*\Z", re.DOTALL)
_OPTIONS = {"limit": re.compile(r"\d+"), "errors": re.compile(r"""["'](?:throw|collect)["']""")}
_WRITTEN = re.compile(r"""["'][^"']*["']|\d+|\{.*|\[.*""", re.DOTALL)
_MOST_CALLS = 10
_MOST_PAIRS = 20
_ABOUT_INPUTS = {"missing-typed-dict-key", "unknown-typed-dict-constructor-key", "invalid-argument-type"}


class _Pair(NamedTuple):
    """An input in the program, and the call that was made of it."""

    line: int
    """Where the input stands in the program."""
    column: int
    head: str
    """What stands before it in the call."""
    text: str


class PairCalls:
    """The calls that `parallel` will make, as far as they are written out."""

    def __init__(self, program: Program) -> None:
        self._pairs = list(_pairs(program))
        self.text = "".join(f"{pair.head}{pair.text})\n" for pair in self._pairs)
        """Lines for the checker, to stand before the program."""

    def placed(self, finding: Finding) -> Finding | None:
        """A finding about a line of the text, where it is in the program; None if it is about nothing there."""
        first = 1
        for pair in self._pairs:
            lines = pair.text.count("\n") + 1
            if first <= finding.line < first + lines:
                line = finding.line - first
                column = finding.column if line else finding.column - len(pair.head) + pair.column - 1
                is_inside = line > 0 or finding.column > len(pair.head)
                known = is_inside and finding.rule in _ABOUT_INPUTS
                return finding._replace(line=line + pair.line, column=column, end_line=0) if known else None
            first += lines
        return None


def _pairs(program: Program) -> list[_Pair]:
    code, source = program.code, program.source
    renewed = new_meanings(code)
    if "parallel" in renewed or "bridge" not in source:
        return []
    found: list[_Pair] = []
    for start, stop in _places(code):
        for pair in islice(_PAIR.finditer(code, start, stop), _MOST_PAIRS):
            root, name = pair[1].partition(".")[0], pair[2]
            if root in renewed or program.stubs.function(name) is None:
                continue
            end = end_of_bracket(code, pair.end())
            if end is not None and _END_OF_PAIR.match(code, end):
                found.append(_pair(source, pair.end(), end, pair[1], len(found)))
    return found


def _places(code: str) -> Iterator[tuple[int, int]]:
    """Where pairs may stand: in a call of parallel, and where the list is made that it is given by name."""
    for call in islice(_PARALLEL.finditer(code), _MOST_CALLS):
        yield call.end(), end_of_bracket(code, call.end()) or call.end()
        named = _GIVEN.match(code, call.end())
        if named is not None:
            made = re.compile(rf"(?<![\w.]){named[1]}[ \t]*(?:\+?=[ \t]*(?=\[)|\.append(?=\())")
            for place in islice(made.finditer(code), _MOST_CALLS):
                yield place.end(), end_of_bracket(code, place.end()) or place.end()


def _pair(source: str, start: int, end: int, function: str, number: int) -> _Pair:
    text = source[start:end]
    unknown = {name for name in _NAME.findall(text) if not keyword.iskeyword(name)} - {function.partition(".")[0]}
    head = f"def __pair_{number}({', '.join(sorted(unknown))}): {function}("
    line_start = source.rfind("\n", 0, start) + 1
    return _Pair(source.count("\n", 0, start) + 1, start - line_start + 1, head, text)


def judge_parallel(finding: Finding, program: Program) -> Mistake | None:
    """What `parallel` is given besides its pairs: the checker says only that something is wrong with it."""
    opening = program.code.find("(", program.at(finding))
    end = end_of_bracket(program.code, opening) if opening >= 0 else None
    if "`parallel`" not in finding.message or not program.is_readable or program.defines("parallel") or end is None:
        return None
    for start, stop in parts(program.code, opening, end):
        given = _OPTION.match(program.source, start, stop)
        if given is None:
            continue
        place = Finding(*program.position(given.start(1)), finding.rule, "")
        stub = program.stubs.function("parallel")
        if given[1] not in _OPTIONS:
            return mistake_at(
                place, stub, f"`parallel` has no parameter `{given[1]}`. It takes: {', '.join(_OPTIONS)}."
            )
        if not _OPTIONS[given[1]].fullmatch(given[2]) and _WRITTEN.fullmatch(given[2]):
            return mistake_at(place, stub, f"Wrong argument for `{given[1]}` of `parallel`: {given[2]}.")
    return None
