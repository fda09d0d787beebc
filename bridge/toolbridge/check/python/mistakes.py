"""Classifies the checker's findings: mistakes, after which a run certainly fails, and noise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice

from toolbridge.check.python.program import QUOTED, LogicalLine, Mistake, Program, TyFinding, mistake_at
from toolbridge.check.python.rewriting import Span, classify_parallel
from toolbridge.check.python.text import HOST_IMPORT, blank_strings, split_outside, start_of_bracket_around
from toolbridge.check.python.tool_arguments import classify_argument, classify_call, classify_input_key
from toolbridge.errors import nearest

# Union types. Of a value of a union type, the checker often names only the member that is wrong. A list of different
# tools' results has such values, and the program knows which is which. So a second pass reveals the whole type of each
# value.

_MEMBER_RULES = {"not-subscriptable", "not-callable", "not-iterable"}
_INDEX = "cannot be called with key of type"
_LONGEST = 5000


class Alternatives:
    """Findings about members of union types, and the queries for the whole types that make some certain."""

    def __init__(self, findings: Iterable[TyFinding], mistakes: Iterable[Mistake], program: Program) -> None:
        # Only where a mistake would be reported: there are few, however many findings there are.
        reported = {each.found_at for each in mistakes}
        self._findings = list(findings)
        self._subjects: dict[TyFinding, Span] = {}
        self._failing: dict[Span, set[str]] = {}
        """The members that are wrong."""
        for each in self._findings:
            is_asked = (each.line, each.column) in reported and _names_member(each)
            place = _subject_span(each, program) if is_asked else None
            if place is not None:
                self._subjects[each] = place
                self._failing.setdefault(place, set()).update(_wrong_members(each))

    @property
    def spans(self) -> list[Span]:
        """The values whose types are queried."""
        return list(self._failing)

    def sure(self, types: Mapping[Span, str]) -> list[TyFinding]:
        """Returns the findings, without those about a value that may be another member, or whose type is unknown."""
        return [each for each in self._findings if not _names_member(each) or self._is_certain(each, types)]

    def _is_certain(self, finding: TyFinding, types: Mapping[Span, str]) -> bool:
        """Returns whether every member of the value's whole type is wrong, or it has only one."""
        place = self._subjects.get(finding)
        members = _member_set(types.get(place, "")) if place is not None else set[str]()
        return place is not None and (len(members) == 1 or (bool(members) and members <= self._failing[place]))


def _names_member(finding: TyFinding) -> bool:
    return finding.rule in _MEMBER_RULES or (finding.rule == "invalid-argument-type" and _INDEX in finding.message)


def _subject_span(finding: TyFinding, program: Program) -> Span | None:
    """Returns the span of the value that a finding is about; None if it is unknown or very long."""
    if not 0 < finding.line <= finding.end_line <= len(program.lines):
        return None
    start, end = program.at(finding), program.index(finding.end_line, finding.end_column)
    if end - start > _LONGEST:
        return None
    if finding.rule in ("not-subscriptable", "not-callable"):
        # The finding's range includes the brackets after the value.
        code = blank_strings(program.source[start:end])
        opening = start_of_bracket_around(code, len(code) - 1) if code.endswith((")", "]", "}")) else None
        end = start if opening is None else start + opening
    return Span(start, end) if program.source[start:end].strip() else None


def _wrong_members(finding: TyFinding) -> set[str]:
    """Returns the members of a union type that the checker's message names as wrong."""
    names = QUOTED.findall(finding.message)
    is_index = _INDEX in finding.message
    return _member_set(names[-1] if is_index else names[0]) if names else set()


def _member_set(text: str) -> set[str]:
    """Returns the members of a union but None, each literal by itself; empty for no text."""
    members: set[str] = set()
    if not text:
        return members
    for part in split_outside(text, " | "):
        plain = part.strip().rstrip("*")
        inside = plain.removeprefix("Literal[")
        if inside != plain:
            members.update(f"Literal[{each.strip()}]" for each in split_outside(inside[:-1], ","))
        else:
            members.add(plain)
    return members - {"None"}


