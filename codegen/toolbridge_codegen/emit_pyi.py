"""Python stubs: one package for each server, and its twin `aio` whose functions are awaited.

Small on purpose: a model reads every character. A property's description stands behind its field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from toolbridge_codegen.layout import Layout, arrange, name_of_others, resolved, short_names
from toolbridge_codegen.model import Declaration, FunctionModel, MapType, ModuleModel, NamedType, ObjectType
from toolbridge_codegen.pyi_types import Names, TypeWriter, docs_text
from toolbridge_codegen.quoting import docstring, is_keyword_argument

if TYPE_CHECKING:
    from toolbridge_codegen.manifest import InputStyle
    from toolbridge_codegen.stubs import Errors

_PRIVATE = " # pyright: ignore[reportPrivateUsage]"
"""Behind a tool whose name begins with an underscore: here it is no secret."""


def emit_pyi(model: ModuleModel, *, errors: Errors = "raise") -> str:
    """The stub of one server's package.

    With `errors="return"` a failed call returns `{"error": …}`, and the return types say so.
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
        lines.extend(types.declaration(declaration) for declaration in declarations if not types.in_place(declaration))
        lines.append(_function(function, layout, types, names, failure))
    head = names.imports()
    if text := docs_text(model.docs):
        head.insert(0, docstring(text))
    return "".join(f"{line}\n" for line in [*head, *lines])


def emit_aio_pyi(model: ModuleModel) -> str:
    """The stub of the package's `aio` module: the same functions, each returning a coroutine."""
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
    """Whether a function's input can be given as keyword arguments, or only as one mapping."""
    node = resolved(function.input, by_name)
    if isinstance(node, ObjectType):
        return "keywords" if all(is_keyword_argument(known.name) for known in node.properties) else "mapping"
    return "keywords" if isinstance(node, MapType) else "mapping"


def _function(function: FunctionModel, layout: Layout, types: TypeWriter, names: Names, failure: str) -> str:
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
    """The parameters of a function: its input's properties as keywords, or the input as one mapping."""
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
    """The parameters of an input that is no TypedDict: its known properties, then any other."""
    words = [
        f"{known.name}: {types.type(known.type, use='argument')}{'' if known.required else ' = ...'}"
        for known in node.properties
    ]
    if node.extra is not None:
        words.append(f"**{name_of_others(node)}: {types.type(node.extra, use='argument')}")
    return ", ".join(["*", *words] if node.properties else words)


def _name(node: NamedType | MapType, layout: Layout, types: TypeWriter) -> str:
    """The name of the TypedDict that an input is, past the names that only stand for others."""
    assert isinstance(node, NamedType)
    declaration: Declaration = layout.by_name[node.name]
    while isinstance(declaration.type, NamedType):
        declaration = layout.by_name[declaration.type.name]
    return types.written_name(declaration.name)
