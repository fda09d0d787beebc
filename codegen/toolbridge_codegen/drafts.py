"""Drafts: the declarations of one module while it is being built.

A draft is referred to by its key. Names are given at the end, when it is known what is used, what is the same, and
who else wants a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolbridge_codegen.model import (
    ArrayType,
    Docs,
    LiteralType,
    MapType,
    NamedType,
    NeverType,
    ObjectType,
    ScalarType,
    TupleType,
    TypeNode,
    UnionType,
    UnknownType,
)
from toolbridge_codegen.notes import NO_DOCS
from toolbridge_codegen.schema_kinds import ANY_KIND
from toolbridge_codegen.unions import UNKNOWN

# Tuples, not unions of types: those would be made anew wherever they are asked for.
_WITHOUT_PARTS = (ScalarType, LiteralType, UnknownType, NeverType)
_OF_ONE_PART = (NamedType, *_WITHOUT_PARTS)


@dataclass(slots=True, eq=False)
class Draft:
    """A declaration that may not have its type yet."""

    key: str
    """What stands for its name in types."""
    wanted: str
    """The name by its place in the schema."""
    kinds: int
    """The kinds of values that it admits."""
    path: str = ""
    """Where it was declared."""
    definition: str = ""
    """The name by its definition, which is preferred if no other definition wants it."""
    root_of: str = ""
    """The tool whose input or output it is: it has that name, and is the same as no other."""
    type: TypeNode = UNKNOWN
    docs: Docs = NO_DOCS


class Drafts:
    """All drafts of a module."""

    __slots__ = ("_all",)

    def __init__(self) -> None:
        self._all: dict[str, Draft] = {}

    def open(self, wanted: str, kinds: int = ANY_KIND, *, path: str = "", definition: str = "") -> Draft:
        """A new draft."""
        draft = Draft(f"#{len(self._all)}", wanted, kinds, path, definition)
        self._all[draft.key] = draft
        return draft

    def get(self, key: str) -> Draft:
        """The draft of this key."""
        return self._all[key]

    def kinds_of_name(self, key: str) -> int:
        """The kinds of values that a declared type admits."""
        return self._all[key].kinds

    def reached_from(self, roots: Iterable[TypeNode]) -> dict[str, list[str]]:
        """What some types lead to, in the order in which it was made: each draft's key, and those it refers to."""
        found: dict[str, list[str]] = {}
        pending = [key for root in roots for key in keys_in(root)]
        while pending:
            key = pending.pop()
            if key not in found:
                found[key] = keys_in(self._all[key].type)
                pending += found[key]
        return {key: found[key] for key in self._all if key in found}


def keys_in(node: TypeNode) -> list[str]:
    """The declarations that a type refers to, each as often as it does, in the order of writing."""
    keys: list[str] = []
    stack: list[TypeNode] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, NamedType):
            keys.append(part.name)
        elif not isinstance(part, _WITHOUT_PARTS):
            stack += reversed(parts_of(part))
    return keys


def is_larger(node: TypeNode, most: int) -> bool:
    """Whether a type has more parts than this, which is one at least. Costs no more than that many steps."""
    if isinstance(node, _OF_ONE_PART):
        return False
    stack: list[TypeNode] = [node]
    while stack:
        most -= 1
        if most < 0 or len(stack) > most + 1:
            return True
        stack += parts_of(stack.pop())
    return False


def parts_of(node: TypeNode) -> Sequence[TypeNode]:
    """The types that a type is made of."""
    match node:
        case ObjectType(properties, extra):
            parts = [known.type for known in properties]
            return parts if extra is None else [*parts, extra]
        case ArrayType(items):
            return (items,)
        case MapType(values):
            return (values,)
        case UnionType(members):
            return members
        case TupleType(items, _, rest):
            return items if rest is None else (*items, rest)
        case _:
            return ()
