"""The checker of a runtime: one question for all languages, and what was answered before is remembered."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from anyio import move_on_after

from toolbridge.errors import GuestImageError, ToolbridgeError
from toolbridge.limits import Limits
from toolbridge.sandbox.outcome import Failure, excerpt
from toolbridge.sandbox.sandbox import Sandbox
from toolbridge.sandbox.typescript import StubLine

# What a check found, and the failure that is made of it: everything that a model needs to repair its program.


MOST_PROBLEMS = 10
_MOST_STUB_LINE = 200


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a program."""

    line: int
    column: int
    message: str
    rule: str
    """The checker's own name for this kind of mistake: TS2339, invalid-argument-type."""
    excerpt: str = ""
    """The program's lines around it, the place marked."""
    stub: str = ""
    """The line of the stubs that it offends, and where that stands; empty if none does."""

    def __str__(self) -> str:
        parts = [f"line {self.line}, column {self.column}: {self.message}", self.excerpt, self.stub]
        return "\n".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found. Without problems the program may still fail, but not in a way that its types show."""

    problems: tuple[Problem, ...] = ()
    syntax: Failure | None = None
    """The program can't be read."""
    unended: Failure | None = None
    """The check did not end within the time of the run, or within its own memory and stack."""
    warning: str = ""
    """Why the program was not checked, or not against every module."""
    is_checked: bool = True
    """False: there is no checker here, it failed, or nothing is known of the servers that the program names."""
    has_checker: bool = True
    """False: there is none in this installation."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong with the program, as far as is known."""
        return self.failure is None

    @property
    def failure(self) -> Failure | None:
        """What a run of this program fails with."""
        return self.syntax or self.unended or failure_of(self.problems)


TOO_SLOW = "The type check did not end within the time of the run."
TOO_LARGE = "The type check ran out of memory or stack."


def unended(why: str = TOO_SLOW) -> CheckReport:
    """The report of a check that the program kept from ending: it is not run unchecked for that."""
    failure = Failure(
        "check_timeout",
        why,
        notes=(
            "The program was not run: no call was made.",
            "Hint: make it smaller, or nested less, or its types simpler. The host can run it unchecked.",
        ),
    )
    return CheckReport(unended=failure, is_checked=False)


def problem(source: str, place: tuple[int, int], message: str, rule: str, stub: StubLine | None) -> Problem:
    """A problem at a line and column, shown with the program's own lines."""
    line, column = place
    return Problem(line, column, message, rule, excerpt(source, line, column), "" if stub is None else stub_text(stub))


def stub_text(stub: StubLine) -> str:
    """How a stub's line is shown."""
    text = stub.text if len(stub.text) <= _MOST_STUB_LINE else stub.text[:_MOST_STUB_LINE] + "…"
    return f"The stub says ({stub.file}, line {stub.line}): {text}"


def _also(problem: Problem) -> str:
    """One of several: shown with its own line alone, as a model pays for each."""
    marked = problem.excerpt.split("\n")
    at = next((index for index, line in enumerate(marked) if line.startswith(">")), 0)
    shown = replace(problem, excerpt="\n".join(marked[at : at + 2]))
    return f"Also, at {shown}"


def failure_of(problems: tuple[Problem, ...]) -> Failure | None:
    """The failure of a run whose program has these problems: it was not begun."""
    if not problems:
        return None
    first, *others = problems
    head, _, rest = first.message.partition("\n")
    notes = [text for text in (rest, first.stub) if text]
    notes.extend(_also(each) for each in others)
    notes.append("The program was checked and not run: no call was made.")
    return Failure(
        kind="type",
        message=f"Type error: {head}",
        line=first.line,
        column=first.column,
        excerpt=first.excerpt,
        notes=tuple(notes),
    )


# What a program is checked against: the stubs of the modules that it names, and how earlier programs left things.


_WORD = re.compile(r"[^\W\d][\w$]*")
_MOST_CONTEXT = 200_000
ANYTHING = "_anything"
"""Python: a module of which nothing is known, for names that no longer mean what was imported."""
_IMPORT_WORDS = {"from", "import", "as", ANYTHING}


@dataclass(frozen=True, slots=True)
class World:
    """Stubs, and modules without any: of servers that could not be asked, which a run will say more about."""

    stubs: Mapping[str, str]
    """File name → text, in the language of the program."""
    modules: tuple[str, ...] = ()
    """Every specifier there is, for a misspelt one."""
    untyped: tuple[str, ...] = ()
    """Specifiers of modules about which nothing is known."""


