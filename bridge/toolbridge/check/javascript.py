"""Checking JavaScript and TypeScript: TypeScript's own compiler, in a sandbox."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from toolbridge.boundary.host_call import no_such_module
from toolbridge.check.checker import (
    TOO_LARGE,
    Checked,
    CheckReport,
    Problem,
    SessionNames,
    World,
    problem,
    unended,
)
from toolbridge.errors import nearest
from toolbridge.sandbox.outcome import Failure, RunResult, hint_for_missing_name
from toolbridge.sandbox.typescript import Answer, Complaint, StubLine, read_answer, request, syntax_failure

# TypeScript stubs without their comments: what a server says of its tools declares nothing, whatever it looks like.


# A text comes before a comment: it may have one's signs in it.
_TEXT_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|(//[^\n]*|/\*.*?\*/)', re.DOTALL)
_CHARACTER = re.compile(r"[^\n]")


def without_comments(stub: str) -> str:
    """The stub with blanks where its comments were, so that everything else keeps its line and its column."""
    return _TEXT_OR_COMMENT.sub(lambda found: _CHARACTER.sub(" ", found[0]) if found[1] else found[0], stub)


# The part of the TypeScript stubs that a program can have to do with: a server may have hundreds of tools.
#
# What is left out, and the comments, are not even empty lines: every character is read by every check. Which line of
# the whole stub a line was is kept beside it. A function that is left out stays as a name, of any type. Stubs are of
# our own making: their layout is enough to find their declarations, once the comments are gone, which are the
# servers'.


_DECLARATION = re.compile(r"^ (?:export )?(function|interface|type|class|const) ([\w$]+)")
_WORD = re.compile(r"[\w$]+")
_MOST_KEPT = 64
_ALWAYS = ("Require", "Sync", "twin")  # `require`, and what an /async module is made of


class NeededStub(NamedTuple):
    """What is needed of a file of stubs."""

    text: str
    lines: tuple[int, ...]
    """For each line of the text: which line of the whole file it was, counted from 1."""


class _Line(NamedTuple):
    number: int
    text: str


class _Piece(NamedTuple):
    """Lines of a stub that are needed together."""

    lines: tuple[_Line, ...]
    name: str | None
    """What is declared; None for what is always needed."""
    is_function: bool = False


class _Stub(NamedTuple):
    """A file of stubs, read."""

    pieces: tuple[_Piece, ...]
    uses: Mapping[str, frozenset[str]]
    """By declared name: the declared names that are in its declarations."""


def needed_stubs(stubs: Mapping[str, str], source: str) -> dict[str, NeededStub]:
    """The stubs with what a program's words lead to, and nothing else."""
    words = {*_WORD.findall(source), *_ALWAYS}
    return {name: _needed(_read(text), words) for name, text in stubs.items()}


def _needed(stub: _Stub, words: set[str]) -> NeededStub:
    needed = _reachable(stub.uses, words)
    lines: list[_Line] = []
    only_named: dict[str, int] = {}
    for piece in stub.pieces:
        if piece.name is None and only_named:  # the end of their module is near
            lines += _names(only_named)
            only_named = {}
        if piece.name is None or piece.name in needed:
            lines += piece.lines
        elif piece.is_function:
            only_named.setdefault(piece.name, piece.lines[0].number)  # overloads are one
    return NeededStub("\n".join(line.text for line in lines), tuple(line.number for line in lines))


def _names(functions: Mapping[str, int]) -> Iterable[_Line]:
    """Functions of which no more than their names is needed, each on a line of its own."""
    *_, last = functions
    yield _Line(0, " export const")
    for name, number in functions.items():
        yield _Line(number, f"{name}: any" + (";" if name == last else ","))


@lru_cache(maxsize=_MOST_KEPT)
def _read(text: str) -> _Stub:
    """Once for as long as the tools don't change."""
    bare = [line.rstrip() for line in without_comments(text).split("\n")]
    pieces: list[_Piece] = []
    words: dict[str, set[str]] = {}
    at = 0
    while at < len(bare):
        match = _DECLARATION.match(bare[at])
        last = at if match is None else _last_line(bare, at)
        lines = tuple(_Line(number + 1, bare[number]) for number in range(at, last + 1) if bare[number])
        if match is not None:
            pieces.append(_Piece(lines, match[2], match[1] == "function"))
            words.setdefault(match[2], set()).update(_WORD.findall("\n".join(line.text for line in lines)))
        elif lines:
            pieces.append(_Piece(lines, None))
        at = last + 1
    uses = {name: frozenset(found & words.keys()) for name, found in words.items()}
    return _Stub(tuple(pieces), uses)


def _last_line(bare: list[str], first: int) -> int:
    """Where a declaration ends."""
    last = first
    for at in range(first + 1, len(bare)):
        if not bare[at]:
            continue
        if not bare[at].startswith(("  ", " }")):
            break
        last = at
    return last


def _reachable(uses: Mapping[str, frozenset[str]], words: set[str]) -> set[str]:
    """The names that some words lead to, from declaration to declaration."""
    needed: set[str] = set()
    found = list(words & uses.keys())
    while found:
        name = found.pop()
        if name not in needed:
            needed.add(name)
            found.extend(uses[name])
    return needed


