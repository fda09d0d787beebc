"""Files of programs in Python: many in one file, each under a title.

    === title
    # expect: timeout, value:[1, 2]
    # limits: wall_seconds=0.3
    the program

They are text, and not Python files, because many of them must never be imported, and none be formatted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "python" / "programs"
_TITLE = re.compile(r"^=== (.+)\n", re.MULTILINE)
_HEADER = re.compile(r"# (threat|expect|limits): (.+)\n")


@dataclass(frozen=True)
class ProgramText:
    """One program with its header."""

    title: str
    source: str
    header: dict[str, str]


def programs_in(file: str, folder: Path = PROGRAMS) -> list[ProgramText]:
    """Reads the programs of a file, in its order."""
    parts = _TITLE.split((folder / file).read_text(encoding="utf-8"))[1:]
    found: list[ProgramText] = []
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        header: dict[str, str] = {}
        position = 0
        while match := _HEADER.match(text, position):
            header[match[1]] = match[2]
            position = match.end()
        found.append(ProgramText(title, text[position:].strip("\n") + "\n", header))
    assert len({each.title for each in found}) == len(found), "two programs have one title"
    return found
