"""A program's lines, found without splitting it: eight megabytes of hostile text may be as many lines."""

from __future__ import annotations

from bisect import bisect_left

JAVASCRIPT_LINE_ENDS = ("\r", "\u2028", "\u2029")
PYTHON_LINE_ENDS = ("\r",)

_MOST_LINE = 160
_CONTEXT_LINES = 2
# Counting is quick, and stepping from one line to the next is not: at most so many steps are taken for a line.
_BLOCK = 4096


class SourceLines:
    """The lines of one program, numbered from 1. `ends`: what ends a line in its language, besides a newline.

    Describing a failure is done after the run's deadline was last looked at. So all of the text is gone through once,
    by what the interpreter does in one go, and however many places are asked for.
    """

    def __init__(self, source: str, ends: tuple[str, ...] = JAVASCRIPT_LINE_ENDS) -> None:
        text = source.replace("\r\n", "\n") if "\r" in source else source
        for end in ends:
            text = text.replace(end, "\n")
        self._text = text
        self._ends_up_to: list[int] = []
        """How many lines have ended by the end of each block."""
        self._encoded: dict[int, bytes] = {}
        ended = 0
        for start in range(0, len(text), _BLOCK):
            ended += text.count("\n", start, start + _BLOCK)
            self._ends_up_to.append(ended)
        self._count = ended + 1

    def character_column(self, line: int, byte: int) -> int:
        """The engines count a line's bytes; people count characters. Both from 1."""
        if not 1 <= line <= self._count:
            return byte
        encoded = self._encoded.get(line)
        if encoded is None:
            encoded = self._encoded[line] = self._line(line).encode("utf-8", "replace")
        return len(encoded[: byte - 1].decode("utf-8", "ignore")) + 1

    def excerpt(self, line: int, column: int | None) -> str:
        """The lines around a place, the line marked and the column pointed at."""
        if not 1 <= line <= self._count:
            return ""
        first = max(1, line - _CONTEXT_LINES)
        last = min(self._count, line + _CONTEXT_LINES)
        width = len(str(last))
        shown: list[str] = []
        for number in range(first, last + 1):
            text = self._line(number)
            start = 0
            if number == line and column and column > _MOST_LINE:
                start = column - _MOST_LINE // 2
            cut = text[start : start + _MOST_LINE].replace("\t", " ")
            mark = ">" if number == line else " "
            shown.append(
                f"{mark} {number:>{width}} | {'…' if start else ''}{cut}{'…' if start + _MOST_LINE < len(text) else ''}"
            )
            if number == line and column:
                offset = column - 1 - start + (1 if start else 0)
                shown.append(f"  {'':>{width}} | {' ' * max(0, offset)}^")
        return "\n".join(shown)

    def _line(self, line: int) -> str:
        """A line that exists, without its end."""
        start = self._start(line)
        end = self._text.find("\n", start)
        return self._text[start:] if end < 0 else self._text[start:end]

    def _start(self, line: int) -> int:
        ends = line - 1
        if not ends:
            return 0
        block = bisect_left(self._ends_up_to, ends)
        at = block * _BLOCK - 1
        for _ in range(ends - (self._ends_up_to[block - 1] if block else 0)):
            at = self._text.find("\n", at + 1)
        return at + 1


def excerpt(source: str, line: int, column: int | None, ends: tuple[str, ...] = JAVASCRIPT_LINE_ENDS) -> str:
    """As `SourceLines.excerpt`, for one place."""
    return SourceLines(source, ends).excerpt(line, column)
