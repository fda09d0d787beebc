"""Judges of what a program gives to tools: arguments that are missing, unknown, or can't be what the tool takes."""

from __future__ import annotations

import re

from toolbridge.check.python_constants import wrong_constant
from toolbridge.check.python_digits import may_be_digits
from toolbridge.check.python_language import judge_language
from toolbridge.check.python_program import QUOTED, Finding, Mistake, Program, mistake_at
from toolbridge.check.python_text import end_of_bracket, start_of_bracket_around
from toolbridge.check.python_types import ValueTypes
from toolbridge.check.spelling import nearest
from toolbridge.sandbox.compiler import StubLine

_KEYWORD = re.compile(r"(\w+)\s*=\s*(?!=)")
_KEYWORD_FIRST = re.compile(r"\s*(?:\)|\*\*|[^\W\d]\w*\s*=(?!=))")
_LITERAL_FIRST = re.compile(r"""\s*(?:[rbfu]{0,2}["']|\d|\[)""", re.IGNORECASE)
_FRACTION = re.compile(r"-?\d[\d_]*\.\d*[1-9]\d*\s*(?:[,)]|$)", re.MULTILINE)
_FIRST_ITEM = re.compile(
    r"""\[\s*(?:(?P<text>["'])|(?P<number>-?\d+)\s*[,\]]|(?P<truth>True|False)\b\s*[,\]]"""
    r"""|(?P<list>\[|list\(|sorted\()|(?P<object>\{\s*["']))"""
)
_TEXTS = re.compile(r"""\[(?:\s*(?:"[^"\\\n]{1,100}"|'[^'"\\\n]{1,100}')\s*(?:,|(?=\])))+\s*\]""")
_TEXT = re.compile(r"""(["'])(.+?)\1""")
_ITEM_KINDS = (("str", "text"), ("list", "list"), ("dict", "object"))
_MISSING_KEY = re.compile(r"Missing required key ['\"](.*)['\"] in TypedDict")
_UNKNOWN_KEY = re.compile(r'Unknown key "(.*)" for TypedDict')
_OPENING = re.compile(r"dict\s*\(|\{")
_NEAR = 200
_LAST_NAME = re.compile(r"([^\W\d]\w*)\s*\Z")
_WITHOUT_LENGTH = re.compile(r"(?:int|float|bool|Literal\[-?\d+\])\*?")


def judge_call(finding: Finding, program: Program) -> Mistake | None:
    """A call with too few arguments, too many, or unknown ones."""
    names = QUOTED.findall(finding.message)
    function = names[-1] if names else ""
    stub = program.stubs.function(function)
    if stub is None:
        # What a library's takes is not always what its stubs say.
        return mistake_at(finding, None) if program.defines(function) else None
    if _may_call_another(finding, program, function):
        return None
    match finding.rule:
        case "missing-argument":
            return mistake_at(finding, stub) if _has_only_keywords(finding, program) else None
        case "too-many-positional-arguments":
            return _positional(finding, program, function, stub)
        case "unknown-argument":
            return mistake_at(finding, stub, _unknown_argument(finding, program, names[0], stub))
        case _:
            return mistake_at(finding, stub)


def _may_call_another(finding: Finding, program: Program, function: str) -> bool:
    """Whether a function is called by a name that the program gave it, perhaps to several: `for f in (one, other):`."""
    if finding.rule == "missing-argument":
        called = program.rest(finding).partition("(")[0]
    else:
        opening = start_of_bracket_around(program.code, program.at(finding))
        called = "" if opening is None else program.code[max(0, opening - _NEAR) : opening]
    name = _LAST_NAME.search(called)
    return name is not None and name[1] != function and name[1] in program.new_meanings


def _has_only_keywords(finding: Finding, program: Program) -> bool:
    """Whether a call gives no mapping: what is in one is not known here."""
    _, opening, given = program.rest(finding).partition("(")
    return bool(opening) and _KEYWORD_FIRST.match(given) is not None


def _positional(finding: Finding, program: Program, function: str, stub: StubLine) -> Mistake | None:
    is_sure = _LITERAL_FIRST.match(program.rest(finding)) is not None or not finding.message.endswith("got 1")
    return mistake_at(finding, stub, f"`{function}`: it takes keyword arguments, or one dict.") if is_sure else None


def _unknown_argument(finding: Finding, program: Program, argument: str, stub: StubLine) -> str:
    parameters = program.stubs.parameters(stub)
    guess = nearest(argument, parameters)
    there = f"Did you mean `{guess}`?" if guess else f"It takes: {', '.join(parameters) or 'nothing'}."
    return f"{finding.message}. {there}"


def judge_argument(finding: Finding, program: Program) -> Mistake | None:
    """An argument of the wrong type."""
    names = QUOTED.findall(finding.message)
    if finding.message.startswith("Invalid argument to key"):
        return _judge_given_value(finding, program)
    if not finding.message.startswith("Argument to ") or len(names) < 3:
        return None
    stub = program.stubs.function(names[0])
    if stub is None:
        return _judge_length(finding, program, names[0], names[-1]) or judge_language(finding, program)
    return None if _may_call_another(finding, program, names[0]) else _judge_given(finding, program, stub, names)


