"""SECURITY: a server's schema, made into one that can be checked: nothing in it raises, loops or is fetched.

The result is plain JSON Schema 2020-12 in a few keywords, whichever draft it was written for. References are names in
a flat table, and only to places of the same document. A keyword that is malformed, can't be checked within bounds or
whose meaning is in doubt is left out. Leaving out never refuses a value that the whole schema would take: where it
could (`not`, `if`), the keyword around it is left out as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from toolbridge.servers.safe_patterns import safe_pattern
from toolbridge_codegen.json_values import is_list, is_object
from toolbridge_codegen.refs import Document, RefusedReferenceError, reference_of

CleanSchema = bool | dict[str, Any]

KINDS = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})

_MOST_SCHEMAS = 5_000
_DEEPEST = 60
_MOST_NOTES = 10
_MOST_PATTERNS = 200
_LARGEST_ENUM = 10_000
# What has only these is understood without loss, and may be negated.
_EXACT = frozenset({"type", "enum", "const", "required", "properties"})
_SILENT = frozenset({"title", "description", "default", "examples", "example", "deprecated", "$comment"})


class Checkable(NamedTuple):
    """A schema that can be checked."""

    schema: CleanSchema
    definitions: Mapping[str, CleanSchema]
    """What references mean."""
    notes: tuple[str, ...]
    """What is not checked, and why."""


def checkable(root: object, inside: tuple[Any] | None = None) -> Checkable:
    """A document's schema, or one that is inside it."""
    whole = dict(cast("Mapping[str, Any]", root)) if isinstance(root, Mapping) else root
    cleaner = _Cleaner(whole)
    schema = cleaner.clean(whole if inside is None else inside[0], 0)
    return Checkable(schema, cleaner.all_definitions(), tuple(cleaner.notes))


