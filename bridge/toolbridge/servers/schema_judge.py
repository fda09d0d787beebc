"""SECURITY: does a value fit a schema, and if not, where and why. Both may be hostile; the work is bounded.

The `jsonschema` package is the judge of this one in the tests, and not used here: it writes the whole value into the
text of each error, also of those that it only tries for a choice, and counts nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, cast

from toolbridge.servers.checkable_schema import Checkable, CleanSchema
from toolbridge.servers.scalar_rules import SCALAR_RULES, fits_kind
from toolbridge.servers.schema_problems import Path, Problem, Verdict
from toolbridge.servers.structure_rules import STRUCTURE_RULES

_MOST_PROBLEMS = 20
_DEEPEST = 120
_MOST_SECONDS = 0.2
"""For what a count of steps doesn't tell: comparisons of large values, long texts on patterns."""
_COSTLY = frozenset({"enum", "const", "pattern", "uniqueItems"})
_MASK = 127


class _DoneError(Exception):
    """Enough was looked at."""


def judge(schema: Checkable, value: Any, *, steps: int) -> Verdict:
    """What is wrong with a value. After so many steps, the rest of it is taken as right."""
    judgement = Judgement(schema.definitions, steps)
    try:
        judgement.check(schema.schema, value, ())
    except (_DoneError, RecursionError):
        return Verdict(tuple(judgement.found), complete=False)
    return Verdict(tuple(judgement.found), complete=True)


class Judgement:
    """One value being judged."""

    __slots__ = ("_deadline", "_definitions", "_depth", "_sink", "_steps", "found")

    def __init__(self, definitions: Mapping[str, CleanSchema], steps: int) -> None:
        self._definitions = definitions
        self._steps = steps
        self._deadline = time.monotonic() + _MOST_SECONDS
        self._depth = 0
        self.found: list[Problem] = []
        # Where problems go: inside a choice, they are not yet problems of the value.
        self._sink = self.found

    def check(self, schema: CleanSchema, value: Any, path: Path) -> bool:
        """Whether a value fits; if not, problems are noted."""
        if schema is True:
            return True
        self._steps -= 1
        if self._steps < 0 or not self._steps & _MASK:
            self.spend(0)
        if schema is False:
            return self.report(Problem(path, "false", None, value, {}))
        assert isinstance(schema, dict)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _DoneError
        fits = True
        for keyword, wanted in schema.items():
            if keyword == "type":
                right = fits_kind(value, wanted)
            elif (scalar := SCALAR_RULES.get(keyword)) is not None:
                if keyword in _COSTLY:
                    self.spend(_cost(value, wanted))
                right = scalar(value, wanted)
            elif (rule := STRUCTURE_RULES.get(keyword)) is not None:
                fits = rule(self, wanted, value, schema, path) and fits
                continue
            else:
                continue
            if not right:
                fits = self.report(Problem(path, keyword, wanted, value, schema))
        self._depth -= 1
        return fits

    def spend(self, steps: int) -> None:
        """Count work, and end it when it was enough."""
        self._steps -= steps
        if self._steps < 0 or time.monotonic() > self._deadline:
            raise _DoneError

    def report(self, problem: Problem) -> bool:
        """Note a problem; it is one, so the answer is no."""
        if len(self._sink) < _MOST_PROBLEMS:
            self._sink.append(problem)
        elif self._sink is self.found:
            raise _DoneError
        return False

    def tried(self, schema: CleanSchema, value: Any, path: Path) -> list[Problem]:
        """What would be wrong; nothing is noted."""
        inner: list[Problem] = []
        outer, self._sink = self._sink, inner
        self.check(schema, value, path)
        self._sink = outer
        return inner

    def meant(self, name: str) -> CleanSchema:
        """What a reference means."""
        return self._definitions[name]


def _cost(value: Any, wanted: Any) -> int:
    """About how many steps a comparison is worth."""
    size = len(cast("str", value)) if isinstance(value, (str, list, dict)) else 0
    return (size + (len(cast("str", wanted)) if isinstance(wanted, (str, list, dict)) else 0)) // 20
