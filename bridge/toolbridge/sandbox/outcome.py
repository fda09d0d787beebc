"""Results of runs: values, and failures from which a model can repair its code."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from toolbridge.boundary.host_call import CallRecord
from toolbridge.boundary.wire import GuestError
from toolbridge.errors import nearest
from toolbridge.limits import LEAST_MEMORY, MIB

FailureKind = Literal[
    "syntax",
    "type",
    "check_timeout",
    "raised",
    "timeout",
    "out_of_memory",
    "limit",
    "denied",
    "protocol",
    "crashed",
    "cancelled",
]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run has no value. `str(failure)` is the complete text for a model."""

    kind: FailureKind
    message: str
    """One line: the error's name and message."""
    line: int | None = None
    """Line of the program, from 1; None if no line is to blame."""
    column: int | None = None
    excerpt: str = ""
    """The lines around it, with the place marked."""
    trace: tuple[str, ...] = ()
    """The program's own stack frames, innermost first."""
    notes: tuple[str, ...] = ()
    """Hints, causes, and the calls already made."""

    def __post_init__(self) -> None:
        """Escapes lone surrogates of the program's text, which can't be printed."""
        for name in ("message", "excerpt"):
            object.__setattr__(self, name, _printable(getattr(self, name)))
        for name in ("trace", "notes"):
            object.__setattr__(self, name, tuple(map(_printable, getattr(self, name))))

    def __str__(self) -> str:
        parts = [self.message]
        if self.line is not None and not self.trace:
            parts.append(f"  at line {self.line}" + (f", column {self.column}" if self.column else ""))
        parts.extend(f"  at {frame}" for frame in self.trace)
        if self.excerpt:
            parts.append(self.excerpt)
        parts.extend(self.notes)
        return "\n".join(parts)


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources used by a run."""

    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    """CPU time of guest code, sampled every few milliseconds; removing TypeScript types is part of it."""
    memory_bytes: int = 0
    """Memory of the guest at the end, which is its peak."""
    output_bytes_dropped: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Adds the times of two steps of a run."""
        return Usage(self.wall_seconds + other.wall_seconds, self.cpu_seconds + other.cpu_seconds)


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of one run."""

    value: Any = None
    """The program's value in JSON types; None if it failed."""
    stdout: str = ""
    stderr: str = ""
    calls: tuple[CallRecord, ...] = ()
    """All host calls, in the order of their ends."""
    failure: Failure | None = None
    usage: Usage = field(default_factory=Usage)
    servers: tuple[str, ...] = ()
    """MCP servers that the run is tainted by: their text may be in the value and the output."""
    warnings: tuple[str, ...] = ()
    """Problems of the host: a failed type-check, tools blocked by their pins."""

    @property
    def ok(self) -> bool:
        """Whether the program ran to its end."""
        return self.failure is None


# A program's lines are found without splitting it: eight megabytes of hostile text may be as many lines.


JAVASCRIPT_LINE_ENDS = ("\r", "\u2028", "\u2029")
PYTHON_LINE_ENDS = ("\r",)

_MOST_LINE = 160
_CONTEXT_LINES = 2
# Counting is fast, stepping from line to line is not: limit of steps per line.
_BLOCK = 4096


