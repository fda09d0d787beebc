"""Limits of one run: time, memory, calls, sizes."""

from __future__ import annotations

from dataclasses import dataclass, fields

from toolbridge.errors import LimitsError, reports_misuse

KIB = 1024
MIB = 1024 * KIB

# An instance needs this much to exist at all, and more than 32 bits can't be addressed.
LEAST_MEMORY = 8 * MIB
MOST_MEMORY = 4096 * MIB - 65536
# The engine's stack lives in a reserved part of guest memory, and native stacks are 32 times as large.
LEAST_STACK = 64 * KIB
MOST_STACK = 2 * MIB


@reports_misuse
@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run. Each is finite; reaching one ends the run, or fails the call."""

    wall_seconds: float = 30.0
    """Wall-clock time of the run. Reached: failure `timeout`."""
    cpu_seconds: float = 10.0
    """CPU time of guest code, without host calls. Reached: failure `timeout`."""
    memory_bytes: int = 64 * MIB
    """Guest memory. Reached: an error that guest code can catch, else failure `out_of_memory`."""
    host_calls: int = 10_000
    """Calls of host functions. Reached: failure `limit`."""
    calls_in_flight: int = 64
    """Concurrent calls; further ones are queued."""
    call_seconds: float = 30.0
    """Timeout of one call; a server's `callTimeout` overrides it. Reached: an error that guest code can catch."""
    ask_seconds: float = 300.0
    """Waiting for a person's answer about a call or a server; does not count as wall-clock time."""
    frame_bytes: int = 8 * MIB
    """One message across the boundary: the program, a call's arguments or reply, the run's value."""
    result_bytes: int = 1 * MIB
    """One tool's result; a larger one is replaced by a handle."""
    handle_bytes: int = 64 * MIB
    """All handles of a run, or session. Reached: an error that guest code can catch."""
    output_bytes: int = 1 * MIB
    """Stdout and stderr together; the rest is dropped, with a marker."""
    stack_bytes: int = 1 * MIB
    """The engine's stack. Reached: an error that guest code can catch."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value: object = getattr(self, field.name)
            wants_float = field.name.endswith("_seconds")
            if isinstance(value, bool) or not isinstance(value, (int, float) if wants_float else int):
                raise LimitsError(field.name, value, "a number" if wants_float else "a whole number")
            if not 0 < value < (1e9 if wants_float else 2**53):
                raise LimitsError(field.name, value, "a positive, finite number")
        if not LEAST_MEMORY <= self.memory_bytes <= MOST_MEMORY:
            raise LimitsError("memory_bytes", self.memory_bytes, f"{LEAST_MEMORY} to {MOST_MEMORY} bytes")
        if not LEAST_STACK <= self.stack_bytes <= MOST_STACK:
            raise LimitsError("stack_bytes", self.stack_bytes, f"{LEAST_STACK} to {MOST_STACK} bytes")

    def with_(self, **changes: float) -> Limits:
        """Copies the limits with some changed.

        Raises:
            LimitsError: a limit is unknown or out of range.
        """
        for name, value in changes.items():
            if name not in self.__slots__:
                raise LimitsError(name, value, f"one of {', '.join(self.__slots__)}")
        limits = object.__new__(Limits)
        for name in self.__slots__:
            object.__setattr__(limits, name, changes.get(name, getattr(self, name)))
        limits.__post_init__()
        return limits
