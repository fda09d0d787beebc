"""Output to people: foreign text is sanitised on terminals."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

from toolbridge.trust.sanitise import for_terminal

# Tables: columns as wide as their cells, truncated to the terminal's width.


_LEAST_LAST = 20
_LEAST = 6
_BETWEEN = 2


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table, cells sanitised and on one line each.

    If stdout is a terminal, columns are truncated to its width; elsewhere nothing is.
    """
    cells = [list(header), *([for_terminal(" ".join(cell.split())) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    if sys.stdout is not None and sys.stdout.isatty():  # pyright: ignore[reportUnnecessaryComparison]
        _fit(widths, shutil.get_terminal_size().columns)
        cells = [[_cut(cell, width) for cell, width in zip(row, widths, strict=True)] for row in cells]
    between = " " * _BETWEEN
    lines = [between.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _fit(widths: list[int], columns: int) -> None:
    """Narrow columns in place to fit the terminal: the last one first, then the widest, none below its minimum."""
    room = columns - _BETWEEN * (len(widths) - 1)
    widths[-1] = max(min(widths[-1], _LEAST_LAST), min(widths[-1], room - sum(widths[:-1])))
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda column: widths[column])
        if widths[widest] <= _LEAST:
            return
        widths[widest] -= 1


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def write(stream: TextIO | None, text: str) -> None:
    """Write and flush text that may be foreign: sanitised on a terminal, characters out of its encoding escaped.

    Does nothing for empty text or None, a stream that the parent process closed.

    Raises:
        OSError: the reader is gone, or the device is full.
    """
    if stream is None or not text:
        return
    shown = for_terminal(text) if stream.isatty() else text
    encoding = stream.encoding or "utf-8"
    stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def write_error_object(kind: str, message: str) -> None:
    """Print an error as one JSON object on stdout, as every command does with --json."""
    write(sys.stdout, json.dumps({"error": {"kind": kind, "message": message}}) + "\n")