_MEANT = r"(?: Did you mean '(?P<meant>[^']+)'\?)?"
_NO_SUCH_MODULE = {2307, 2792}
_MISSING_EXPORT = (
    re.compile(
        r"""^(?:Module )?'"(?P<module>[^"]+)"' has no exported member (?:named )?'(?P<name>[^']+)'\.""" + _MEANT
    ),
    re.compile(
        r"""^Property '(?P<name>[^']+)' does not exist on type 'typeof import\("(?P<module>[^"]+)"\)'\.""" + _MEANT
    ),
)
_EXPORTED = re.compile(r"^ export (?:function|class) (\w+)", re.MULTILINE)
_MOST_NAMES = 20
_STACK = "RangeError: Maximum call stack size exceeded"
_BRIDGE = "bridge.d.ts"
_PAIRS = ("readonly [F[K], ...Parameters<F[K]>]", "readonly [F[K], any?]")
"""`parallel` as it is, and as it is checked: pairs are judged one by one, and a wrong one leaves the results typed."""
_NO_SUCH_NAME = {2304, 2552, 2580, 2581, 2582, 2583, 2584, 2591, 2592, 2593}


async def check_javascript(
    source: str,
    language: str,
    world: World,
    session: SessionNames | None,
    ask: Callable[[str], Awaitable[RunResult]],
) -> Checked:
    """Checks a program. A compiler that fails is a warning, and nothing else."""
    mentioned = source if session is None else f"{source}\n{session.mentions}"
    needed = needed_stubs(world.stubs, mentioned)
    stubs = {name: stub.text.replace(*_PAIRS) if name == _BRIDGE else stub.text for name, stub in needed.items()}
    stubs["untyped.d.ts"] = _untyped(world.untyped)
    names, known = (session.declared, session.words) if session is not None else ({}, set[str]())
    is_session = session is not None
    asked = request(source, language, check=True, is_session=is_session, stubs=stubs, names=names, known=known)
    result = await ask(asked)
    try:
        answer = read_answer(result)
    except ValueError as error:
        answer = Failure("crashed", f"{error}.")
    if isinstance(answer, Failure) and answer.kind == "timeout":
        return Checked(unended())
    if isinstance(answer, Failure) and (answer.kind in ("out_of_memory", "limit") or _STACK in answer.message):
        return Checked(unended(TOO_LARGE))
    if isinstance(answer, Failure):
        warning = f"The program was not checked before it ran: {answer.message.rstrip('.')}."
        return Checked(CheckReport(warning=warning, is_checked=False))
    if answer.syntax:
        # What JavaScript's own engine takes is for it to say.
        failure = syntax_failure(answer, source) if language == "typescript" else None
        return Checked(CheckReport(syntax=failure))
    return _checked(answer, source, language, _Stubs(world, needed))


class _Stubs(NamedTuple):
    """What a program was checked against, and what is told of it."""

    world: World
    needed: Mapping[str, NeededStub]

    def whole(self, stub: StubLine) -> StubLine:
        """A line of the stubs as it is: what was checked had less in it."""
        if stub.file not in self.needed:
            return stub
        lines = self.needed[stub.file].lines
        number = lines[stub.line - 1] if 0 < stub.line <= len(lines) else 0
        if not number:
            return stub
        return replace(stub, line=number, text=self.world.stubs[stub.file].split("\n")[number - 1].strip())


def _checked(answer: Answer, source: str, language: str, stubs: _Stubs) -> Checked:
    # One for each place: what is said first is the cause.
    places = {(each.line, each.column): each for each in reversed(answer.mistakes)}
    mistakes = [each for each in answer.mistakes if places[each.line, each.column] is each]
    problems = tuple(_problem(each, source, stubs) for each in mistakes)
    erased = answer.code if language == "typescript" else None
    return Checked(CheckReport(problems), erased, tuple((answer.names or {}).items()))


def _problem(complaint: Complaint, source: str, stubs: _Stubs) -> Problem:
    message, world = complaint.message, stubs.world
    stub = None if complaint.stub is None else stubs.whole(complaint.stub)
    missing = next((found for each in _MISSING_EXPORT if (found := each.search(message))), None)
    if missing is not None:
        message = _missing_export(missing["module"], missing["name"].strip('"'), missing["meant"], world)
    elif complaint.code in _NO_SUCH_MODULE:
        message, stub = _missing_module(message, world), None
    elif complaint.code in _NO_SUCH_NAME:
        name = message.split("'")[1] if message.count("'") >= 2 else ""
        hint = hint_for_missing_name(name)
        message = f"Cannot find name '{name}'. {hint}" if hint else message.split(" Do you need to ")[0]
    return problem(source, (complaint.line, complaint.column), message, f"TS{complaint.code}", stub)


def _missing_module(message: str, world: World) -> str:
    specifier = message.split("'")[1] if message.count("'") >= 2 else ""
    return no_such_module(world.modules, specifier).message


def _missing_export(module: str, name: str, meant: str | None, world: World) -> str:
    """In the words of the engine, which would say the same if the program ran."""
    if meant:
        return f'module "{module}" has no export "{name}". Did you mean "{meant}"?'
    file = f"{module.removeprefix('host:').removesuffix('/async')}.d.ts"
    names = list(dict.fromkeys(_EXPORTED.findall(without_comments(world.stubs.get(file, "")))))  # overloads are one
    guess = nearest(name, names)
    if guess:
        return f'module "{module}" has no export "{name}". Did you mean "{guess}"?'
    more = f", … ({len(names)} in all)" if len(names) > _MOST_NAMES else ""
    return f'module "{module}" has no export "{name}". It exports: {", ".join(names[:_MOST_NAMES])}{more}.'


def _untyped(specifiers: tuple[str, ...]) -> str:
    both = [name for specifier in specifiers for name in (specifier, f"{specifier}/async")]
    modules = [f'declare module "{name}";' for name in both]
    required = [f'(id: "{name}"): any;' for name in both]
    return "\n".join([*modules, f"declare namespace NodeJS {{ interface Require {{ {' '.join(required)} }} }}"])
