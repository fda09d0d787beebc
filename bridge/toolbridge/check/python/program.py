"""A Python program as text, with what classifying the checker's findings needs of it. The host never parses it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, islice
from typing import NamedTuple

from toolbridge.check.checker import World
from toolbridge.check.python.text import (
    PythonStubs,
    blank_strings,
    end_of_bracket,
    join_lines,
    rebound_names,
    with_fstring_fields,
)
from toolbridge.sandbox.typescript import StubLine

# User-defined functions, read as text. Unusual formatting is left out.

_HEADER = re.compile(r"([ \t]*)(async[ \t]+)?def[ \t]+(\w+)[ \t]*(?=\()")
_BLOCK = re.compile(r"[ \t]*(?:(?:async[ \t]+)?def|class)\b")
_AFTER_PARAMETERS = re.compile(r"[ \t]*(->[^:\n]*?)?[ \t]*:")
_MOST_FUNCTIONS = 100


class LogicalLine(NamedTuple):
    """A logical line: all of its brackets and strings belong to it."""

    start: int
    """The index after its indentation."""
    end: int
    indent: int
    text: str
    """The text without strings, joined into one line."""


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function that the program defines."""

    name: str
    start: int
    """The index of `def` or `async`."""
    is_async: bool
    is_decorated: bool
    parameters: tuple[int, int]
    """The span of the brackets."""
    returned: tuple[int, int] | None
    """The span of `-> annotation`."""
    colon: int
    lines: list[LogicalLine] = field(default_factory=list[LogicalLine])
    """Its lines, without those of nested functions and classes."""
    end: int = 0
    """The end of its last line; the start of its first if it has none."""


def logical_lines(code: str) -> list[LogicalLine]:
    """Returns the logical lines of source with blanked strings, without blank ones."""
    found: list[LogicalLine] = []
    start = 0
    for text in join_lines(code).split("\n"):
        plain = text.lstrip(" \t")
        if plain.strip():
            indent = len(text) - len(plain)
            found.append(
                LogicalLine(start + indent, start + len(text.rstrip()), len(text[:indent].expandtabs()), plain)
            )
        start += len(text) + 1
    return found


def user_functions(code: str) -> list[UserFunction]:
    """Returns the first 100 functions with an indented body, in source with blanked strings.

    Nested ones are included; one-line bodies and unusual formatting are left out.
    """
    return list(islice(_find_functions(code, logical_lines(code)), _MOST_FUNCTIONS))


def _find_functions(code: str, lines: list[LogicalLine]) -> Iterator[UserFunction]:
    """Yields the functions with an indented body, in order of their headers."""
    for number, line in enumerate(lines):
        header = _HEADER.match(code, line.start)
        if header is None:
            continue
        closed = end_of_bracket(code, header.end())
        rest = None if closed is None else _AFTER_PARAMETERS.match(code, closed)
        if closed is None or rest is None or rest.end() < line.end:
            continue  # a one-line body, or unusual formatting
        last, own = _block(lines, number)
        if own:
            before = lines[number - 1].text if number else ""
            yield UserFunction(
                name=header[3],
                start=line.start,
                is_async=header[2] is not None,
                is_decorated=before.startswith("@"),
                parameters=(header.end(), closed),
                returned=rest.span(1) if rest[1] else None,
                colon=rest.end() - 1,
                lines=own,
                end=last.end,
            )


def _block(lines: list[LogicalLine], header: int) -> tuple[LogicalLine, list[LogicalLine]]:
    """Returns the last line of the block after a header, and its lines without nested functions and classes."""
    own: list[LogicalLine] = []
    last = lines[header]
    inner: int | None = None
    for line in lines[header + 1 :]:
        if line.indent <= lines[header].indent:
            break
        last = line
        if inner is not None and line.indent > inner:
            continue
        inner = line.indent if _BLOCK.match(line.text) else None
        if inner is None:
            own.append(line)
    return last, own