def _judge_given(finding: Finding, program: Program, stub: StubLine, names: list[str]) -> Mistake | None:
    """The same for an argument of a tool."""
    function, expected, found = names[0], names[-2], names[-1]
    rest = program.rest(finding)
    keyword = _KEYWORD.match(rest)
    if rest.startswith("*"):
        return None
    if keyword is None:
        can_fit = _types(program).can_fit(expected, found)
        return None if can_fit else mistake_at(finding, stub, f"`{function}`: it takes keyword arguments, or one dict.")
    none_fits = not program.stubs.is_required(stub, keyword[1])
    given = program.text_of(finding)[keyword.end() :] or rest[keyword.end() :]
    if not _is_wrong(expected, found, program, given, none_fits=none_fits):
        wrong = _types(program).wrong_constants(expected, found)
        at = wrong_constant(finding, wrong, program) if wrong else None
        if at is None:
            return None
        line, column = program.position(at)
        message = f"Wrong value for `{keyword[1]}` of `{function}`: expected `{expected}`, found `{found}`."
        written = mistake_at(finding, program.stubs.parameter(stub, keyword[1]) or stub, message)
        return written._replace(line=line, column=column)
    message = f"Wrong argument for `{keyword[1]}` of `{function}`: expected `{expected}`, found `{found}`."
    return mistake_at(finding, program.stubs.parameter(stub, keyword[1]) or stub, message)


def _types(program: Program) -> ValueTypes:
    return ValueTypes(lambda name: program.stubs.type(name) is not None, program.defines)


def _is_wrong(expected: str, found: str, program: Program, text: str, *, none_fits: bool) -> bool:
    """Whether what is given, which begins with this text, can never be what is expected."""
    types = _types(program)
    if not types.can_fit(expected, found, none_fits=none_fits, has_digits=may_be_digits(text, program)):
        return True
    if found.startswith("float") and _FRACTION.match(text):
        return not types.can_fit(expected, "float") or "float" not in expected
    # The checker takes a list that is written out for one of what it should have and of what it has.
    item = _FIRST_ITEM.match(text)
    if item is None or not found.startswith("list["):
        return False
    if written := _TEXTS.match(text):
        return not all(types.can_fit(expected, f'tuple[Literal["{each}"]]') for _, each in _TEXT.findall(written[0]))
    kind = next((kind for kind, group in _ITEM_KINDS if item[group]), f"Literal[{item['number'] or item['truth']}]")
    return not types.can_fit(expected, f"tuple[{kind}]")


def _judge_length(finding: Finding, program: Program, function: str, found: str) -> Mistake | None:
    """A number has no length, whoever made it."""
    if function != "len" or program.defines("len") or not _WITHOUT_LENGTH.fullmatch(found):
        return None
    return mistake_at(finding, program.stub_behind(finding, found), f"Object of type `{found}` has no length.")


def judge_given_key(finding: Finding, program: Program) -> Mistake | None:
    """An object that is written out as an argument lacks a key, or has one too many."""
    owner = next(iter(QUOTED.findall(finding.message)), "")
    stub = program.stubs.type(owner)
    missing, unknown = _MISSING_KEY.match(finding.message), _UNKNOWN_KEY.match(finding.message)
    if stub is None or (missing and not _is_whole(finding, program)) or not (missing or unknown):
        return None
    if missing:
        return mistake_at(finding, program.stubs.field(stub, missing[1]) or stub)
    assert unknown is not None
    guess = nearest(unknown[1], program.stubs.fields(owner))
    there = f'Did you mean "{guess}"?' if guess else f"It has: {', '.join(program.stubs.fields(owner))}."
    line = program.stubs.field(stub, guess) if guess else None
    return mistake_at(finding, line or stub, f'`{owner}` has no key "{unknown[1]}". {there}')


def _is_whole(finding: Finding, program: Program) -> bool:
    """Whether all keys of an object are there to be read: none comes from elsewhere, nor from keywords beside it."""
    at = program.at(finding)
    opening = _OPENING.match(program.code, at)
    end = None if opening is None else end_of_bracket(program.code, opening.end() - 1)
    if end is None or "**" in program.code[at:end]:
        return False
    is_argument = program.code[max(0, at - _NEAR) : at].rstrip().endswith("(")
    after = program.code[end : end + _NEAR].lstrip().removeprefix(",").lstrip()
    return not is_argument or after.startswith(")")


def _judge_given_value(finding: Finding, program: Program) -> Mistake | None:
    """A value of such an object is of the wrong type."""
    declared, owner, found = QUOTED.findall(finding.message)[:3]
    key = finding.message.split('"')[1]
    stub = program.stubs.type(owner)
    none_fits = stub is not None and not program.stubs.is_required_field(stub, key)
    if stub is None or not _is_wrong(
        declared, found, program, program.text_of(finding) or program.rest(finding), none_fits=none_fits
    ):
        return None
    message = f"Wrong value for `{key}`: expected `{declared}`, found `{found}`."
    return mistake_at(finding, program.stubs.field(stub, key) or stub, message)


def without_doubles(mistakes: list[Mistake]) -> list[Mistake]:
    """An argument that is misspelt, or not named, is also a missing one: said once, where it stands."""
    unknown = {each.line for each in mistakes if each.rule in _SAYS_WHICH}
    meant = {each.stub for each in mistakes if each.rule == "unknown-typed-dict-constructor-key"}
    return [
        each
        for each in mistakes
        if each.rule not in _SAYS_THAT_ONE_IS_MISSING or (each.line not in unknown and each.stub not in meant)
    ]


_SAYS_THAT_ONE_IS_MISSING = {"missing-argument", "missing-typed-dict-key"}
_SAYS_WHICH = {
    "unknown-argument",
    "too-many-positional-arguments",
    "parameter-already-assigned",
    "unknown-typed-dict-constructor-key",
}
