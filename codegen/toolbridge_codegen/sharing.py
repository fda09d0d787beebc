"""Sharing: declarations with the same content, from whichever tool, are one declaration.

Tools of one server often repeat a schema. What is the same in every part, its comments included, is found here;
recursive declarations are the same if they go round in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from toolbridge_codegen.drafts import Draft, Drafts, parts_of
from toolbridge_codegen.model import (
    ArrayType,
    LiteralType,
    MapType,
    NamedType,
    ObjectType,
    TupleType,
    TypeNode,
    UnionType,
)

_MOST_COMPARED = 200_000
"""Parts of cycles that are looked at, for one module; what is left then is the same as nothing else."""


def same_drafts(drafts: Drafts, references: Mapping[str, list[str]]) -> dict[str, int]:
    """A number for each draft; drafts with the same number have the same content.

    The drafts are given by their keys, each with the keys that it refers to.
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
    """The keys in groups that lead to each other (Tarjan's algorithm), what is referred to first."""
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
                    groups.append(_close(key, open_keys, is_open))
    return groups


def _close(first: str, open_keys: list[str], is_open: set[str]) -> list[str]:
    """The group that began with a key: everything that was opened since."""
    group: list[str] = []
    while not group or group[-1] != first:
        group.append(open_keys.pop())
        is_open.discard(group[-1])
    return group


def _content(draft: Draft, number: Callable[[str], int]) -> object:
    return (_shape(draft.type, number), _docs_shape(draft))


def _docs_shape(draft: Draft) -> object:
    return (draft.docs.description, draft.docs.notes, draft.docs.deprecated)


def _content_of_cycle(start: str, drafts: Drafts, members: set[str], numbers: Mapping[str, int]) -> object:
    """What a draft looks like from inside its cycle: the others are numbered as they are met from here."""
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
    """A type as something to compare: names by what they mean, constants by what they are."""
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
            return repr(values)  # to Python, 1 and true are equal
        case _:
            return node