class SessionNames:
    """What the programs of a session have declared so far."""

    def __init__(self) -> None:
        self.declared: dict[str, str] = {}
        """JavaScript and TypeScript: name → its type."""
        self.words: set[str] = set()
        """Every word of earlier programs: a name among them may have been defined."""
        self.imports: list[str] = []
        """Python: what earlier programs imported of the host, and the names to which they gave a new meaning since."""

    @property
    def mentions(self) -> str:
        """Text that names the modules which earlier programs imported."""
        return "\n".join([*self.imports, *self.declared.values()])

    def is_used_in(self, source: str) -> bool:
        """Whether a program uses what an earlier one imported of the host."""
        typed = {name for name, kind in self.declared.items() if kind.startswith("typeof import(")}
        for text in self.imports:
            typed.update(_WORD.findall(text))
        return bool(typed) and not typed.isdisjoint(_WORD.findall(source))

    def add(self, source: str, language: str, names: Iterable[tuple[str, str]]) -> None:
        """A program was run, which declares these names."""
        self.declared.update(names)
        self.words.update(_WORD.findall(source[:_MOST_CONTEXT]))
        if language == "python":
            self._add_imports(source[:_MOST_CONTEXT])

    def _add_imports(self, source: str) -> None:
        """Later lines count: a name may be imported, defined anew, and imported again."""
        from toolbridge.check.python.text import HOST_IMPORT, blank_strings, rebound_names

        code = blank_strings(source)
        found = [text.strip() for text in HOST_IMPORT.findall(code)]
        kept = [text for text in self.imports if text not in found]
        renewed = rebound_names(code)
        if not any(text.endswith("*") for text in (*kept, *found)):
            renewed &= {name for text in (*kept, *found) for name in _WORD.findall(text)}
        changed = [f"from {ANYTHING} import {name}" for name in sorted(renewed - _IMPORT_WORDS)]
        self.imports = [*(text for text in kept if text not in changed), *found, *changed]


_log = logging.getLogger("toolbridge.check")
_MOST_REMEMBERED = 64
_USUAL_LIMITS = Limits()
# Checkers take more than linear time, and nobody writes a larger program by hand.
MOST_SOURCE = 100_000
_TOO_LONG = f"The program is longer than the {MOST_SOURCE:,} characters that are checked."

NO_TYPESCRIPT = (
    "The TypeScript image is not built, so programs are not checked: install npm and run `make guest`, "
    "or use a wheel that has it."
)


class Checker:
    """Checks programs, each in an instance or process of its own."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._known: OrderedDict[tuple[object, ...], Checked] = OrderedDict()
        self.prepared = {"python"}
        """Languages whose checker is loaded."""

    async def prepare(self, language: str) -> None:
        """Loads the checker of a language, which may have to be compiled: that is no program's time.

        Raises:
            ToolbridgeError: the sandbox is closed.
        """
        if language not in self.prepared:
            with suppress(GuestImageError):  # the check says so
                await self._sandbox.prepare_compiler()
                self.prepared |= {"javascript", "typescript"}

    def known(self, source: str, language: str, world: World) -> Checked | None:
        """The answer for the same program and stubs, if it is remembered."""
        return self._known.get(_key(source, language, world))

    async def check(
        self,
        source: str,
        language: str,
        world: World,
        session: SessionNames | None = None,
        limits: Limits = _USUAL_LIMITS,
    ) -> Checked:
        """What is wrong with a program; nothing, with a warning, when that can't be told.

        It is told in the time of a run with these limits, or the report says that the check did not end.

        Raises:
            ToolbridgeError: the sandbox is closed, or the installation is broken.
        """
        known = None if session is not None else self.known(source, language, world)
        if known is not None:
            return known
        await self.prepare(language)
        checked = None
        with move_on_after(limits.wall_seconds):
            checked = await self._check(source, language, world, session, limits)
        if checked is None:
            return Checked(unended())
        report = checked.report
        if session is None and report.is_checked:
            self._known[_key(source, language, world)] = checked
            while len(self._known) > _MOST_REMEMBERED:
                self._known.popitem(last=False)
        if report.warning and report.has_checker:
            _log.info("%s", report.warning)  # the run's own warning says it to its host; the tests listen to this
        return checked

    async def _check(
        self, source: str, language: str, world: World, session: SessionNames | None, limits: Limits
    ) -> Checked:
        """A check that fails by itself, for whatever reason, is a warning: it never stops a run."""
        try:
            return await self._ask(source, language, world, session, limits)
        except ToolbridgeError:
            raise
        except Exception as error:
            _log.debug("The check of a %s program failed", language, exc_info=error)
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            warning = f"The program was not checked before it ran: the check failed ({reason})."
            return Checked(CheckReport(warning=warning, is_checked=False))

    async def _ask(
        self, source: str, language: str, world: World, session: SessionNames | None, limits: Limits
    ) -> Checked:
        from toolbridge.check.javascript import check_javascript

        is_too_long = len(source) > MOST_SOURCE
        if language == "python":
            from toolbridge.check.python.ty import check_python, find_ty

            if is_too_long and find_ty() is not None:
                return Checked(unended(_TOO_LONG))
            return Checked(await check_python(source, world, session, cpu_seconds=limits.cpu_seconds))
        ask = partial(self._sandbox.ask_compiler, run=limits)
        try:
            if is_too_long:
                await self._sandbox.prepare_compiler()
                return Checked(unended(_TOO_LONG))
            return await check_javascript(source, language, world, session, ask)
        except GuestImageError:
            if language == "typescript":
                raise
            return Checked(CheckReport(warning=NO_TYPESCRIPT, is_checked=False, has_checker=False))


def _key(source: str, language: str, world: World) -> tuple[object, ...]:
    return (language, source, tuple(world.stubs.items()), world.modules, world.untyped)


@dataclass(frozen=True, slots=True)
class Checked:
    """A report, and what a run can use of what was found on the way."""

    report: CheckReport
    erased: str | None = None
    """The program without its types."""
    names: tuple[tuple[str, str], ...] = ()
    """What it declares, for the next programs of its session."""
