"""Reading the arguments of a call: a model's mistakes become sentences that it can repair them from."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any, cast


class ArgumentError(Exception):
    """An argument is missing, unknown, or not what it should be. The message is for the model."""


class Arguments:
    """The arguments of one call. Every one that is given has to be read."""

    def __init__(self, tool: str, given: Mapping[str, Any], known: Collection[str]) -> None:
        self._tool = tool
        self._given = given
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(name, list(known), n=1)
                hint = f" Did you mean {near[0]!r}?" if near else f" It takes {', '.join(sorted(known)) or 'none'}."
                raise ArgumentError(f"{tool} has no argument {name[:100]!r}.{hint}")

    def text(self, name: str, *, most: int, default: str | None = None) -> str:
        """A string."""
        value = self._value(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        if len(value) > most:
            raise self._wrong(name, f"at most {most:,} characters long; it has {len(value):,}")
        return value

    def texts(self, name: str, *, most: int) -> list[str]:
        """A list of strings; one string is a list of one."""
        value = self._value(name, None)
        if isinstance(value, str):
            value = [value]
        items = cast("list[object]", value) if isinstance(value, list) else []
        texts = [item for item in items if isinstance(item, str)]
        if not items or len(texts) != len(items) or len(texts) > most:
            raise self._wrong(name, f"a list of 1 to {most} strings")
        return texts

    def choice(self, name: str, choices: Collection[str], *, default: str | None = None) -> str:
        """One of several words."""
        value = self._value(name, default)
        if not isinstance(value, str) or value not in choices:
            raise self._wrong(name, f"one of {', '.join(choices)}")
        return value

    def number(self, name: str, *, least: float, most: float, default: float) -> float:
        """A number in a range."""
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            raise self._wrong(name, f"a number from {least:g} to {most:g}")
        return float(value)

    def _value(self, name: str, default: object) -> object:
        value = self._given.get(name)
        if value is None:
            if default is None:
                raise ArgumentError(f"{self._tool} needs the argument {name!r}.")
            return default
        return value

    def _wrong(self, name: str, expected: str) -> ArgumentError:
        return ArgumentError(f"The argument {name!r} of {self._tool} has to be {expected}.")