# Missing `await`: reported at the call, though it shows where the result is used.

_CALL = re.compile(r"(?<![\w.])(?:\w+\.)*(\w+)[ \t]*\(")
_AWAITED = re.compile(r"\bawait[\s(]*\Z")
_HANDED_ON = re.compile(r"(?:gather|create_task|ensure_future|wait_for|shield|run|as_completed|wait|timeout)\s*\Z")
_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")
_COROUTINE = re.compile(r"`(?:CoroutineType|Coroutine)\[")
_GATHER = re.compile(r"(?<![\w.])asyncio\.gather[ \t]*(?=\()")
_TAKES = "zip|dict|list|tuple|set|enumerate|sorted|reversed|sum|max|min|len|any|all"
_ITERATES = re.compile(rf"(?<![\w.])(?:{_TAKES})\Z")
_NEAR = 100
_MOST_CALLS = 200
_DEEPEST = 6


def mentions_coroutine(message: str) -> bool:
    """Whether the checker's message is about a coroutine."""
    return _COROUTINE.search(message) is not None


def at_missing_await(mistake: Mistake, finding: TyFinding, program: Program) -> Mistake:
    """Returns the mistake at the call that lacks `await`, if it can be identified; else unchanged.

    The line of the use is then in its message.
    """
    if not program.is_small:
        return mistake
    start, end = program.at(finding), program.at(finding)
    if 0 < finding.end_line <= len(program.lines):
        end = program.index(finding.end_line, finding.end_column)
    at = _unawaited_call(program, start, end)
    if at is None:
        return mistake
    line, column = program.position(at)
    used = "" if line == mistake.line else f" Its result is used in line {mistake.line}."
    return mistake._replace(line=line, column=column, message=mistake.message + used)


def _unawaited_call(program: Program, start: int, end: int) -> int | None:
    """Returns the index of the call without `await` that a span uses, directly or by a variable; None in doubt."""
    code = program.code
    calls = list(islice(_unawaited_calls(program), _MOST_CALLS))
    if any(start <= at < end for at in calls):
        return next(at for at in calls if start <= at < end)
    for name in dict.fromkeys(_NAME.findall(code[start : max(end, start + 1)])):
        assigned = re.compile(rf"(?<![\w.]){re.escape(name)}[ \t]*(?::[^=\n]*)?:?=[ \t(]*(?=[^\s=])")
        ends = [found.end() for found in assigned.finditer(code, 0, start)]
        if ends:
            return ends[-1] if ends[-1] in calls else None
    return calls[0] if len(calls) == 1 else None


def _unawaited_calls(program: Program) -> Iterator[int]:
    """Yields the indexes of calls of coroutine functions that are neither awaited nor passed on to be."""
    code = program.code
    own = {each.name for each in program.functions if each.is_async}
    for call in _CALL.finditer(code):
        is_tool = program.stubs.function(call[1]) is not None and "aio" in program.source
        before = code[max(0, call.start() - _NEAR) : call.start()]
        is_awaited = _AWAITED.search(before) or before.rstrip().endswith("def")
        if (call[1] in own or is_tool) and not is_awaited and not _is_handed_on(code, call.start()):
            yield call.start()


def _is_handed_on(code: str, at: int) -> bool:
    """Returns whether a coroutine is passed to a function that awaits it: `asyncio.gather(one(), *[other(x) …])`."""
    for _ in range(_DEEPEST):
        opening = start_of_bracket_around(code, at)
        if opening is None:
            return False
        if code[opening] == "(" and _HANDED_ON.search(code[max(0, opening - _NEAR) : opening]):
            return True
        at = opening
    return False


def unawaited_gathers(program: Program) -> Iterator[Mistake]:
    """Yields `asyncio.gather(…)` whose results are used without `await`: to the checker, their type is unknown."""
    code = program.code
    is_asked = program.is_small and "asyncio" in code
    for found in islice(_GATHER.finditer(code), _MOST_CALLS) if is_asked else ():
        before = code[max(0, found.start() - _NEAR) : found.start()]
        line = program.line_around(found.start())
        if line is None or _AWAITED.search(before) or not _are_results_used(found.start(), before, line, program):
            continue
        place = TyFinding(*program.position(found.start()), "forgotten-await", "")
        yield mistake_at(place, None, "`asyncio.gather` is not awaited: it has no results yet. Did you forget `await`?")