class _Cleaner:
    def __init__(self, root: Any) -> None:
        self._document = Document(root)
        self._names: dict[int, str] = {}
        self._waiting: list[tuple[str, Any]] = []
        self._left = _MOST_SCHEMAS
        self._patterns: dict[str, bool] = {}
        self.notes: list[str] = []

    def all_definitions(self) -> dict[str, CleanSchema]:
        """What the references met so far, and in what they mean, are names for."""
        definitions: dict[str, CleanSchema] = {}
        while self._waiting:
            name, schema = self._waiting.pop()
            definitions[name] = self.clean(schema, 0)
        return definitions

    def clean(self, schema: Any, depth: int) -> CleanSchema:
        """A schema without what can't be checked."""
        if isinstance(schema, bool):
            return schema
        self._left -= 1
        if not is_object(schema):
            self._note("a schema that is neither an object nor a boolean")
            return True
        if self._left < 0 or depth > _DEEPEST:
            self._note("parts of a schema that is too large or too deep")
            return True
        clean: dict[str, Any] = {}
        reference = reference_of(schema)
        if reference is not None:
            name = self._named(reference, schema)
            if name is not None:
                clean["$ref"] = name
            if self._document.ignores_siblings:
                return clean
        for keyword, value in schema.items():
            self._keyword(keyword, value, schema, clean, depth + 1)
        _finish_bounds(schema, clean)
        return {"anyOf": [{"type": ["null"]}, clean]} if schema.get("nullable") is True and clean else clean

    def _named(self, reference: str, holder: dict[str, Any]) -> str | None:
        try:
            target = self._document.resolve(reference, holder).schema
        except RefusedReferenceError as error:
            self._note(f"a reference that {error}")
            return None
        name = self._names.get(id(target))
        if name is None:
            name = self._names[id(target)] = str(len(self._names))
            self._waiting.append((name, target))
        return name

    def _keyword(self, keyword: str, value: Any, schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        simple = _SIMPLE.get(keyword)
        if simple is not None:
            kept = simple(value)
            if kept is None:
                self._note(f"{keyword!r} where it is malformed")
            else:
                clean[keyword] = kept[0]
            return
        structured = _STRUCTURED.get(keyword)
        if structured is not None:
            structured(self, keyword, value, schema, clean, depth)

    def _pattern(self, keyword: str, value: Any, _schema: dict[str, Any], clean: dict[str, Any], _depth: int) -> None:
        if isinstance(value, str) and self._is_safe(value):
            clean[keyword] = value
        else:
            self._note("'pattern' where it could take too long, or is not understood")

    def _one(self, keyword: str, value: Any, _schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        if isinstance(value, (dict, bool)):
            clean[keyword] = self.clean(value, depth)
        else:
            self._note(f"{keyword!r} where it is malformed")

    def _negation(self, keyword: str, value: Any, _schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        if _is_exact(value):
            clean[keyword] = self.clean(value, depth)
        else:
            self._note("'not' with more than simple conditions")

    def _others(self, keyword: str, value: Any, schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        """Properties by pattern, and additional ones: which they are can only be told with safe patterns."""
        patterns: Any = schema.get("patternProperties", {})
        if not is_object(patterns) or not all(self._is_safe(pattern) for pattern in patterns):
            self._note(f"{keyword!r} beside patterns that could take too long, or are not understood")
        elif keyword == "patternProperties":
            self._map(keyword, value, schema, clean, depth)
        else:
            clean[keyword] = self.clean(value, depth)

    def _items(self, keyword: str, value: Any, schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        if not is_list(value):
            if keyword == "items":
                clean["items"] = self.clean(value, depth)
            return
        # Up to 2019, and still in real schemas without a `$schema`: a list of items is a tuple.
        if keyword == "prefixItems" or "prefixItems" not in schema:
            clean["prefixItems"] = [self.clean(each, depth) for each in value]
            if keyword == "items" and "additionalItems" in schema:
                clean["items"] = self.clean(schema["additionalItems"], depth)

    def _map(self, keyword: str, value: Any, _schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        if is_object(value):
            clean[keyword] = {name: self.clean(each, depth) for name, each in value.items()}
        elif value != []:  # some languages write an empty object as a list
            self._note(f"{keyword!r} where it is malformed")

    def _choice(self, keyword: str, value: Any, _schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        if not is_list(value) or not value:
            self._note(f"{keyword!r} where it is malformed")
            return
        branches = [self.clean(each, depth) for each in value]
        if keyword == "allOf":
            clean.setdefault("allOf", []).extend(branches)
        elif "anyOf" in clean:
            clean.setdefault("allOf", []).append({"anyOf": branches})
        else:
            # More than one of `oneOf` may fit: what tells its branches apart may be a format, which isn't checked.
            clean["anyOf"] = branches

    def _dependencies(
        self, _keyword: str, value: Any, _schema: dict[str, Any], clean: dict[str, Any], depth: int
    ) -> None:
        if not is_object(value):
            self._note("'dependencies' where it is malformed")
            return
        for name, each in value.items():
            if is_list(each):
                needed = [other for other in each if isinstance(other, str)]
                clean.setdefault("dependentRequired", {}).setdefault(name, needed)
            else:
                clean.setdefault("dependentSchemas", {}).setdefault(name, self.clean(each, depth))

    def _condition(self, _keyword: str, value: Any, schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        if not _is_exact(value):
            self._note("'if' with more than simple conditions")
            return
        clean["if"] = self.clean(value, depth)
        for branch in ("then", "else"):
            if branch in schema:
                clean[branch] = self.clean(schema[branch], depth)

    def _is_safe(self, pattern: str) -> bool:
        known = self._patterns.get(pattern)
        if known is None:
            # To look at a pattern takes time, too.
            known = self._patterns[pattern] = len(self._patterns) < _MOST_PATTERNS and safe_pattern(pattern) is not None
        return known

    def _note(self, what: str) -> None:
        note = f"not checked: {what}"
        if note not in self.notes and len(self.notes) < _MOST_NOTES:
            self.notes.append(note)


_STRUCTURED: dict[str, Callable[[_Cleaner, str, Any, dict[str, Any], dict[str, Any], int], None]] = {
    "pattern": _Cleaner._pattern,
    "items": _Cleaner._items,
    "prefixItems": _Cleaner._items,
    "contains": _Cleaner._one,
    "propertyNames": _Cleaner._one,
    "additionalProperties": _Cleaner._others,
    "patternProperties": _Cleaner._others,
    "properties": _Cleaner._map,
    "dependentSchemas": _Cleaner._map,
    "dependencies": _Cleaner._dependencies,
    "allOf": _Cleaner._choice,
    "anyOf": _Cleaner._choice,
    "oneOf": _Cleaner._choice,
    "not": _Cleaner._negation,
    "if": _Cleaner._condition,
}


def _is_exact(schema: Any, depth: int = 0) -> bool:
    if isinstance(schema, bool):
        return True
    if not is_object(schema) or depth > 4 or not (schema.keys() - _SILENT) <= _EXACT:
        return False
    for keyword in schema.keys() & _SIMPLE.keys():
        if _SIMPLE[keyword](schema[keyword]) is None:
            return False
    properties: Any = schema.get("properties", {})
    return is_object(properties) and all(_is_exact(each, depth + 1) for each in properties.values())


# ---- keywords whose value needs no more than a look: the value in a tuple, or None to leave the keyword out


def _kinds(value: Any) -> tuple[Any] | None:
    kinds = value if is_list(value) else [value]
    return (kinds,) if kinds and all(isinstance(kind, str) and kind in KINDS for kind in kinds) else None


def _strings(value: Any) -> tuple[Any] | None:
    return (list(dict.fromkeys(value)),) if is_list(value) and all(isinstance(each, str) for each in value) else None


def _count(value: Any) -> tuple[Any] | None:
    number = _number(value)
    return (int(number[0]),) if number is not None and number[0] >= 0 and number[0] == int(number[0]) else None


def _number(value: Any) -> tuple[Any] | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (value,) if is_number and (isinstance(value, int) or math.isfinite(value)) else None


def _step(value: Any) -> tuple[Any] | None:
    number = _number(value)
    return number if number is not None and number[0] > 0 else None


def _bound(value: Any) -> tuple[Any] | None:
    return (value,) if isinstance(value, bool) else _number(value)  # draft 4: a boolean, see _finish_bounds


def _needed(value: Any) -> tuple[Any] | None:
    return (value,) if is_object(value) and all(_strings(each) is not None for each in value.values()) else None


_SIMPLE: dict[str, Callable[[Any], tuple[Any] | None]] = {
    "type": _kinds,
    "enum": lambda value: (value,) if is_list(value) and 0 < len(value) <= _LARGEST_ENUM else None,
    "const": lambda value: (value,),
    "required": _strings,
    "minimum": _number,
    "maximum": _number,
    "exclusiveMinimum": _bound,
    "exclusiveMaximum": _bound,
    "multipleOf": _step,
    "uniqueItems": lambda value: (value,) if isinstance(value, bool) else None,
    "dependentRequired": _needed,
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains"), _count
    ),
}


def _finish_bounds(schema: dict[str, Any], clean: dict[str, Any]) -> None:
    """Draft 4 says `"minimum": 0, "exclusiveMinimum": true` where later ones say `"exclusiveMinimum": 0`."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool):
            clean.pop(exclusive, None)
            if schema[exclusive] and bound in clean:
                clean[exclusive] = clean.pop(bound)
