"""The layout of a module: each function after the types it is the first to need, for every emitter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from toolbridge_codegen.catalog import ToolSpec
from toolbridge_codegen.derive.declarations import keys_in
from toolbridge_codegen.derive.names import RESERVED_TYPE_NAMES, pascal_case
from toolbridge_codegen.escaping import one_line, py_string
from toolbridge_codegen.model import (
    Declaration,
    Docs,
    FunctionModel,
    ModuleModel,
    NamedType,
    ObjectType,
    TypeNode,
    UnionType,
)

# The text of a comment, not yet escaped for a language.

_LONGEST_TOOL_NAME = 100


def comment_text(docs: Docs, tool: ToolSpec | None = None) -> str:
    """Returns the description, then the notes in parentheses; for a renamed `tool`, first its original name."""
    notes = [one_line(note) for note in docs.notes]
    if tool is not None and tool.name != tool.identifier:
        cut = tool.name[:_LONGEST_TOOL_NAME]
        notes.insert(0, f"tool {py_string(cut)}{'' if cut == tool.name else '…'}")
    if not notes:
        return docs.description
    return f"{docs.description} ({'; '.join(notes)})".lstrip()


_SHORT = 20
"""Names up to this length are kept."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A module's functions with their types, and the roles of types."""

    functions: tuple[tuple[FunctionModel, tuple[Declaration, ...]], ...]
    """Each function with the types that no earlier function needed."""
    by_name: Mapping[str, Declaration]
    results: frozenset[str]
    """Types in results, which guest code reads."""
    arguments: frozenset[str]
    """Types of inputs and of their properties, down to the next object."""

    def resolve(self, node: TypeNode) -> TypeNode:
        """The type behind a name, through other names."""
        return resolved(node, self.by_name)


def resolved(node: TypeNode, by_name: Mapping[str, Declaration]) -> TypeNode:
    """Returns the type behind a name among some declarations, through other names.

    Stops after as many steps as there are declarations, so a cycle of names stays a name.
    """
    for _ in by_name:
        if not isinstance(node, NamedType):
            break
        node = by_name[node.name].type
    return node


def arrange(model: ModuleModel) -> Layout:
    """Puts a module's types next to the functions that need them first. Unused types are left out."""
    by_name = model.by_name
    seen: set[str] = set()
    functions: list[tuple[FunctionModel, tuple[Declaration, ...]]] = []
    for function in model.functions:
        needed = [*_collect(function.input, by_name, seen), *_collect(function.output, by_name, seen)]
        functions.append((function, tuple(needed)))
    results: set[str] = set()
    for function in model.functions:
        _collect(function.output, by_name, results)
    return Layout(
        functions=tuple(functions), by_name=by_name, results=frozenset(results), arguments=_arguments(model, by_name)
    )


def _arguments(model: ModuleModel, by_name: Mapping[str, Declaration]) -> frozenset[str]:
    """Returns the names of input types, and of the types of their properties, down to the next object.

    The members of a union that is an input count as inputs.
    """
    inputs: set[str] = set()
    for function in model.functions:
        waiting: list[TypeNode] = [function.input]
        while waiting:
            node = waiting.pop()
            if isinstance(node, UnionType):
                waiting.extend(node.members)
            elif isinstance(node, NamedType) and node.name not in inputs:
                inputs.add(node.name)
                waiting.append(by_name[node.name].type)
    found = set(inputs)
    names = [name for each in inputs for name in keys_in(by_name[each].type)]
    while names:
        name = names.pop()
        if name not in found and not isinstance(by_name[name].type, ObjectType):
            found.add(name)
            names.extend(keys_in(by_name[name].type))
    return frozenset(found)


def short_names(layout: Layout, taken: Iterable[str]) -> dict[str, str]:
    """Returns shorter names for inline types, for a language that must name them: original name → name.

    A name is made of the property, not the whole path; names of up to 20 characters are kept, so left out here.
    No short name is in `taken`, reserved or the name of a declaration.
    """
    used = {*taken, *RESERVED_TYPE_NAMES, *layout.by_name}
    written: dict[str, str] = {}
    next_number: dict[str, int] = {}
    for _, declarations in layout.functions:
        for declaration in declarations:
            home = written.get(declaration.name, declaration.name)
            for where, name in _inline_names(declaration, layout.by_name):
                if name in written or len(name) <= _SHORT:
                    continue
                base = pascal_case(where)
                base = base if base[:1].isalpha() else home
                short = base
                while short in used:
                    next_number[base] = next_number.get(base, 1) + 1
                    short = f"{base}{next_number[base]}"
                used.add(short)
                written[name] = short
    return written


def name_of_others(node: ObjectType) -> str:
    """Returns the name of the `**` parameter of an open input: `more`, with `_` until no property has it."""
    others = "more"
    while any(known.name == others for known in node.properties):
        others += "_"
    return others


def _inline_names(declaration: Declaration, by_name: Mapping[str, Declaration]) -> Iterator[tuple[str, str]]:
    """Yields the inline types within a declaration as `(property, name)`; the property is empty outside of one."""
    node = declaration.type
    places = [("", node)]
    if isinstance(node, ObjectType):
        places = [(known.name, known.type) for known in node.properties]
        places += [] if node.extra is None else [("", node.extra)]
    for where, part in places:
        for name in keys_in(part):
            if by_name[name].inline:
                yield where, name


def _collect(node: TypeNode, by_name: Mapping[str, Declaration], seen: set[str]) -> list[Declaration]:
    """Returns the declarations reached from a type and not in `seen`, in reading order. Adds them to `seen`."""
    found: list[Declaration] = []
    waiting = [iter(keys_in(node))]
    while waiting:
        name = next(waiting[-1], None)
        if name is None:
            waiting.pop()
        elif name not in seen:
            seen.add(name)
            found.append(by_name[name])
            waiting.append(iter(keys_in(by_name[name].type)))
    return found
