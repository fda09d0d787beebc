"""The hostile programs in fixtures/hostile/: in JavaScript one attack per file, in Python one per title of a file.

A program begins with a header of comments that says what must become of it, in Python with `#`:

    // threat: T31
    // expect: timeout, out_of_memory
    // limits: wall_seconds=0.2 memory_bytes=16777216

`expect` lists the failure kinds that are right, or `value:` and the JSON that the run must give (`value:*`: any).
Each alternative is separated by a comma; the limits that are not named are those of DEFAULT_LIMITS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guest.python_programs import programs_in
from toolbridge import Limits, RunResult
from toolbridge.sandbox.outcome import SandboxLanguage

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "hostile" / "javascript"
PYTHON_PROGRAMS = PROGRAMS.with_name("python")

# Small, so that the suite is quick; programs that are to end by themselves have time to do so.
DEFAULT_LIMITS: dict[SandboxLanguage, Limits] = {
    "javascript": Limits(wall_seconds=5.0, cpu_seconds=5.0, memory_bytes=32 * 1024 * 1024),
    "python": Limits(wall_seconds=8.0, cpu_seconds=8.0, memory_bytes=48 * 1024 * 1024),
}

# The clock that hostile programs are granted: an instant that no real clock shows.
GRANTED_TIME = 1_700_000_000.0

MOST_LATENESS = 0.25
"""Seconds by which a run may outlive its deadline."""

MOST_FAILURE_TEXT = 40_000
"""Characters: a failure is read by a model, or a person, so whatever the guest does, it stays a page or two."""

OUTPUT_MARKER_ROOM = 200
"""What the notes about dropped output may add to the output's limit."""

_KIND = re.compile(r"[a-z_]+")
_HEADER = re.compile(r"// (threat|expect|limits): (.+)\n")


@dataclass(frozen=True)
class HostileProgram:
    """One attack, and what must become of it."""

    name: str
    threat: str
    source: str
    limits: Limits
    kinds: frozenset[str]
    """The failure kinds that are right."""
    values: tuple[Any, ...]
    """The values that are right."""
    any_value: bool
    language: SandboxLanguage = "javascript"

    def is_met_by(self, result: RunResult) -> bool:
        """Whether the run ended in one of the ways that the header allows."""
        if result.failure is not None:
            return result.failure.kind in self.kinds
        return self.any_value or any(_same(value, result.value) for value in self.values)

    def expectation(self) -> str:
        """For the message of a test that fails."""
        values = [f"value {value!r}" for value in self.values] + ["any value"] * self.any_value
        return " or ".join([*sorted(self.kinds), *values])


Contain = Callable[[HostileProgram], RunResult]
"""Runs a program, and checks what must hold of every hostile one: the fixture `contain`."""


def _same(wanted: Any, value: Any) -> bool:
    # As JSON, so that 1, 1.0 and true stay different.
    return json.dumps(wanted, sort_keys=True) == json.dumps(value, sort_keys=True)


def _parse_expectation(text: str) -> tuple[frozenset[str], tuple[Any, ...], bool]:
    kinds: set[str] = set()
    values: list[Any] = []
    any_value = False
    position = 0
    while position < len(text):
        if text.startswith("value:*", position):
            any_value, position = True, position + len("value:*")
        elif text.startswith("value:", position):
            value, position = json.JSONDecoder().raw_decode(text, position + len("value:"))
            values.append(value)
        else:
            match = _KIND.match(text, position)
            assert match is not None, f"what is expected here? {text[position:]!r}"
            kinds.add(match[0])
            position = match.end()
        assert position == len(text) or text.startswith(", ", position), f"alternatives end with a comma: {text!r}"
        position += 2
    return frozenset(kinds), tuple(values), any_value


def _program(name: str, source: str, header: dict[str, str], language: SandboxLanguage) -> HostileProgram:
    changes = dict(setting.split("=") for setting in header.get("limits", "").split())
    limits = DEFAULT_LIMITS[language].with_(
        **{name: float(text) if name.endswith("_seconds") else int(text) for name, text in changes.items()}
    )
    kinds, values, any_value = _parse_expectation(header["expect"])
    return HostileProgram(name, header["threat"], source, limits, kinds, values, any_value, language)


def load(path: Path) -> HostileProgram:
    """The program in a file; its header stays part of the source, so that line numbers are the file's."""
    source = path.read_text(encoding="utf-8")
    header: dict[str, str] = {}
    position = 0
    while match := _HEADER.match(source, position):
        header[match[1]] = match[2]
        position = match.end()
    return _program(path.stem, source, header, "javascript")


def programs_for(threat: str) -> list[HostileProgram]:
    """Every program in JavaScript that stands for a threat, by name."""
    return [program for path in sorted(PROGRAMS.glob("*.js")) if (program := load(path)).threat == threat]


def python_programs() -> list[HostileProgram]:
    """Every program in Python."""
    return [
        _program(text.title, text.source, text.header, "python")
        for path in sorted(PYTHON_PROGRAMS.glob("*.txt"))
        for text in programs_in(path.name, PYTHON_PROGRAMS)
    ]


def python_programs_for(threat: str) -> list[HostileProgram]:
    """Every program in Python that stands for a threat."""
    return [program for program in python_programs() if program.threat == threat]
