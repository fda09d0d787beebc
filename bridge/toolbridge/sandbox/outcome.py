"""What a run gives back: values for programs, and failures that a model can repair its code from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from toolbridge.boundary.host_call import CallRecord

FailureKind = Literal[
    "syntax",
    "type",
    "check_timeout",
    "raised",
    "timeout",
    "out_of_memory",
    "limit",
    "denied",
    "protocol",
    "crashed",
    "cancelled",
]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run has no value. `str(failure)` is the whole text that a model needs."""

    kind: FailureKind
    message: str
    """One line: the error's name and what it says."""
    line: int | None = None
    """Of the program, from 1; None when no line of it is to blame."""
    column: int | None = None
    excerpt: str = ""
    """The program's lines around it, the place marked."""
    trace: tuple[str, ...] = ()
    """The program's own stack frames, innermost first."""
    notes: tuple[str, ...] = ()
    """Hints, causes, and which calls had already been made."""

    def __post_init__(self) -> None:
        """Half a surrogate pair, which a program's text may have, is written out: nobody could print it."""
        for name in ("message", "excerpt"):
            object.__setattr__(self, name, _printable(getattr(self, name)))
        for name in ("trace", "notes"):
            object.__setattr__(self, name, tuple(map(_printable, getattr(self, name))))

    def __str__(self) -> str:
        parts = [self.message]
        if self.line is not None and not self.trace:
            parts.append(f"  at line {self.line}" + (f", column {self.column}" if self.column else ""))
        parts.extend(f"  at {frame}" for frame in self.trace)
        if self.excerpt:
            parts.append(self.excerpt)
        parts.extend(self.notes)
        return "\n".join(parts)


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run used."""

    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Time in guest code, looked at every few milliseconds. In TypeScript, removing the types is part of it."""
    memory_bytes: int = 0
    """The guest's memory at the end; it never shrinks."""
    output_bytes_dropped: int = 0

    def __add__(self, other: Usage) -> Usage:
        """The time of both."""
        return Usage(self.wall_seconds + other.wall_seconds, self.cpu_seconds + other.cpu_seconds)


@dataclass(frozen=True, slots=True)
class RunResult:
    """The outcome of one run."""

    value: Any = None
    """What the program gave back, as JSON types; None when it failed."""
    stdout: str = ""
    stderr: str = ""
    calls: tuple[CallRecord, ...] = ()
    """Every host call, in the order in which they ended."""
    failure: Failure | None = None
    usage: Usage = field(default_factory=Usage)
    servers: tuple[str, ...] = ()
    """The MCP servers that were called: whatever they say may be in the value and the output."""
    warnings: tuple[str, ...] = ()
    """What the host could not do for this run: a type check that failed, tools that its pins keep from it."""

    @property
    def ok(self) -> bool:
        """Whether the program ran to its end."""
        return self.failure is None
