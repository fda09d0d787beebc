"""What a schema says of one place in a value: enough to choose between text, base64 and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from toolbridge_codegen.json_values import is_list, is_object
from toolbridge_codegen.refs import Document, RefusedReferenceError, reference_of

_BASE64_FORMATS = frozenset({"byte", "base64", "base64url", "binary"})
_MOST_SCHEMAS = 100
"""Looked at for one step of a path: a place may have many alternatives."""


class Place(NamedTuple):
    """What may stand in a place."""

    takes_string: bool
    """Whether a string may stand there; also if the schema doesn't say."""
    wants_base64: bool


def place_of(schema: Mapping[str, Any], path: tuple[str | int, ...]) -> Place:
    """What a schema says of the place at the end of a path."""
    document = Document(dict(schema))
    found = _alternatives(document, [document.root])
    for step in path:
        found = _alternatives(document, [inner for each in found for inner in _inside(each, step)])
    return Place(
        takes_string=not found or any(_takes_string(each) for each in found),
        wants_base64=any(_wants_base64(each) for each in found),
    )


def _alternatives(document: Document, schemas: list[Any]) -> list[dict[str, Any]]:
    """These schemas, what they refer to, and what they are made of. A schema that only points elsewhere isn't one."""
    found: list[dict[str, Any]] = []
    waiting = list(reversed(schemas))
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_SCHEMAS:
        schema = waiting.pop()
        if not is_object(schema) or id(schema) in seen:
            continue
        seen.add(id(schema))
        inner: list[Any] = []
        reference = reference_of(schema)
        if reference is not None:
            try:
                inner.append(document.resolve(reference, schema).schema)
            except RefusedReferenceError:
                found.append({})  # it may be anything
        for keyword in ("allOf", "anyOf", "oneOf"):
            branches: Any = schema.get(keyword)
            inner += branches if is_list(branches) else []
        # A schema that is made of others and says nothing of its own kind leaves it to them.
        if not inner or "type" in schema or "properties" in schema or "items" in schema:
            found.append(schema)
        waiting.extend(reversed(inner))
    return found


def _inside(schema: dict[str, Any], step: str | int) -> list[Any]:
    if isinstance(step, str):
        properties: Any = schema.get("properties")
        if is_object(properties) and step in properties:
            return [properties[step]]
        return [schema["additionalProperties"]] if "additionalProperties" in schema else []
    for keyword in ("prefixItems", "items"):
        items: Any = schema.get(keyword)
        if is_list(items) and step < len(items):
            return [items[step]]
        if is_object(items):
            return [items]
    return []


def _takes_string(schema: dict[str, Any]) -> bool:
    kinds: Any = schema.get("type")
    if isinstance(kinds, str):
        return kinds == "string" or kinds not in ("object", "array", "number", "integer", "boolean", "null")
    if is_list(kinds):
        return "string" in kinds
    return not ({"properties", "items", "prefixItems"} & schema.keys())


def _wants_base64(schema: dict[str, Any]) -> bool:
    encoding, form = schema.get("contentEncoding"), schema.get("format")
    return (isinstance(encoding, str) and encoding.lower() in ("base64", "base64url")) or (
        isinstance(form, str) and form.lower() in _BASE64_FORMATS
    )
