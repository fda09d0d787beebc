"""Notes: the parts of a schema that types don't express, as short lines for a comment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeGuard

from toolbridge_codegen.escaping import brief_json, clean_line, clean_text, is_list, is_object
from toolbridge_codegen.model import Docs
from toolbridge_codegen.read.normalize import CHOICES, is_remark

NO_DOCS = Docs()

_LARGEST_EXACT = 2**53 - 1
_LONGEST_NOTE = 200
_LONGEST_PATTERN = 120
_MOST_CONSTANTS = 20

_PLAIN_NOTES = {"format": "format", "contentEncoding": "encoding", "contentMediaType": "media type"}
_COUNTS = (
    ("minLength", "maxLength", "characters"),
    ("minItems", "maxItems", "items"),
    ("minProperties", "maxProperties", "properties"),
)
_RANGE = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_LOGIC = frozenset(
    {"contains", "propertyNames", "not", "if", "dependentRequired", "dependentSchemas", "dependencies", *CHOICES}
)
_CONSTANTS = frozenset({"const", "enum"})
_FOR_ITEMS = _RANGE | _CONSTANTS | _PLAIN_NOTES.keys() | {"pattern", "minLength", "maxLength"}
_COUNTED = frozenset(keyword for least, most, _ in _COUNTS for keyword in (least, most))
_NOTED_OF_RESULTS = _CONSTANTS | _PLAIN_NOTES.keys()
_NOTED = _FOR_ITEMS | _COUNTED | _LOGIC | {"default", "items", "uniqueItems"}
_DESCRIBED = _NOTED | {"description", "title", "deprecated"}


def docs_of(
    schemas: Sequence[dict[str, Any]],
    more_notes: Sequence[str] = (),
    *,
    name: str = "",
    with_default: bool = True,
    is_result: bool = False,
) -> Docs:
    """Returns the documentation of a place from its schemas, nearest first, and `more_notes`.

    The first description counts; without any, a title that differs from `name`.
    Of a result, only formats and constants are noted: its limits bind the server, not the reader.
    """
    described = [schema for schema in schemas if not _DESCRIBED.isdisjoint(schema)]
    if not described and not more_notes:
        return NO_DOCS
    description = ""
    deprecated = False
    notes: dict[str, None] = {}
    noted = _NOTED_OF_RESULTS if is_result else _NOTED
    for schema in described:
        if not description:
            description = text_of(schema, "description")
        of_each = _description_of_items(schema)
        if of_each and not description:
            description = of_each
        elif of_each:
            notes[clean_line(f"each: {of_each}", limit=_LONGEST_NOTE)] = None
        deprecated = deprecated or schema.get("deprecated") is True
        if not noted.isdisjoint(schema):
            own = _result_notes(schema) if is_result else notes_of(schema, with_default=with_default)
            notes.update((note, None) for note in own if not _mentions_default(description, note))
    notes.update(dict.fromkeys(more_notes))
    if not description:
        description = _informative_title(described, name)
    if not description and not notes and not deprecated:
        return NO_DOCS
    return Docs(description, tuple(notes), deprecated)


def _description_of_items(schema: dict[str, Any]) -> str:
    """Returns the description of an array's items; empty if they are a reference, whose definition has it."""
    items = schema.get("items")
    return text_of(items, "description") if items is not None and is_object(items) and "$ref" not in items else ""


def _mentions_default(description: str, note: str) -> bool:
    """Returns whether the note is one of a default that the description already mentions."""
    label, _, value = note.partition(": ")
    return label == "default" and label in description.lower() and _contains_value(description, value)


def _contains_value(text: str, value: str) -> bool:
    """Returns whether a text has a value as a whole word, quoted or not: `100`, `1.5` and `-1` don't contain `1`."""
    bare = value.strip('"')
    if not bare:
        return '""' in text or "''" in text
    return re.search(rf"(?<![\w.+/-])(?<!\d,){re.escape(bare)}(?![\w+/-]|[.,:]\w)", text) is not None


def _informative_title(schemas: Sequence[dict[str, Any]], name: str) -> str:
    """Returns the first title that says more than the name, which many generators repeat.

    Empty if there is none, or no name.
    """
    for schema in schemas:
        title = schema.get("title")
        if isinstance(title, str) and name and _normalised_letters(title) != _normalised_letters(name):
            return clean_line(title, limit=_LONGEST_NOTE)
    return ""


def _normalised_letters(text: str) -> str:
    return "".join(filter(str.isalnum, text[:_LONGEST_NOTE])).lower()


def text_of(schema: dict[str, Any], keyword: str) -> str:
    """Returns a server's text under a keyword, sanitised; empty if it is no string."""
    value = schema.get(keyword)
    return clean_text(value) if isinstance(value, str) else ""


def notes_of(schema: dict[str, Any], *, with_default: bool = True) -> list[str]:
    """Returns the notes of a schema and its items, each sanitised into one line."""
    notes = constant_notes(schema)
    if with_default and schema.get("default") is not None:
        notes.append(f"default: {brief_json(schema['default'])}")
    notes += plain_notes(schema)
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        notes.append(f"pattern: {clean_line(pattern, limit=_LONGEST_PATTERN)}")
    if not _RANGE.isdisjoint(schema):
        notes += _range_notes(schema)
    for least, most, what in _COUNTS:
        if least in schema or most in schema:
            notes += _count_note(schema, least, most, what)
    if schema.get("uniqueItems") is True:
        notes.append("items: unique")
    items = schema.get("items")
    if is_object(items) and not _FOR_ITEMS.isdisjoint(items) and "properties" not in items:
        notes += [f"each {note}" for note in notes_of(items, with_default=False)]
    if not _LOGIC.isdisjoint(schema):
        notes += _logic_notes(schema)
    return [clean_line(note, limit=_LONGEST_NOTE) for note in notes]


