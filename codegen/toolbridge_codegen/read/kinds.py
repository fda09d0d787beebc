"""Bounds: how much of a schema is followed before its type becomes unknown (threat T15).

A schema of a few kilobytes can describe a type of terabytes. Everything that grows is counted while it grows;
past a bound, that place becomes unknown with a diagnostic, and the rest of the server is untouched.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolbridge_codegen.escaping import is_list

# The kinds of JSON values that a schema's `type` admits, as sets of bits.


NULL, BOOLEAN, STRING, INTEGER, FRACTION, ARRAY, OBJECT = 1, 2, 4, 8, 16, 32, 64
NUMBER = INTEGER | FRACTION
ANY_KIND = 127

KINDS = {
    "string": STRING,
    "number": NUMBER,
    "integer": INTEGER,
    "boolean": BOOLEAN,
    "null": NULL,
    "array": ARRAY,
    "object": OBJECT,
}

_OTHER_SPELLINGS = {
    "any": ANY_KIND,
    "mixed": ANY_KIND,
    "str": STRING,
    "text": STRING,
    "int": INTEGER,
    "long": INTEGER,
    "float": NUMBER,
    "double": NUMBER,
    "decimal": NUMBER,
    "bool": BOOLEAN,
    "dict": OBJECT,
    "map": OBJECT,
    "list": ARRAY,
    "none": NULL,
    "nil": NULL,
}
"""What servers write that JSON Schema doesn't know, and can only mean one thing."""


def kinds_of_type(declared: Any) -> tuple[int, str]:
    """The kinds that the value of a `type` keyword admits, and what is odd about it, if anything."""
    if isinstance(declared, str):
        kinds = KINDS.get(declared)
        return (kinds, "") if kinds is not None else _odd_spelling(declared)
    if not is_list(declared):
        return ANY_KIND, "'type' is neither a string nor a list"
    kinds, odd = 0, ""
    for name in declared[:100]:
        one, odd_one = kinds_of_type(name) if isinstance(name, str) else (ANY_KIND, "'type' lists something else")
        kinds |= one
        odd = odd or odd_one
    return (kinds, odd) if kinds and len(declared) <= 100 else (ANY_KIND, odd or "'type' is an empty list")


def _odd_spelling(declared: str) -> tuple[int, str]:
    lowered = declared.strip().lower()
    kinds = KINDS.get(lowered) or _OTHER_SPELLINGS.get(lowered, ANY_KIND)
    return kinds, "" if lowered == "any" else f"'type' is no type of JSON Schema: {declared!r:.60}"


def kind_of_value(value: Any) -> int:
    """The kind of a JSON value; `1.0` is an integer."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, str):
        return STRING
    if isinstance(value, int):
        return INTEGER
    if isinstance(value, float):
        return INTEGER if value.is_integer() else FRACTION
    return ARRAY if is_list(value) else OBJECT


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is followed. What a bound cuts off is typed as unknown, never wrongly."""

    depth: int = 32
    """Levels of nesting written out in one place; a reference to a definition starts again at none."""
    nodes: int = 20_000
    """Schemas and properties visited for one tool."""
    properties: int = 1_000
    """Properties of one object."""
    union: int = 100
    """Members of one union."""
    literals: int = 200
    """Constants in one union."""
    characters: int = 256 * 1024
    """Text of one tool's stub."""
    name: int = 500
    """Characters of a property's name, or of a constant."""
    seconds: float = 4.0
    """For one tool's types; with the writing of them it stays under five."""
    module_nodes: int = 200_000
    """The same for one server: many hostile tools must not add up to a hang. But each tool has some of its own."""
    least_nodes: int = 500
    """What each tool has, however much the others used."""
    module_seconds: float = 12.0
    """For all types of one server."""
    least_seconds: float = 0.1
    """What each tool has, however long the others took; one of few parts is never timed."""
    diagnostics: int = 50
    """Diagnostics for one tool."""


_LOOK_AT_CLOCK_EVERY = 256
TOO_SLOW = "the schema takes too long"


class Budget:
    """What is left of the bounds for one tool. Once it is used up it stays so."""

    __slots__ = (
        "_characters",
        "_clock",
        "_comments",
        "_deadline",
        "_next_look",
        "_nodes",
        "comments_full",
        "exhausted",
        "spent",
    )

    def __init__(
        self,
        bounds: Bounds,
        nodes_left: int,
        seconds_left: float = math.inf,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._nodes = min(bounds.nodes, max(nodes_left, bounds.least_nodes))
        self._comments = bounds.characters // 2
        self._characters = bounds.characters // 3  # what types are written with takes some room too
        self.comments_full = False
        self._clock = clock
        self._deadline = clock() + min(bounds.seconds, max(seconds_left, bounds.least_seconds))
        self._next_look = _LOOK_AT_CLOCK_EVERY
        self.spent = 0
        self.exhausted = ""
        """Why there is nothing left, or empty."""

    def visit(self, count: int = 1) -> bool:
        """Count schemas or properties; false once there were too many, or the time is over."""
        self.spent += count
        if self.spent > self._nodes:
            self.exhausted = self.exhausted or f"the schema has more than {self._nodes} parts"
        elif self.spent >= self._next_look:
            self._next_look = self.spent + _LOOK_AT_CLOCK_EVERY
            if self._clock() > self._deadline:
                self.exhausted = self.exhausted or TOO_SLOW
        return not self.exhausted

    def write(self, characters: int) -> bool:
        """Count text that types need; false once it is too much."""
        self._characters -= characters
        if self._characters < 0:
            self.exhausted = self.exhausted or "the stub would be too large"
        return not self.exhausted

    def describe(self, characters: int) -> bool:
        """Count text for comments, which have half of the room; false if this text has to be left out."""
        self._comments -= characters
        self.comments_full = self._comments < 0
        return not self.comments_full