def _are_results_used(at: int, before: str, line: LogicalLine, program: Program) -> bool:
    """Returns whether a call's results are unpacked, iterated or indexed, without an `await` of its variable."""
    code = program.code
    if re.search(r"\bin\s+\Z", before) or re.match(r"[\w*() \t]+,[\w*(), \t]*=\s*\Z", code[line.start : at]):
        return True
    opening = start_of_bracket_around(code, at)
    if opening is not None and opening >= line.start:
        return _ITERATES.search(code[max(0, opening - _NEAR) : opening]) is not None
    named = re.match(r"(\w+)[ \t]*=[ \t]*\Z", code[line.start : at])
    if named is None:
        return False
    uses = [each for each in program.logical_lines if re.search(rf"(?<![\w.]){named[1]}\b", each.text)]
    is_waited_for = any(re.search(r"\b(?:await|return|yield|append)\b", each.text) for each in uses if each != line)
    used = re.compile(rf"\bin[ \t]+{named[1]}\b|(?<![\w.]){named[1]}\[|\b(?:{_TAKES})\((?:[^()]*,[ \t]*)?{named[1]}\b")
    return not is_waited_for and any(used.search(each.text) for each in uses)


_KEY = re.compile(r'Unknown key "([^"]*)" for TypedDict `(\w+)`')
_SUBSCRIPTED = re.compile(r"subscripted object has type `([^`]*)`")
_USED_KEY = re.compile(r"""\.get\(\s*(["'])([^"'\n]*)\1\s*\)\s*\.(\w+)""")
_LONGEST_LINE = 500
_MOST_MISTAKES = 100
_ANNOTATION = re.compile(
    r"""^\s*(?:(?:async\s+)?def\b.*(?:[\w)]\s*:|->)|(?!else\b|try\b|finally\b)\*{0,2}[^\W\d]\w*\s*:|.*\)\s*->)"""
    r"""\s*[\w\[\], .|"']*$"""
)
_IMPORTED_FROM = re.compile(r"from[ \t]+(host\.\w+(?:\.aio)?)[ \t]+import[ \t]+")
_IMPORTED_NAME = re.compile(r"(?<![\w.])(?!as\b)(\w+)(?:\s+as\s+\w+)?")
# Valid in a program of the sandbox, or invalid only after the lines put before it.
_TOLERATED_SYNTAX = re.compile(r"await|yield|return|async|__future__|assignment expression", re.IGNORECASE)
_CAN_BE_GIVEN = ("def ", "type[", "<class", "bound method", "(")
_ERRORS = {
    "invalid-typed-dict-key": "KeyError|LookupError",
    "missing-attribute": "AttributeError",
    "invalid-argument-type": "TypeError",
    **dict.fromkeys(("not-subscriptable", "not-iterable", "not-callable", "unsupported-operator"), "TypeError"),
}
"""The exceptions that a finding leads to at run time."""
_ARITY = {"missing-argument", "unknown-argument", "too-many-positional-arguments", "parameter-already-assigned"}
_MISSING_RULES = {"missing-argument", "missing-typed-dict-key"}
_UNKNOWN_KEY_RULE = "unknown-typed-dict-constructor-key"
_UNKNOWN_RULES = {"unknown-argument", "too-many-positional-arguments", "parameter-already-assigned", _UNKNOWN_KEY_RULE}