_ASSIGNED_KEY = re.compile(r"""\[\s*(["'])([^"'\n]*)\1\s*\]\s*(?:=(?!=)|[-+*/|&^%@]=|//=|\*\*=)""")
_GIVEN_KEY = re.compile(r"""(?:setdefault|pop)\s*\(\s*(["'])([^"'\n]*)\1""")
_ASKED_KEY = re.compile(r"""(["'])([^"'\n]*)\1\s+(?:not\s+)?in\b""")
_ASKED_ATTRIBUTE = re.compile(r"""\b(?:has|get)attr\s*\([^"'\n]*["'](\w+)["']""")
_UPDATED = re.compile(r"\.update\s*\(|\|=")
_WRITTEN_KEY = re.compile(r"""(["'])([^"'\n]*)\1\s*:|\b(\w+)\s*=(?!=)""")
_ASSIGNED_ATTRIBUTE = re.compile(r"\.(\w+)\s*(?::[^=\n]+)?=(?!=)")
_DYNAMIC_NAMES = re.compile(r"\b(?:exec|globals|locals|vars|setattr)\s*\(|\bimport\s+\*")
_KEY = re.compile(r"""\[\s*(["'])([^"'\n]*)\1\s*\]""")
_TEXT = re.compile(r""""([^"\n]*)"|'([^'\n]*)'""")
_NUMBER = re.compile(r"-?\b\d+\b")
_CALLED = re.compile(r"\b(\w+)\s*\(")
_MOST_READ = 20_000
_MOST_LINES = 20
_MOST_TEXT = 2000


class TyFinding(NamedTuple):
    """A diagnostic of `ty` at one position."""

    line: int
    column: int
    rule: str
    message: str
    end_line: int = 0
    """The end of its range; 0 if unknown."""
    end_column: int = 0


class Mistake(NamedTuple):
    """A certain error: its position in the program, and the line of the stubs that it violates."""

    line: int
    column: int
    message: str
    rule: str
    stub: StubLine | None
    found_at: tuple[int, int]
    """Line and column of the finding; the mistake may be reported at its cause instead."""


def mistake_at(finding: TyFinding, stub: StubLine | None, message: str = "") -> Mistake:
    """Returns a mistake at a finding's position, with its message unless another is given."""
    return Mistake(
        finding.line, finding.column, message or finding.message, finding.rule, stub, (finding.line, finding.column)
    )


QUOTED = re.compile(r"`([^`]*)`")
"""The checker quotes types and names in backticks."""


