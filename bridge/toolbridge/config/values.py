"""Checks of single values, the same for files and for code. Each gives the value as it is kept, or says what is wrong.

No message here shows a value: what a field holds may be a secret that was put into the wrong place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Literal, TypeVar, cast

from toolbridge.config.wording import kind_of, listed, quoted
from toolbridge.errors import ConfigError

_Word = TypeVar("_Word", bound=str)

MOST_SECONDS = 3600.0
LEAST_SECONDS = 0.001
_ALL_TOOLS = re.compile(r"mcp__[\w.-]+__\*|mcp:[\w.-]+_\*")
_WILDCARDS = frozenset("*?[]{}()|^$+\\,")
"""Of globs, regular expressions and lists. Tools are matched by name, and MCP has none of these in one."""


def wrong(value: object, field: str, expected: str, fix: str = "") -> ConfigError:
    """The error for a value of the wrong kind."""
    return ConfigError(f"expected {expected}, found {kind_of(value)}.", field=field, fix=fix)


def any_text(value: object, field: str) -> str:
    """Text that can be handed to a process or a server."""
    if not isinstance(value, str):
        is_scalar = isinstance(value, (bool, int, float))
        raise wrong(value, field, "text", "Write it in quotes." if is_scalar else "")
    if "\0" in value:
        raise ConfigError("contains a NUL character.", field=field, fix="Remove it.")
    try:
        value.encode()
    except UnicodeEncodeError:
        fault = "contains half a surrogate pair, which is no character."
    else:
        return value
    raise ConfigError(fault, field=field, fix="Remove it.")  # outside: the first error's context holds the value


def some_text(value: object, field: str) -> str:
    """Text that is not empty."""
    text = any_text(value, field)
    if not text.strip():
        raise ConfigError("is empty.", field=field, fix="Write something, or leave the field out.")
    return text


def flag(value: object, field: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise wrong(value, field, "true or false", "Write it without quotes." if isinstance(value, str) else "")
    return value


def texts(value: object, field: str) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(any_text(item, f"{field}[{index}]") for index, item in enumerate(_items(value, field)))


def names(value: object, field: str) -> tuple[str, ...]:
    """A list of names, none of them empty."""
    return tuple(some_text(item, f"{field}[{index}]") for index, item in enumerate(_items(value, field)))


def denied_names(value: object, field: str) -> tuple[str, ...]:
    """A list of names of tools that are denied. A wildcard in one would be a rule that denies nothing."""
    found = names(value, field)
    for index, name in enumerate(found):
        if not _ALL_TOOLS.fullmatch(name):
            check_wildcards(name, f"{field}[{index}]", fix="Write the tool's name, or mcp__<server>__* for all tools.")
    return found


def check_wildcards(denied: str, field: str, *, fix: str) -> None:
    """See that what is denied has no wildcard of another language: it would match no tool.

    Raises:
        ConfigError: it has one.
    """
    wildcard = next((each for each in denied if each in _WILDCARDS), None)
    if wildcard is not None:
        problem = f"{quoted(denied)} denies nothing: {wildcard!r} is no wildcard here, and in no tool's name."
        raise ConfigError(problem, field=field, fix=fix)


def _items(value: object, field: str) -> tuple[object, ...]:
    if not isinstance(value, (list, tuple)):
        raise wrong(value, field, 'a list such as ["one", "two"]')
    return tuple(cast("list[object] | tuple[object, ...]", value))


def pairs(value: object, field: str) -> dict[str, object]:
    """An object whose keys are text."""
    if not isinstance(value, Mapping):
        raise wrong(value, field, 'an object such as {"name": "value"}')
    found = cast("Mapping[object, object]", value)
    for key in found:
        if not isinstance(key, str):
            raise wrong(key, field, "names that are text")
    return dict(cast("Mapping[str, object]", value))


def environment(value: object, field: str) -> dict[str, str]:
    """Variables and their values, which may have references."""
    return {
        variable(name, f"{field}.{_key(name)}"): any_text(text, f"{field}.{_key(name)}")
        for name, text in pairs(value, field).items()
    }


def variables(value: object, field: str) -> tuple[str, ...]:
    """A list of names of variables."""
    return tuple(variable(name, f"{field}[{index}]") for index, name in enumerate(names(value, field)))


def variable(name: str, field: str) -> str:
    """The name of a variable."""
    any_text(name, field)
    if not name or "=" in name or not name.isprintable() or " " in name:
        fix = "Write the name alone: no '=', space or control character."
        raise ConfigError("is not the name of a variable.", field=field, fix=fix)
    return name


def _key(name: str) -> str:
    """A name as part of a field's path, cut: one that was meant to be a value is not shown in full."""
    return name if len(name) <= 60 else f"{name[:12]}…"


def seconds(value: object, field: str) -> float:
    """A time, positive and at most an hour."""
    fix = "Times are in seconds."
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong(value, field, f"a number from {LEAST_SECONDS:g} to {MOST_SECONDS:g}", fix)
    if not LEAST_SECONDS <= value <= MOST_SECONDS:
        raise ConfigError(f"expected {LEAST_SECONDS:g} to {MOST_SECONDS:g}.", field=field, fix=fix)
    return float(value)


def unset_env(value: object, field: str) -> Literal["error", "empty"]:
    """What becomes of a reference to a variable that is not set."""
    return _one_of(("error", "empty"), value, field)


def reading(value: object, field: str) -> Literal["intended", "literal"]:
    """How the server's schemas are read."""
    return _one_of(("intended", "literal"), value, field)


def _one_of(known: tuple[_Word, ...], value: object, field: str) -> _Word:
    for word in known:
        if value == word:
            return word
    found = quoted(value) if isinstance(value, str) else kind_of(value)
    raise ConfigError(f"expected {listed(known)}, found {found}.", field=field)


def absolute_directory(path: str, base: str, home: str | None) -> str:
    """A working directory of a file, fixed when that is read. Another user's home is not looked up."""
    if home is not None and (path == "~" or path.startswith(("~/", f"~{os.sep}"))):
        path = home + path[1:]
    return os.path.normpath(os.path.join(base, path)) if "\0" not in path else path


def working_directory(value: object, field: str) -> str:
    """An absolute path: a relative one would be another directory, and perhaps another program, on another day."""
    path = some_text(value, field)
    if not os.path.isabs(path):
        raise ConfigError("is not an absolute path.", field=field, fix="Write the path in full.")
    return path
