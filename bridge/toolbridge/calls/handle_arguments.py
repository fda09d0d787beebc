"""SECURITY: expands handles among a call's arguments to their content, in the form that the tool's schema asks for.

Guest code passes an image from one server to another without its bytes entering the sandbox. Handles in arguments are
hostile: of another run, made up, or one handle a million times.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from toolbridge.calls.content import Blob
from toolbridge.json_codec import NotJsonError, strict_json
from toolbridge.schema.keywords import Path
from toolbridge.schema.validate import path_text
from toolbridge_codegen.catalog import ToolSpec
from toolbridge_codegen.escaping import is_list, is_object
from toolbridge_codegen.read.refs import Document, RefusedReferenceError, reference_of

_BASE64_FORMATS = frozenset({"byte", "base64", "base64url", "binary"})
_MOST_SCHEMAS = 100
"""Limit of alternative schemas per step of a path."""


class ExpectedForm(NamedTuple):
    """The form that a schema asks for at one path: text, base64 or JSON."""

    takes_string: bool
    """Whether the schema allows a string there, or doesn't say."""
    wants_base64: bool


def expected_form(schema: Mapping[str, Any], path: tuple[str | int, ...]) -> ExpectedForm:
    """Returns whether a schema takes a string, and whether it wants base64, at the end of a path of the arguments."""
    document = Document(dict(schema))
    found = _alternatives(document, [document.root])
    for step in path:
        found = _alternatives(document, [inner for each in found for inner in _inside(each, step)])
    return ExpectedForm(
        takes_string=not found or any(_takes_string(each) for each in found),
        wants_base64=any(_wants_base64(each) for each in found),
    )


def _alternatives(document: Document, schemas: list[Any]) -> list[dict[str, Any]]:
    """Resolves `$ref`, allOf, anyOf and oneOf of these schemas to the schemas that describe a value."""
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
                found.append({})  # an unresolved reference allows any value
        for keyword in ("allOf", "anyOf", "oneOf"):
            branches: Any = schema.get(keyword)
            inner += branches if is_list(branches) else []
        # A schema without a type of its own leaves the type to the schemas that it combines.
        if not inner or "type" in schema or "properties" in schema or "items" in schema:
            found.append(schema)
        waiting.extend(reversed(inner))
    return found


def _inside(schema: dict[str, Any], step: str | int) -> list[Any]:
    """Returns the schemas of a member (by name) or item (by index) of what a schema describes; empty if unknown."""
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
    """Returns whether a schema allows a string; without a type, it does unless it describes members or items."""
    kinds: Any = schema.get("type")
    if isinstance(kinds, str):
        return kinds == "string" or kinds not in ("object", "array", "number", "integer", "boolean", "null")
    if is_list(kinds):
        return "string" in kinds
    return not ({"properties", "items", "prefixItems"} & schema.keys())


def _wants_base64(schema: dict[str, Any]) -> bool:
    """Returns whether a schema declares base64, by `contentEncoding` or `format`."""
    encoding, form = schema.get("contentEncoding"), schema.get("format")
    return (isinstance(encoding, str) and encoding.lower() in ("base64", "base64url")) or (
        isinstance(form, str) and form.lower() in _BASE64_FORMATS
    )


HANDLE_KEY = "\0handle"
MOST_BYTES = 64 * 1024 * 1024
"""Limit of all expanded handles of one call."""


class HandleArgumentError(ValueError):
    """A handle among the arguments can't be expanded; the message says where and why, for guest code."""

    def __init__(self, path: Path, problem: str) -> None:
        where = path_text(path)
        super().__init__(f"{where}: {problem}" if where else problem)


def with_handles(arguments: Any, tool: ToolSpec, find: Callable[[int], Blob], *, most_bytes: int = MOST_BYTES) -> Any:
    """Copies the arguments with every handle replaced by its content; returns the same object if there is none.

    Text stays text, JSON is parsed where the schema wants no string, all else becomes base64.

    Raises:
        HandleArgumentError: a handle is unknown, has no such form, or all are too large together.
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
        """Copies a value with its handles replaced; returns the same object if it has none.

        Raises:
            HandleArgumentError: a handle is unknown, has no such form, or all are too large together.
        """
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
        """Returns a handle's content in the form that the schema asks for at `path`; counts its bytes.

        Raises:
            HandleArgumentError: it is unknown, has no such form, or all are too large together.
        """
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
        return _in_form(blob, expected_form(self._schema, path), path)


def _in_form(blob: Blob, form: ExpectedForm, path: Path) -> Any:
    """Converts a blob to base64, text or parsed JSON; raises HandleArgumentError if its content isn't as declared."""
    if form.wants_base64 or not blob.is_text:
        return base64.b64encode(blob.data).decode("ascii")
    try:
        text = blob.data.decode("utf-8")
    except UnicodeDecodeError:
        raise HandleArgumentError(
            path, f"the handle says that it is {blob.mime}, but it is not UTF-8; pass its text() or its bytes() instead"
        ) from None
    if not blob.is_json or form.takes_string:
        return text
    try:
        return strict_json(text.strip())
    except NotJsonError as error:
        raise HandleArgumentError(path, f"the handle's JSON can't be used: {error}") from None


def handles_in(arguments: Any) -> tuple[int, ...]:
    """Collects the numbers of the handles among the arguments, with repetitions."""
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
