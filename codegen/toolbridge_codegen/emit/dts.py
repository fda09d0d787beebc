"""Writes TypeScript stubs: an ambient module for each server, and its twin whose functions return promises.

Compact, because a model reads every character: types used once are inline, and types without comments on one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from toolbridge_codegen.emit.layout import Layout, arrange, comment_text
from toolbridge_codegen.escaping import block_comment, jsdoc, one_line, ts_key, ts_number, ts_string
from toolbridge_codegen.model import (
    ArrayType,
    Declaration,
    FunctionModel,
    LiteralType,
    MapType,
    ModuleModel,
    NamedType,
    NeverType,
    ObjectType,
    Property,
    ScalarType,
    TupleType,
    TypeNode,
    UnionType,
)
from toolbridge_codegen.read.notes import NO_DOCS

if TYPE_CHECKING:
    from toolbridge_codegen.stubs import Errors

_SCALARS = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}
_LINE = 100
"""The width up to which an object type without comments is on one line."""
_LONGEST_INDEX = 80
"""An index signature must admit every known property; beyond this width its type is `any`."""
_OBJECT_MEMBERS = frozenset(
    ["constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf"]
)
"""Members of every object: programs find these where an optional property of such a name is absent."""


def emit_dts(model: ModuleModel, *, errors: Errors = "raise") -> str:
    """Writes the `.d.ts` of one server's module, and of its twin whose functions return promises.

    With `errors="return"`, return types include the `{ error: string }` that a failed call returns.
    """
    layout = arrange(model)
    writer = _DtsWriter(layout)
    # Inside the module: a comment at the start of a file could be a compiler directive.
    lines = [f" {block_comment(text, ' ')}"] if (text := comment_text(model.docs)) else []
    for function, declarations in layout.functions:
        lines.extend(
            writer.declaration(declaration) for declaration in declarations if not writer.is_inline(declaration)
        )
        lines.append(writer.function(function, errors))
    specifier = ts_string(model.spec.specifier)
    return "\n".join(
        [f"declare module {specifier} {{", *lines, "}", *_twin(specifier, ts_string(model.spec.async_specifier)), ""]
    )


def _twin(specifier: str, async_specifier: str) -> Iterable[str]:
    """Yields the lines of the module with the same functions, returning promises."""
    yield f"declare module {async_specifier} {{"
    yield f" type Sync = typeof import({specifier});"
    yield " const twin: { [F in keyof Sync]: (...input: Parameters<Sync[F]>) => Promise<ReturnType<Sync[F]>> };"
    yield " export = twin;"
    yield "}"


class _DtsWriter:
    """Writes the types of one module."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def is_inline(self, declaration: Declaration) -> bool:
        """Whether a type is written inline, without a declaration."""
        return declaration.inline or declaration.type == ObjectType((), None)

    def declaration(self, declaration: Declaration) -> str:
        """Writes a declaration with its comment: an interface for an object, a type alias for others."""
        open_type = "any" if declaration.name in self._layout.results else "unknown"
        comment = _comment(one_line(comment_text(declaration.docs)), " ", deprecated=declaration.docs.deprecated)
        if isinstance(declaration.type, ObjectType):
            return f"{comment} interface {declaration.name} {self._object(declaration.type, ' ', open_type)}"
        return f"{comment} type {declaration.name} = {self.type(declaration.type, ' ', open_type)};"

    def function(self, function: FunctionModel, errors: Errors) -> str:
        """Writes a tool as an exported function of one argument, `input`, with its comment."""
        parameter = "input" if function.input_required else "input?"
        output = self.type(function.output, " ", "any")
        if errors == "return":
            output = f"{output} | {{ error: string }}"
        comment = _comment(comment_text(function.docs, function.tool), " ", deprecated=function.docs.deprecated)
        name = function.tool.identifier
        return f"{comment} export function {name}({parameter}: {self.type(function.input, ' ', 'unknown')}): {output};"

    def type(self, node: TypeNode, indent: str, open_type: str) -> str:  # noqa: PLR0911  # one for each kind of type
        """Writes a type, with later lines indented; `open_type` (`any` or `unknown`) stands for any value."""
        match node:
            case ScalarType(kind):
                return _SCALARS[kind]
            case NamedType(name):
                declaration = self._layout.by_name[name]
                return self.type(declaration.type, indent, open_type) if self.is_inline(declaration) else name
            case ArrayType(items):
                return f"{self._item(items, indent, open_type)}[]"
            case LiteralType(values):
                return " | ".join(dict.fromkeys(map(_literal, values)))
            case UnionType(members):
                return " | ".join(dict.fromkeys(self.type(member, indent, open_type) for member in members))
            case ObjectType():
                return self._object(node, indent, open_type)
            case MapType(values):
                # `any` even in inputs: an interface has no index signature, and would be assignable to no other.
                return f"{{ [key: string]: {self.type(values, indent, 'any')} }}"
            case TupleType(items, required, rest):
                return self._tuple(items, required, rest, indent, open_type)
            case NeverType():
                return "never"
            case _:
                return open_type

    def _item(self, node: TypeNode, indent: str, open_type: str) -> str:
        """Writes a type, in parentheses if brackets or an optional mark after it would bind to its last member only."""
        text = self.type(node, indent, open_type)
        while isinstance(node, NamedType) and self.is_inline(self._layout.by_name[node.name]):
            node = self._layout.by_name[node.name].type
        several = isinstance(node, UnionType) or (isinstance(node, LiteralType) and len(node.values) > 1)
        return f"({text})" if several else text

    def _tuple(
        self, items: Sequence[TypeNode], required: int, rest: TypeNode | None, indent: str, open_type: str
    ) -> str:
        """Writes a tuple: optional items from `required` on, and `rest` for any more."""
        written = [self.type(item, indent, open_type) for item in items[:required]]
        written += [f"{self._item(item, indent, open_type)}?" for item in items[required:]]
        if rest is not None:
            written.append(f"...{self._item(rest, indent, open_type)}[]")
        return f"[{', '.join(written)}]"

    def _object(self, node: ObjectType, indent: str, open_type: str) -> str:
        """Writes an object type, on one line if it fits and has no comments; one without properties admits none."""
        deeper = f"{indent} "
        written = [self._property(known, deeper, open_type) for known in node.properties]
        if node.extra is not None:
            written.append(("", f"[key: string]: {self._index_signature(node, deeper)}"))
        elif not node.properties:
            # `{}` would admit every value but null.
            return "{ [key: string]: never }"
        if not any(comment or "\n" in text for comment, text in written):
            line = f"{{ {'; '.join(text for _, text in written)} }}"
            if len(line) <= _LINE:
                return line
        return "\n".join(["{", *(f"{comment}{deeper}{text};" for comment, text in written), f"{indent}}}"])

    def _property(self, known: Property, indent: str, open_type: str) -> tuple[str, str]:
        """Returns a property's comment, perhaps empty, and its declaration.

        Without a comment of its own, it has that of its inline type.
        """
        docs = known.docs
        if isinstance(known.type, NamedType) and docs == NO_DOCS:
            declaration = self._layout.by_name[known.type.name]
            docs = declaration.docs if self.is_inline(declaration) else docs
        text = self.type(known.type, indent, open_type)
        if not known.required and known.name in _OBJECT_MEMBERS:
            text = f'{text} | Object["{known.name}"]'
        mark = "" if known.required else "?"
        comment = "" if docs is NO_DOCS else _comment(one_line(comment_text(docs)), indent, deprecated=docs.deprecated)
        return comment, f"{ts_key(known.name)}{mark}: {text}"

    def _is_inline(self, node: TypeNode) -> bool:
        return isinstance(node, NamedType) and self.is_inline(self._layout.by_name[node.name])

    def _index_signature(self, node: ObjectType, indent: str) -> str:
        """Writes the type of an index signature, widened to admit the known properties; `any` if that gets too long.

        Needs `node.extra`.
        """
        assert node.extra is not None
        members = [node.extra, *(known.type for known in node.properties)]
        if any(known.name in _OBJECT_MEMBERS for known in node.properties) or any(map(self._is_inline, members)):
            return "any"
        written = dict.fromkeys(self.type(member, indent, "any") for member in members)
        if not all(known.required for known in node.properties):
            written["undefined"] = None
        text = " | ".join(written)
        return "any" if "any" in written or "\n" in text or len(text) > _LONGEST_INDEX else text


def _literal(value: str | float | None) -> str:
    """Writes a constant as a literal type; `number` for a number that has none."""
    if isinstance(value, str):
        return ts_string(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return ts_number(value) or "number"


def _comment(text: str, indent: str, *, deprecated: bool) -> str:
    """Writes a documentation comment on its own lines; empty without text and mark of deprecation."""
    if not text and not deprecated:
        return ""
    return f"{indent}{jsdoc(text, indent, deprecated=deprecated)}\n"