def find_mistakes(findings: Iterable[TyFinding], program: Program, *, is_whole: bool = True) -> list[Mistake]:
    """Returns the mistakes among the findings, sorted, one per position; none if the syntax is wrong.

    Stops at 100. With `is_whole`, also those found in the text alone.
    """
    listed = list(findings)
    if has_syntax_error(listed):
        return []  # Python's own syntax error says more
    by_text = (*_missing_types(program), *unawaited_gathers(program)) if is_whole else ()
    mistakes = {(each.line, each.column): each for each in by_text}
    for each in sorted(listed):
        classify = _CLASSIFIERS.get(each.rule)
        mistake = None
        with suppress(IndexError, ValueError):  # an unexpected message proves nothing
            mistake = None if classify is None or _is_caught(each, program) else classify(each, program)
        if mistake is not None:
            if mentions_coroutine(each.message):
                mistake = at_missing_await(mistake, each, program)
            mistakes.setdefault((mistake.line, mistake.column), mistake)
        if len(mistakes) >= _MOST_MISTAKES:
            break
    return _deduplicate(sorted(mistakes.values(), key=lambda each: (each.line, each.column)))


def _deduplicate(mistakes: list[Mistake]) -> list[Mistake]:
    """Drops the missing argument of a call with a misspelt or unnamed one: they are the same mistake."""
    unknown = {each.line for each in mistakes if each.rule in _UNKNOWN_RULES}
    meant = {each.stub for each in mistakes if each.rule == _UNKNOWN_KEY_RULE}
    return [
        each
        for each in mistakes
        if each.rule not in _MISSING_RULES or (each.line not in unknown and each.stub not in meant)
    ]


def _is_caught(finding: TyFinding, program: Program) -> bool:
    """Returns whether the program catches the exception itself: `try: row["name"]`, `except KeyError:`."""
    errors = _ERRORS.get(finding.rule, "")
    if finding.message.startswith("Argument to function") and program.stubs.function(
        QUOTED.findall(finding.message)[0]
    ):
        return False  # a tool's refusal is another exception
    is_asked = bool(errors) and program.is_small and "except" in program.code
    return is_asked and program.catches(program.at(finding), errors)


def has_syntax_error(findings: Iterable[TyFinding]) -> bool:
    """Whether the checker found a syntax error."""
    return any(each.rule == "invalid-syntax" and not _TOLERATED_SYNTAX.search(each.message) for each in findings)


# ---- classifiers by rule: each returns the mistake, or None for noise


def _classify_import(finding: TyFinding, program: Program) -> Mistake | None:
    """Classifies an import of an unknown module or member; None for an indented one from another package."""
    names = QUOTED.findall(finding.message)
    if not names:
        return None
    module = names[0]
    if not (module == "host" or module.startswith("host.")):
        # Elsewhere than at the top level, the import may be in a `try`.
        is_at_top = program.lines[finding.line - 1][:1] not in (" ", "\t")
        return mistake_at(finding, None, f"There is no module `{module}` in the sandbox.") if is_at_top else None
    if len(names) > 1 and module != "host":
        return _missing_member(finding, program, module, names[1])
    return _missing_module(finding, program, ".".join(names[:2]))


def _missing_module(finding: TyFinding, program: Program, module: str) -> Mistake:
    """Returns the mistake of an import of an unknown host module, with the nearest one, or all."""
    known = [f"host.{name.removeprefix('host:').replace('-', '_')}" for name in program.world.modules]
    guess = nearest(module.removesuffix(".aio"), [*known, "host.bridge"])
    there = f"Did you mean '{guess}'?" if guess else f"There are: {', '.join([*known[:20], 'host.bridge'])}."
    return mistake_at(finding, None, f"There is no module '{module}'. {there}")


def _missing_member(finding: TyFinding, program: Program, module: str, name: str) -> Mistake:
    """Returns the mistake of an unknown member of a module, with the nearest one, or all."""
    members = program.stubs.functions(module)
    guess = nearest(name, members)
    if guess:
        there = f"Did you mean: '{guess}'?"
    else:
        shown = ", ".join(members[:20]) + ("" if len(members) <= 20 else f", … ({len(members)} in all)")
        there = f"It has: {shown}." if members else ""
    stub = program.stubs.function(guess, module) if guess else None
    return mistake_at(finding, stub, f"Module `{module}` has no member `{name}`. {there}".rstrip())


