"""The type model: what both emitters write, and nothing that only one language knows.

Everything here is already sanitised, bounded and named. An object with known properties appears only as the
type of a `Declaration`; other places refer to it by `NamedType`. Declarations may refer to each other in cycles.
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


# Diagnostics of one tool: what its schemas say that the stubs can't, or won't, and where.


_LONGEST_PATH = 300
_LONGEST_MESSAGE = 300


class Reporter:
    """Collects a tool's diagnostics. It knows where each visited schema is, so that others need not carry it."""

    __slots__ = ("_known", "_most", "_paths", "_server", "_tool", "diagnostics")

    def __init__(self, server: str, tool: str, most: int) -> None:
        self._server = server
        self._tool = tool
        self._most = most
        self._paths: dict[int, str] = {}
        self._known: set[tuple[str, str]] = set()
        self.diagnostics: list[Diagnostic] = []

    def locate(self, schema: Any, path: str) -> None:
        """Remember where a schema is."""
        self._paths.setdefault(id(schema), path)

    def locate_inside(self, schema: Any, inner: Any, step: str) -> None:
        """Remember where a schema is, from one around it. Past a certain length, a path isn't worth its memory."""
        path = self.path_of(schema)
        self.locate(inner, path + step if len(path) < _LONGEST_PATH else path)

    def path_of(self, schema: Any) -> str:
        """Where a schema is, as far as known."""
        return self._paths.get(id(schema), "")

    def report(self, schema: Any, keyword: str, message: str) -> None:
        """A diagnostic about a keyword of a schema, or, without a keyword, about all of it."""
        path = self.path_of(schema)
        self.report_at(f"{path}/{escape_token(keyword)}" if keyword else path, message)

    def report_at(self, path: str, message: str) -> None:
        """A diagnostic about a place. Each is kept once, and not more of them than are useful."""
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
    """A member's name as a part of a JSON Pointer."""
    return token.replace("~", "~0").replace("/", "~1") if "~" in token or "/" in token else token


# An operator's schemas for the results of tools that don't describe them: which of them change nothing.


def unused_output_schemas(module: ModuleSpec) -> list[Diagnostic]:
    """Schemas that an operator gave for nothing: most often, a tool's name is misspelt."""
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
