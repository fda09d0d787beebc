"""From what the Python guest says of an error to a failure with the author's own lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolbridge.boundary.host_call import CallRecord
from toolbridge.boundary.wire import GuestError
from toolbridge.sandbox.javascript_failure import notes_of_calls
from toolbridge.sandbox.outcome import Failure, FailureKind
from toolbridge.sandbox.source_lines import PYTHON_LINE_ENDS, SourceLines

_FRAME = re.compile(r"^at (?:(.{0,200}) \()?main\.py:(\d{1,9}):(\d{1,9})\)?$")
_MOST_FRAMES = 8


def describe(
    kind: FailureKind, error: GuestError, source: str, calls: Sequence[CallRecord], *, extra_notes: Sequence[str] = ()
) -> Failure:
    """The failure for an error that the guest reported."""
    lines = SourceLines(source, PYTHON_LINE_ENDS)
    frames = _frames(error.stack, lines)
    line, column = (frames[0][1], frames[0][2]) if frames else (None, None)
    message = f"{error.name}: {error.message}" if error.message else error.name
    causes = [f"Caused by: {cause}" for cause in error.causes]
    notes = [*_hints(kind, error, source), *causes, *extra_notes, *notes_of_calls(calls)]
    trace = () if kind == "syntax" else tuple(dict.fromkeys(_frame_text(*frame) for frame in frames))
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
    """The program's own frames, innermost first: function, line, column."""
    frames: list[tuple[str, int, int]] = []
    for text in stack.split("\n"):
        match = _FRAME.match(text)
        if match and len(frames) < _MOST_FRAMES:
            line = int(match[2])
            frames.append((match[1] or "", line, lines.character_column(line, int(match[3]))))
    return frames


def _frame_text(function: str, line: int, column: int) -> str:
    place = f"line {line}, column {column}"
    return f"{function} ({place})" if function and function != "<module>" else place


def _hints(kind: FailureKind, error: GuestError, source: str) -> list[str]:
    if source.lstrip().startswith("```"):
        return ["Hint: the program begins with a Markdown fence (```): give the code alone."]
    if kind == "syntax" and error.message.startswith("'return' outside function"):
        return ["Hint: give the run's value as the last expression, or in a variable named result."]
    if error.name == "RuntimeError" and error.message.startswith("asyncio.run() cannot be called"):
        return ["Hint: the program awaits at the top level already: write await in place of asyncio.run(…)."]
    return []
