"""Compact stubs, for prompts: one line per tool, enough to choose it and usually enough to call it.

    get_forecast(input: { location: string; days?: number }): any // Get the weather forecast for a location
    get_forecast(location: str, days: int = ...) -> Any # Get the weather forecast for a location

Not meant for a compiler. Lines are kept short: `…` marks omissions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolbridge_codegen.emit.layout import Layout, arrange, name_of_others
from toolbridge_codegen.escaping import (
    is_keyword_argument,
    py_comment,
    py_string,
    ts_comment,
    ts_key,
    ts_number,
    ts_string,
)
from toolbridge_codegen.model import (
    ArrayType,
    FunctionModel,
    JsonScalar,
    LiteralType,
    MapType,
    ModuleModel,
    NeverType,
    ObjectType,
    Property,
    ScalarType,
    TupleType,
    TypeNode,
    UnionType,
)

if TYPE_CHECKING:
    from toolbridge_codegen.stubs import Errors, Language

CUT = "…"
_INPUT = 300
_OUTPUT = 180
_DESCRIPTION = 100
"""The widths of a line's three parts."""
_DEEPEST = 3
"""The deepest level of objects shown."""
_NESTING = 12
"""The deepest level of any type: lists of lists of lists."""
_LITERALS = 8
_LONGEST_LITERAL = 40
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\.[a-z]\.)\s|[。！？\n]")
"""Not the full stop of `e.g.`"""


@dataclass(frozen=True, slots=True)
class _Syntax:
    """The notation of a language."""

    scalars: dict[str, str]
    anything: str
    nothing: str
    object: str
    """An object whose properties are omitted."""
    separator: str
    array: Callable[[str], str]
    several: Callable[[str], str]
    """A union inside an array."""
    map: Callable[[str], str]
    key: Callable[[str], str]
    text: Callable[[str], str]
    constants: dict[bool | None, str]
    failure: str
    """The result of a failed call, where errors are returned."""


_TYPESCRIPT = _Syntax(
    scalars={"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"},
    anything="any",
    nothing="never",
    object=f"{{{CUT}}}",
    separator="; ",
    array="{}[]".format,
    several="({})".format,
    map="{{ [key: string]: {} }}".format,
    key=ts_key,
    text=ts_string,
    constants={None: "null", True: "true", False: "false"},
    failure="{ error: string }",
)
_PYTHON = _Syntax(
    scalars={"string": "str", "number": "float", "integer": "int", "boolean": "bool", "null": "None"},
    anything="Any",
    nothing="Never",
    object="dict",
    separator=", ",
    array="list[{}]".format,
    several="{}".format,
    map="dict[str, {}]".format,
    key=py_string,
    text=py_string,
    constants={None: "None", True: "True", False: "False"},
    failure='{ "error": str }',
)


def emit_compact(model: ModuleModel, language: Language, *, errors: Errors = "raise") -> str:
    """Writes one line per tool of a module, after a comment line about the import.

    With `errors="return"`, return types include the object that a failed call returns.
    """
    writer = _CompactWriter(arrange(model), _TYPESCRIPT if language == "typescript" else _PYTHON, errors)
    if language == "typescript":
        lines = [f'// import from "{model.spec.specifier}"']
        lines += [_typescript(function, writer) for function in model.functions]
    else:
        lines = [f"# from {model.spec.python_module} import …; arguments by keyword, except before /"]
        lines += [_python(function, writer) for function in model.functions]
    return "".join(f"{line}\n" for line in lines)


def _typescript(function: FunctionModel, writer: _CompactWriter) -> str:
    """Writes a tool's line in TypeScript: its signature, and the description's first sentence as a comment."""
    written = writer.fitting(function.input, _INPUT)
    mark = "" if function.input_required else "?"
    parameter = "" if writer.is_empty(function.input) else f"input{mark}: {written}"
    line = f"{function.tool.identifier}({parameter}): {writer.output(function)}"
    text = first_sentence(function.docs.description)
    return f"{line} // {ts_comment(text)}" if text else line


