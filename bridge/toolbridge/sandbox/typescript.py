"""TypeScript's compiler, in a sandbox of its own: what it is asked about a program, and what it answers.

A program's text is parsed where nothing can be harmed: in a fresh instance of the `typescript` image, which has no host
functions and limits of its own. Its answer is as little trusted as any guest's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from toolbridge.limits import MIB, MOST_STACK, Limits
from toolbridge.sandbox.outcome import JAVASCRIPT, Dialect, Failure, RunResult, excerpt

COMPILER = Dialect(
    language="typescript",
    image="typescript",
    program_file="request.js",
    describe=JAVASCRIPT.describe,
    least_memory=128 * MIB,
    words_of_calls=None,
)
COMPILER_LIMITS = Limits(
    cpu_seconds=5.0,
    memory_bytes=512 * MIB,
    stack_bytes=MOST_STACK,
    frame_bytes=64 * MIB,
    output_bytes=1000,
)
COMPILER_SEED = bytes(32)

_MOST_PROBLEMS = 10
_MOST_TEXT = 4000


@dataclass(frozen=True, slots=True)
class StubLine:
    """A line of the stubs: which file, which line, and what it says."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Complaint:
    """What the compiler says about one place of a program."""

    code: int
    line: int
    column: int
    message: str
    stub: StubLine | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the compiler found."""

    syntax: tuple[Complaint, ...] = ()
    """The program can't be read."""
    mistakes: tuple[Complaint, ...] = ()
    code: str = ""
    """The program without its types, if it was asked for."""
    names: Mapping[str, str] | None = None
    """What the program declares, with the types that its next ones may rely on."""


def request(
    source: str,
    language: str,
    *,
    check: bool = False,
    is_session: bool = False,
    stubs: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
    known: Iterable[str] = (),
) -> str:
    """Returns the program that the compiler's image runs: one call, with everything it is told as data.

    `names` and `known`: what earlier programs of the session declared, with and without types.
    """
    told = {
        "source": source,
        "language": language,
        "erase": language == "typescript",
        "check": check,
        "session": is_session,
        "stubs": dict(stubs or {}),
        "names": dict(names or {}),
        "known": sorted(known),
    }
    return f"answer({json.dumps(told)})"


def checking(run: Limits) -> Limits:
    """Returns the limits of a check: its time is the run's own, its memory is not."""
    return COMPILER_LIMITS.with_(wall_seconds=run.wall_seconds, cpu_seconds=run.cpu_seconds)


def erasing(source: str, run: Limits, *, is_session: bool) -> tuple[str, Limits, bytes, None, Dialect]:
    """Returns what to run, as arguments for `Sandbox._run`, in order to remove a program's types.

    Its time is the program's own; its memory is not.
    """
    limits = checking(run).with_(cpu_seconds=min(COMPILER_LIMITS.cpu_seconds, run.cpu_seconds))
    return request(source, "typescript", is_session=is_session), limits, COMPILER_SEED, None, COMPILER


def erased(result: RunResult, source: str) -> str | RunResult:
    """Returns the program without its types, or the failed result of a run whose types can't be removed."""
    try:
        answer = read_answer(result)
    except ValueError as error:
        answer = Failure("crashed", f"TypeScript's compiler was not understood: {error}.")
    if isinstance(answer, Failure):
        return RunResult(failure=_erasure_failure(answer), usage=result.usage)
    if answer.syntax:
        return RunResult(failure=syntax_failure(answer, source), usage=result.usage)
    return answer.code


def read_answer(result: RunResult) -> Answer | Failure:
    """Validates the compiler's answer; returns its run's failure if it has none.

    Raises:
        ValueError: the answer is malformed.
    """
    if result.failure is not None:
        return result.failure
    fields = _object(result.value)
    names = fields.get("names")
    return Answer(
        syntax=_complaints(fields.get("syntax")),
        mistakes=_complaints(fields.get("problems")),
        code=_text(fields.get("code", "")),
        names=None if names is None else {_text(name): _text(kind) for name, kind in _object(names).items()},
    )


def syntax_failure(answer: Answer, source: str) -> Failure:
    """Makes the failure for a program that can't be read."""
    first = answer.syntax[0]
    others = [f"Also, at line {each.line}, column {each.column}: {each.message}" for each in answer.syntax[1:3]]
    return Failure(
        kind="syntax",
        message=f"SyntaxError: {first.message}",
        line=first.line,
        column=first.column,
        excerpt=excerpt(source, first.line, first.column),
        notes=tuple(others),
    )


def _erasure_failure(failure: Failure) -> Failure:
    """Makes the failure for a program whose types could not be removed: too large, or made to be slow."""
    reason = failure.message.split("\n")[0]
    return replace(
        failure,
        kind=failure.kind if failure.kind in ("crashed", "timeout", "cancelled") else "limit",
        message=f"The program's types could not be removed, so nothing was run. {reason}",
        line=None,
        column=None,
        excerpt="",
        trace=(),
        notes=("Hint: make the program smaller, or write it in JavaScript.",),
    )


def _object(value: object) -> dict[str, Any]:
    """Returns a value that is an object; raises ValueError for another."""
    if type(value) is not dict:
        raise ValueError("the compiler's answer is no object")
    return cast("dict[str, Any]", value)


def _text(value: object) -> str:
    """Returns a value that is a text; raises ValueError for another."""
    if type(value) is not str:
        raise ValueError("the compiler's answer has something else where text should be")
    return value


def _number(value: object) -> int:
    """Returns a value that is a number; raises ValueError for another."""
    if type(value) is not int:
        raise ValueError("the compiler's answer has something else where a number should be")
    return value


def _complaints(value: object) -> tuple[Complaint, ...]:
    """Validates a list of problems, and keeps the first ten; raises ValueError for a malformed one."""
    if type(value) is not list:
        raise ValueError("the compiler's answer has no list of problems")
    return tuple(_complaint(_object(each)) for each in cast("list[Any]", value)[:_MOST_PROBLEMS])


def _complaint(fields: Mapping[str, Any]) -> Complaint:
    """Validates one problem, truncating its message; raises ValueError if it is malformed."""
    stub = fields.get("stub")
    return Complaint(
        code=_number(fields.get("code")),
        line=_number(fields.get("line")),
        column=_number(fields.get("column")),
        message=_text(fields.get("message"))[:_MOST_TEXT],
        stub=None if stub is None else _stub_line(_object(stub)),
    )


def _stub_line(fields: Mapping[str, Any]) -> StubLine:
    return StubLine(_text(fields.get("file")), _number(fields.get("line")), _text(fields.get("text"))[:_MOST_TEXT])
