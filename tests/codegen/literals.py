"""JSON values as the literals of each language, for programs that pass them to a stub."""

from __future__ import annotations

import json
import keyword
from typing import Any

from toolbridge_codegen.escaping import is_list, is_object


def typescript(value: Any) -> str:
    """A TypeScript expression for a JSON value."""
    if is_object(value):
        # A quoted `__proto__` in a literal would set the prototype; a computed one is a property like any other.
        members = (f"{_typescript_key(key)}: {typescript(member)}" for key, member in value.items())
        return "{" + ", ".join(members) + "}"
    if is_list(value):
        return "[" + ", ".join(typescript(item) for item in value) + "]"
    return json.dumps(_number(value), ensure_ascii=True)


def python(value: Any) -> str:
    """A Python expression for a JSON value. What can be seen is written as itself: pyright misreads long escapes."""
    if is_object(value):
        return "{" + ", ".join(f"{key!r}: {python(member)}" for key, member in value.items()) + "}"
    if is_list(value):
        return "[" + ", ".join(python(item) for item in value) + "]"
    return repr(_number(value))


def can_be_keyword(name: str) -> bool:
    """Whether Python code can write a property as a keyword argument."""
    return name.isidentifier() and not keyword.iskeyword(name)


def _typescript_key(key: str) -> str:
    text = json.dumps(key, ensure_ascii=True)
    return f"[{text}]" if key == "__proto__" else text


def _number(value: Any) -> Any:
    """JSON has one kind of number: 2.0 is 2, and that is how a program would write it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
