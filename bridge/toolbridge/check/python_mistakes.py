"""Which of the Python checker's findings are mistakes: those after which a run surely goes wrong. The rest is noise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from toolbridge.check.python_program import Finding, Program
from toolbridge.check.spelling import nearest
from toolbridge.sandbox.compiler import StubLine


class Mistake(NamedTuple):
    """What is wrong, where in the author's program, and which line of the stubs says so."""

    line: int
    column: int
    message: str
    rule: str
    stub: StubLine | None


_QUOTED = re.compile(r"`([^`]*)`")
_KEY = re.compile(r'Unknown key "([^"]*)" for TypedDict `(\w+)`')
_KEYWORD_FIRST = re.compile(r"\s*(?:\)|\*\*|[^\W\d]\w*\s*=(?!=))")
_LITERAL_FIRST = re.compile(r"""\s*(?:[rbfu]{0,2}["']|\d|\[)""", re.IGNORECASE)
_SCALARS = re.compile(r"(?:(?:str|int|float|bool|None|Literal\[[^\]]*\])(?: \| |$))+")
_NO_SYNTAX_ERROR_HERE = re.compile(r"await|yield|return|async", re.IGNORECASE)
_ARITY = {"missing-argument", "unknown-argument", "too-many-positional-arguments", "parameter-already-assigned"}


def find_mistakes(findings: Iterable[Finding], program: Program) -> list[Mistake]:
    """The mistakes among the findings, in the program's order, one for each place."""
    placed = [each._replace(line=each.line - program.offset) for each in findings]
    if any(each.rule == "invalid-syntax" and not _NO_SYNTAX_ERROR_HERE.search(each.message) for each in placed):
        return []  # what Python itself can't read, it says best
    mistakes: dict[tuple[int, int], Mistake] = {}
    for each in sorted(placed):
        judge = _JUDGES.get(each.rule)
        if each.line < 1 or judge is None:
            continue
        mistake = judge(each, program)
        if mistake is not None:
            mistakes.setdefault((each.line, each.column), mistake)
    return _without_doubles(list(mistakes.values()))


def _without_doubles(mistakes: list[Mistake]) -> list[Mistake]:
    """An argument that is misspelt, or not named, is also a missing one: said once, where it stands."""
    unknown = {each.line for each in mistakes if each.rule in _ARITY - {"missing-argument"}}
    return [each for each in mistakes if each.rule != "missing-argument" or each.line not in unknown]


def _mistake(finding: Finding, stub: StubLine | None, message: str = "") -> Mistake:
    return Mistake(finding.line, finding.column, message or finding.message, finding.rule, stub)


# ---- judges: each gives the mistake, or None for noise


def _judge_import(finding: Finding, program: Program) -> Mistake | None:
    names = _QUOTED.findall(finding.message)
    if not names:
        return None
    module = names[0]
    if not (module == "host" or module.startswith("host.")):
        # Elsewhere than at the top, it may be tried.
        is_at_top = program.lines[finding.line - 1][:1] not in (" ", "\t")
        return _mistake(finding, None, f"There is no module `{module}` in the sandbox.") if is_at_top else None
    if len(names) > 1 and module != "host":
        return _missing_member(finding, program, module, names[1])
    return _missing_module(finding, program, ".".join(names[:2]))


def _missing_module(finding: Finding, program: Program, module: str) -> Mistake:
    known = [f"host.{name.removeprefix('host:').replace('-', '_')}" for name in program.world.modules]
    guess = nearest(module.removesuffix(".aio"), [*known, "host.bridge"])
    there = f"Did you mean '{guess}'?" if guess else f"There are: {', '.join([*known[:20], 'host.bridge'])}."
    return _mistake(finding, None, f"There is no module '{module}'. {there}")


def _missing_member(finding: Finding, program: Program, module: str, name: str) -> Mistake:
    members = program.stubs.functions(module)
    guess = nearest(name, members)
    if guess:
        there = f"Did you mean: '{guess}'?"
    else:
        shown = ", ".join(members[:20]) + ("" if len(members) <= 20 else f", … ({len(members)} in all)")
        there = f"It has: {shown}." if members else ""
    stub = program.stubs.function(guess, module) if guess else None
    return _mistake(finding, stub, f"Module `{module}` has no member `{name}`. {there}".rstrip())