class SourceLines:
    """Index of a program's lines, from 1. `ends`: line terminators of its language, besides a newline.

    A failure is described after the run's deadline, so the text is scanned once, in C, however many places are asked
    for.
    """

    def __init__(self, source: str, ends: tuple[str, ...] = JAVASCRIPT_LINE_ENDS) -> None:
        text = source.replace("\r\n", "\n") if "\r" in source else source
        for end in ends:
            text = text.replace(end, "\n")
        self._text = text
        self._ends_up_to: list[int] = []
        """Line ends up to the end of each block."""
        self._encoded: dict[int, bytes] = {}
        ended = 0
        for start in range(0, len(text), _BLOCK):
            ended += text.count("\n", start, start + _BLOCK)
            self._ends_up_to.append(ended)
        self._count = ended + 1

    def character_column(self, line: int, byte: int) -> int:
        """Converts a column from the engine's bytes to characters, both from 1; unchanged if there is no such line."""
        if not 1 <= line <= self._count:
            return byte
        encoded = self._encoded.get(line)
        if encoded is None:
            encoded = self._encoded[line] = self._line(line).encode("utf-8", "replace")
        return len(encoded[: byte - 1].decode("utf-8", "ignore")) + 1

    def excerpt(self, line: int, column: int | None) -> str:
        """Formats the lines around a place, with a marker at line and column; empty for a line that doesn't exist."""
        if not 1 <= line <= self._count:
            return ""
        first = max(1, line - _CONTEXT_LINES)
        last = min(self._count, line + _CONTEXT_LINES)
        width = len(str(last))
        shown: list[str] = []
        for number in range(first, last + 1):
            text = self._line(number)
            start = 0
            if number == line and column and column > _MOST_LINE:
                start = column - _MOST_LINE // 2
            cut = text[start : start + _MOST_LINE].replace("\t", " ")
            mark = ">" if number == line else " "
            shown.append(
                f"{mark} {number:>{width}} | {'…' if start else ''}{cut}{'…' if start + _MOST_LINE < len(text) else ''}"
            )
            if number == line and column:
                offset = column - 1 - start + (1 if start else 0)
                shown.append(f"  {'':>{width}} | {' ' * max(0, offset)}^")
        return "\n".join(shown)

    def _line(self, line: int) -> str:
        """Returns the text of an existing line, without its end."""
        start = self._start(line)
        end = self._text.find("\n", start)
        return self._text[start:] if end < 0 else self._text[start:end]

    def _start(self, line: int) -> int:
        """Returns the offset of an existing line's first character."""
        ends = line - 1
        if not ends:
            return 0
        block = bisect_left(self._ends_up_to, ends)
        at = block * _BLOCK - 1
        for _ in range(ends - (self._ends_up_to[block - 1] if block else 0)):
            at = self._text.find("\n", at + 1)
        return at + 1


def excerpt(source: str, line: int, column: int | None, ends: tuple[str, ...] = JAVASCRIPT_LINE_ENDS) -> str:
    """Formats the lines around one place, as `SourceLines.excerpt` does."""
    return SourceLines(source, ends).excerpt(line, column)


# ── errors of the JavaScript guest ────────────────────────────────────────────────────────────────────────────────


PROGRAM_FILE = "main.js"

_JAVASCRIPT_FRAME = re.compile(rf"^\s*at (?:(.*?) \()?{re.escape(PROGRAM_FILE)}:(\d{{1,9}}):(\d{{1,9}})\)?$")
_MOST_FRAMES = 8
_MOST_CALLS = 10
# Outcomes of calls that were refused before they took effect.
_NEVER_MADE = {"denied", "invalid_arguments", "unknown"}
_LONGEST_NAME = 32
_MOST_GUESSES = 200
_ERROR_CLASS = re.compile(r"(?:new )?\w*(?:Error|Exception|Err)")

# Names of other runtimes, and their replacement here.
_ELSEWHERE = {
    "fetch": "There is no network here: call a tool of a host module.",
    "XMLHttpRequest": "There is no network here: call a tool of a host module.",
    "WebSocket": "There is no network here: call a tool of a host module.",
    "process": "There is no process object here: no environment, no arguments, no exit.",
    "Buffer": "There is no Buffer here: use Uint8Array, TextEncoder and TextDecoder, atob and btoa.",
    "Deno": "This is not Deno: only ECMAScript and host modules are here.",
    "Bun": "This is not Bun: only ECMAScript and host modules are here.",
    "window": "This is not a browser: use globalThis.",
    "document": "This is not a browser: there is no page.",
    "localStorage": "Nothing is stored between runs.",
    "module": "Give the run's value with `export default`, `return` or a last expression.",
    "exports": "Give the run's value with `export default`, `return` or a last expression.",
    "WebAssembly": "WebAssembly is not available inside the sandbox.",
    "alert": "Use console.log.",
    "prompt": "Nobody can be asked from inside a run.",
}
_NOT_DEFINED = re.compile(r"^'?([\w$]+)'? is not defined$")


