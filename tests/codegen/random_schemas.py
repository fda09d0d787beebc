"""Random schemas, each also with resolved references, for a generator of instances.

Hypothesis chooses the seed only. Left to choose every part, it takes minutes, and what it draws are mostly maps: of a
mapped choice it makes a choice of mapped parts, so that what contains most alternatives crowds out the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Literal, TypeAlias

from hypothesis import strategies as st

from toolbridge_codegen.escaping import is_list, is_object

Schema = dict[str, Any]

Sort: TypeAlias = Literal["plain", "usual", "odd"]
"""Plain schemas say only what the types of both languages can say exactly. Odd ones also leave out types, or have
conditions: what they mean depends on how they are read."""

_NAMES = (
    *("a", "b", "id", "a_b", "a-b", "class", "self", "input", "items", "keys", "1", "x y", "é"),
    *("__proto__", "$ref", "type"),
)
_DEFINITIONS = ("Thing", "thing", "A b", "Record", "Any")
_PATTERNS = ("^x-", "^[a-z]$", "_", "^é")
_PLAIN_CONSTANTS = ("a", "b", "*/", "\u202e")
_CONSTANTS = (*_PLAIN_CONSTANTS, "é", "", -3, 0, 1, 3, True, False, None)
_PLAIN_SCALARS: tuple[Schema, ...] = ({"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"})
_SCALARS: tuple[Schema, ...] = (
    *_PLAIN_SCALARS,
    {"type": "integer", "minimum": -5},
    {"type": "string", "minLength": 1, "maxLength": 3},
    {"type": ["string", "null"]},
    {"type": ["integer", "string", "boolean"]},
    {"type": "number", "multipleOf": 2},
    {"minimum": 3},
    {"type": "string", "nullable": True},
    {"type": "string", "not": {"const": "a"}},
    {"type": ["string", "array"]},
    {},
)
_ARRAY_REMARKS: tuple[Schema, ...] = ({}, {"maxItems": 2}, {"minItems": 1}, {"uniqueItems": True})


@dataclass(frozen=True, slots=True)
class RandomSchema:
    """A schema, and the same without references."""

    schema: Schema
    inlined: Schema


def random_schemas(sort: Sort = "usual") -> st.SearchStrategy[RandomSchema]:
    """Schemas of a few levels."""
    return st.integers(0, 2**32).map(lambda seed: random_schema(seed, sort))


def random_schema(seed: int, sort: Sort) -> RandomSchema:
    """The schema of a seed: most often an object, as what tools take and give."""
    chance = _Chance(seed, sort)
    definitions: dict[str, Schema] = {}
    inlined: dict[str, Schema] = {}
    for number in range(chance.random.randint(0, 2)):  # later ones may use earlier ones: no cycles
        name = chance.random.choice(_DEFINITIONS) + str(number)
        definitions[name] = chance.schema(2)
        inlined[name] = _inline(definitions[name], inlined)
        chance.definitions.append(name)
    schema = chance.object(3) if chance.random.random() < 0.6 else chance.schema(3)
    whole = {**schema, "definitions": definitions} if definitions else schema
    return RandomSchema({"$schema": "http://json-schema.org/draft-07/schema#", **whole}, _inline(schema, inlined))


class _Chance:
    """Makes schemas of at most so many levels."""

    def __init__(self, seed: int, sort: Sort) -> None:
        self.random = Random(seed)
        self.definitions: list[str] = []
        self._sort = sort
        self._is_plain = sort == "plain"
        makers = [self._scalar, self._constants, self._array, self.object, self.object, self._map, self._nullable]
        if not self._is_plain:
            makers += [self._tuple, self._union, self._conjunction, self._with_patterns]
        if sort == "odd":
            makers += [self._untyped, self._conditional, self._empty]
        self._makers = makers

    def schema(self, levels: int) -> Schema:
        if self.definitions and self._often(8):
            name = self.random.choice(self.definitions)
            return {"$ref": f"#/definitions/{name.replace(' ', '%20')}"}
        if levels <= 0 or self._often(4):
            return self._scalar(0) if self._often(2) else self._constants(0)
        return self.random.choice(self._makers)(levels)

    def object(self, levels: int) -> Schema:
        properties = {name: self.schema(levels - 1) for name in self._names(1, 4)}
        required = [name for name in properties if self._often(2)]
        schema: Schema = {"type": "object", "properties": properties}
        schema |= {"required": required} if required else {}
        return self._remarked({**schema, **self._others(levels)})

    def _others(self, levels: int) -> Schema:
        """What is said of other properties: most often nothing."""
        said: list[Any] = [None, None, False] if self._is_plain else [None, None, False, True, self.schema(levels - 1)]
        others = self.random.choice(said)
        return {} if others is None else {"additionalProperties": others}

    def _with_patterns(self, levels: int) -> Schema:
        patterns = self.random.sample(_PATTERNS, self.random.randint(1, 2))
        schema: Schema = {"type": "object", "patternProperties": {each: self.schema(levels - 1) for each in patterns}}
        if self._often(2):
            schema["properties"] = {name: self.schema(levels - 1) for name in self._names(1, 2)}
        return {**schema, **self._others(levels)}

    def _map(self, levels: int) -> Schema:
        return {"type": "object", "additionalProperties": self.schema(levels - 1)}

    def _array(self, levels: int) -> Schema:
        remark = {} if self._is_plain else self.random.choice(_ARRAY_REMARKS)
        return {"type": "array", "items": self.schema(levels - 1), **remark}

    def _tuple(self, levels: int) -> Schema:
        items = [self.schema(levels - 1) for _ in range(self.random.randint(1, 3))]
        schema: Schema = {"type": "array", "items": items, "minItems": self.random.randint(0, len(items))}
        rest = self.random.choice([None, False, self.schema(levels - 1)])
        return schema if rest is None else {**schema, "additionalItems": rest}

    def _nullable(self, levels: int) -> Schema:
        word = "anyOf" if self._is_plain else self.random.choice(["anyOf", "oneOf"])
        return {word: [self.schema(levels - 1), {"type": "null"}]}

    def _union(self, levels: int) -> Schema:
        members = [self.schema(levels - 1) for _ in range(self.random.randint(1, 3))]
        return {self.random.choice(["anyOf", "oneOf"]): members}

    def _conjunction(self, levels: int) -> Schema:
        makers = [self.random.choice([self.object, self.object, self.schema]) for _ in range(self.random.randint(1, 2))]
        return {"allOf": [make(levels - 1) for make in makers]}

    def _untyped(self, levels: int) -> Schema:
        schema = self.random.choice([self.object, self._array, self._with_patterns])(levels)
        return {key: value for key, value in schema.items() if key != "type"}

    def _conditional(self, levels: int) -> Schema:
        """An object of which something holds only sometimes."""
        (name,) = self._names(1, 1)
        then = {"properties": {name: self.schema(levels - 1)}}
        conditions = [{"dependencies": {name: then}}, {"if": {"required": [name]}, "then": then}]
        return {**self.object(levels), **self.random.choice([*conditions, {"not": {"required": [name]}}])}

    def _empty(self, _levels: int) -> Schema:
        return {"type": "object", "properties": {}}

    def _scalar(self, _levels: int) -> Schema:
        return self._remarked(dict(self.random.choice(_PLAIN_SCALARS if self._is_plain else _SCALARS)))

    def _constants(self, _levels: int) -> Schema:
        known = _PLAIN_CONSTANTS if self._is_plain else _CONSTANTS
        listed = self.random.sample(known, self.random.randint(1, 4))
        return {"enum": listed} if self._is_plain or self._often(2) else {"const": listed[0]}

    def _remarked(self, schema: Schema) -> Schema:
        if self._often(3):
            schema["description"] = self.random.choice(["Words.", "*/", '"""'])
        return {**schema, "title": "T"} if self._often(4) else schema

    def _names(self, least: int, most: int) -> list[str]:
        return self.random.sample(_NAMES, self.random.randint(least, most))

    def _often(self, one_of: int) -> bool:
        return self.random.randrange(one_of) == 0


def _inline(schema: Any, definitions: dict[str, Schema]) -> Any:
    """The schema with each reference replaced."""
    if is_list(schema):
        return [_inline(item, definitions) for item in schema]
    if not is_object(schema):
        return schema
    reference: Any = schema.get("$ref")
    if isinstance(reference, str):
        return definitions[reference.removeprefix("#/definitions/").replace("%20", " ")]
    return {key: value if key in {"enum", "const"} else _inline(value, definitions) for key, value in schema.items()}
