"""The type model: what both emitters write, and nothing that only one language knows.

Everything here is already sanitised, bounded and named. An object with known properties appears only as the
type of a `Declaration`; other places refer to it by `NamedType`. Declarations may refer to each other in cycles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from toolbridge_codegen.catalog import ModuleSpec, ToolSpec

JsonScalar: TypeAlias = str | int | float | bool | None
ScalarKind: TypeAlias = Literal["string", "number", "integer", "boolean", "null"]


@dataclass(frozen=True, slots=True)
class Docs:
    """Text for a comment: plain, sanitised, not yet escaped for a language."""

    description: str = ""
    notes: tuple[str, ...] = ()
    """One line each: `default: 5`, `format: date-time`, `minimum: 1`, `only if "a" is given`."""
    deprecated: bool = False


@dataclass(frozen=True, slots=True)
class UnknownType:
    """Any JSON value."""


@dataclass(frozen=True, slots=True)
class NeverType:
    """No value at all: the schema `false`."""


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A string, number, integer, boolean or null."""

    kind: ScalarKind


@dataclass(frozen=True, slots=True)
class LiteralType:
    """One of some constants, in the schema's order, each once. Null among them is a scalar type of its own."""

    values: tuple[JsonScalar, ...]


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Any number of items of one type."""

    items: TypeNode


@dataclass(frozen=True, slots=True)
class TupleType:
    """Items by position; those from `required` on may be missing; `rest` is the type of more, None for none."""

    items: tuple[TypeNode, ...]
    required: int
    rest: TypeNode | None


@dataclass(frozen=True, slots=True)
class MapType:
    """An object without known properties: every value has one type."""

    values: TypeNode


@dataclass(frozen=True, slots=True)
class Property:
    """One known property, under its original name: any string."""

    name: str
    type: TypeNode
    required: bool
    docs: Docs = Docs()


@dataclass(frozen=True, slots=True)
class ObjectType:
    """An object with known properties; `extra` is the type of any others, None if there are none."""

    properties: tuple[Property, ...]
    extra: TypeNode | None


@dataclass(frozen=True, slots=True)
class UnionType:
    """One of several types: flat, two members at least, none twice."""

    members: tuple[TypeNode, ...]


@dataclass(frozen=True, slots=True)
class NamedType:
    """The declaration of this name in the same module."""

    name: str


TypeNode: TypeAlias = (
    UnknownType
    | NeverType
    | ScalarType
    | LiteralType
    | ArrayType
    | TupleType
    | MapType
    | ObjectType
    | UnionType
    | NamedType
)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A named type of a module."""

    name: str
    type: TypeNode
    docs: Docs = Docs()
    inline: bool = False
    """Used in one place, or small, and not recursive: a language with anonymous types may write it where it is used."""


@dataclass(frozen=True, slots=True)
class FunctionModel:
    """One tool as a function of one argument, its input object."""

    tool: ToolSpec
    input: NamedType | MapType
    input_required: bool
    """False when an empty input is valid: the argument may then be left out."""
    output: TypeNode
    docs: Docs = Docs()


@dataclass(frozen=True, slots=True)
class ModuleModel:
    """One server's module, ready to be written in any language."""

    spec: ModuleSpec
    docs: Docs
    declarations: tuple[Declaration, ...]
    functions: tuple[FunctionModel, ...]

    @property
    def by_name(self) -> dict[str, Declaration]:
        """The declarations by their names."""
        return {declaration.name: declaration for declaration in self.declarations}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something in a schema that the stubs can't say, or won't."""

    server: str
    tool: str
    path: str
    """A JSON Pointer into the tool's definition: `/inputSchema/properties/when`."""
    message: str
