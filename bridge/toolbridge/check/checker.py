"""Type-checks programs of every language before they run; reports are cached."""

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

# Reports, and the failures made of them: everything that a model needs to repair its program.

MOST_PROBLEMS = 10
_MOST_STUB_LINE = 200


@dataclass(frozen=True, slots=True)
class Problem:
    """One type error in a program."""

    line: int
    column: int
    message: str
    rule: str
    """The type checker's code: TS2339, invalid-argument-type."""
    excerpt: str = ""
    """The source lines around it, the position marked."""
    stub: str = ""
    """The line of the stubs that it violates, with its position; empty if none."""

    def __str__(self) -> str:
        parts = [f"line {self.line}, column {self.column}: {self.message}", self.excerpt, self.stub]
        return "\n".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The outcome of a type-check. Without problems, a run may still fail for reasons that types don't show."""

    problems: tuple[Problem, ...] = ()
    syntax: Failure | None = None
    """A syntax error."""
    unended: Failure | None = None
    """The check exceeded the run's time, or its own memory or stack."""
    warning: str = ""
    """Why the program was not checked, or not against every module."""
    is_checked: bool = True
    """False: no checker is installed, it failed, or nothing is known of the program's servers."""
    has_checker: bool = True
    """False: no checker is installed."""

    @property
    def ok(self) -> bool:
        """Whether no error is known."""
        return self.failure is None

    @property
    def failure(self) -> Failure | None:
        """The failure of a run of this program; None if it may run."""
        return self.syntax or self.unended or failure_of(self.problems)


TOO_SLOW = "The type check did not end within the time of the run."
TOO_LARGE = "The type check ran out of memory or stack."


def unended(why: str = TOO_SLOW) -> CheckReport:
    """Returns the report of a check that exceeded its limits. Such a program is not run unchecked."""
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
    """Returns a problem at a line and column (`place`), with an excerpt of the source and the line of the stubs."""
    line, column = place
    return Problem(line, column, message, rule, excerpt(source, line, column), "" if stub is None else stub_text(stub))


def stub_text(stub: StubLine) -> str:
    """Returns a line of the stubs as shown to the model: with its position, truncated to 200 characters."""
    text = stub.text if len(stub.text) <= _MOST_STUB_LINE else stub.text[:_MOST_STUB_LINE] + "…"
    return f"The stub says ({stub.file}, line {stub.line}): {text}"


def _also(problem: Problem) -> str:
    """Returns the text of a further problem, with its own source line only: a model pays for every line."""
    marked = problem.excerpt.split("\n")
    at = next((index for index, line in enumerate(marked) if line.startswith(">")), 0)
    shown = replace(problem, excerpt="\n".join(marked[at : at + 2]))
    return f"Also, at {shown}"


def failure_of(problems: tuple[Problem, ...]) -> Failure | None:
    """Returns the failure of a program with these problems, which was not started; None without any."""
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


# The environment of a check: stubs of the modules that the program names, and the session's earlier programs.

_WORD = re.compile(r"[^\W\d][\w$]*")
_MOST_CONTEXT = 200_000
ANY_MODULE = "_anything"
"""Python: a module of type `Any`, for names that a session has rebound."""
_IMPORT_WORDS = {"from", "import", "as", ANY_MODULE}


@dataclass(frozen=True, slots=True)
class World:
    """Stubs of the program's modules; and modules without stubs, of servers that could not be listed."""

    stubs: Mapping[str, str]
    """File name → text, in the language of the program."""
    modules: tuple[str, ...] = ()
    """All module specifiers, for suggestions."""
    untyped: tuple[str, ...] = ()
    """Specifiers of modules without stubs."""


