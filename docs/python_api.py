"""Writes docs/python-api.md, the reference of the public Python API, from the source code.

    python docs/python_api.py

Reads the code and imports none of it: signatures are as they were written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/python-api.md"
PUBLIC = (
    "toolbridge",
    *(f"toolbridge.{name}" for name in ("approval", "errors", "events", "pins", "plugins", "prompt")),
)

WITH_OPTIONS = ("open_runtime",)
"""Functions whose options have a table; others refer to it, or to fields of `ServerConfig`."""

HEADER = """# Python API

Every public name, by module: `from toolbridge import open_runtime`, `from toolbridge.events import CallEnded`.
[Embed in Python](embed-in-python.md) is the guide; [versioning](VERSIONING.md) says what is stable. This page is
generated from the code: `make reference`.
"""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Definition: TypeAlias = Function | ast.ClassDef | ast.Assign | ast.AnnAssign


class Place(NamedTuple):
    """A definition, and the module that has it."""

    module: str
    node: Definition
    doc: str


@cache
def tree(module: str) -> ast.Module:
    """The syntax tree of a module, or of its stub."""
    path = ROOT / "bridge" / module.replace(".", "/")
    files = (path / "__init__.pyi", path.with_suffix(".py"))
    return ast.parse(next(file for file in files if file.exists()).read_text(encoding="utf-8"))


@cache
def imports(module: str) -> dict[str, tuple[str, str]]:
    """Names that a module imports from others of ours: their modules and names there."""
    nodes = [node for node in ast.walk(tree(module)) if isinstance(node, ast.ImportFrom)]
    return {
        each.asname or each.name: (node.module, each.name)
        for node in nodes
        for each in node.names
        if node.module is not None and node.module.startswith("toolbridge")
    }


def public_names(module: str) -> list[str]:
    """The public names of a public module."""
    if module == "toolbridge":
        return [name for name in imports(module) if not name.startswith("_")]
    for node in tree(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    names = [name for name, each in definitions(module).items() if isinstance(each.node, ast.ClassDef)]
    aliases = [name for name, each in definitions(module).items() if isinstance(each.node, ast.AnnAssign) and each.doc]
    return [name for name in [*names, *aliases] if not name.startswith("_")]


@cache
def definitions(module: str) -> dict[str, Place]:
    """What a module defines, by name; of an overloaded function, the implementation."""
    return {name: Place(module, node, doc) for name, node, doc in named(tree(module).body)}


def named(body: list[ast.stmt]) -> Iterator[tuple[str, Definition, str]]:
    """The definitions of a module or class, each with its docstring: one below it, for a variable."""
    for node, following in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node, ast.get_docstring(node) or ""
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            below = following.value if isinstance(following, ast.Expr) else None
            doc = below.value if isinstance(below, ast.Constant) and isinstance(below.value, str) else ""
            yield ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target), node, doc


def find(module: str, name: str) -> Place:
    """The definition of a name, where it was imported from."""
    while name not in definitions(module):
        module, name = imports(module)[name]
    return definitions(module)[name]


def decorators(node: Definition) -> list[str]:
    """The decorators of a function or class, as they were written."""
    return [ast.unparse(each) for each in getattr(node, "decorator_list", [])]


def signature(node: Function, *, name: str = "", is_method: bool = False) -> str:
    """A call: parameters with types and defaults, and the result."""
    parameters = list(parameters_of(node.args))
    if is_method and "staticmethod" not in decorators(node):
        del parameters[0]
    returned = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    awaited = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{awaited}{name or node.name}({', '.join(parameters)}){returned}"


def parameters_of(arguments: ast.arguments) -> Iterator[str]:
    """Parameters with types and defaults."""

    def shown(argument: ast.arg, default: ast.expr | None = None, stars: str = "") -> str:
        kind = "" if argument.annotation is None else f": {ast.unparse(argument.annotation)}"
        return f"{stars}{argument.arg}{kind}" + ("" if default is None else f" = {ast.unparse(default)}")

    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(positional) - len(arguments.defaults)), *arguments.defaults]
    for number, (argument, default) in enumerate(zip(positional, defaults, strict=True), 1):
        yield shown(argument, default)
        if number == len(arguments.posonlyargs):
            yield "/"
    if arguments.vararg is not None:
        yield shown(arguments.vararg, stars="*")
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield shown(argument, default)
    if arguments.kwarg is not None:
        yield shown(arguments.kwarg, stars="**")


def fields_of(place: Place) -> list[tuple[str, str, str]]:
    """Fields of a dataclass, named tuple or typed dictionary: name, type with default, meaning."""
    assert isinstance(place.node, ast.ClassDef)
    fields: list[tuple[str, str, str]] = []
    for name, node, doc in named(place.node.body):
        if isinstance(node, ast.AnnAssign) and not name.startswith("_"):
            default = "" if node.value is None else f" = {default_of(node.value)}"
            fields.append((name, f"{ast.unparse(node.annotation)}{default}", doc))
    return fields


def default_of(value: ast.expr) -> str:
    """A default as a reader wants it: of a factory, what it makes."""
    text = ast.unparse(value)
    made = re.fullmatch(r"field\((default_factory=(?:lambda: )?)?(?:default=)?(\w+).*\)", text)
    if made is None:
        return text
    named = {"_NOTHING": "{}", "MappingProxyType": "{}", "tuple": "()"}
    return named.get(made[2], f"{made[2]}()" if made[1] and not made[2].isupper() else made[2])


def classes(place: Place) -> list[Place]:
    """A class, and those of its bases that are ours."""
    assert isinstance(place.node, ast.ClassDef)
    found = [place]
    for base in place.node.bases:
        name = ast.unparse(base).split("[")[0]
        if name in definitions(place.module) or name in imports(place.module):
            found += classes(find(place.module, name))
    return found


def methods_of(place: Place) -> Iterator[tuple[Function, str]]:
    """The public methods and properties of a class, those of our base classes too."""
    seen: set[str] = set()
    for each in classes(place):
        assert isinstance(each.node, ast.ClassDef)
        for name, node, doc in named(each.node.body):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and doc and name not in seen:
                seen.add(name)
                is_ours = name.startswith("_") or doc.startswith("For the bridge")
                if not is_ours and "overload" not in decorators(node):
                    yield node, doc


def entry(module: str, name: str) -> Iterator[str]:
    """One name: how it is called, what it does, what it raises, its fields and methods."""
    place = find(module, name)
    node = place.node
    yield f"### {name}"
    if isinstance(node, ast.ClassDef):
        yield from class_entry(place)
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        same = [each for each in tree(place.module).body if getattr(each, "name", "") == name]
        calls = [each for each in same if "overload" in decorators(each)] or [node]  # pyright: ignore[reportArgumentType]
        yield code([signature(each) for each in calls if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)])
        yield prose(place.doc)
        options = re.search(r"Unpack\[(\w+)\]", ast.unparse(node.args))
        if options is not None:
            yield from table(fields_of(find(place.module, options[1])), "option") if name in WITH_OPTIONS else ()
        return
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        yield code([f"{name} = {ast.unparse(node.value).strip(chr(39))}"])
    yield prose(place.doc)


def class_entry(place: Place) -> Iterator[str]:
    """A class: its construction, fields and methods."""
    node = place.node
    assert isinstance(node, ast.ClassDef)
    bases = [ast.unparse(base) for base in node.bases]
    fields = fields_of(place)
    start = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    is_data = any("dataclass" in each for each in decorators(node)) or "NamedTuple" in bases
    is_error = any(base.endswith("Error") for base in bases)
    if "Made by `" in place.doc:
        pass
    elif start is not None and not is_error:
        yield code([signature(start, name=node.name, is_method=True).removesuffix(" -> None")])
    elif is_data:
        shown = [f"{name}={kind.partition(' = ')[2]}" if " = " in kind else name for name, kind, _ in fields]
        yield code([f"{node.name}({', '.join(shown)})"])
    elif is_error:
        yield f"A {' and '.join(f'`{base}`' for base in bases)}." if len(bases) > 1 else f"A `{bases[0]}`."
    yield prose(place.doc)
    if fields:
        yield from table(fields, "field")
    if "Enum" in bases:
        yield f"Values: {', '.join(f'`{node.name}.{name}`' for name, *_ in named(node.body))}."
    for method, doc in methods_of(place):
        if "property" in decorators(method):
            kind = "" if method.returns is None else f": {ast.unparse(method.returns)}"
            yield f"- `{method.name}{kind}` — {inline(doc)}"
        else:
            shown = f"{node.name}.{method.name}" if "staticmethod" in decorators(method) else method.name
            yield f"- `{signature(method, name=shown, is_method=True)}` — {inline(doc)}"


def code(lines: list[str]) -> str:
    """Calls, as a block of Python."""
    return "```python\n" + "\n".join(wrapped(line) for line in lines) + "\n```"


def wrapped(call: str) -> str:
    """A call on one line, or each of its arguments on a line of its own."""
    if len(call) <= 110:
        return call
    opening = call.index("(")
    parts: list[str] = []
    depth, last = 0, opening + 1
    for index in range(opening, len(call)):
        depth += (call[index] in "([{") - (call[index] in ")]}")
        if depth == 1 and call[index] == ",":
            parts.append(call[last:index].strip())
            last = index + 1
        if depth == 0:
            parts.append(call[last:index].strip())
            return f"{call[:opening]}(\n" + "".join(f"    {part},\n" for part in parts) + call[index:]
    raise AssertionError(call)


def prose(doc: str) -> str:
    """A docstring as Markdown: code that is set in becomes a block, errors a list."""
    text, _, raised = doc.strip().partition("Raises:\n")
    text, _, arguments = text.partition("Args:\n")
    parts = [text.strip(), listed(arguments), listed(raised, "Raises ")]
    return "\n\n".join(part for part in parts if part)


def listed(section: str, before: str = "") -> str:
    """The lines `name: meaning` of a section as a list."""
    items = re.findall(r"^ *(\w+): (.*(?:\n {8,}.*)*)", section, re.MULTILINE)
    return "\n".join(f"- {before}`{name}`: {' '.join(meaning.split())}" for name, meaning in items)


def inline(doc: str) -> str:
    """A docstring in one paragraph, errors last."""
    text, _, raised = doc.partition("Raises:\n")
    items = re.findall(r"^ *(\w+): (.*(?:\n {8,}.*)*)", raised, re.MULTILINE)
    errors = "".join(f" Raises `{name}`: {' '.join(meaning.split())}" for name, meaning in items)
    return " ".join(text.split()) + errors


def table(fields: list[tuple[str, str, str]], what: str) -> Iterator[str]:
    """Fields, or options, as a table."""
    if fields:
        rows = [f"| `{name}` | `{kind.replace('|', chr(92) + '|')}` | {inline(doc)} |" for name, kind, doc in fields]
        yield "\n".join([f"| {what} | type | meaning |", "|---|---|---|", *rows])


def section(module: str) -> Iterator[str]:
    """One public module."""
    names = public_names(module)
    shared: list[str] = []
    yield f"## {module}"
    if module != "toolbridge":
        yield (ast.get_docstring(tree(module)) or "").split("\n\n")[0]
        shared = [name for name in names if name in public_names("toolbridge")]
    if shared:
        yield f"Also here: {', '.join(f'[`{name}`](#{name.lower()})' for name in shared)}."
    for name in sorted((name for name in names if name not in shared), key=str.lower):
        yield "\n\n".join(joined(list(entry(module, name))))


def joined(parts: list[str]) -> list[str]:
    """Items of one list belong together."""
    result: list[str] = []
    for part in filter(None, parts):
        if part.startswith("- `") and result and result[-1].startswith("- `"):
            result[-1] += f"\n{part}"
        else:
            result.append(part)
    return result


def reference() -> str:
    """The whole page."""
    return "\n\n".join([HEADER.rstrip(), *(part for module in PUBLIC for part in section(module))]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
