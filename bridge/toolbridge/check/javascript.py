"""Checking JavaScript and TypeScript: TypeScript's own compiler, in a sandbox."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from toolbridge.boundary.host_call import no_such_module
from toolbridge.check.needed_stubs import NeededStub, needed_stubs
from toolbridge.check.report import TOO_LARGE, CheckReport, Problem, problem, unended
from toolbridge.check.spelling import nearest
from toolbridge.check.stub_comments import without_comments
from toolbridge.check.world import SessionNames, World
from toolbridge.sandbox.compiler import Answer, Complaint, StubLine, read_answer, request, syntax_failure
from toolbridge.sandbox.javascript_failure import hint_for_missing_name
from toolbridge.sandbox.outcome import Failure, RunResult

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


@dataclass(frozen=True, slots=True)
class Checked:
    """A report, and what a run can use of what was found on the way."""

    report: CheckReport
    erased: str | None = None
    """The program without its types."""
    names: tuple[tuple[str, str], ...] = ()
    """What it declares, for the next programs of its session."""


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
