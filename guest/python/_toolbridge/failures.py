"""Failures of outcome frames: an error's text and suggestion, its causes, and the program's own traceback lines."""

from __future__ import annotations

import difflib
import sys
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Any, cast

from .tool_errors import ToolError

_MOST_TEXT = 8000
_MOST_FRAMES = 8
_MOST_CAUSES = 5


def failure(error: BaseException, file: str, *, kind: str) -> dict[str, Any]:
    """Describes an error as the failure of an outcome frame; frames of `file` are the program's own."""
    description = _name_and_message(error)
    description["stack"] = _stack(error, file)
    if isinstance(error, ToolError):
        for name in ("module", "function", "kind"):
            text = getattr(error, name, "")
            if isinstance(text, str) and text:
                description[name] = text[:_MOST_TEXT]
    causes = [
        f"{each['name']}: {each['message']}" if each["message"] else each["name"]
        for each in map(_name_and_message, _causes(error))
    ]
    if causes:
        description["causes"] = causes
    return {"kind": kind, "error": description}


def _name_and_message(error: BaseException) -> dict[str, Any]:
    return {"name": type(error).__name__[:_MOST_TEXT], "message": _message(error)[:_MOST_TEXT]}


def _message(error: BaseException) -> str:
    """Returns the error's text with Python's own suggestion and notes; a hostile __str__ costs the text only."""
    if isinstance(error, SyntaxError):
        return error.msg or ""
    try:
        text = str(error)
    except Exception:
        return ""
    if "id you mean" not in text:
        wanted: Any = getattr(error, "name_from", None)
        if isinstance(error, ImportError) and isinstance(error.name, str) and isinstance(wanted, str):
            text = _missing_export(error.name, wanted)
        elif isinstance(error, (NameError, AttributeError)):
            text = _with_suggestion(error, text)
    notes: Any = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        listed = cast("list[Any]", notes)
        text = "\n".join([text, *(each for each in listed[:5] if isinstance(each, str))])
    return text


def _missing_export(module: str, name: str) -> str:
    """Formats the message for a missing export; Python's own knows only top-level modules, and names a file."""
    known = [each for each in dir(sys.modules.get(module)) if not each.startswith("__")]
    guesses = difflib.get_close_matches(name[:64], known[:1000], n=1, cutoff=0.6)
    advice = f" Did you mean: {guesses[0]!r}?" if guesses else ""
    if not guesses and module.startswith("host"):
        advice = f" It has: {', '.join(known[:20]) or 'nothing'}{', …' if len(known) > 20 else ''}."
    return f"cannot import name {name!r} from {module!r}.{advice}"


def _with_suggestion(error: BaseException, text: str) -> str:
    """Returns the error's text with Python's own "did you mean", or `text` if that can't be had."""
    try:
        lines = list(traceback.TracebackException.from_exception(error).format_exception_only())
        shown = "".join(lines).strip()
        return shown.partition(": ")[2] or text
    except Exception:
        return text


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yields the chain of causes and contexts, and the members of exception groups, five at most."""
    found = 0
    seen = {id(error)}
    queue: list[BaseException] = [error]
    while queue and found < _MOST_CAUSES:
        current = queue.pop(0)
        behind: list[Any] = []
        if isinstance(current, BaseExceptionGroup):
            behind.extend(cast("BaseExceptionGroup[BaseException]", current).exceptions)
        if current.__cause__ is not None:
            behind.append(current.__cause__)
        elif current.__context__ is not None and not current.__suppress_context__:
            behind.append(current.__context__)
        for each in behind:
            if id(each) not in seen and found < _MOST_CAUSES:
                seen.add(id(each))
                found += 1
                queue.append(each)
                yield each


def _stack(error: BaseException, file: str) -> str:
    """Formats the program's own frames, innermost first: function, line, and column in bytes, from 1."""
    if isinstance(error, SyntaxError) and error.filename == file and error.lineno:
        line = error.text or ""
        column = len(line[: (error.offset or 1) - 1].encode("utf-8", "replace")) + 1
        return f"at {file}:{error.lineno}:{max(1, column)}"
    places: list[str] = []
    for trace in _traces(error.__traceback__):
        code = trace.tb_frame.f_code
        if code.co_filename == file:
            places.append(f"at {code.co_qualname} ({file}:{trace.tb_lineno}:{_column(trace)})")
    return "\n".join(reversed(places[-_MOST_FRAMES:]))


def _traces(trace: TracebackType | None) -> Iterator[TracebackType]:
    """Yields a traceback's entries, outermost first."""
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _column(trace: TracebackType) -> int:
    """Returns the column of a traceback entry, in bytes from 1; 1 if it is unknown."""
    positions = trace.tb_frame.f_code.co_positions()
    for index, place in enumerate(positions):
        if index * 2 == trace.tb_lasti:
            return (place[2] or 0) + 1
    return 1
