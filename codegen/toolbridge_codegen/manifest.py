"""The manifest: which modules there are, what each exports, and which tool each export calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

InputStyle: TypeAlias = Literal["keywords", "mapping"]
"""How Python passes the input: by keyword, or, where a property's name is no identifier, as one mapping."""


@dataclass(frozen=True, slots=True)
class Export:
    """One function of a module."""

    server: str
    tool: str
    """The tool's original name."""
    input_style: InputStyle


Manifest: TypeAlias = Mapping[str, Mapping[str, Export]]
"""Specifier → identifier → export."""
