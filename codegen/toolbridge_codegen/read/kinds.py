"""Kinds of JSON values, and the bounds on reading a schema (threat T15: schema bombs).

A schema of a few kilobytes can describe a type of terabytes. Everything that grows is counted; beyond a bound, a type
becomes unknown with a diagnostic, and the rest of the server is unaffected.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolbridge_codegen.escaping import is_list

# The kinds of JSON values that a schema's `type` admits, as bit sets.

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
    **dict.fromkeys(("any", "mixed"), ANY_KIND),
    **dict.fromkeys(("str", "text"), STRING),
    **dict.fromkeys(("int", "long"), INTEGER),
    **dict.fromkeys(("float", "double", "decimal"), NUMBER),
    **dict.fromkeys(("dict", "map"), OBJECT),
    **dict.fromkeys(("none", "nil"), NULL),
    "bool": BOOLEAN,
    "list": ARRAY,
}
"""Names that JSON Schema lacks, with one possible meaning."""


def kinds_of_type(declared: Any) -> tuple[int, str]:
    """Returns the kinds that the value of a `type` keyword admits, and a diagnostic or nothing.

    Unknown names and malformed values admit all kinds.
    """
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
    """Returns the kinds of a type name that JSON Schema lacks (all if unknown), and a diagnostic unless it is `any`."""
    lowered = declared.strip().lower()
    kinds = KINDS.get(lowered) or _OTHER_SPELLINGS.get(lowered, ANY_KIND)
    return kinds, "" if lowered == "any" else f"'type' is no type of JSON Schema: {declared!r:.60}"


def kind_of_value(value: Any) -> int:
    """Returns the kind of a JSON value; `1.0` is an integer."""
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
    """The bounds. A type beyond one is unknown, never wrong."""

    depth: int = 32
    """Levels of nesting in one place; a reference to a definition resets it."""
    nodes: int = 20_000
    """Schemas and properties visited per tool."""
    properties: int = 1_000
    """Properties per object."""
    union: int = 100
    """Members per union."""
    literals: int = 200
    """Constants per union."""
    characters: int = 256 * 1024
    """Size of a tool's stub."""
    name: int = 500
    """Length of a property's name, or of a constant."""
    seconds: float = 4.0
    """Time for a tool's types."""
    module_nodes: int = 200_000
    """Schemas and properties per server: many tools must not add up to a hang."""
    least_nodes: int = 500
    """The minimum of each tool, whatever the others used."""
    module_seconds: float = 12.0
    """Time for all types of a server."""
    least_seconds: float = 0.1
    """The minimum of each tool, whatever the others took; small schemas are never timed."""
    diagnostics: int = 50
    """Diagnostics per tool."""


_LOOK_AT_CLOCK_EVERY = 256
TOO_SLOW = "the schema takes too long"


class Budget:
    """A tool's step, text and time budget. Once exhausted, it stays so.

    Steps and time are the bounds', or what its server has left (`nodes_left`, `seconds_left`), but at least a minimum.
    """

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
        self._characters = bounds.characters // 3  # the syntax of types takes room, too
        self.comments_full = False
        self._clock = clock
        self._deadline = clock() + min(bounds.seconds, max(seconds_left, bounds.least_seconds))
        self._next_look = _LOOK_AT_CLOCK_EVERY
        self.spent = 0
        self.exhausted = ""
        """The bound that was exceeded, or empty."""

    def visit(self, count: int = 1) -> bool:
        """Spends steps; returns False once steps or time are exhausted, and from then on.

        Looks at the clock only every 256 steps.
        """
        self.spent += count
        if self.spent > self._nodes:
            self.exhausted = self.exhausted or f"the schema has more than {self._nodes} parts"
        elif self.spent >= self._next_look:
            self._next_look = self.spent + _LOOK_AT_CLOCK_EVERY
            if self._clock() > self._deadline:
                self.exhausted = self.exhausted or TOO_SLOW
        return not self.exhausted

    def write(self, characters: int) -> bool:
        """Spends text of types; returns False once it, or another part of the budget, is exhausted."""
        self._characters -= characters
        if self._characters < 0:
            self.exhausted = self.exhausted or "the stub would be too large"
        return not self.exhausted

    def describe(self, characters: int) -> bool:
        """Spends text of comments, which have half of the room; returns False if this one must be dropped.

        Sets `comments_full`. Never exhausts the rest of the budget.
        """
        self._comments -= characters
        self.comments_full = self._comments < 0
        return not self.comments_full
