"""The type model, which every emitter writes: sanitised, bounded and named, independent of any language.

An object with known properties is always the type of a `Declaration`, referred to by `NamedType`. Declarations may be
recursive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from toolbridge_codegen.catalog import ModuleSpec, ToolSpec
from toolbridge_codegen.escaping import clean_line

JsonScalar: TypeAlias = str | int | float | bool | None
ScalarKind: TypeAlias = Literal["string", "number", "integer", "boolean", "null"]


@dataclass(frozen=True, slots=True)
class Docs:
    """Text for a comment: sanitised, not yet escaped for a language."""

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
    """One of several constants, in the schema's order, without duplicates. Null is a scalar type instead."""

    values: tuple[JsonScalar, ...]


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Any number of items of one type."""

    items: TypeNode


@dataclass(frozen=True, slots=True)
class TupleType:
    """Items by position, optional from `required` on; `rest` is the type of further items, None for none."""

    items: tuple[TypeNode, ...]
    required: int
    rest: TypeNode | None


@dataclass(frozen=True, slots=True)
class MapType:
    """An object without known properties: all values have one type."""

    values: TypeNode


@dataclass(frozen=True, slots=True)
class Property:
    """A known property, under its original name: any string."""

    name: str
    type: TypeNode
    required: bool
    docs: Docs = Docs()


@dataclass(frozen=True, slots=True)
class ObjectType:
    """An object with known properties; `extra` is the type of others, None for none."""

    properties: tuple[Property, ...]
    extra: TypeNode | None


@dataclass(frozen=True, slots=True)
class UnionType:
    """One of several types: flat, at least two members, no duplicates."""

    members: tuple[TypeNode, ...]


@dataclass(frozen=True, slots=True)
class NamedType:
    """A reference to the declaration of this name in the same module."""

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
    """Not recursive, and small or used once: languages with anonymous types may write it inline."""


@dataclass(frozen=True, slots=True)
class FunctionModel:
    """A tool as a function of one argument, its input object."""

    tool: ToolSpec
    input: NamedType | MapType
    input_required: bool
    """False if an empty input is valid: the argument is then optional."""
    output: TypeNode
    docs: Docs = Docs()


@dataclass(frozen=True, slots=True)
class ModuleModel:
    """The module of one server, ready to be written in any language."""

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
    """A part of a schema that the stubs don't express."""

    server: str
    tool: str
    path: str
    """A JSON Pointer into the tool's definition: `/inputSchema/properties/when`."""
    message: str


# Diagnostics of one tool.

_LONGEST_PATH = 300
_LONGEST_MESSAGE = 300


class Reporter:
    """Collects a tool's diagnostics, up to `most` and one about the rest, and the JSON Pointers of visited schemas."""

    def __init__(self, server: str, tool: str, most: int) -> None:
        self._server = server
        self._tool = tool
        self._most = most
        self._paths: dict[int, str] = {}
        self._known: set[tuple[str, str]] = set()
        self.diagnostics: list[Diagnostic] = []

    def locate(self, schema: Any, path: str) -> None:
        """Records the path of a schema, known by its identity; keeps the first path of each."""
        self._paths.setdefault(id(schema), path)

    def locate_inside(self, schema: Any, inner: Any, step: str) -> None:
        """Records the path of a schema inside another: the outer path and `step`. Keeps the first path of each.

        Past 300 characters, `step` is dropped, to save memory.
        """
        path = self.path_of(schema)
        self.locate(inner, path + step if len(path) < _LONGEST_PATH else path)

    def path_of(self, schema: Any) -> str:
        """Returns the recorded path of a schema, by its identity; empty if there is none."""
        return self._paths.get(id(schema), "")

    def report(self, schema: Any, keyword: str, message: str) -> None:
        """Adds a diagnostic about a schema's keyword, or about the whole schema if it is empty, as `report_at` does."""
        path = self.path_of(schema)
        self.report_at(f"{path}/{escape_token(keyword)}" if keyword else path, message)

    def report_at(self, path: str, message: str) -> None:
        """Adds a diagnostic about a path, sanitised and truncated; drops duplicates.

        Once the maximum is reached, one last diagnostic says that the others are left out.
        """
        if len(self.diagnostics) > self._most or (path, message) in self._known:
            return
        self._known.add((path, message))
        if len(self.diagnostics) == self._most:
            path, message = "", f"more than {self._most} diagnostics; the others are left out"
        self.diagnostics.append(
            Diagnostic(
                server=self._server,
                tool=self._tool,
                path=clean_line(path, limit=_LONGEST_PATH),
                message=clean_line(message, limit=_LONGEST_MESSAGE),
            )
        )


def escape_token(token: str) -> str:
    """Escapes a member's name for a JSON Pointer."""
    return token.replace("~", "~0").replace("/", "~1") if "~" in token or "/" in token else token


# Output schemas from the operator, for tools without one.


def unused_output_schemas(module: ModuleSpec) -> list[Diagnostic]:
    """Returns a diagnostic for each of the operator's output schemas that has no effect.

    Either no tool has its name, which most often is misspelt, or the tool has an output schema of its own.
    """
    tools = {tool.name: tool for tool in module.tools}
    diagnostics: list[Diagnostic] = []
    for name in sorted(module.output_schemas):
        tool = tools.get(name)
        if tool is None:
            message = "there is an output schema in the configuration, but no such tool"
            diagnostics.append(Diagnostic(module.server, name, "", message))
        elif tool.definition.output_schema is not None:
            message = "the configuration's output schema is not used: the tool has one of its own"
            diagnostics.append(Diagnostic(module.server, name, "/outputSchema", message))
    return diagnostics
