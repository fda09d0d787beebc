"""What can be wrong with a value, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""A place in a value: names of properties and places in lists."""


class Problem(NamedTuple):
    """One thing that is wrong with a value."""

    path: Path
    keyword: str
    wanted: Any
    """The keyword's value; for a missing or unknown property, its name."""
    value: Any
    schema: Mapping[str, Any]
    """The schema that has the keyword."""
    branches: tuple[tuple[Problem, ...], ...] = ()
    """What is wrong with the value for each branch of a choice."""


class Verdict(NamedTuple):
    """What was found."""

    problems: tuple[Problem, ...]
    complete: bool
    """False when the value was only looked at in part."""