def constant_notes(schema: dict[str, Any]) -> list[str]:
    """Returns one note on the constants without a literal type: lists, objects, and inexact numbers.

    Empty if there are none. Reads up to 20 constants.
    """
    if "const" in schema:
        value = schema["const"]
        return [f"constant: {brief_json(value, _LONGEST_PATTERN)}"] if _has_no_literal(value) else []
    listed = schema.get("enum")
    some = [value for value in listed[:_MOST_CONSTANTS] if _has_no_literal(value)] if is_list(listed) else []
    return [f"constants: {brief_json(some, _LONGEST_PATTERN)[1:].removesuffix(']')}"] if some else []


def _has_no_literal(value: Any) -> bool:
    return isinstance(value, dict | list) or (_is_number(value) and abs(value) > _LARGEST_EXACT)


def _result_notes(schema: dict[str, Any]) -> list[str]:
    return [clean_line(note, limit=_LONGEST_NOTE) for note in (*constant_notes(schema), *plain_notes(schema))]


def plain_notes(schema: dict[str, Any]) -> list[str]:
    """Returns notes on a string's format, encoding and media type."""
    if _PLAIN_NOTES.keys().isdisjoint(schema):
        return []
    return [
        f"{label}: {clean_line(schema[keyword], limit=_LONGEST_NOTE)}"
        for keyword, label in _PLAIN_NOTES.items()
        if isinstance(schema.get(keyword), str)
    ]


def _range_notes(schema: dict[str, Any]) -> list[str]:
    """Returns notes on limits and step of a number; limits beyond exact integers are left out."""
    notes: list[str] = []
    for keyword, word in (("minimum", "Minimum"), ("maximum", "Maximum")):
        value, exclusive = schema.get(keyword), schema.get(f"exclusive{word}")
        if _is_number(value) and abs(value) < _LARGEST_EXACT:
            # Draft 4: a flag that makes the other keyword exclusive.
            notes.append(f"{'exclusive ' if exclusive is True else ''}{keyword}: {brief_json(value)}")
        if _is_number(exclusive):
            notes.append(f"exclusive {keyword}: {brief_json(exclusive)}")
    if _is_number(schema.get("multipleOf")):
        notes.append(f"multiple of: {brief_json(schema['multipleOf'])}")
    return notes


def _is_number(value: Any) -> TypeGuard[int | float]:
    return value is not None and isinstance(value, int | float) and not isinstance(value, bool)


def _count_note(schema: dict[str, Any], least_keyword: str, most_keyword: str, what: str) -> list[str]:
    """Returns at most one note on a length; least counts up to 0, and huge ones, say nothing."""
    least, most = schema.get(least_keyword), schema.get(most_keyword)
    least = least if _is_number(least) and least > 0 else None
    most = most if _is_number(most) and most < _LARGEST_EXACT else None
    if least is None and most is None:
        return []
    if least == 1 and most is None:
        return ["not empty"]
    if least == most:
        return [f"{what}: {brief_json(least)}"]
    if most is None:
        return [f"{what}: at least {brief_json(least)}"]
    if least is None:
        return [f"{what}: at most {brief_json(most)}"]
    return [f"{what}: {brief_json(least)} to {brief_json(most)}"]


def _logic_notes(schema: dict[str, Any]) -> list[str]:
    """Returns notes on keywords of logic: `contains`, `not`, `if`, dependencies and choices between remarks."""
    notes: list[str] = []
    for keyword in ("contains", "propertyNames"):
        value = schema.get(keyword)
        if is_object(value) and value and value != {"type": "string"}:
            label = "contains an item" if keyword == "contains" else "property names"
            notes.append(f"{label}: {brief_json(value, _LONGEST_PATTERN)}")
    if "not" in schema and schema["not"] not in (False, None):
        notes.append(f"not: {brief_json(schema['not'], _LONGEST_PATTERN)}")
    if "if" in schema:
        parts = [f"if {brief_json(schema['if'], 80)}"]
        parts += [f"{word} {brief_json(schema[word], 80)}" for word in ("then", "else") if word in schema]
        notes.append(" ".join(parts))
    for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
        value = schema.get(keyword)
        if is_object(value):
            notes += [_dependency_note(name, needed) for name, needed in list(value.items())[:20]]
    for keyword in CHOICES:
        branches = schema.get(keyword)
        if is_list(branches) and branches and all(is_remark(branch) for branch in branches):
            notes += _requirement_choice(branches, keyword)
    return notes


def _dependency_note(name: str, needed: Any) -> str:
    """Returns the note on what a property requires: other names, or a schema."""
    if is_list(needed):
        return f"with {brief_json(name, 60)} also: {_joined_names(needed)}"
    return f"with {brief_json(name, 60)} also: {brief_json(needed, 100)}"


def _requirement_choice(branches: list[Any], keyword: str) -> list[str]:
    """Returns at most one note: `exactly one of: a | b + c`.

    From `oneOf: [{required: [a]}, {required: [b, c]}]`: which properties go together.
    """
    words = "exactly one of" if keyword == "oneOf" else "at least one of"
    parts: list[str] = []
    for branch in branches[:20]:
        required = branch.get("required")
        parts.append(_joined_names(required) if is_list(required) and len(branch) == 1 else brief_json(branch, 80))
    return [f"{words}: {' | '.join(parts)}"] if any(part != "{}" for part in parts) else []


def _joined_names(names: list[Any]) -> str:
    return " + ".join(brief_json(name, 60) for name in names[:10])
