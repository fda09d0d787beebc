"""From drafts to declarations: what is the same is declared once, and everything gets its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from toolbridge_codegen.drafts import Draft, Drafts, keys_in
from toolbridge_codegen.model import (
    ArrayType,
    Declaration,
    LiteralType,
    MapType,
    NamedType,
    ObjectType,
    Property,
    ScalarType,
    TupleType,
    TypeNode,
    UnionType,
)
from toolbridge_codegen.notes import NO_DOCS
from toolbridge_codegen.sharing import same_drafts
from toolbridge_codegen.type_names import TypeNames
from toolbridge_codegen.unions import union_of

_MOST_INLINE_LEVELS = 4
"""Objects written inside objects: deeper than this, a name reads better."""
_SMALL = 50
"""Characters up to which an object without comments says more than its name would."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+")

Renaming = Callable[[TypeNode], TypeNode]
"""Puts declared names in the place of drafts' keys."""


def declare(drafts: Drafts, roots: Sequence[TypeNode], names: TypeNames) -> tuple[tuple[Declaration, ...], Renaming]:
    """The declarations that some types lead to, and the way to name them in those types."""
    references = drafts.reached_from(roots)
    groups = _groups(drafts, references)
    name_of = _name_all(groups, names)
    renamed = _Renamer(name_of).renamed
    users = _users(groups, references, name_of, roots)
    inline = _inline_names(groups, name_of, users)
    declarations = [
        Declaration(name_of[first.key], renamed(first.type), first.docs, inline=name_of[first.key] in inline)
        for first, *_ in groups
    ]
    return tuple(declarations), renamed


def _groups(drafts: Drafts, references: Mapping[str, list[str]]) -> list[list[Draft]]:
    """Drafts with the same content together, in the order in which the first of each was made."""
    numbers = same_drafts(drafts, references)
    groups: dict[int, list[Draft]] = {}
    for key in references:
        groups.setdefault(numbers[key], []).append(drafts.get(key))
    return list(groups.values())


# ---- names


def _name_all(groups: list[list[Draft]], names: TypeNames) -> dict[str, str]:
    preferred = [_preferred_name(group) for group in groups]
    wanted_by: dict[str, int] = {}
    for name in preferred:
        wanted_by[name] = wanted_by.get(name, 0) + 1
    name_of: dict[str, str] = {}
    for group, name in zip(groups, preferred, strict=True):
        chosen = name if wanted_by[name] == 1 else group[0].wanted
        claimed = names.claim(chosen, group[0].root_of)
        name_of.update((draft.key, claimed) for draft in group)
    return name_of


def _preferred_name(group: list[Draft]) -> str:
    """By definition; else by place, and for several places by what their names end in."""
    if group[0].root_of:
        return group[0].wanted
    definitions = {draft.definition for draft in group}
    if len(definitions) == 1:
        return definitions.pop() or _common_end([draft.wanted for draft in group])
    return min(definitions - {""})


def _common_end(names: list[str]) -> str:
    if len(set(names)) == 1:
        return names[0]
    split = [_WORD.findall(name) for name in names]
    common: list[str] = []
    for words in zip(*map(reversed, split), strict=False):
        if len(set(words)) > 1:
            break
        common.insert(0, words[0])
    # What is before the place in the schema says nothing of the type.
    for index in range(len(common) - 1, -1, -1):
        if common[index] in ("Input", "Output"):
            del common[: index + 1]
            break
    return "".join(common) if common and not common[0][0].isdigit() else names[0]


class _Renamer:
    """Puts names in the place of keys; a type in which there are none stays the same object."""

    def __init__(self, name_of: Mapping[str, str]) -> None:
        self._named = {key: NamedType(name) for key, name in name_of.items()}

    def renamed(self, node: TypeNode) -> TypeNode:  # noqa: PLR0911  # one for each kind of type
        """The type with names."""
        match node:
            case NamedType(key):
                return self._named[key]
            case ObjectType(properties, extra):
                return ObjectType(
                    tuple([self._property(known) for known in properties]),
                    None if extra is None else self.renamed(extra),
                )
            case ArrayType(items):
                inner = self.renamed(items)
                return node if inner is items else ArrayType(inner)
            case MapType(values):
                inner = self.renamed(values)
                return node if inner is values else MapType(inner)
            case UnionType(members):
                # Two members may have turned out to be the same.
                inside = [self.renamed(member) for member in members]
                return node if all(map(_is, inside, members)) else union_of(inside)
            case TupleType(items, required, rest):
                inside = tuple([self.renamed(item) for item in items])
                return TupleType(inside, required, None if rest is None else self.renamed(rest))
            case _:
                return node

    def _property(self, known: Property) -> Property:
        inner = self.renamed(known.type)
        return known if inner is known.type else Property(known.name, inner, known.required, known.docs)


def _is(one: TypeNode, other: TypeNode) -> bool:
    return one is other


# ---- what needs no name


def _users(
    groups: list[list[Draft]],
    references: Mapping[str, list[str]],
    name_of: Mapping[str, str],
    roots: Iterable[TypeNode],
) -> dict[str, list[str]]:
    """For each name, the name of each declaration that uses it; empty for a use outside of any."""
    users: dict[str, list[str]] = {}
    for root in roots:
        for key in keys_in(root):
            users.setdefault(name_of[key], []).append("")
    for first, *_ in groups:
        for key in references[first.key]:
            users.setdefault(name_of[key], []).append(name_of[first.key])
    return users


def _inline_names(groups: list[list[Draft]], name_of: Mapping[str, str], users: Mapping[str, list[str]]) -> set[str]:
    """What may be written where it is used: in one place, or small.

    A declaration of a cycle that has one user only is used by the cycle; the one by which the cycle is entered has
    two users and keeps its name. So what is inline never contains itself.
    """
    levels: dict[str, int] = {}
    for first, *_ in groups:  # a user was made before what it uses
        name = name_of[first.key]
        if first.root_of:
            continue
        if _is_small(first):
            levels[name] = 0
        elif len(users[name]) == 1 and users[name][0] not in ("", name):
            level = levels.get(users[name][0], 0) + 1
            if level <= _MOST_INLINE_LEVELS:
                levels[name] = level
    return set(levels)


def _is_small(draft: Draft) -> bool:
    """An object of scalars that is shorter than a sentence, and needs no comment."""
    if not isinstance(draft.type, ObjectType) or draft.docs != NO_DOCS or draft.type.extra is not None:
        return False
    width = 0
    for known in draft.type.properties:
        inner = _small_width(known.type)
        if inner is None or known.docs != NO_DOCS:
            return False
        width += len(known.name) + inner + 4
    return width <= _SMALL


def _small_width(node: TypeNode) -> int | None:
    """The width of a type that is made of scalars only."""
    match node:
        case ScalarType(kind):
            return len(kind)
        case LiteralType(values):
            return sum(len(str(value)) + 5 for value in values[:_SMALL])
        case ArrayType(items):
            inner = _small_width(items)
            return None if inner is None else inner + 2
        case UnionType(members):
            widths = [_small_width(member) for member in members]
            return None if None in widths else sum(width + 3 for width in widths if width is not None)
        case _:
            return None