def _judge_call(finding: Finding, program: Program) -> Mistake | None:
    names = _QUOTED.findall(finding.message)
    function = names[-1] if names else ""
    stub = program.stubs.function(function)
    if stub is None:
        stub = program.stubs.function(_called(finding, program))
    if stub is None and not program.defines(function):
        return None  # a library's: what it takes is not always what its stubs say
    if stub is not None and not _is_sure_call(finding, program):
        return None
    if finding.rule == "too-many-positional-arguments" and stub is not None:
        return _mistake(finding, stub, f"`{function}`: it takes keyword arguments, or one dict.")
    if finding.rule == "unknown-argument" and stub is not None:
        return _mistake(finding, stub, _unknown_argument(finding, program, names[0], stub))
    return _mistake(finding, stub)


def _called(finding: Finding, program: Program) -> str:
    found = re.match(r"(?:\w+\.)*(\w+)\s*\(", program.rest(finding))
    return found[1] if found else ""


def _unknown_argument(finding: Finding, program: Program, argument: str, stub: StubLine) -> str:
    parameters = program.stubs.parameters(stub)
    guess = nearest(argument, parameters)
    there = f"Did you mean `{guess}`?" if guess else f"It takes: {', '.join(parameters) or 'nothing'}."
    return f"{finding.message}. {there}"


def _is_sure_call(finding: Finding, program: Program) -> bool:
    """A tool takes its input as keyword arguments, as one mapping, or as both: what a mapping holds is not known."""
    rest = program.rest(finding)
    if finding.rule == "too-many-positional-arguments":
        return _LITERAL_FIRST.match(rest) is not None or not finding.message.endswith("got 1")
    if finding.rule == "missing-argument":
        _, opening, given = rest.partition("(")
        return bool(opening) and bool(_KEYWORD_FIRST.match(given) or _LITERAL_FIRST.match(given))
    return True


def _judge_argument(finding: Finding, program: Program) -> Mistake | None:
    if "cannot be called with key of type" in finding.message:
        return _judge_index(finding, program)
    if finding.message.startswith("Invalid argument to key"):
        return _judge_given_value(finding, program)
    names = _QUOTED.findall(finding.message)
    if not finding.message.startswith("Argument to function") or len(names) < 3:
        return None
    function, expected, found = names[0], names[-2], names[-1]
    stub = program.stubs.function(function)
    if stub is None or not _is_sure_type(expected, found) or program.rest(finding).startswith("*"):
        return None
    keyword = re.match(r"(\w+)\s*=", program.rest(finding))
    line = program.stubs.parameter(stub, keyword[1]) if keyword else None
    what = f" for `{keyword[1]}`" if keyword else ""
    message = f"Wrong argument{what} of `{function}`: expected `{expected}`, found `{found}`."
    return _mistake(finding, line or stub, message)


def _is_sure_type(expected: str, found: str) -> bool:
    """Whether a value of the found type can never be what is expected."""
    if any(word in found for word in ("Any", "Unknown", "Handle")):
        return False
    if "dict[" in found and not _SCALARS.fullmatch(expected):
        return False  # nobody knows what is in a dictionary that a program has built
    options = {each.strip() for each in found.split(" | ")}
    wanted = {each.strip() for each in expected.split(" | ")}
    if "None" in options and len(options) > 1:
        return False  # often known not to be None
    # A list of texts is one of any texts, though only some are right.
    return not (_is_wide(options) and "Literal[" in expected) and not options <= wanted


def _is_wide(options: set[str]) -> bool:
    return any(re.search(r"\b(?:str|int|LiteralString)\b", each) and "Literal[" not in each for each in options)


def _judge_index(finding: Finding, program: Program) -> Mistake | None:
    names = _QUOTED.findall(finding.message)
    key, owner = names[-2], names[-1]
    if " | " in owner or not re.match(r"(?:list\[|str$|Literal\[|LiteralString)", owner):
        return None
    if not key.startswith(('Literal["', "str")):
        return None
    hint = " Take an element first: value[0]." if owner.startswith("list[") else ""
    stub = program.stubs.type(re.sub(r"^list\[|\]$", "", owner))
    name = key.removeprefix("Literal[").rstrip("]")
    return _mistake(finding, stub, f"Object of type `{owner}` has no key {name}.{hint}")


