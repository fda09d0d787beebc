"""Comparisons in a Python program, read as text: a value, and the constants that it is compared with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from toolbridge.check.python_functions import logical_lines
from toolbridge.check.python_questions import Place
from toolbridge.check.python_text import end_of_bracket, start_of_bracket_around

_EQUAL = re.compile(r"(?:==|!=)\s*|(?<![\w.])(?:not\s+)?in\b\s*(?=[(\[{])")
_CONTAINED = re.compile(r"(?<=[\"'])\s+(?:not\s+)?in\s+(?=[^\W\d])")
_CONSTANT = re.compile(r"""(?:"[^"\\\n{}]*"|'[^'\\\n{}]*'|-?\d+|True|False)(?![\w.])""")
_PART = re.compile(r"\s*,?\s*")
_AFTER = re.compile(r"""\s*(?:$|[)\]},:;#\n]|(?:and|or|if|else|for)\b|==|!=)""")
_WORD_BEFORE = re.compile(r"[\w.]+\Z")
_KEYWORDS = "if|elif|while|and|or|not|return|else|lambda|assert|yield|in|case|match|is"
# What may stand before a value that is all that is compared: everything else binds it first, or is a loop.
_BEFORE = re.compile(rf"(?:^|[(\[{{,:=;]|\b(?:{_KEYWORDS}))\s*\Z")
_LOOP = re.compile(r"\bfor\b(?:(?!\bin\b)[^()\[\]{}:\n])*\Z")
_CHAIN = re.compile(r"(?:[<>!=]=|[<>]|\bin|\bis)\s*\Z")
_MATCH = re.compile(r"match[ \t]+(.+?)[ \t]*:\Z")
_CASE = re.compile(r"case\b[ \t]*")
_NEAR = 200
_LONGEST = 2000


class Comparison(NamedTuple):
    """A value that is compared with constants."""

    operand: Place
    constants: tuple[str, ...]
    """As they are written."""
    at: int
    """Where the first of them stands."""
    is_item: bool = False
    """Whether the constant is looked for in the value."""


def comparisons(source: str, code: str) -> Iterator[Comparison]:
    """The comparisons with constants; `code` is the source without its strings."""
    yield from _equal(source, code)
    yield from _contained(source, code)
    yield from _cases(source, code)


def _equal(source: str, code: str) -> Iterator[Comparison]:
    for found in _EQUAL.finditer(code):
        constants, _ = _constants(source, code, found.end())
        operand = operand_before(code, found.start()) if constants else None
        if operand is not None:
            yield Comparison(operand, constants, found.end())


def _contained(source: str, code: str) -> Iterator[Comparison]:
    for found in _CONTAINED.finditer(code):
        start = code.rfind(code[found.start() - 1], 0, found.start() - 1) if code[found.start() - 1] in "\"'" else -1
        constant = _CONSTANT.match(source, start) if start >= 0 else None
        operand = operand_at(code, found.end())
        before = code[max(0, start - _NEAR) : max(0, start)]
        if constant is not None and operand is not None and _BEFORE.search(before):
            yield Comparison(operand, (constant[0],), start, is_item=True)


def _cases(source: str, code: str) -> Iterator[Comparison]:
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
            if case and constants and re.match(r"\s*(?::|if\b)", code[end : end + _NEAR]):
                place = Place(line.start + subject.start(1), line.start + subject.end(1))
                yield Comparison(place, constants, each.start + case.end())


def _constants(source: str, code: str, at: int) -> tuple[tuple[str, ...], int]:
    """The constant at a place, or those in the bracket or between the bars there; none if there is anything else."""
    constant = _CONSTANT.match(source, at)
    if constant is not None:
        found, end = [constant[0]], constant.end()
        while (bar := re.match(r"\s*\|\s*", code[end : end + _NEAR])) and (
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


def operand_before(code: str, at: int) -> Place | None:
    """The value that stands before an operator, if it is all that is compared."""
    end = len(code[:at].rstrip()) if at < _NEAR else at - (_NEAR - len(code[at - _NEAR : at].rstrip()))
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
        word = _WORD_BEFORE.search(code, max(0, start - _NEAR), start)
        if word is None:
            break
        start = word.start()
        if not word[0].startswith("."):
            break
    before = code[max(0, start - _NEAR) : start]
    is_whole = start < end and _BEFORE.search(before) and not _LOOP.search(before) and not _CHAIN.search(before)
    has_name = re.match(r"[^\W\d]", code[start : start + 1])
    return Place(start, end) if is_whole and has_name else None


def operand_at(code: str, at: int) -> Place | None:
    """The value that begins at a place: a name, with whatever is taken of it."""
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
    return Place(at, end) if end > at and _AFTER.match(code, end) else None
