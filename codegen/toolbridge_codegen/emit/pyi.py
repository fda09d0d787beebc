"""Writes Python stubs: a package for each server, and its `aio` module whose functions are coroutine functions.

A TypedDict can't be open for every checker (PEP 728 is too young), so an object with unknown properties is a plain
dictionary, its known ones in comments. Tuples are lists, as in guest code. Only integers among numbers can be literals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from toolbridge_codegen.catalog import ToolSpec
from toolbridge_codegen.emit.layout import Layout, arrange, comment_text, name_of_others, resolved, short_names
from toolbridge_codegen.escaping import docstring, is_keyword_argument, py_comment, py_integer, py_string
from toolbridge_codegen.model import (
    ArrayType,
    Declaration,
    Docs,
    FunctionModel,
    JsonScalar,
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
    UnknownType,
)

if TYPE_CHECKING:
    from toolbridge_codegen.catalog import InputStyle
    from toolbridge_codegen.stubs import Errors


_SCALARS = {"string": "str", "number": "float", "integer": "int", "boolean": "bool", "null": "None"}
_SOURCES = {
    **dict.fromkeys(["bool", "dict", "float", "int", "list", "str"], "builtins"),
    **dict.fromkeys(["Callable", "Coroutine", "Mapping", "Sequence"], "collections.abc"),
    **dict.fromkeys(["Any", "Literal", "Never", "NotRequired", "ParamSpec", "Required"], "typing"),
    **dict.fromkeys(["TypeAlias", "TypeVar", "TypedDict", "Unpack", "overload"], "typing"),
}
Use = Literal["result", "argument", "field"]
"""The role of a type: a result, an argument, or a field of an object given as one.

An argument admits any sequence: to a checker, a list of integers is no list of floats, which could be appended to it. A
field is a list: fields can be assigned, so an object from a result would not be assignable to one with a sequence.
"""
_LONGEST_UNION = 80
"""The values of an open object are a union of all its types; beyond this width `Any`."""


class Names:
    """Imported names of a stub, with an alias for one that a tool or type of the module has."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = frozenset(taken)
        self._written: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        """Returns a builtin's or typing construct's name, or its alias here. Records that it must be imported."""
        written = self._written.get(name)
        if written is None:
            written = self._written[name] = self.free(name)
        return written

    def unused(self) -> Names:
        """Returns a copy without imports, for comments and for text that may be dropped."""
        return Names(self._taken)

    def free(self, name: str) -> str:
        """Returns the name, prefixed with underscores until neither a tool nor a type of the module has it."""
        while name in self._taken:
            name = f"_{name}"
        return name

    def imports(self) -> list[str]:
        """Returns the import statements for all names used so far, sorted; builtins only if aliased."""
        by_source: dict[str, list[str]] = {}
        for name, written in sorted(self._written.items()):
            source = _SOURCES[name]
            if written != name:
                by_source.setdefault(source, []).append(f"{name} as {written}")
            elif source != "builtins":
                by_source.setdefault(source, []).append(name)
        return [f"from {source} import {', '.join(names)}" for source, names in sorted(by_source.items())]


