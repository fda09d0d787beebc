"""Judges of what a program gives to the language's own functions, where that surely goes wrong.

What these take is not always what their stubs say, so only some are judged, and only a tool's result, or a part of one:
`json.loads` of an object, `", ".join` of numbers, `int` of a list. Of a function with several signatures the checker
says only that none matches: it is asked a second time, for what is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from toolbridge.check.python_program import QUOTED, Finding, Mistake, Program, mistake_at
from toolbridge.check.python_questions import Place
from toolbridge.check.python_text import end_of_bracket, parts, split_outside
from toolbridge.sandbox.compiler import StubLine

_TEXT, _NUMBER, _LIST, _OBJECT = "text", "number", "list", "object"
_MATH = ("sqrt", "floor", "ceil", "log", "log10", "exp", "hypot", "radians", "trunc", "fabs")
_GOES_THROUGH = (
    "max",
    "min",
    "sorted",
    "any",
    "all",
    "list",
    "set",
    "tuple",
    "enumerate",
    "zip",
    "reversed",
    "frozenset",
)
_FAILS = {
    "loads": {_NUMBER, _LIST, _OBJECT},
    "fromisoformat": {_NUMBER, _LIST, _OBJECT},
    "fromtimestamp": {_TEXT, _LIST, _OBJECT},
    "startswith": {_NUMBER, _LIST, _OBJECT},
    "endswith": {_NUMBER, _LIST, _OBJECT},
    **{name: {_LIST, _OBJECT} for name in ("int", "float")},
    **{name: {_TEXT, _LIST, _OBJECT} for name in ("round", "abs", "range", *_MATH)},
    **{name: {_NUMBER} for name in _GOES_THROUGH},
}
"""What a function's argument can't be."""
_ITEMS_FAIL = {"join": {_NUMBER, _LIST, _OBJECT}, "sum": {_TEXT, _LIST, _OBJECT}}
"""What the items can't be of what a function goes through."""
_PATTERN_FUNCTIONS = ("search", "match", "fullmatch", "findall", "finditer", "split")
_SECOND_FAILS = {name: {_NUMBER, _LIST, _OBJECT} for name in _PATTERN_FUNCTIONS}
"""What the second argument of a function of `re` can't be."""
_FIRST_FAILS = {"sorted": {_NUMBER}, "max": {_NUMBER}, "min": {_NUMBER}}
"""What the only argument can't be that is not named."""
_FIRST_OF_MORE_FAILS = {name: _FAILS[name] for name in ("round", "int")}
"""What the first argument can't be, whatever comes after it."""
_OVERLOADED = {**_ITEMS_FAIL, **_SECOND_FAILS, **_FIRST_FAILS, **_FIRST_OF_MORE_FAILS}
_KINDS = {
    **dict.fromkeys(("str", "LiteralString"), _TEXT),
    **dict.fromkeys(("int", "float", "bool"), _NUMBER),
    **dict.fromkeys(("list", "tuple", "set"), _LIST),
    "dict": _OBJECT,
}
_MANY = re.compile(
    r"(?:list|set|tuple|Generator|GeneratorType|Iterator|map|filter|dict_values|Sequence)\[(.*)\]", re.DOTALL
)
_TAKEN = re.compile(r"""\[\s*["']\w+["']\s*\]|\.get\(\s*["']""")
_NAMED = re.compile(r"\s*\w+\s*=(?!=)")
_METHOD = re.compile(r"\.__(?:new|init)__\Z")


class _Asked(NamedTuple):
    finding: Finding
    place: Place
    name: str