class Program:
    """A program, and the stubs that it is checked against."""

    def __init__(self, source: str, world: World, known_words: set[str]) -> None:
        self.lines = source.split("\n")
        self.source = source
        self.world = world
        self.known_words = known_words
        """Words of the session's earlier programs."""
        self.stubs = PythonStubs(world.stubs)

    def rest(self, finding: TyFinding) -> str:
        """Returns the text from a finding's position on: up to 20 lines and 2000 characters; empty if invalid."""
        at = finding.line - 1
        if not 0 <= at < len(self.lines):
            return ""
        begin = finding.column - 1
        text = "\n".join([self.lines[at][begin : begin + _MOST_TEXT], *self.lines[at + 1 : at + _MOST_LINES]])
        return text[:_MOST_TEXT]

    def text_of(self, finding: TyFinding) -> str:
        """Returns the text of a finding's range, up to 2000 characters; empty if its end is unknown."""
        if not 0 < finding.line <= finding.end_line <= len(self.lines):
            return ""
        return self.source[self.at(finding) : self.index(finding.end_line, finding.end_column)][:_MOST_TEXT]

    @cached_property
    def code(self) -> str:
        """The source with strings and comments blanked."""
        return blank_strings(self.source)

    @property
    def is_small(self) -> bool:
        """Whether it is short enough for text analysis beyond the findings; models write far shorter programs."""
        return len(self.source) <= _MOST_READ

    @cached_property
    def logical_lines(self) -> list[LogicalLine]:
        """Its logical lines."""
        return logical_lines(self.code)

    @cached_property
    def constants(self) -> set[str]:
        """The constants in the source, in the checker's notation."""
        texts = {f'"{one or other}"' for one, other in _TEXT.findall(self.source)}
        return {*texts, *_NUMBER.findall(self.source), "True", "False"}

    @cached_property
    def functions(self) -> list[UserFunction]:
        """The user-defined functions."""
        return user_functions(self.code)

    def line_around(self, at: int) -> LogicalLine | None:
        """Returns the logical line at an index; None between lines."""
        index = bisect_right(self.logical_lines, at, key=lambda each: each.start) - 1
        line = self.logical_lines[index] if index >= 0 else None
        return line if line is not None and at < line.end else None

    def catches(self, at: int, errors: str) -> bool:
        """Returns whether an index is in a `try` with an `except` that names one of these errors (a pattern: `A|B`)."""
        line = self.line_around(at)
        indent = line.indent if line is not None else 0
        for index in range(bisect_right(self.logical_lines, at, key=lambda each: each.start) - 2, -1, -1):
            each = self.logical_lines[index]
            if each.indent >= indent:
                continue
            indent = each.indent
            if re.match(r"try\s*:", each.text) and self._names_error(index, errors):
                return True
        return False

    def _names_error(self, index: int, errors: str) -> bool:
        """Returns whether an `except` of the `try` in the line of this index names one of these errors."""
        indent = self.logical_lines[index].indent
        for each in self.logical_lines[index + 1 :]:
            if each.indent < indent or (each.indent == indent and not each.text.startswith("except")):
                return False
            if each.indent == indent and re.search(rf"\b(?:{errors})\b", each.text):
                return True
        return False

    def is_in_class(self, line: LogicalLine) -> bool:
        """Returns whether a logical line is in a class body, or in a method."""
        indent = line.indent
        for each in reversed(self.logical_lines[: self.logical_lines.index(line)] if indent else []):
            if each.indent < indent:
                indent = each.indent
                if re.match(r"class\b", each.text):
                    return True
        return False

    @cached_property
    def code_with_fields(self) -> str:
        """`code`, with the replacement fields of f-strings."""
        return with_fstring_fields(self.source, self.code)

    def function_around(self, at: int) -> int | None:
        """Returns the index, in `functions`, of the innermost function around a position; None outside of all."""
        inside = [index for index, each in enumerate(self.functions) if each.colon < at <= each.end]
        return max(inside, key=lambda index: self.functions[index].start, default=None)

    def indent(self, line: LogicalLine) -> str:
        """The indentation of a line."""
        return self.code[self.code.rfind("\n", 0, line.start) + 1 : line.start]

    def at(self, finding: TyFinding) -> int:
        """The index of a finding's position in the source."""
        return self.index(finding.line, finding.column)

    def index(self, line: int, column: int) -> int:
        """The index of a line and column in the source."""
        return self._line_starts[line - 1] + column - 1

    def position(self, index: int) -> tuple[int, int]:
        """Returns the line and column, from 1, of an index in the source."""
        line = bisect_right(self._line_starts, index)
        return line, index - self._line_starts[line - 1] + 1

    @cached_property
    def _line_starts(self) -> list[int]:
        return list(accumulate((len(line) + 1 for line in self.lines), initial=0))

    @cached_property
    def _called(self) -> list[str]:
        """The tools that it calls."""
        return sorted(name for name in set(_CALLED.findall(self.code)) if self.stubs.function(name))

    def result_field_stub(self, finding: TyFinding, kind: str) -> StubLine | None:
        """Returns the stub's line of the result field of this type that a finding's line reads by key.

        Of the tools called in that line, else in the program; None if no field fits, or several.
        """
        line = self.rest(finding).partition("\n")[0]
        keys = [found[1] for found in _KEY.findall(line)]
        functions = [name for name in _CALLED.findall(line) if name in self._called] or self._called
        lines = (self.stubs.result_field(key, kind.rstrip("*"), functions) for key in keys)
        return next((line for line in lines if line is not None), None)

    @cached_property
    def assigned_keys(self) -> set[str]:
        """Keys that the program itself stores in dictionaries, or tests for."""
        patterns = (_ASSIGNED_KEY, _GIVEN_KEY, _ASKED_KEY)
        keys = {found[1] for pattern in patterns for found in pattern.findall(self.source)}
        if _UPDATED.search(self.source):  # with any key that is written
            keys.update(found[1] or found[2] for found in _WRITTEN_KEY.findall(self.source))
        return keys

    @cached_property
    def rebound_names(self) -> set[str]:
        """Names that it may define, assign or delete."""
        return rebound_names(self.code)

    @cached_property
    def assigned_attributes(self) -> set[str]:
        """Attributes that the program sets, or tests for."""
        return {*_ASSIGNED_ATTRIBUTE.findall(self.source), *_ASKED_ATTRIBUTE.findall(self.source)}

    def defines(self, name: str) -> bool:
        """Returns whether it defines a function or class of this name, or for `A.__init__` the class `A`."""
        own = re.escape(name.removesuffix(".__init__").rpartition(".")[2])
        return re.search(rf"^\s*(?:async\s+def|def|class)\s+{own}\b", self.source, re.MULTILINE) is not None

    @cached_property
    def has_dynamic_names(self) -> bool:
        """Whether it defines names dynamically (`exec`, `globals()`, `import *`)."""
        return _DYNAMIC_NAMES.search(self.source) is not None
