"""From what the JavaScript guest says of an error to a failure with the author's own lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolbridge.boundary.host_call import CallRecord
from toolbridge.boundary.wire import GuestError
from toolbridge.sandbox.outcome import Failure, FailureKind
from toolbridge.sandbox.source_lines import SourceLines

PROGRAM_FILE = "main.js"

_FRAME = re.compile(rf"^\s*at (?:(.*?) \()?{re.escape(PROGRAM_FILE)}:(\d{{1,9}}):(\d{{1,9}})\)?$")
_MOST_FRAMES = 8
_MOST_CALLS = 10
# Outcomes of calls that were refused before they took effect.
_NEVER_MADE = {"denied", "invalid_arguments", "unknown"}
_LONGEST_NAME = 32
_MOST_GUESSES = 200
_ERROR_CLASS = re.compile(r"(?:new )?\w*(?:Error|Exception|Err)")

# Names that other runtimes have, and what there is here instead.
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


def describe(
    kind: FailureKind, error: GuestError, source: str, calls: Sequence[CallRecord], *, extra_notes: Sequence[str] = ()
) -> Failure:
    """The failure for an error that the guest reported."""
    lines = SourceLines(source)
    frames = [
        (function, line, lines.character_column(line, column))
        for function, line, column in _program_frames(error.stack)
    ]
    # An error class of the program's own begins in its constructor: what matters is who called that.
    blamed = next((frame for frame in frames if not _ERROR_CLASS.fullmatch(frame[0])), frames[0] if frames else None)
    line, column = (blamed[1], blamed[2]) if blamed is not None else (None, None)
    message = f"{error.name}: {error.message}" if error.name else f"Uncaught: {error.message}"
    causes = [f"Caused by: {cause}" for cause in error.causes]
    notes = [*_hints(error, source), *causes, *extra_notes, *notes_of_calls(calls)]
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


def _program_frames(stack: str) -> list[tuple[str, int, int]]:
    """The frames of the program itself: function, line, column. The prelude's are left out."""
    frames: list[tuple[str, int, int]] = []
    for text in stack.split("\n"):
        match = _FRAME.match(text)
        if match and len(frames) < _MOST_FRAMES:
            frames.append((match[1] or "", int(match[2]), int(match[3])))
    return frames


def _frame_text(function: str, line: int, column: int) -> str:
    place = f"line {line}, column {column}"
    return f"{function} ({place})" if function and function not in ("<anonymous>", "<eval>") else place


def _hints(error: GuestError, source: str) -> list[str]:
    if source.lstrip().startswith("```"):
        return ["Hint: the program begins with a Markdown fence (```): give the code alone."]
    if error.message.startswith("BigInt are forbidden"):
        return ["Hint: JSON has no BigInt: convert it with Number(…) or String(…)."]
    if error.name == "ReferenceError" and error.message.endswith("is not initialized"):
        return ["Hint: it is used before its declaration, or its declaration failed: declare it first, or again."]
    match = _NOT_DEFINED.match(error.message) if error.name == "ReferenceError" else None
    return [f"Hint: {_undefined_name_hint(match[1], source)}"] if match else []


def hint_for_missing_name(name: str) -> str:
    """What there is in place of a name that other runtimes have; empty for any other."""
    return _ELSEWHERE.get(name, "")


def _undefined_name_hint(name: str, source: str) -> str:
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    guess = _nearest_name(name, source)
    return f"did you mean {guess}?" if guess else "declare it with const or let before it is used."


def _nearest_name(name: str, source: str) -> str | None:
    """The name in the program that is spelt most like this one. Bounded: name and program are hostile."""
    import difflib

    if len(name) > _LONGEST_NAME:
        return None
    words = set(re.findall(r"[A-Za-z_$][\w$]*", source[:100_000])) - {name}
    known = sorted(word for word in words if abs(len(word) - len(name)) <= 3 and len(word) <= _LONGEST_NAME)
    guesses = difflib.get_close_matches(name, known[:_MOST_GUESSES], n=1, cutoff=0.75)
    return guesses[0] if guesses else None


def notes_of_calls(calls: Sequence[CallRecord]) -> tuple[str, ...]:
    """Which host calls had been made: what a repaired program must not do twice."""
    made = [call for call in calls if call.sent and call.outcome not in _NEVER_MADE]
    if not made:
        return ()
    shown = [f"  {call.module} {call.function}: {call.outcome}" for call in made[:_MOST_CALLS]]
    if len(made) > _MOST_CALLS:
        shown.append(f"  … and {len(made) - _MOST_CALLS} more")
    return ("Calls already made (their effects remain):\n" + "\n".join(shown),)