def describe_javascript(
    kind: FailureKind, error: GuestError, source: str, calls: Sequence[CallRecord], *, extra_notes: Sequence[str] = ()
) -> Failure:
    """Makes the failure for an error that the JavaScript guest reported: message, line, excerpt, notes."""
    lines = SourceLines(source)
    frames = [
        (function, line, lines.character_column(line, column))
        for function, line, column in _program_frames(error.stack)
    ]
    # The stack of a user-defined error class begins in its constructor: skip to its caller.
    blamed = next((frame for frame in frames if not _ERROR_CLASS.fullmatch(frame[0])), frames[0] if frames else None)
    line, column = (blamed[1], blamed[2]) if blamed is not None else (None, None)
    message = f"{error.name}: {error.message}" if error.name else f"Uncaught: {error.message}"
    causes = [f"Caused by: {cause}" for cause in error.causes]
    notes = [*_javascript_hints(error, source), *causes, *extra_notes, *notes_of_calls(calls)]
    trace = () if kind == "syntax" else tuple(dict.fromkeys(_javascript_frame_text(*frame) for frame in frames))
    return Failure(
        kind=kind,
        message=message,
        line=line,
        column=column,
        excerpt=lines.excerpt(line, column) if line else "",
        trace=trace,
        notes=tuple(notes),
    )


def _program_frames(stack: str) -> list[tuple[str, int, int]]:
    """Returns the first 8 of the program's own frames of a JavaScript stack: function, line, column in bytes."""
    frames: list[tuple[str, int, int]] = []
    for text in stack.split("\n"):
        match = _JAVASCRIPT_FRAME.match(text)
        if match and len(frames) < _MOST_FRAMES:
            frames.append((match[1] or "", int(match[2]), int(match[3])))
    return frames


def _javascript_frame_text(function: str, line: int, column: int) -> str:
    """Formats a stack frame: its place, and its function unless that is anonymous."""
    place = f"line {line}, column {column}"
    return f"{function} ({place})" if function and function not in ("<anonymous>", "<eval>") else place


def _javascript_hints(error: GuestError, source: str) -> list[str]:
    """Returns a hint on repairing this error, if there is one."""
    if source.lstrip().startswith("```"):
        return ["Hint: the program begins with a Markdown fence (```): give the code alone."]
    if error.message.startswith("BigInt are forbidden"):
        return ["Hint: JSON has no BigInt: convert it with Number(…) or String(…)."]
    if error.name == "ReferenceError" and error.message.endswith("is not initialized"):
        return ["Hint: it is used before its declaration, or its declaration failed: declare it first, or again."]
    match = _NOT_DEFINED.match(error.message) if error.name == "ReferenceError" else None
    return [f"Hint: {_undefined_name_hint(match[1], source)}"] if match else []


def hint_for_missing_name(name: str) -> str:
    """Returns what to use here in place of another runtime's name; empty for other names."""
    return _ELSEWHERE.get(name, "")


def _undefined_name_hint(name: str, source: str) -> str:
    """Returns the hint for an undefined name: its replacement here, a similar name, or to declare it."""
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    guess = _nearest_name(name, source)
    return f"did you mean {guess}?" if guess else "declare it with const or let before it is used."


def _nearest_name(name: str, source: str) -> str | None:
    """Finds the nearest name in the program, in bounded time: name and program are hostile."""
    if len(name) > _LONGEST_NAME:
        return None
    words = set(re.findall(r"[A-Za-z_$][\w$]*", source[:100_000])) - {name}
    known = sorted(word for word in words if abs(len(word) - len(name)) <= 3 and len(word) <= _LONGEST_NAME)
    return nearest(name, known[:_MOST_GUESSES])


def notes_of_calls(calls: Sequence[CallRecord]) -> tuple[str, ...]:
    """Returns a note that lists the host calls already made, which a repaired program must not repeat; or nothing."""
    made = [call for call in calls if call.sent and call.outcome not in _NEVER_MADE]
    if not made:
        return ()
    shown = [f"  {call.module} {call.function}: {call.outcome}" for call in made[:_MOST_CALLS]]
    if len(made) > _MOST_CALLS:
        shown.append(f"  … and {len(made) - _MOST_CALLS} more")
    return ("Calls already made (their effects remain):\n" + "\n".join(shown),)


