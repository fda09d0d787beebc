"""The pairs that a program gives to `parallel`, as calls that the checker can judge.

`parallel([(get_issue, {"id": 1})])` calls get_issue with that input, but no type says so: the pairs of a list may all
be different. So each is also written as a call, in a function that is never called, before the program. Whatever is
not written out in the dictionary is a parameter there, of which nothing is known.
"""

from __future__ import annotations

import keyword
import re
from itertools import islice
from typing import NamedTuple

from toolbridge.check.python_program import Finding, Program
from toolbridge.check.python_text import end_of_bracket, new_meanings

_PARALLEL = re.compile(r"\bparallel\s*(?=\()")
_PAIR = re.compile(r"\(\s*((?:\w+\.)*(\w+))\s*,\s*(?=\{)")
_END_OF_PAIR = re.compile(r"\s*,?\s*\)")
_NAME = re.compile(r"[^\W\d]\w*")
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
    for call in islice(_PARALLEL.finditer(code), _MOST_CALLS):
        stop = end_of_bracket(code, call.end())
        for pair in islice(_PAIR.finditer(code, call.end(), stop or call.end()), _MOST_PAIRS):
            root, name = pair[1].partition(".")[0], pair[2]
            if root in renewed or program.stubs.function(name) is None:
                continue
            end = end_of_bracket(code, pair.end())
            if end is not None and _END_OF_PAIR.match(code, end):
                found.append(_pair(source, pair.end(), end, pair[1], len(found)))
    return found


def _pair(source: str, start: int, end: int, function: str, number: int) -> _Pair:
    text = source[start:end]
    unknown = {name for name in _NAME.findall(text) if not keyword.iskeyword(name)} - {function.partition(".")[0]}
    head = f"def __pair_{number}({', '.join(sorted(unknown))}): {function}("
    line_start = source.rfind("\n", 0, start) + 1
    return _Pair(source.count("\n", 0, start) + 1, start - line_start + 1, head, text)