def _python(function: FunctionModel, writer: _CompactWriter) -> str:
    """Writes a tool's line in Python: its signature, and the description's first sentence as a comment."""
    line = f"{function.tool.identifier}({_parameters(function, writer)}) -> {writer.output(function)}"
    text = first_sentence(function.docs.description)
    return f"{line} # {py_comment(text)}" if text else line


def _parameters(function: FunctionModel, writer: _CompactWriter) -> str:
    """Writes the Python parameters: keywords if every property can be one, else a positional-only `input`.

    Empty for an input without properties.
    """
    node = writer.layout.resolve(function.input)
    if writer.is_empty(node):
        return ""
    if isinstance(node, ObjectType) and all(is_keyword_argument(known.name) for known in node.properties):
        return writer.keywords(node, _INPUT)
    optional = isinstance(node, MapType) or not function.input_required
    return f"input: {writer.fitting(function.input, _INPUT)}{' = ...' if optional else ''}, /"


def first_sentence(text: str) -> str:
    """Returns the first sentence or line of a description, without its full stop.

    Beyond 100 characters it is cut at a word, and ends in `…`.
    """
    sentence = _SENTENCE_END.split(text.strip(), maxsplit=1)[0].strip()
    if len(sentence) <= _DESCRIPTION:
        return sentence.rstrip(".")
    return sentence[:_DESCRIPTION].rsplit(" ", 1)[0].rstrip(" ,;:.") + CUT