def _missing_types(program: Program) -> Iterator[Mistake]:
    """Yields imports of types, which only the stubs have: a run would fail."""
    for statement in islice(HOST_IMPORT.finditer(program.code), _MOST_MISTAKES):
        module = _IMPORTED_FROM.match(statement[0])
        if module is None or module[1] == "host.bridge":
            continue
        types = program.stubs.types(module[1]).difference(program.stubs.functions(module[1]))
        named = (name for name in _IMPORTED_NAME.finditer(statement[0], module.end()) if name[1] in types)
        for name in islice(named, _MOST_MISTAKES):
            at = statement.start() + name.start()
            line = program.code.count("\n", 0, at) + 1
            place = TyFinding(line, at - program.code.rfind("\n", 0, at), "missing-type", "")
            text = f"Module `{module[1]}` has no member `{name[1]}` when it runs: types are only in its stub."
            instead = "Write dict" if program.stubs.type(name[1]) else "Leave the annotation out"
            yield mistake_at(place, None, f"{text} {instead}, or import it under `if TYPE_CHECKING:`.")


def _classify_argument(finding: TyFinding, program: Program) -> Mistake | None:
    is_index = "cannot be called with key of type" in finding.message
    return _classify_index(finding, program) if is_index else classify_argument(finding, program)


def _classify_index(finding: TyFinding, program: Program) -> Mistake | None:
    """Classifies a text as a list's or string's index, and a slice of a dictionary; None for other indexes."""
    names = QUOTED.findall(finding.message)
    key, owner = names[-2], names[-1]
    if owner.startswith("dict[") and key.startswith("slice["):
        stub = program.stubs.type(re.sub(r"^dict\[\w+, |\]$", "", owner))
        return mistake_at(finding, stub, f"Object of type `{owner}` is a dictionary: it has no slices.")
    if len(split_outside(owner, " | ")) > 1 or not re.match(r"(?:list\[|str$|Literal\[|LiteralString)", owner):
        return None
    if not key.startswith(('Literal["', "str")):
        return None
    hint = " Take an element first: value[0]." if owner.startswith("list[") else ""
    stub = program.stubs.type(re.sub(r"^list\[|\]$", "", owner))
    name = key.removeprefix("Literal[").rstrip("]")
    return mistake_at(finding, stub, f"Object of type `{owner}` has no key {name}.{hint}")


def _classify_key(finding: TyFinding, program: Program) -> Mistake | None:
    """Classifies an unknown key of a result; None if the program sets it, or a member of the union has it."""
    found = _KEY.match(finding.message)
    if found is None or found[1] in program.assigned_keys:
        return None
    key, owner = found[1], found[2]
    whole = _SUBSCRIPTED.search(finding.message)
    if whole is not None and not program.stubs.lack(_union_members(whole[1]), key):
        return None
    stub = program.stubs.type(owner)
    meant = re.search(r'did you mean "([^"]+)"', finding.message)
    if stub is not None and meant:
        stub = program.stubs.field(stub, meant[1]) or stub
    hint = f' Did you mean "{meant[1]}"?' if meant else f" It has: {', '.join(program.stubs.fields(owner))}."
    return mistake_at(finding, stub, f'`{owner}` has no key "{key}".{hint}')


def _union_members(text: str) -> list[str]:
    return [part.strip() for part in split_outside(text, " | ") if part.strip() != "None"]


def _classify_attribute(finding: TyFinding, program: Program) -> Mistake | None:
    """Classifies an unknown attribute of a module or value; None if the program sets it, or in doubt."""
    names = QUOTED.findall(finding.message)
    if "has no" not in finding.message or names[-1] in program.assigned_attributes or program.has_dynamic_names:
        return None
    owner, name = names[-2], names[-1]
    if finding.message.startswith("Module "):
        if owner == "host":
            return _missing_module(finding, program, f"host.{name}")
        return (
            _missing_member(finding, program, owner, name) if owner.startswith("host.") else mistake_at(finding, None)
        )
    if owner == "None":
        return _classify_get(finding, program)
    # A union is reported by another rule, unless no member has the attribute.
    if any(_is_uncertain(each) or each.startswith(_CAN_BE_GIVEN) for each in _union_members(owner)):
        return None
    stub = program.stubs.type(re.sub(r"^list\[|\]$", "", owner))
    is_key = stub is not None and name in program.stubs.fields(owner)
    hint = f' A result is a dictionary: ["{name}"].' if is_key else ""
    return mistake_at(finding, stub, f"{finding.message}.{hint}")


