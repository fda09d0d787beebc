"""Caps on servers and what they send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

from toolbridge.errors import ConfigError

MIB = 1024 * 1024

RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "servers": (1, 1_000),
        "connections": (1, 1_000),
        "connect_seconds": (0.001, 3600),
        "call_seconds": (0.001, 3600),
        "close_seconds": (0, 60),
        "respawns": (0, 1_000),
        "tools": (1, 100_000),
        "pages": (1, 10_000),
        "listing_bytes": (1, 1024 * MIB),
        "message_bytes": (1, 1024 * MIB),
        "calls_in_flight": (1, 10_000),
    }
)
"""What each limit may be. A repository's file can set limits, so none of them can be lifted altogether."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Caps that hold for all servers together, and for each; a `ServerConfig` may override its timeouts."""

    servers: int = 50
    """Configured servers."""
    connections: int = 5
    """Servers connected at once, counting those being opened."""
    connect_seconds: float = 10.0
    """For a connection to open, including the first listing of tools."""
    call_seconds: float = 30.0
    """One call of a tool."""
    close_seconds: float = 3.0
    """Between asking a process to end and killing it."""
    respawns: int = 3
    """Restarts of one server in one session."""
    tools: int = 1_000
    """Tools of one server."""
    pages: int = 100
    """Pages of one listing."""
    listing_bytes: int = 16 * MIB
    """One listing, all pages together."""
    message_bytes: int = 32 * MIB
    """One message of a server: a longer one is dropped before it is parsed."""
    calls_in_flight: int = 32
    """Calls of one server at once; more wait in line."""

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, check_limit(each.name, getattr(self, each.name), each.name))


def check_limit(name: str, value: object, field: str) -> float:
    """The value of a limit, in range.

    Raises:
        ConfigError: it is not a number, or out of range.
    """
    least, most = RANGES[name]
    whole = not name.endswith("_seconds")
    expected = f"expected {'a whole number' if whole else 'a number'} from {least:g} to {most:,.0f}."
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(expected, field=field)
    if not least <= value <= most or (whole and value != int(value)):
        raise ConfigError(expected, field=field)
    return int(value) if whole else float(value)