class TypeWriter:
    """Writes the types of one module."""

    def __init__(self, layout: Layout, names: Names, short: Mapping[str, str]) -> None:
        self._layout = layout
        self._name = names
        self._short = short
        self._shadows = {*_SOURCES, *map(names.free, _SOURCES), *layout.by_name, *short.values()}
        self._texts = _names_of_texts(layout.by_name)
        self._other: TypeWriter | None = None

    def is_inline(self, declaration: Declaration) -> bool:
        """Returns whether a type is written inline, without a declaration; of objects, only the empty one."""
        node = declaration.type
        if isinstance(node, ObjectType):
            return not node.properties and node.extra is None
        return declaration.inline

    def written_name(self, name: str) -> str:
        """A type's name in this stub."""
        return self._short.get(name, name)

    def declaration(self, declaration: Declaration) -> str:
        """Writes the declaration of a type: a TypedDict if possible, else an alias.

        An open object is an alias of a dictionary, with its known properties in comments.
        """
        node = declaration.type
        name = self.written_name(declaration.name)
        use = self._use_of(declaration)
        note = comment(declaration.docs)
        if not isinstance(node, ObjectType):
            return f"{name}: {self._name('TypeAlias')} = {self.type(node, use=use)}{note}"
        if not self.is_typed_dict(node):
            in_comment = self._without_imports()
            known_ones = [
                f"# {py_string(known.name)}{'' if known.required else '?'}: "
                f"{in_comment.type(known.type, use=use)}{comment(known.docs)}"
                for known in node.properties
            ]
            return "\n".join(
                [f"{name}: {self._name('TypeAlias')} = {self._open_map(node, use=use)}{note}", *known_ones]
            )
        total, fields = self._fields(node.properties, use=use)
        if self._fits_a_class(node):
            body = [f" {known.name}: {text}{comment(known.docs)}" for known, text in fields]
            return "\n".join([f"class {name}({self._name('TypedDict')}{total}):{note}", *body])
        body = [f" {py_string(known.name)}: {text},{comment(known.docs)}" for known, text in fields]
        return "\n".join([f'{name} = {self._name("TypedDict")}("{name}", {{{note}', *body, f"}}{total})"])

    def is_typed_dict(self, node: ObjectType) -> bool:
        """Returns whether an object can be a TypedDict: closed, with properties, and with names that one allows."""
        if node.extra is not None or not node.properties:
            return False
        # Functional syntax takes any key; but one checker refuses an empty one, and an alias of TypedDict.
        callable_ = self._name.free("TypedDict") == "TypedDict" and all(known.name for known in node.properties)
        return callable_ or self._fits_a_class(node)

    def _fits_a_class(self, node: ObjectType) -> bool:
        """Whether a class body can declare all properties, without shadowing a type."""
        return all(is_keyword_argument(known.name) and known.name not in self._shadows for known in node.properties)

    def type(self, node: TypeNode, *, use: Use) -> str:  # noqa: PLR0911  # one for each kind of type
        """Writes a type. Results are mutable dictionaries and lists; arguments admit any mapping or sequence."""
        match node:
            case ScalarType(kind):
                return "None" if kind == "null" else self._name(_SCALARS[kind])
            case NamedType(name):
                declaration = self._layout.by_name[name]
                return self.type(declaration.type, use=use) if self.is_inline(declaration) else self.written_name(name)
            case ArrayType(items):
                return self._array((items,), use=use)
            case LiteralType(values):
                return self._literals(values)
            case UnionType(members):
                return self._union(members, use=use)
            case MapType(values):
                return self._mapping(self.type(values, use=use), use=use)
            case TupleType(items, _, rest):
                return self._array(items if rest is None else (*items, rest), use=use)
            case ObjectType():
                # Known properties are in declarations only.
                return f"{self._name('dict')}[{self._name('str')}, {self._name('Never')}]"
            case NeverType():
                return self._name("Never")
            case _:
                return self._name("Any")

    def _use_of(self, declaration: Declaration) -> Use:
        """Returns the role of a declared type: a result, if it is in one; else an argument, or a field of one."""
        if declaration.name in self._layout.results:
            return "result"
        return "argument" if declaration.name in self._layout.arguments else "field"

    def _array(self, items: Sequence[TypeNode], *, use: Use) -> str:
        """Writes a list of items of these types; `Never` for none.

        As an argument it is a `Sequence`, unless an item may be any string: then a string would be such a sequence.
        """
        inner = self._union(items, use=use) if items else self._name("Never")
        widened = use == "argument" and items and not any(self._admits_text(item) for item in items)
        return f"{self._name('Sequence' if widened else 'list')}[{inner}]"

    def _admits_text(self, node: TypeNode) -> bool:
        """Returns whether the type admits any string, so that a string would be assignable to a sequence of it."""
        return any(
            part.name in self._texts if isinstance(part, NamedType) else _is_text(part) for part in _alternatives(node)
        )

    def _open_map(self, node: ObjectType, *, use: Use) -> str:
        """Writes an open object as a dictionary of the union of its values; of `Any` if the union is long."""
        members = [*(known.type for known in node.properties), *([] if node.extra is None else [node.extra])]
        aside = self._without_imports()
        values = aside._union(members, use=use)
        if len(values) > _LONGEST_UNION or aside._name("Any") in values.split(" | "):
            return self._mapping(self._name("Any"), use=use)
        return self._mapping(self._union(members, use=use), use=use)

    def _without_imports(self) -> TypeWriter:
        """Returns a writer of the same types that records no imports; always the same one."""
        if self._other is None:
            self._other = TypeWriter(self._layout, self._name.unused(), self._short)
        return self._other

    def _mapping(self, values: str, *, use: Use) -> str:
        return f"{self._name('dict' if use == 'result' else 'Mapping')}[{self._name('str')}, {values}]"

    def _union(self, members: Sequence[TypeNode], *, use: Use) -> str:
        return " | ".join(dict.fromkeys(self.type(member, use=use) for member in members))

    def _literals(self, values: Sequence[JsonScalar]) -> str:
        """Writes constants as one `Literal`; floats and integers too long for a literal as their types."""
        literals: dict[str, None] = {}
        others: dict[str, None] = {}
        for value in values:
            if isinstance(value, str):
                literals[py_string(value)] = None
            elif value is None or isinstance(value, bool):
                literals[repr(value)] = None
            elif isinstance(value, int) and (text := py_integer(value)):
                literals[text] = None
            else:
                others[self._name("int" if isinstance(value, int) else "float")] = None
        if list(literals) == ["None"]:
            return " | ".join(["None", *others])
        written = [f"{self._name('Literal')}[{', '.join(literals)}]"] if literals else []
        return " | ".join([*written, *others])

    def _fields(self, properties: Sequence[Property], *, use: Use) -> tuple[str, list[tuple[Property, str]]]:
        """Returns `", total=False"` or nothing, and the fields of a TypedDict with their types.

        Marks the required or the optional ones, whichever is shorter.
        """
        required = sum(known.required for known in properties)
        optional = len(properties) - required
        total = len(", total=False") + required * len("Required[]") >= optional * len("NotRequired[]")
        marker = "NotRequired" if total else "Required"
        fields: list[tuple[Property, str]] = []
        for known in properties:
            text = self.type(known.type, use=use)
            fields.append((known, text if known.required == total else f"{self._name(marker)}[{text}]"))
        return "" if total else ", total=False", fields