class _CompactWriter:
    """Writes types of one module in one language, as deep as the width allows."""

    def __init__(self, layout: Layout, syntax: _Syntax, errors: Errors) -> None:
        self.layout = layout
        self._syntax = syntax
        self._errors: Errors = errors
        self._parts_left = 0
        self._nesting = 0

    def is_empty(self, node: TypeNode) -> bool:
        return self.layout.resolve(node) == ObjectType((), None)

    def output(self, function: FunctionModel) -> str:
        """Writes the return type. The failure is never cut off: programs have to check for it."""
        text = self.fitting(function.output, _OUTPUT)
        return text if self._errors == "raise" else f"{text} | {self._syntax.failure}"

    def fitting(self, node: TypeNode, width: int) -> str:
        """Writes a type in the greatest depth that fits the width.

        If none does, an object gets as many properties as fit, required ones first, and any other type is `any`.
        """
        for depth in range(_DEEPEST, 0, -1):
            if text := self._within(width, lambda depth=depth: self._type(node, depth)):
                return text
        resolved = self.layout.resolve(node)
        if isinstance(resolved, ObjectType):
            return self._braced(self._fitted(resolved.properties, self._property, width))
        return self._within(width, lambda: self._type(node, 0)) or self._syntax.anything

    def keywords(self, node: ObjectType, width: int) -> str:
        """Writes an object's properties as keyword parameters, required ones first; leaves out those that don't fit."""
        node = ObjectType(tuple(sorted(node.properties, key=lambda known: not known.required)), node.extra)
        more = [] if node.extra is None else [f"**{name_of_others(node)}: {self.fitting(node.extra, _OUTPUT)}"]
        for depth in range(_DEEPEST, -1, -1):
            if text := self._within(width, lambda depth=depth: ", ".join(self._write_all(node, self._keyword, depth))):
                return ", ".join([text, *more])
        return ", ".join([*self._fitted(node.properties, self._keyword, width), *more])

    def _within(self, width: int, write: Callable[[], str]) -> str:
        """Returns what `write` writes; empty if that exceeds the width.

        Resets and spends the count of parts, which ends recursive types.
        """
        self._parts_left = width
        text = write()
        return text if len(text) <= width and self._parts_left >= 0 else ""

    def _write_all(self, node: ObjectType, write: Callable[[Property, int], str], depth: int) -> list[str]:
        """Writes the properties with `write`, until the count of parts is spent."""
        return [write(known, depth) for known in node.properties if self._parts_left >= 0]

    def _fitted(self, properties: Sequence[Property], write: Callable[[Property, int], str], width: int) -> list[str]:
        """Writes the properties that fit the width, at depth 0, with `…` if some don't.

        The required ones are chosen first; those chosen are in the object's order.
        """
        room = width
        chosen: dict[str, str] = {}
        for known in sorted(properties, key=lambda known: not known.required):
            text = self._within(room, lambda known=known: write(known, 0))
            if not text:
                break
            room -= len(text) + 2
            chosen[known.name] = text
        shown = [chosen[known.name] for known in properties if known.name in chosen]
        return shown if len(shown) == len(properties) else [*shown, CUT]

    def _keyword(self, known: Property, depth: int) -> str:
        return f"{known.name}: {self._type(known.type, depth)}{'' if known.required else ' = ...'}"

    def _property(self, known: Property, depth: int) -> str:
        return f"{self._syntax.key(known.name)}{'' if known.required else '?'}: {self._type(known.type, depth)}"

    def _type(self, node: TypeNode, depth: int) -> str:
        """Writes a type, through its names; `…` once the parts are spent or 12 types are nested."""
        self._parts_left -= 1
        if self._parts_left < 0 or self._nesting == _NESTING:
            return CUT
        self._nesting += 1
        text = self._resolved(self.layout.resolve(node), depth)
        self._nesting -= 1
        return text

    def _resolved(self, node: TypeNode, depth: int) -> str:  # noqa: PLR0911  # one for each kind of type
        """Writes a type that is no name; `depth` is the number of levels of objects still shown."""
        syntax = self._syntax
        match node:
            case ScalarType(kind):
                return syntax.scalars[kind]
            case LiteralType(values):
                return self._literals(values)
            case ArrayType(items):
                return self._array([items], depth)
            case TupleType(items, _, rest):
                return self._array(items if rest is None else (*items, rest), depth)
            case UnionType(members):
                return self._union(members, depth)
            case MapType(values):
                return syntax.map(self._type(values, depth - 1)) if depth > 0 else syntax.object
            case ObjectType(properties, extra) as resolved:
                if depth <= 0 and (properties or extra is not None):
                    return syntax.object
                return self._braced(
                    [*self._write_all(resolved, self._property, depth - 1), *([] if extra is None else [CUT])]
                )
            case NeverType():
                return syntax.nothing
            case _:
                return syntax.anything

    def _array(self, items: Sequence[TypeNode], depth: int) -> str:
        """Writes an array whose items have any of these types; `never` for none."""
        text = self._union(items, depth) if items else self._syntax.nothing
        only = self.layout.resolve(items[0]) if len(items) == 1 else None
        several = (
            len(items) > 1 or isinstance(only, UnionType) or (isinstance(only, LiteralType) and len(only.values) > 1)
        )
        return self._syntax.array(self._syntax.several(text) if several else text)

    def _union(self, members: Sequence[TypeNode], depth: int) -> str:
        return " | ".join(dict.fromkeys(self._type(member, depth) for member in members if self._parts_left >= 0))

    def _braced(self, written: Sequence[str]) -> str:
        return f"{{ {self._syntax.separator.join(written)} }}" if written else "{}"

    def _literals(self, values: Sequence[JsonScalar]) -> str:
        """Writes up to eight constants as a union, with `…` for the others."""
        shown = [self._literal(value) for value in values[:_LITERALS]]
        return " | ".join([*dict.fromkeys(shown), *([CUT] if len(values) > _LITERALS else [])])

    def _literal(self, value: JsonScalar) -> str:
        """Writes a constant: a string up to 40 characters, a number without a literal as the type `number`."""
        if isinstance(value, str):
            cut = value[:_LONGEST_LITERAL]
            return self._syntax.text(cut) + ("" if cut == value else CUT)
        if value is None or isinstance(value, bool):
            return self._syntax.constants[value]
        return ts_number(value) or self._syntax.scalars["number"]
