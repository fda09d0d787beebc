"""What a check found, and the failure that is made of it: everything that a model needs to repair its program."""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolbridge.sandbox.compiler import StubLine
from toolbridge.sandbox.outcome import Failure
from toolbridge.sandbox.source_lines import excerpt

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