def _names_of_texts(by_name: Mapping[str, Declaration]) -> frozenset[str]:
    """Returns the names of the types that admit any string, through chains and cycles of names."""
    users: dict[str, list[str]] = {}
    waiting: list[str] = []
    for name, declaration in by_name.items():
        for part in _alternatives(declaration.type):
            if isinstance(part, NamedType):
                users.setdefault(part.name, []).append(name)
            elif _is_text(part):
                waiting.append(name)
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(users.get(name, ()))
    return frozenset(found)


def _alternatives(node: TypeNode) -> Iterable[TypeNode]:
    """Yields the members of a union, of unions inside it too; another type is its own only member."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, UnionType):
            waiting.extend(part.members)
        else:
            yield part


def _is_text(node: TypeNode) -> bool:
    """Whether a type is any string. `Any` and `Never` need no widening to a sequence."""
    return isinstance(node, UnknownType | NeverType) or node == ScalarType("string")


def docs_text(docs: Docs, tool: ToolSpec | None = None) -> str:
    """Returns the text of a comment or docstring, which begins with `Deprecated.` where it is."""
    text = comment_text(docs, tool)
    return f"Deprecated. {text}".rstrip() if docs.deprecated else text


def comment(docs: Docs) -> str:
    """Returns a trailing comment for a line, after a space; empty without text."""
    text = docs_text(docs)
    return f" # {py_comment(text)}" if text else ""


_PRIVATE = " # pyright: ignore[reportPrivateUsage]"
"""After a tool whose name begins with an underscore, which is not private here."""


def emit_pyi(model: ModuleModel, *, errors: Errors = "raise") -> str:
    """Writes the stub of one server's package.

    With `errors="return"`, return types include the `{"error": …}` that a failed call returns.
    """
    layout = arrange(model)
    functions = [function.tool.identifier for function in model.functions]
    short = short_names(layout, functions)
    names = Names([*layout.by_name, *short.values(), *functions])
    types = TypeWriter(layout, names, short)
    lines: list[str] = []
    failure = ""
    if errors == "return" and model.functions:
        failure = names.free("Failure")
        lines.append(f"class {failure}({names('TypedDict')}):\n error: {names('str')}")
    for function, declarations in layout.functions:
        lines.extend(types.declaration(declaration) for declaration in declarations if not types.is_inline(declaration))
        lines.append(_function_stub(function, layout, types, names, failure))
    head = names.imports()
    if text := docs_text(model.docs):
        head.insert(0, docstring(text))
    return "".join(f"{line}\n" for line in [*head, *lines])


def emit_aio_pyi(model: ModuleModel) -> str:
    """Writes the stub of the package's `aio` module: the same functions, returning coroutines.

    Empty for a module without functions.
    """
    functions = [function.tool.identifier for function in model.functions]
    names = Names(functions)
    sync, awaited = names.free("_s"), names.free("_a")
    parameters, result = names.free("_P"), names.free("_R")
    function = f"{names('Callable')}[{parameters}, {result}]"
    coroutine = f"{names('Callable')}[{parameters}, {names('Coroutine')}[{names('Any')}, {names('Any')}, {result}]]"
    package, _, module = model.spec.python_module.rpartition(".")
    lines = [
        f'{parameters} = {names("ParamSpec")}("{parameters}")',
        f'{result} = {names("TypeVar")}("{result}")',
        f"def {awaited}(function: {function}) -> {coroutine}: ...",
        *(f"{function} = {awaited}({sync}.{function}){_PRIVATE * function.startswith('_')}" for function in functions),
    ]
    head = [*names.imports(), f"from {package} import {module} as {sync}"]
    return "".join(f"{line}\n" for line in [*head, *lines]) if functions else ""


def input_style(by_name: Mapping[str, Declaration], function: FunctionModel) -> InputStyle:
    """Returns how Python passes a function's input: "keywords" if every property can be one, else "mapping".

    A map of any keys is passed by keywords.
    """
    node = resolved(function.input, by_name)
    if isinstance(node, ObjectType):
        return "keywords" if all(is_keyword_argument(known.name) for known in node.properties) else "mapping"
    return "keywords" if isinstance(node, MapType) else "mapping"


def _function_stub(function: FunctionModel, layout: Layout, types: TypeWriter, names: Names, failure: str) -> str:
    """Writes a function, as overloads if it has several signatures. A nonempty `failure` joins its return type."""
    output = types.type(function.output, use="result")
    if failure:
        output = f"{output} | {failure}"
    text = docs_text(function.docs, function.tool)
    body = f"\n {docstring(text)}" if text else " ..."
    signatures = list(_signatures(function, layout, types, names))
    name = function.tool.identifier
    if len(signatures) == 1:
        return f"def {name}({signatures[0]}) -> {output}:{body}"
    marked = [f"@{names('overload')}\ndef {name}({signature}) -> {output}:" for signature in signatures]
    return f"{marked[0]}{body}\n" + "\n".join(f"{overload} ..." for overload in marked[1:])


def _signatures(function: FunctionModel, layout: Layout, types: TypeWriter, names: Names) -> Iterable[str]:
    """Yields a function's signatures: its input by keywords, as one mapping, or both in turn."""
    node = layout.resolve(function.input)
    keywords = node if isinstance(node, ObjectType) and input_style(layout.by_name, function) == "keywords" else None
    if node == ObjectType((), None):
        yield ""
    elif keywords is not None and types.is_typed_dict(keywords):
        yield f"**input: {names('Unpack')}[{_name(function.input, layout, types)}]"
    elif isinstance(node, MapType):
        mapping = types.type(function.input, use="argument")
        yield f"input: {mapping} = ..., /, **more: {types.type(node.values, use='argument')}"
    else:
        if keywords is not None:
            yield _keywords(keywords, types)
        optional = "" if function.input_required else " = ..."
        yield f"input: {types.type(function.input, use='argument')}{optional}, /"


def _keywords(node: ObjectType, types: TypeWriter) -> str:
    """Writes the keyword parameters of an input that is no TypedDict; `**` for its other properties."""
    words = [
        f"{known.name}: {types.type(known.type, use='argument')}{'' if known.required else ' = ...'}"
        for known in node.properties
    ]
    if node.extra is not None:
        words.append(f"**{name_of_others(node)}: {types.type(node.extra, use='argument')}")
    return ", ".join(["*", *words] if node.properties else words)


def _name(node: NamedType | MapType, layout: Layout, types: TypeWriter) -> str:
    """Returns the written name of an input's TypedDict, through other names. `node` must be a `NamedType`."""
    assert isinstance(node, NamedType)
    declaration: Declaration = layout.by_name[node.name]
    while isinstance(declaration.type, NamedType):
        declaration = layout.by_name[declaration.type.name]
    return types.written_name(declaration.name)
