"""Drafts of declarations, their deduplication and their names."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolbridge_codegen.derive.names import TypeNames
from toolbridge_codegen.derive.unions import UNKNOWN, union_of
from toolbridge_codegen.model import (
    ArrayType,
    Declaration,
    Docs,
    LiteralType,
    MapType,
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
from toolbridge_codegen.read.kinds import ANY_KIND
from toolbridge_codegen.read.notes import NO_DOCS

# Drafts: the declarations of a module under construction, referred to by keys. Names are assigned at the end, when
# uses, duplicates and competing claims are known.

# Tuples, not unions: those would be rebuilt at every use.
_WITHOUT_PARTS = (ScalarType, LiteralType, UnknownType, NeverType)
_OF_ONE_PART = (NamedType, *_WITHOUT_PARTS)


@dataclass(slots=True, eq=False)
class Draft:
    """A declaration that may have no type yet."""

    key: str
    """The placeholder for its name in types."""
    wanted: str
    """The name by its position in the schema."""
    kinds: int
    """The kinds of values that it admits."""
    path: str = ""
    """The JSON Pointer of its schema."""
    definition: str = ""
    """The name of its definition, preferred unless another definition claims it."""
    root_of: str = ""
    """The tool of which it is the input or output: named after it, and never merged with another."""
    type: TypeNode = UNKNOWN
    docs: Docs = NO_DOCS


class Drafts:
    """The drafts of a module."""

    def __init__(self) -> None:
        self._all: dict[str, Draft] = {}

    def open(self, wanted: str, kinds: int = ANY_KIND, *, path: str = "", definition: str = "") -> Draft:
        """Adds a draft of unknown type under a new key; `wanted` is the name it should get."""
        draft = Draft(f"#{len(self._all)}", wanted, kinds, path, definition)
        self._all[draft.key] = draft
        return draft

    def get(self, key: str) -> Draft:
        """Returns the draft of a key. Raises KeyError if there is none."""
        return self._all[key]

    def kinds_of_name(self, key: str) -> int:
        """The kinds of values that a draft admits."""
        return self._all[key].kinds

    def reached_from(self, roots: Iterable[TypeNode]) -> dict[str, list[str]]:
        """Returns the drafts reached from some types, in order of creation: key → the keys it refers to."""
        found: dict[str, list[str]] = {}
        pending = [key for root in roots for key in keys_in(root)]
        while pending:
            key = pending.pop()
            if key not in found:
                found[key] = keys_in(self._all[key].type)
                pending += found[key]
        return {key: found[key] for key in self._all if key in found}


def keys_in(node: TypeNode) -> list[str]:
    """Returns the keys or names that a type refers to, with repetitions, in order of writing."""
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
    """Returns whether a type has more than `most` parts, in at most that many steps. Names are not followed."""
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
    """Returns the parts of a type, one level deep."""
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


# Deduplication: drafts with equal content, comments included, become one declaration, as tools of a server often repeat
# a schema. Recursive drafts are equal if their cycles are.

_MOST_COMPARED = 200_000
"""Parts of cycles compared per module; drafts beyond are never merged."""


def same_drafts(drafts: Drafts, references: Mapping[str, list[str]]) -> dict[str, int]:
    """Returns a number for each draft, equal for equal content, comments included.

    `references` has the keys that each draft refers to. The roots of tools are never equal to others; nor are cycles
    beyond a limit.
    """
    numbers: dict[str, int] = {}
    known: dict[object, int] = {}
    left = _MOST_COMPARED
    for cycle in cycles(references):
        is_alone = len(cycle) == 1 and cycle[0] not in references[cycle[0]]
        if not is_alone:
            left -= len(cycle) * sum(1 + len(parts_of(drafts.get(key).type)) for key in cycle)
        for key in cycle:
            draft = drafts.get(key)
            if draft.root_of or left < 0:
                content: object = key
            elif is_alone:
                content = _content(draft, numbers.__getitem__)
            else:
                content = _content_of_cycle(key, drafts, set(cycle), numbers)
            numbers[key] = known.setdefault(content, len(known))
    return numbers


def cycles(references: Mapping[str, list[str]]) -> list[list[str]]:
    """Returns the strongly connected components of the references (Tarjan's algorithm), referenced ones first."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_keys: list[str] = []
    is_open: set[str] = set()
    groups: list[list[str]] = []
    for start in references:
        if start in order:
            continue
        stack = [(start, iter(references[start]))]
        while stack:
            key, others = stack[-1]
            if key not in order:
                order[key] = lowest[key] = len(order)
                open_keys.append(key)
                is_open.add(key)
            for other in others:
                if other not in order:
                    stack.append((other, iter(references[other])))
                    break
                if other in is_open:
                    lowest[key] = min(lowest[key], order[other])
            else:
                stack.pop()
                if stack:
                    lowest[stack[-1][0]] = min(lowest[stack[-1][0]], lowest[key])
                if lowest[key] == order[key]:
                    groups.append(_pop_component(key, open_keys, is_open))
    return groups


def _pop_component(first: str, open_keys: list[str], is_open: set[str]) -> list[str]:
    """Pops a component from the stack, down to its first key, and returns it. Mutates both collections."""
    group: list[str] = []
    while not group or group[-1] != first:
        group.append(open_keys.pop())
        is_open.discard(group[-1])
    return group


def _content(draft: Draft, number: Callable[[str], int]) -> object:
    """Returns a draft's type and comments as a comparable value; `number` stands for each key in it."""
    return (_shape(draft.type, number), draft.docs.description, draft.docs.notes, draft.docs.deprecated)


def _content_of_cycle(start: str, drafts: Drafts, members: set[str], numbers: Mapping[str, int]) -> object:
    """Returns a comparable value for a draft on a cycle of references, such as a tree's node.

    `members` are the keys of the cycle, numbered -1, -2, … as they are met from `start`: so recursive drafts with equal
    structure compare equal. `numbers` has those of drafts outside, which must be known.
    """
    met = {start: -1}
    waiting = [start]
    shapes: list[object] = []

    def number(key: str) -> int:
        if key not in members:
            return numbers[key]
        if key not in met:
            met[key] = -1 - len(met)
            waiting.append(key)
        return met[key]

    while waiting:
        shapes.append(_content(drafts.get(waiting.pop()), number))
    return tuple(shapes)


def _shape(node: TypeNode, number: Callable[[str], int]) -> object:  # noqa: PLR0911  # one for each kind of type
    """Returns a type as a comparable value: names by `number`, constants by their text."""
    match node:
        case NamedType(name):
            return number(name)
        case ObjectType(properties, extra):
            return (
                "object",
                tuple([(known.name, _shape(known.type, number), known.required, known.docs) for known in properties]),
                None if extra is None else _shape(extra, number),
            )
        case ArrayType(items):
            return ("array", _shape(items, number))
        case MapType(values):
            return ("map", _shape(values, number))
        case UnionType(members):
            return ("union", *[_shape(member, number) for member in members])
        case TupleType(items, required, rest):
            inner = [_shape(item, number) for item in items]
            return ("tuple", required, *inner, None if rest is None else _shape(rest, number))
        case LiteralType(values):
            return repr(values)  # to Python, 1 equals True
        case _:
            return node


_MOST_INLINE_LEVELS = 4
"""Levels of inline objects; deeper ones get a name."""
_SMALL = 50
"""The width up to which an object without comments is inline."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+")

Renaming = Callable[[TypeNode], TypeNode]
"""Replaces keys by names in a type."""


def declare(drafts: Drafts, roots: Sequence[TypeNode], names: TypeNames) -> tuple[tuple[Declaration, ...], Renaming]:
    """Returns the declarations reached from some types, and the function that puts their names into these types.

    Merges equal drafts, and claims the names in `names`.
    """
    references = drafts.reached_from(roots)
    groups = _group_equal(drafts, references)
    name_of = _name_all(groups, names)
    renamed = _Renamer(name_of).renamed
    users = _users_by_name(groups, references, name_of, roots)
    inline = _inline_names(groups, name_of, users)
    declarations = [
        Declaration(name_of[first.key], renamed(first.type), first.docs, inline=name_of[first.key] in inline)
        for first, *_ in groups
    ]
    return tuple(declarations), renamed


def _group_equal(drafts: Drafts, references: Mapping[str, list[str]]) -> list[list[Draft]]:
    """Groups drafts with equal content, in order of creation."""
    numbers = same_drafts(drafts, references)
    groups: dict[int, list[Draft]] = {}
    for key in references:
        groups.setdefault(numbers[key], []).append(drafts.get(key))
    return list(groups.values())


# ---- names


def _name_all(groups: list[list[Draft]], names: TypeNames) -> dict[str, str]:
    """Claims a name for each group of drafts; returns it by draft key.

    A preferred name that several groups want goes to none: each is then named after its position.
    """
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
    """Returns the name that a group of equal drafts should get: that of their definition.

    Without one, of the position, and for several positions their common ending.
    """
    if group[0].root_of:
        return group[0].wanted
    definitions = {draft.definition for draft in group}
    if len(definitions) == 1:
        return definitions.pop() or _common_end([draft.wanted for draft in group])
    return min(definitions - {""})


def _common_end(names: list[str]) -> str:
    """Returns the last words that all names share, after `Input` or `Output`; the first name if there are none."""
    if len(set(names)) == 1:
        return names[0]
    split = [_WORD.findall(name) for name in names]
    common: list[str] = []
    for words in zip(*map(reversed, split), strict=False):
        if len(set(words)) > 1:
            break
        common.insert(0, words[0])
    # Words before the position in the schema don't describe the type.
    for index in range(len(common) - 1, -1, -1):
        if common[index] in ("Input", "Output"):
            del common[: index + 1]
            break
    return "".join(common) if common and not common[0][0].isdigit() else names[0]


class _Renamer:
    """Replaces keys by names; a type without any stays the same object."""

    def __init__(self, name_of: Mapping[str, str]) -> None:
        self._named = {key: NamedType(name) for key, name in name_of.items()}

    def renamed(self, node: TypeNode) -> TypeNode:  # noqa: PLR0911  # one for each kind of type
        """Returns the type with names for keys; the same object if it has none."""
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
                # Members may have become equal.
                inside = [self.renamed(member) for member in members]
                return node if all(map(operator.is_, inside, members)) else union_of(inside)
            case TupleType(items, required, rest):
                inside = tuple([self.renamed(item) for item in items])
                return TupleType(inside, required, None if rest is None else self.renamed(rest))
            case _:
                return node

    def _property(self, known: Property) -> Property:
        inner = self.renamed(known.type)
        return known if inner is known.type else Property(known.name, inner, known.required, known.docs)


# ---- what needs no name


def _users_by_name(
    groups: list[list[Draft]],
    references: Mapping[str, list[str]],
    name_of: Mapping[str, str],
    roots: Iterable[TypeNode],
) -> dict[str, list[str]]:
    """Returns for each name the declarations that use it; an empty string for a use as a root."""
    users: dict[str, list[str]] = {}
    for root in roots:
        for key in keys_in(root):
            users.setdefault(name_of[key], []).append("")
    for first, *_ in groups:
        for key in references[first.key]:
            users.setdefault(name_of[key], []).append(name_of[first.key])
    return users


def _inline_names(groups: list[list[Draft]], name_of: Mapping[str, str], users: Mapping[str, list[str]]) -> set[str]:
    """Returns the names of declarations to write inline: small, or used once and not too deep.

    A cycle is entered by a declaration with two users, which keeps its name. So an inline type never contains itself.
    """
    levels: dict[str, int] = {}
    for first, *_ in groups:  # users come before what they use
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
    """Returns whether an object of scalars, closed and without comments, is shorter than a name is worth."""
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
    """Returns the width of a type made of scalars; None for others."""
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