class SessionNames:
    """Names declared by the earlier programs of a session."""

    def __init__(self) -> None:
        self.declared: dict[str, str] = {}
        """JavaScript and TypeScript: name → type."""
        self.words: set[str] = set()
        """Every word of earlier programs: any may be a defined name."""
        self.imports: list[str] = []
        """Python: the host imports of earlier programs, and imports of `ANY_MODULE` for rebound names."""

    @property
    def mentions(self) -> str:
        """The imports of earlier programs, which name their modules."""
        return "\n".join([*self.imports, *self.declared.values()])

    def is_used_in(self, source: str) -> bool:
        """Returns whether a program mentions a name that an earlier one imported from the host."""
        typed = {name for name, kind in self.declared.items() if kind.startswith("typeof import(")}
        for text in self.imports:
            typed.update(_WORD.findall(text))
        return bool(typed) and not typed.isdisjoint(_WORD.findall(source))

    def add(self, source: str, language: str, names: Iterable[tuple[str, str]]) -> None:
        """Records a program that was run, and the names it declares, for the checks of later ones.

        Of Python, also its host imports. Reads the first 200,000 characters.
        """
        self.declared.update(names)
        self.words.update(_WORD.findall(source[:_MOST_CONTEXT]))
        if language == "python":
            self._add_imports(source[:_MOST_CONTEXT])

    def _add_imports(self, source: str) -> None:
        """Records host imports and rebound names, in order: a name may be imported, rebound, and imported again."""
        from toolbridge.check.python.text import HOST_IMPORT, blank_strings, rebound_names

        code = blank_strings(source)
        found = [text.strip() for text in HOST_IMPORT.findall(code)]
        kept = [text for text in self.imports if text not in found]
        renewed = rebound_names(code)
        if not any(text.endswith("*") for text in (*kept, *found)):
            renewed &= {name for text in (*kept, *found) for name in _WORD.findall(text)}
        changed = [f"from {ANY_MODULE} import {name}" for name in sorted(renewed - _IMPORT_WORDS)]
        self.imports = [*(text for text in kept if text not in changed), *found, *changed]


_log = logging.getLogger("toolbridge.check")
_MOST_REMEMBERED = 64
_USUAL_LIMITS = Limits()
# Type checkers take superlinear time, and models write far shorter programs.
MOST_SOURCE = 100_000
_TOO_LONG = f"The program is longer than the {MOST_SOURCE:,} characters that are checked."

NO_TYPESCRIPT = (
    "The TypeScript image is not built, so programs are not checked: install npm and run `make guest`, "
    "or use a wheel that has it."
)


class Checker:
    """Type-checks programs, each in a sandbox instance or process of its own.

    Keeps the last 64 reports, and drops the first stored (FIFO, not LRU); those of sessions are never kept.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._known: OrderedDict[tuple[object, ...], Checked] = OrderedDict()
        self.prepared = {"python"}
        """Languages whose checker is loaded."""

    async def prepare(self, language: str) -> None:
        """Loads the checker of a language, which may have to be compiled: outside of any run's time.

        Blocks while compiling; does nothing if it is loaded. A missing image is left to the check to report.

        Raises:
            ToolbridgeError: the sandbox is closed.
        """
        if language not in self.prepared:
            with suppress(GuestImageError):  # the check reports it
                await self._sandbox.prepare_compiler()
                self.prepared |= {"javascript", "typescript"}

    def known(self, source: str, language: str, world: World) -> Checked | None:
        """Returns the kept report for the same program and stubs; None without one."""
        return self._known.get(_key(source, language, world))

    async def check(
        self,
        source: str,
        language: str,
        world: World,
        session: SessionNames | None = None,
        limits: Limits = _USUAL_LIMITS,
    ) -> Checked:
        """Type-checks a program within the time limit of a run, after `prepare`; returns a kept report at once.

        A checker that fails or is missing gives a warning; one that exceeds the limit gives an `unended` report.
        The names of `session` are known to the program, but it is not changed.

        Raises:
            ToolbridgeError: the sandbox is closed, or the installation is broken.
        """
        known = None if session is not None else self.known(source, language, world)
        if known is not None:
            return known
        await self.prepare(language)
        checked = None
        try:
            with move_on_after(limits.wall_seconds):
                checked = await self._check(source, language, world, session, limits)
        except ToolbridgeError:
            raise
        except Exception as error:  # of the checker itself: a warning, which never stops a run
            _log.debug("The check of a %s program failed", language, exc_info=error)
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            warning = f"The program was not checked before it ran: the check failed ({reason})."
            checked = Checked(CheckReport(warning=warning, is_checked=False))
        if checked is None:
            return Checked(unended())
        report = checked.report
        if session is None and report.is_checked:
            self._known[_key(source, language, world)] = checked
            while len(self._known) > _MOST_REMEMBERED:
                self._known.popitem(last=False)
        if report.warning and report.has_checker:
            _log.info("%s", report.warning)  # also a warning of the run; tests read the log
        return checked

    async def _check(
        self, source: str, language: str, world: World, session: SessionNames | None, limits: Limits
    ) -> Checked:
        """Type-checks a program, without a time limit and kept reports.

        Raises:
            GuestImageError: TypeScript's image is missing; JavaScript then gets a warning.
        """
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
    """Returns the cache key of a report: all that it depends on."""
    return (language, source, tuple(world.stubs.items()), world.modules, world.untyped)


@dataclass(frozen=True, slots=True)
class Checked:
    """A report, with by-products for the run."""

    report: CheckReport
    erased: str | None = None
    """The program without its types."""
    names: tuple[tuple[str, str], ...] = ()
    """Names it declares, with their types, for later programs of its session."""
