"""A program with places written otherwise for the checker, and where each place of that text is in the program."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from toolbridge.check.python_program import Finding


class Edit(NamedTuple):
    """What stands in place of a part of the program."""

    start: int
    end: int
    text: str
    order: int = 0
    """Among edits at one place: the lower comes first."""


class Rewriting:
    """A text made of the program's. Edits that overlap an earlier one are left out."""

    def __init__(self, source: str, edits: Iterable[Edit], head: str = "") -> None:
        self.source = source
        self.head = head
        parts = [head]
        self._made = [0]
        """Where each unchanged part begins in the text, and in the program."""
        self._source = [0]
        length, written = len(head), 0
        for edit in sorted(edits, key=lambda each: (each.start, each.end, each.order)):
            if edit.start < written:
                continue
            length += edit.start - written
            self._made += [length - (edit.start - written), length]
            self._source += [written, edit.start]
            parts += [source[written : edit.start], edit.text]
            length, written = length + len(edit.text), edit.end
        self._made.append(length)
        self._source.append(written)
        self.text = "".join([*parts, source[written:]])
        self._head = len(head)

    @cached_property
    def _line_starts(self) -> list[int]:
        return list(accumulate((len(line) + 1 for line in self.text.split("\n")), initial=0))

    @cached_property
    def _source_lines(self) -> list[int]:
        return list(accumulate((len(line) + 1 for line in self.source.split("\n")), initial=0))

    def position(self, index: int) -> tuple[int, int]:
        """The line and column of a place in the program."""
        line = bisect_right(self._source_lines, index)
        return line, index - self._source_lines[line - 1] + 1

    def source_index(self, line: int, column: int) -> int | None:
        """The place in the program of a line and column of the text; None if it is before the program."""
        if not 0 < line < len(self._line_starts):
            return None
        at = self._line_starts[line - 1] + column - 1
        if at < self._head:
            return None
        part = bisect_right(self._made, at) - 1
        limit = self._source[part + 1] if part + 1 < len(self._source) else at + self._source[part]
        return min(self._source[part] + at - self._made[part], limit)


def placed(findings: Iterable[Finding], rewriting: Rewriting) -> Iterator[Finding]:
    """Findings about a rewritten program, where they are in the program; not those about lines before it."""
    for each in findings:
        start = rewriting.source_index(each.line, each.column)
        end = rewriting.source_index(each.end_line, each.end_column)
        if start is not None and end is not None:
            yield Finding(*rewriting.position(start), each.rule, each.message, *rewriting.position(end))