class LanguageCalls:
    """The calls of the language's own functions about which the checker says only that something is wrong."""

    def __init__(self, findings: Iterable[Finding], program: Program) -> None:
        self._program = program
        listed = findings if program.is_readable else ()
        self._asked = [asked for each in listed if (asked := _asked(each, program)) is not None]

    @property
    def places(self) -> list[Place]:
        """The values whose types are asked for."""
        return [each.place for each in self._asked]

    def mistakes(self, types: Mapping[Place, str]) -> list[Mistake]:
        """The calls that go wrong with values of the answered types."""
        found = (self._judge(each, types.get(each.place, "")) for each in self._asked)
        return [each for each in found if each is not None]

    def _judge(self, asked: _Asked, kind: str) -> Mistake | None:
        program = self._program
        text = program.source[asked.place.start : asked.place.end]
        if asked.name in _ITEMS_FAIL:
            many = _MANY.fullmatch(kind.rstrip("*"))
            fails, what = _ITEMS_FAIL[asked.name], split_outside(many[1], ",")[0].strip() if many else ""
        else:
            fails, what = _OVERLOADED[asked.name], kind
        if kind_of(what, program) not in fails or not _is_of_result(what, text, program):
            return None
        line, column = program.position(asked.place.start)
        place = Finding(line, column, asked.finding.rule, "")
        return mistake_at(place, _stub(what, place, program), f"`{asked.name}` can't be given `{kind}`.")


def judge_language(finding: Finding, program: Program) -> Mistake | None:
    """An argument of one of the language's own functions."""
    names = QUOTED.findall(finding.message)
    name = _METHOD.sub("", names[0]).rpartition(".")[2]
    found, text = names[-1], program.text_of(finding)
    if program.defines(name) or kind_of(found, program) not in _FAILS.get(name, ()):
        return None
    if not _is_of_result(found, text, program):
        return None
    return mistake_at(finding, _stub(found, finding, program), f"`{name}` can't be given `{found}`.")


def kind_of(text: str, program: Program) -> str:
    """What a value of a type is; nothing if that is not known, or one of several."""
    members = split_outside(text.rstrip("*"), " | ")
    if len(members) > 1 or not members[0] or "Unknown" in text or "Any" in text:
        return ""
    name = members[0].partition("[")[0]
    if name == "Literal":
        return _TEXT if '"' in text else _NUMBER
    return _OBJECT if program.stubs.type(name) else _KINDS.get(name, "")


def _is_of_result(kind: str, text: str, program: Program) -> bool:
    """Whether a value is a tool's, or a part of one: what the program annotates itself may be anything."""
    is_typed = any(program.stubs.type(word) for word in re.findall(r"\w+", kind))
    return is_typed or _TAKEN.search(text) is not None


def _stub(kind: str, finding: Finding, program: Program) -> StubLine | None:
    named = (program.stubs.type(word) for word in re.findall(r"\w+", kind))
    return next((each for each in named if each is not None), None) or program.stub_behind(finding, kind)


def _asked(finding: Finding, program: Program) -> _Asked | None:
    if finding.rule != "no-matching-overload":
        return None
    names = QUOTED.findall(finding.message)
    name = names[0].rpartition(".")[2] if names else ""
    start = program.at(finding)
    called = (
        re.compile(rf"(?:.*?[.\s])?{name}\s*(?=\()", re.DOTALL).match(program.code, start)
        if name.isidentifier()
        else None
    )
    if called is None or name not in _OVERLOADED or program.defines(name):
        return None
    end = end_of_bracket(program.code, called.end())
    arguments = list(parts(program.code, called.end(), end)) if end is not None else []
    if name in _FIRST_FAILS:
        arguments = [each for each in arguments if not _NAMED.match(program.code[slice(*each)])]
    if name in _FIRST_OF_MORE_FAILS:
        arguments = arguments[:1]
    wanted = 1 if name in _SECOND_FAILS else 0
    if len(arguments) != wanted + 1:
        return None
    first, last = arguments[wanted]
    text = program.code[first:last]
    if text.lstrip().startswith("*") or "=" in text.partition("(")[0]:
        return None
    return _Asked(finding, Place(first + len(text) - len(text.lstrip()), first + len(text.rstrip())), name)