# ── languages ─────────────────────────────────────────────────────────────────────────────────────────────────────


SandboxLanguage: TypeAlias = Literal["javascript", "typescript", "python"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """A language of programs: its image, and how its errors are described."""

    language: SandboxLanguage
    image: str
    """The guest image that runs it."""
    program_file: str
    describe: Callable[..., Failure]
    """Makes a failure, as `describe`."""
    least_memory: int
    """The least memory of an instance."""
    words_of_calls: tuple[str, ...] | None
    """A program with one of these words will make host calls, so it starts on a guest thread: moving there later costs
    more. A wrong guess costs only time. None: it always starts there."""
    has_types: bool = False
    """Whether types are removed before it runs."""


JAVASCRIPT = Dialect(
    language="javascript",
    image="javascript",
    program_file=PROGRAM_FILE,
    describe=describe_javascript,
    least_memory=LEAST_MEMORY,
    words_of_calls=("host:", "console.", "setTimeout", "setInterval", "Date", "performance"),
)

# Removing types keeps all lines and columns, so failures show the author's lines.
TYPESCRIPT = replace(JAVASCRIPT, language="typescript", has_types=True)


def _describe_python(*arguments: object, **named: object) -> Failure:

    return describe_python(*arguments, **named)  # pyright: ignore[reportArgumentType]


PYTHON = Dialect(
    language="python",
    image="python",
    program_file="main.py",
    describe=_describe_python,
    least_memory=32 * MIB,
    words_of_calls=None,
)

DIALECTS: dict[str, Dialect] = {"javascript": JAVASCRIPT, "typescript": TYPESCRIPT, "python": PYTHON}


# From what the Python guest says of an error to a failure with the author's own lines.


_PYTHON_FRAME = re.compile(r"^at (?:(.{0,200}) \()?main\.py:(\d{1,9}):(\d{1,9})\)?$")


def describe_python(
    kind: FailureKind, error: GuestError, source: str, calls: Sequence[CallRecord], *, extra_notes: Sequence[str] = ()
) -> Failure:
    """Makes the failure for an error that the Python guest reported: message, line, excerpt, notes."""
    lines = SourceLines(source, PYTHON_LINE_ENDS)
    frames = _frames(error.stack, lines)
    line, column = (frames[0][1], frames[0][2]) if frames else (None, None)
    message = f"{error.name}: {error.message}" if error.message else error.name
    causes = [f"Caused by: {cause}" for cause in error.causes]
    notes = [*_python_hints(kind, error, source), *causes, *extra_notes, *notes_of_calls(calls)]
    trace = () if kind == "syntax" else tuple(dict.fromkeys(_python_frame_text(*frame) for frame in frames))
    return Failure(
        kind=kind,
        message=message,
        line=line,
        column=column,
        excerpt=lines.excerpt(line, column) if line else "",
        trace=trace,
        notes=tuple(notes),
    )


def _frames(stack: str, lines: SourceLines) -> list[tuple[str, int, int]]:
    """Returns the program's own stack frames, innermost first: function, line, column in characters."""
    frames: list[tuple[str, int, int]] = []
    for text in stack.split("\n"):
        match = _PYTHON_FRAME.match(text)
        if match and len(frames) < _MOST_FRAMES:
            line = int(match[2])
            frames.append((match[1] or "", line, lines.character_column(line, int(match[3]))))
    return frames


def _python_frame_text(function: str, line: int, column: int) -> str:
    """Formats a stack frame: its place, and its function unless that is the module."""
    place = f"line {line}, column {column}"
    return f"{function} ({place})" if function and function != "<module>" else place


def _python_hints(kind: FailureKind, error: GuestError, source: str) -> list[str]:
    """Returns a hint on repairing this error, if there is one."""
    if source.lstrip().startswith("```"):
        return ["Hint: the program begins with a Markdown fence (```): give the code alone."]
    if kind == "syntax" and error.message.startswith("'return' outside function"):
        return ["Hint: give the run's value as the last expression, or in a variable named result."]
    if error.name == "RuntimeError" and error.message.startswith("asyncio.run() cannot be called"):
        return ["Hint: the program awaits at the top level already: write await in place of asyncio.run(…)."]
    return []
