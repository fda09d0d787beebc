"""Branches of a choice: what to call them, and what they say of themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolbridge_codegen.json_values import brief_json, is_object
from toolbridge_codegen.notes import constant_notes, text_of
from toolbridge_codegen.places import Built
from toolbridge_codegen.sanitise import clean_line
from toolbridge_codegen.type_names import pascal_words
from toolbridge_codegen.unions import NEVER, SCALARS

_LONGEST_MEANING = 200
_LONGEST_LABEL = 60
_MOST_MEANINGS = 50
_MOST_LOOKED_AT = 8
_LONGEST_WORD = 32


def variant_names(branches: Sequence[Sequence[Any]], name: str) -> list[str]:
    """A name for each branch, should it be an object: by its title, its tag, or its number.

    A branch is given as the schemas that it adds.
    """
    objects = [index for index, schemas in enumerate(branches) if any(map(_lists_properties, schemas))]
    if len(objects) < 2:
        return [name] * len(branches)
    words = _telling([_words(schemas) for schemas in branches])
    unique = all(words[index] for index in objects) and len({words[index] for index in objects}) == len(objects)
    return [name + (word if unique else str(index + 1)) for index, word in enumerate(words)]


def _telling(phrases: list[list[str]]) -> list[str]:
    """Each phrase as one word, without the beginning that all of them share."""
    given = [phrase for phrase in phrases if phrase]
    shared = 0
    for words in zip(*given, strict=False):
        if len(given) < 2 or len(set(words)) > 1:
            break
        shared += 1
    return ["".join(phrase[shared:])[:_LONGEST_WORD] for phrase in phrases]


def _lists_properties(schema: Any) -> bool:
    return is_object(schema) and "properties" in schema


def _words(schemas: Sequence[Any]) -> list[str]:
    for schema in schemas:
        if is_object(schema):
            words = pascal_words(schema.get("title")) or _tag_words(schema)
            if words:
                return words
    return []


def _tag_words(schema: dict[str, Any]) -> list[str]:
    """Of the first constant among the properties: `{"kind": {"const": "circle"}, …}` is `Circle`."""
    properties = schema.get("properties")
    if is_object(properties):
        for inner in list(properties.values())[:_MOST_LOOKED_AT]:
            words = pascal_words(inner.get("const")) if is_object(inner) else []
            if words:
                return words
    return []


def said_by_branches(branches: Sequence[Any], built: Sequence[Built]) -> Built:
    """What the branches say of themselves: one that is alone besides null, everything; others, what they mean."""
    real = [one for one in built if one.type not in (SCALARS["null"], NEVER)]
    if len(real) == 1:
        return real[0]
    meanings = [_meaning(branch) for branch in branches[:_MOST_MEANINGS] if is_object(branch)]
    return Built(SCALARS["null"], (), tuple(meaning for meaning in meanings if meaning))


def _meaning(branch: dict[str, Any]) -> str:
    """What a branch is there for, if it says so itself: `"asc": oldest first`; or what it is, if no type says it."""
    title = clean_line(text_of(branch, "title"), limit=_LONGEST_LABEL)
    text = text_of(branch, "description")
    if isinstance(branch.get("const"), str | int | float):
        label = brief_json(branch["const"], _LONGEST_LABEL)
        text = text or (title if title != branch["const"] else "")
    else:
        text = text or "; ".join(constant_notes(branch))
        declared = branch.get("type")
        label = title or (clean_line(declared, limit=_LONGEST_LABEL) if isinstance(declared, str) else "")
    return clean_line(f"{label}: {text}" if label else text, limit=_LONGEST_MEANING) if text else ""
