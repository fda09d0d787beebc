"""SECURITY: handles among a call's arguments: the host puts in what they stand for, in the form the tool asks for.

Guest code passes an image from one server to another without its bytes ever being in the sandbox. A guest can write
anything where a handle may be: a handle that isn't this run's, or one handle a million times.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from toolbridge.calls.results import Blob
from toolbridge.json_codec import NotJsonError, strict_json
from toolbridge.schema.keywords import Path
from toolbridge.schema.validate import path_text
from toolbridge_codegen.catalog import ToolSpec
from toolbridge_codegen.escaping import is_list, is_object
from toolbridge_codegen.read.refs import Document, RefusedReferenceError, reference_of

# What a schema says of one place in a value: enough to choose between text, base64 and JSON.


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


HANDLE_KEY = "\0handle"
MOST_BYTES = 64 * 1024 * 1024
"""All that handles may add to one call's arguments."""


class HandleArgumentError(ValueError):
    """A handle among the arguments can't be put in. Says where and what to do, for guest code."""

    def __init__(self, path: Path, problem: str) -> None:
        where = path_text(path)
        super().__init__(f"{where}: {problem}" if where else problem)


def with_handles(arguments: Any, tool: ToolSpec, find: Callable[[int], Blob], *, most_bytes: int = MOST_BYTES) -> Any:
    """A copy of the arguments with every handle replaced by what it stands for; the same object if there is none.

    Text stays text and JSON is parsed where the tool wants no string; whatever else is base64.

    Raises:
        HandleArgumentError: a handle is not known, has no such form, or all of them are too large together.
    """
    try:
        return _Expansion(tool, find, most_bytes).expanded(arguments, ())
    except RecursionError:
        raise HandleArgumentError((), "the arguments are nested too deeply") from None


class _Expansion:
    def __init__(self, tool: ToolSpec, find: Callable[[int], Blob], most_bytes: int) -> None:
        self._schema = tool.definition.input_schema
        self._find = find
        self._left = most_bytes
        self._most = most_bytes

    def expanded(self, value: Any, path: Path) -> Any:
        if type(value) is dict:
            members = cast("dict[str, Any]", value)
            if len(members) == 1 and HANDLE_KEY in members:
                return self._content(members[HANDLE_KEY], path)
            changed = {name: self.expanded(member, (*path, name)) for name, member in members.items()}
            return changed if any(changed[name] is not members[name] for name in members) else members
        if type(value) is list:
            items = cast("list[Any]", value)
            copied = [self.expanded(item, (*path, index)) for index, item in enumerate(items)]
            return copied if any(new is not old for new, old in zip(copied, items, strict=True)) else items
        return value

    def _content(self, number: object, path: Path) -> Any:
        if type(number) is not int:
            raise HandleArgumentError(path, "this is not a handle")
        try:
            blob = self._find(number)
        except KeyError:
            raise HandleArgumentError(
                path, "this handle is not known here; handles are good only in the run that made them"
            ) from None
        self._left -= len(blob.data)
        if self._left < 0:
            raise HandleArgumentError(path, f"the handles are larger together than the {self._most:,} bytes allowed")
        return _in_form(blob, place_of(self._schema, path), path)


def _in_form(blob: Blob, place: Place, path: Path) -> Any:
    if place.wants_base64 or not blob.is_text:
        return base64.b64encode(blob.data).decode("ascii")
    try:
        text = blob.data.decode("utf-8")
    except UnicodeDecodeError:
        raise HandleArgumentError(
            path, f"the handle says that it is {blob.mime}, but it is not UTF-8; pass its text() or its bytes() instead"
        ) from None
    if not blob.is_json or place.takes_string:
        return text
    try:
        return strict_json(text.strip())
    except NotJsonError as error:
        raise HandleArgumentError(path, f"the handle's JSON can't be used: {error}") from None


def handles_in(arguments: Any) -> tuple[int, ...]:
    """The numbers of the handles among the arguments, as often as they are there."""
    found: list[int] = []
    waiting: list[Any] = [arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            number = members.get(HANDLE_KEY) if len(members) == 1 else None
            if type(number) is int:
                found.append(number)
            else:
                waiting.extend(members.values())
        elif isinstance(value, list):
            waiting.extend(cast("list[Any]", value))
    return tuple(found)
