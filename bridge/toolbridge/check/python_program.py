"""A Python program as text: what judging a finding needs to know of it. It is never parsed here."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from toolbridge.check.python_stub_lines import PythonStubs
from toolbridge.check.python_text import new_meanings, without_texts
from toolbridge.check.world import World
from toolbridge.sandbox.compiler import StubLine

_ASSIGNED_KEY = re.compile(r"""\[\s*(["'])([^"'\n]*)\1\s*\]\s*(?:=(?!=)|[-+*/|&^%@]=|//=|\*\*=)""")
_GIVEN_KEY = re.compile(r"""(?:setdefault|pop)\s*\(\s*(["'])([^"'\n]*)\1""")
_ASKED_KEY = re.compile(r"""(["'])([^"'\n]*)\1\s+(?:not\s+)?in\b""")
_ASKED_ATTRIBUTE = re.compile(r"""\b(?:has|get)attr\s*\([^"'\n]*["'](\w+)["']""")
_UPDATED = re.compile(r"\.update\s*\(|\|=")
_WRITTEN_KEY = re.compile(r"""(["'])([^"'\n]*)\1\s*:|\b(\w+)\s*=(?!=)""")
_ASSIGNED_ATTRIBUTE = re.compile(r"\.(\w+)\s*(?::[^=\n]+)?=(?!=)")
_OPEN_PROGRAM = re.compile(r"\b(?:exec|globals|locals|vars|setattr)\s*\(|\bimport\s+\*")
_KEY = re.compile(r"""\[\s*(["'])([^"'\n]*)\1\s*\]""")
_CALLED = re.compile(r"\b(\w+)\s*\(")
_MOST_LINES = 20
_MOST_TEXT = 2000


class Finding(NamedTuple):
    """What the checker says about one place of its file."""

    line: int
    column: int
    rule: str
    message: str
    end_line: int = 0
    """Where what it is about ends; 0 if that is not known."""
    end_column: int = 0


class Mistake(NamedTuple):
    """What is wrong, where in the author's program, and which line of the stubs says so."""

    line: int
    column: int
    message: str
    rule: str
    stub: StubLine | None


def mistake_at(finding: Finding, stub: StubLine | None, message: str = "") -> Mistake:
    """A finding that is a mistake."""
    return Mistake(finding.line, finding.column, message or finding.message, finding.rule, stub)


QUOTED = re.compile(r"`([^`]*)`")
"""What the checker puts into backticks: types and names."""


class Program:
    """The author's program, and the stubs that it is checked against."""

    def __init__(self, source: str, world: World, known_words: set[str]) -> None:
        self.lines = source.split("\n")
        self.source = source
        self.world = world
        self.known_words = known_words
        """Words of earlier programs of its session."""
        self.stubs = PythonStubs(world.stubs)

    def rest(self, finding: Finding) -> str:
        """The text from a finding's place on."""
        at = finding.line - 1
        if not 0 <= at < len(self.lines):
            return ""
        begin = finding.column - 1
        text = "\n".join([self.lines[at][begin : begin + _MOST_TEXT], *self.lines[at + 1 : at + _MOST_LINES]])
        return text[:_MOST_TEXT]

    @cached_property
    def code(self) -> str:
        """The source with its strings and comments blanked."""
        return without_texts(self.source)

    def at(self, finding: Finding) -> int:
        """The index of a finding's place in the source."""
        return self.index(finding.line, finding.column)

    def index(self, line: int, column: int) -> int:
        """The index of a line and column in the source."""
        return self._line_starts[line - 1] + column - 1

    @cached_property
    def _line_starts(self) -> list[int]:
        return list(accumulate((len(line) + 1 for line in self.lines), initial=0))

    @cached_property
    def _called(self) -> list[str]:
        """The tools that it calls."""
        return sorted(name for name in set(_CALLED.findall(self.code)) if self.stubs.function(name))

    def stub_behind(self, finding: Finding, kind: str) -> StubLine | None:
        """The stub's line for a value of this type that a finding's line takes from a result by its key."""
        line = self.rest(finding).partition("\n")[0]
        keys = [found[1] for found in _KEY.findall(line)]
        functions = [name for name in _CALLED.findall(line) if name in self._called] or self._called
        lines = (self.stubs.result_field(key, kind.rstrip("*"), functions) for key in keys)
        return next((line for line in lines if line is not None), None)

    @cached_property
    def assigned_keys(self) -> set[str]:
        """Keys that the program puts into dictionaries itself, or asks for before it uses them."""
        patterns = (_ASSIGNED_KEY, _GIVEN_KEY, _ASKED_KEY)
        keys = {found[1] for pattern in patterns for found in pattern.findall(self.source)}
        if _UPDATED.search(self.source):  # with any that it writes down
            keys.update(found[1] or found[2] for found in _WRITTEN_KEY.findall(self.source))
        return keys

    @cached_property
    def new_meanings(self) -> set[str]:
        """The names that it may define, assign or delete."""
        return new_meanings(self.code)

    @cached_property
    def assigned_attributes(self) -> set[str]:
        """Attributes that the program sets, or asks for before it uses them."""
        return {*_ASSIGNED_ATTRIBUTE.findall(self.source), *_ASKED_ATTRIBUTE.findall(self.source)}

    def defines(self, name: str) -> bool:
        """Whether it has a function or class of this name, or of the class whose method this is."""
        own = re.escape(name.removesuffix(".__init__").rpartition(".")[2])
        return re.search(rf"^\s*(?:async\s+def|def|class)\s+{own}\b", self.source, re.MULTILINE) is not None

    @cached_property
    def is_open(self) -> bool:
        """Whether it defines names in ways that only running it shows."""
        return _OPEN_PROGRAM.search(self.source) is not None
