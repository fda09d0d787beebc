"""Places in a schema where a type is needed, and what is made for them."""

from __future__ import annotations

from typing import Any, NamedTuple

from toolbridge_codegen.diagnostics import escape_token
from toolbridge_codegen.model import TypeNode
from toolbridge_codegen.type_names import pascal_case, singular


class Place(NamedTuple):
    """Where a type is needed."""

    path: str
    """JSON Pointer into the tool's definition."""
    name: str
    """What an object declared here would be called."""
    depth: int
    """Levels of nesting since the last definition."""
    definition: str = ""
    """The name of the definition that is the whole of this place, if it is one."""

    def item(self, step: str) -> Place:
        """The place of an array's items."""
        return Place(self.path + step, singular(self.name), self.depth + 1)

    def value(self) -> Place:
        """The place of an object's other properties."""
        return Place(f"{self.path}/additionalProperties", f"{self.name}Value", self.depth + 1)

    def member(self, keyword: str, name: str) -> Place:
        """A property's place."""
        return Place(
            f"{self.path}/{keyword}/{escape_token(name)}", self.name + (pascal_case(name) or "Field"), self.depth + 1
        )


class Built(NamedTuple):
    """A type, and the schemas whose descriptions and remarks belong to the place where it is used."""

    type: TypeNode
    annotated: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
