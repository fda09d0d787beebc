"""JSON values as they come from a server: what they are, and how to write them down without trusting their size."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any, TypeGuard

from toolbridge_codegen.sanitise import CUT_MARK, clean_line


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """A JSON object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """A JSON array."""
    return isinstance(value, list)


def brief_json(value: Any, limit: int = 100) -> str:
    """A value on one clean line. Costs no more than `limit`, however large or deep the value is."""
    parts: list[str] = []
    room = limit
    # What is still to be written, last first: values and finished pieces of text.
    stack: list[tuple[bool, Any]] = [(True, value)]
    while stack and room > 0:
        is_value, item = stack.pop()
        if is_value and is_object(item):
            stack.append((False, "}"))
            names = list(islice(item, room))
            for index in range(len(names) - 1, -1, -1):
                stack.append((True, item[names[index]]))
                stack.append((False, f"{', ' if index else ''}{_scalar(names[index], room)}: "))
            stack.append((False, "{"))
            continue
        if is_value and is_list(item):
            stack.append((False, "]"))
            some = item[:room]
            for index in range(len(some) - 1, -1, -1):
                stack.append((True, some[index]))
                if index:
                    stack.append((False, ", "))
            stack.append((False, "["))
            continue
        text: str = _scalar(item, room) if is_value else item
        parts.append(text)
        room -= len(text)
    text = "".join(parts)
    return clean_line(text + CUT_MARK if stack else text, limit=limit)


def _scalar(value: Any, limit: int) -> str:
    if isinstance(value, str):
        return json.dumps(value[: limit + 1], ensure_ascii=False)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**40:
        return "a very large number"  # Python refuses to write integers of thousands of digits
    return json.dumps(value) if value is None or isinstance(value, bool | int | float) else "?"


def exact_text(value: Any) -> str:
    """A text that two values share only if they are the same JSON with the same order of members."""
    return plain_json(value) or _text_without_recursion(value)


def plain_json(value: Any) -> str | None:
    """A value as JSON in ASCII; None for one that is nested too deeply, or isn't JSON."""
    try:
        return json.dumps(value, separators=(",", ":"), check_circular=False)
    except (RecursionError, TypeError, ValueError):
        return None


def _text_without_recursion(value: Any) -> str:
    """For values that are nested deeper than Python's stack, or hold what JSON can't."""
    parts: list[str] = []
    stack: list[tuple[bool, Any]] = [(True, value)]
    while stack:
        is_value, item = stack.pop()
        if not is_value:
            parts.append(item)
        elif is_object(item):
            parts.append("{")
            stack.append((False, "}"))
            for name in reversed(item):
                stack += [(False, ","), (True, item[name]), (False, json.dumps(str(name)) + ":")]
        elif is_list(item):
            parts.append("[")
            stack.append((False, "]"))
            for member in reversed(item):
                stack += [(False, ","), (True, member)]
        elif item is None or isinstance(item, str | bool | float):
            parts.append(json.dumps(item))
        elif isinstance(item, int):
            parts.append(hex(item))
        else:
            parts.append(f"<{type(item).__name__}>")
    return "".join(parts)
