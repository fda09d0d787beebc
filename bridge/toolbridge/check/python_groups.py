"""Collections that a program fills and goes through, written so that the checker can tell what is in them.

It infers what is in a dictionary that is filled by assignments, and nothing of one that is filled as
`groups[key].append(row)` or `groups.setdefault(key, []).append(row)`; and of `filter` with a function without
annotations, nothing either. The program that runs is never changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from toolbridge.check.python_functions import Line
from toolbridge.check.python_own_results import RESULTS, says_little
from toolbridge.check.python_program import Program
from toolbridge.check.python_rewriting import Edit
from toolbridge.check.python_text import end_of_bracket

_DEFINED = re.compile(
    r"(\w+)[ \t]*(:[^=]*?)?[ \t]*=[ \t]*((?:collections\.)?defaultdict\((?:list|set)\)|\{[ \t]*\}|dict\(\))\Z"
)
_FILTER = re.compile(r"(?<![\w.])filter(?=\()")
_ADDED = re.compile(r"\.(append|add)\(")
_MOST = 100


def groups(program: Program) -> Iterator[Edit]:
    """The edits for dictionaries of lists and sets, and for `filter`."""
    code = program.code
    filled: set[str] = set()
    for line in islice(program.logical_lines, _MOST * 10):
        edits = list(_addition(line, code))
        if edits:
            filled.add(re.match(r"\w+", line.text)[0])  # type: ignore[index]
            yield from edits
    for line in program.logical_lines if filled else ():
        defined = _DEFINED.match(line.text)
        if defined is not None and defined[1] in filled:
            says = defined[2] or ""
            if says and (says_little(says[1:]) or "defaultdict" in says):
                yield Edit(line.start + defined.start(2), line.start + defined.end(2), "")
            yield Edit(line.start + defined.start(3), line.start + defined.end(3), "{}")
    if "filter" not in program.new_meanings:
        for found in islice(_FILTER.finditer(code), _MOST):
            yield Edit(*found.span(), f"{RESULTS}.filtered")


def _addition(line: Line, code: str) -> Iterator[Edit]:
    """`groups[key].append(row)` as `groups[key] = [row]`."""
    start = re.match(r"\w+", line.text)
    if start is None:
        return
    opening = line.start + start.end()
    default = re.compile(r"\.setdefault\(").match(code, opening)
    end = (
        end_of_bracket(code, default.end() - 1 if default else opening)
        if default or code[opening : opening + 1] == "["
        else None
    )
    added = _ADDED.match(code, end) if end is not None else None
    closed = end_of_bracket(code, added.end() - 1) if added else None
    if end is None or added is None or closed is None or closed != line.end:
        return
    before, after = ("[(", ")]") if added[1] == "append" else ("{(", ")}")
    if default:
        empty = re.compile(r",\s*(?:\[\]|set\(\))\s*\)\Z").search(code, default.end(), end)
        if empty is None:
            return
        yield Edit(*default.span(), "[")
        yield Edit(empty.start(), added.end(), f"] = {before}")
    else:
        yield Edit(end, added.end(), f" = {before}")
    yield Edit(closed - 1, closed, after)
