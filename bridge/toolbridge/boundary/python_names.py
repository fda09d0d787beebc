"""Modules of the host as Python names them: `host.mcp_weather` is the module `host:mcp-weather`.

A Python name has no dash, so only the host, which knows its modules, can tell which one is meant.
"""

from __future__ import annotations

from collections.abc import Iterable

_DOT = "host."


def is_python_name(asked: str) -> bool:
    """Whether a module is asked for by its Python name."""
    return asked.startswith(_DOT)


def python_name(specifier: str) -> str:
    """The Python name of a module."""
    return specifier.replace("host:", _DOT, 1).replace("-", "_")


def known_specifier(asked: str, known: Iterable[str]) -> str:
    """The specifier that is meant; what is asked for itself if it is none that is known by its Python name."""
    if not is_python_name(asked):
        return asked
    return next((specifier for specifier in known if python_name(specifier) == asked), asked)
