"""An independent implementation of the rules by which stubs are narrower than their schemas.

`under_rules(schema)` is a schema that a validator reads as the stubs do (docs/generate-types.md). An object that lists
properties, or patterns of them, and says nothing of others has no others; `properties` without `type` means an object,
`items` an array; `nullable: true` admits null. The parts of an `allOf` are one object: its properties are those of all
parts together. Each alternative of an `anyOf` or `oneOf` is one object with what stands beside it; of an `anyOf`,
several may hold, and then the object has the properties of all of them. That is all: nothing else is narrower here
than the schema itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any
from urllib.parse import unquote

from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from toolbridge_codegen.escaping import is_list, is_object

Schema = dict[str, Any]

_OLD_DRAFTS = ("draft-03", "draft-04", "draft-06", "draft-07")
_SAY_OTHERS = ("additionalProperties", "unevaluatedProperties", "const", "enum")
_ALTERNATIVES = ("anyOf", "oneOf")
_SAY_KIND = ("type", "enum", "const", "$ref", *_ALTERNATIVES, "allOf")
_STRUCTURE = {"object": ("properties", "patternProperties", "additionalProperties"), "array": ("items", "prefixItems")}


def is_valid(schema: Mapping[str, Any], instance: Any) -> bool:
    """Whether the validator of the schema's own draft accepts the instance, under the rules."""
    ruled = under_rules(schema)
    validator: Any = validator_for(ruled, default=Draft202012Validator)
    return validator(ruled).is_valid(instance)


def under_rules(schema: Mapping[str, Any]) -> Schema:
    """The schema with the rules written out."""
    return _Rules(schema).closed(dict(schema), _NOTHING)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of an object from some of its parts."""

    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    is_open: bool = False
    """Some part says what other properties there may be."""
    has_alternatives: bool = False

    def with_part(self, other: _Known) -> _Known:
        return _Known(
            self.names | other.names,
            self.patterns | other.patterns,
            self.is_open or other.is_open,
            self.has_alternatives or other.has_alternatives,
        )


_NOTHING = _Known()


class _Rules:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._is_old = any(draft in str(document.get("$schema")) for draft in _OLD_DRAFTS)

    def closed(self, schema: Any, outside: _Known) -> Any:
        """A schema with everything that belongs to the same object; `outside` is known from beside it."""
        if not is_object(schema):
            return schema
        own = self._known(schema, frozenset())
        whole = own.with_part(_Known(outside.names, outside.patterns, outside.is_open))
        result = self._parts(schema, whole)
        if (whole.names or whole.patterns) and not whole.is_open and not own.has_alternatives:
            closure: Schema = {
                "properties": {name: {} for name in sorted(whole.names)},
                "patternProperties": {pattern: {} for pattern in sorted(whole.patterns)},
                "additionalProperties": False,
            }
            if "$ref" in result and self._is_old:  # older drafts ignore what stands beside a reference
                kept = {key: result[key] for key in ("$schema", "$defs", "definitions") if key in result}
                result = {**kept, "allOf": [{"$ref": result["$ref"]}, closure]}
            elif _lists(result, "properties") == whole.names and _lists(result, "patternProperties") == whole.patterns:
                result = {**result, "additionalProperties": False}
            else:
                result = {**result, "allOf": [*result.get("allOf", []), closure]}
        return self._nullable(schema, result)

    def _nullable(self, schema: Schema, result: Schema) -> Schema:
        return {"anyOf": [result, {"type": "null"}]} if schema.get("nullable") is True else result

    def _parts(self, schema: Schema, whole: _Known) -> Schema:
        """The schema with its parts under the rules; it is closed elsewhere."""
        result = dict(schema)
        if not any(key in schema for key in _SAY_KIND):
            kinds = [kind for kind, words in _STRUCTURE.items() if any(word in schema for word in words)]
            if kinds:
                result["type"] = kinds
        for key in ("properties", "patternProperties"):
            _each(result, key, self._flatten_plain)
        for key in ("items", "prefixItems", "additionalProperties", "additionalItems", "contains"):
            _each(result, key, self._flatten_plain, is_map=False)
        for key in ("$defs", "definitions"):
            _each(result, key, lambda part: self._part(part, _NOTHING))
        _each(result, "allOf", lambda part: self._part(part, whole), is_map=False)
        _each(result, "oneOf", lambda part: self.closed(part, whole), is_map=False)
        if is_list(branches := schema.get("anyOf")):
            result["anyOf"] = [self.closed(part, whole) for part in _held_together(branches)]
        return result

    def _flatten_plain(self, schema: Any) -> Any:
        return self.closed(schema, _NOTHING)

    def _part(self, schema: Any, whole: _Known) -> Any:
        if not is_object(schema):
            return schema
        has_alternatives = self._known(schema, frozenset()).has_alternatives
        return self.closed(schema, whole) if has_alternatives else self._parts(schema, _NOTHING)

    def _known(self, schema: Any, seen: frozenset[str]) -> _Known:
        """From a schema, its `allOf`s and what it refers to."""
        if not is_object(schema):
            return _NOTHING
        known = _Known(
            _lists(schema, "properties"),
            _lists(schema, "patternProperties"),
            any(key in schema for key in _SAY_OTHERS),
            any(key in schema for key in _ALTERNATIVES),
        )
        parts = list(schema.get("allOf") or ())
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in seen:
            seen |= {reference}
            parts.append(self._target(reference))
        for part in parts:
            known = known.with_part(self._known(part, seen))
        return known

    def _target(self, reference: str) -> Any:
        """Of a pointer; what other references mean is left to the validator."""
        if not reference.startswith("#"):
            return None
        place: Any = self._document
        for step in unquote(reference[1:]).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            place = place.get(key) if is_object(place) else None
        return place


def _lists(schema: Schema, key: str) -> frozenset[str]:
    return frozenset(schema.get(key) or ())


def _held_together(branches: list[Any]) -> list[Any]:
    """Every set of branches that may hold at once, as one schema; the single ones first."""
    sets = [list(chosen) for size in range(1, len(branches) + 1) for chosen in combinations(branches, size)]
    return [chosen[0] if len(chosen) == 1 else {"allOf": chosen} for chosen in sets]


def _each(schema: Schema, key: str, rule: Callable[[Any], Any], *, is_map: bool = True) -> None:
    value: Any = schema.get(key)
    if is_list(value):
        schema[key] = [rule(item) for item in value]
    elif is_object(value):
        schema[key] = {name: rule(part) for name, part in value.items()} if is_map else rule(value)