def _classify_get(finding: TyFinding, program: Program) -> Mistake | None:
    """Classifies `.get("titel").upper()`: reads a key that no result has, and uses the result."""
    asked = _USED_KEY.search(program.rest(finding).partition("\n")[0])
    if asked is None or asked[2] in program.assigned_keys or program.stubs.fields_named(asked[2]):
        return None
    return mistake_at(finding, None, f'No result has a key "{asked[2]}": `.get` gives None, which has no `{asked[3]}`.')


def _is_uncertain(owner: str) -> bool:
    """Returns whether a type is uncertain: None, which may be reassigned, an inferred union, or an exception."""
    is_caught = re.fullmatch(r"(?:Base)?Exception|\w+Error", owner) is not None  # the exception may be a subclass
    return owner in ("None", "object") or len(split_outside(owner, " | ")) > 1 or is_caught


def _classify_value(finding: TyFinding, program: Program) -> Mistake | None:
    """Classifies an operation that a value's type lacks; None for unions and unknown types."""
    owners = QUOTED.findall(finding.message)
    types = [each for each in owners if not re.fullmatch(r"\W+|__\w+__", each)]
    awaited = next((each for each in types if each.startswith(("Coroutine[", "CoroutineType["))), "")
    if any(_is_uncertain(each) or ("Unknown" in each and each != awaited) for each in types):
        return None
    words = [word for each in types for word in re.findall(r"\w+", blank_strings(each))]
    stub = next((found for word in words if (found := program.stubs.type(word))), None)
    if stub is None:
        stub = next((found for each in types if (found := program.result_field_stub(finding, each))), None)
    message = f"{finding.message}. Did you forget `await`?" if awaited else finding.message
    return mistake_at(finding, stub, message)


def _classify_name(finding: TyFinding, program: Program) -> Mistake | None:
    """Classifies an undefined name; None in an annotation, or if it may be defined dynamically or earlier."""
    names = QUOTED.findall(finding.message)
    if not names or names[0] in program.known_words or program.has_dynamic_names or "NameError" in program.source:
        return None
    name = names[0]
    before = program.lines[finding.line - 1][: finding.column - 1]
    if len(before) > _LONGEST_LINE or _ANNOTATION.search(before):
        return None  # annotations are not evaluated
    words = {word for word in re.findall(r"[^\W\d]\w*", program.source[:100_000]) if word != name}
    guess = nearest(name, sorted(words))
    hint = f" Did you mean `{guess}`?" if guess else ""
    return mistake_at(finding, None, f"Name `{name}` is not defined.{hint}")


def _classify_unused(finding: TyFinding, program: Program) -> Mistake | None:
    """Classifies a coroutine without `await`: its call is never made.

    None for the program's last value, which the guest awaits.
    """
    is_last = not program.code[program.index(finding.end_line, finding.end_column) :].strip()
    called = re.match(r"(?:\w+\.)*(\w+)\s*\(", program.code[program.at(finding) :][:_LONGEST_LINE])
    if is_last or called is None or not mentions_coroutine(finding.message):
        return None
    stub = program.stubs.function(called[1])
    return mistake_at(finding, stub, f"`{called[1]}` is not awaited: it is never called. Did you forget `await`?")


_CLASSIFIERS = {
    "unused-awaitable": _classify_unused,
    "no-matching-overload": classify_parallel,
    **dict.fromkeys(_ARITY, classify_call),
    **dict.fromkeys(("not-subscriptable", "not-iterable", "not-callable", "unsupported-operator"), _classify_value),
    "import-not-found": _classify_import,
    "missing-attribute": _classify_attribute,
    "invalid-argument-type": _classify_argument,
    "invalid-typed-dict-key": _classify_key,
    "missing-typed-dict-key": classify_input_key,
    "unknown-typed-dict-constructor-key": classify_input_key,
    "unresolved-reference": _classify_name,
}