def _judge_key(finding: Finding, program: Program) -> Mistake | None:
    found = _KEY.match(finding.message)
    if found is None or found[1] in program.assigned_keys or "subscripted object has type" in finding.message:
        return None
    key, owner = found[1], found[2]
    stub = program.stubs.type(owner)
    meant = re.search(r'did you mean "([^"]+)"', finding.message)
    if stub is not None and meant:
        stub = program.stubs.field(stub, meant[1]) or stub
    hint = f' Did you mean "{meant[1]}"?' if meant else f" It has: {', '.join(program.stubs.fields(owner))}."
    return _mistake(finding, stub, f'`{owner}` has no key "{key}".{hint}')


def _judge_given_key(finding: Finding, program: Program) -> Mistake | None:
    """An object that is written out as an argument lacks a key, or has one too many."""
    owner = next(iter(_QUOTED.findall(finding.message)), "")
    stub = program.stubs.type(owner)
    return None if stub is None else _mistake(finding, stub)


def _judge_given_value(finding: Finding, program: Program) -> Mistake | None:
    """A value of such an object is of the wrong type."""
    declared, owner, found = _QUOTED.findall(finding.message)[:3]
    key = finding.message.split('"')[1]
    stub = program.stubs.type(owner)
    if stub is None or not _is_sure_type(declared, found):
        return None
    message = f"Wrong value for `{key}`: expected `{declared}`, found `{found}`."
    return _mistake(finding, program.stubs.field(stub, key) or stub, message)


def _judge_attribute(finding: Finding, program: Program) -> Mistake | None:
    names = _QUOTED.findall(finding.message)
    if "has no" not in finding.message or names[-1] in program.assigned_attributes or program.is_open:
        return None
    owner, name = names[-2], names[-1]
    if finding.message.startswith("Module "):
        if owner == "host":
            return _missing_module(finding, program, f"host.{name}")
        return _missing_member(finding, program, owner, name) if owner.startswith("host.") else _mistake(finding, None)
    can_be_given = owner.startswith(("def ", "type[", "<class", "bound method"))
    if _is_unsure_owner(owner) or can_be_given:
        return None
    stub = program.stubs.type(re.sub(r"^list\[|\]$", "", owner))
    is_key = stub is not None and name in program.stubs.fields(owner)
    hint = f' A result is a dictionary: ["{name}"].' if is_key else ""
    return _mistake(finding, stub, f"{finding.message}.{hint}")


def _is_unsure_owner(owner: str) -> bool:
    """None may have been assigned since; a union is only a guess."""
    is_caught = re.fullmatch(r"(?:Base)?Exception|\w+Error", owner) is not None  # and is often something more special
    return owner in ("None", "object") or " | " in owner or is_caught


def _judge_value(finding: Finding, program: Program) -> Mistake | None:
    owners = _QUOTED.findall(finding.message)
    types = [each for each in owners if not re.fullmatch(r"\W+|__\w+__", each)]
    if any(_is_unsure_owner(each) or "None" in each or "Unknown" in each for each in types):
        return None
    awaited = next((each for each in types if each.startswith(("Coroutine[", "CoroutineType["))), "")
    stub = next((found for each in types if (found := program.stubs.type(re.sub(r"^list\[|\]$", "", each)))), None)
    message = f"{finding.message}. Did you forget `await`?" if awaited else finding.message
    return _mistake(finding, stub, message)


def _judge_name(finding: Finding, program: Program) -> Mistake | None:
    names = _QUOTED.findall(finding.message)
    if not names or names[0] in program.known_words or program.is_open:
        return None
    name = names[0]
    words = {word for word in re.findall(r"[^\W\d]\w*", program.source[:100_000]) if word != name}
    guess = nearest(name, sorted(words))
    hint = f" Did you mean `{guess}`?" if guess else ""
    return _mistake(finding, None, f"Name `{name}` is not defined.{hint}")


_JUDGES = {
    **dict.fromkeys(_ARITY, _judge_call),
    **dict.fromkeys(("not-subscriptable", "not-iterable", "not-callable", "unsupported-operator"), _judge_value),
    "import-not-found": _judge_import,
    "missing-attribute": _judge_attribute,
    "invalid-argument-type": _judge_argument,
    "invalid-typed-dict-key": _judge_key,
    "missing-typed-dict-key": _judge_given_key,
    "unknown-typed-dict-constructor-key": _judge_given_key,
    "unresolved-reference": _judge_name,
}
