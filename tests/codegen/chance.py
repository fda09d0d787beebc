"""Random values and schemas: many, small, and often contradictory."""

from __future__ import annotations

from random import Random
from typing import Any

_NAMES = ("a", "b", "kind")
_TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")
_SCALARS = (None, True, False, 0, 1, 2, 1.5, "x", "y", "")
_KEYWORDS = (
    *("type", "properties", "items", "allOf", "anyOf", "oneOf", "not", "if", "then", "enum", "const", "required"),
    *("$ref", "$defs", "$id", "default", "additionalProperties", "patternProperties", "prefixItems", "nullable"),
    *("description", "title", "minimum", "minItems", "dependencies", "dependentRequired", "a", "", "b"),
)


class Chance:
    """Makes values, and schemas of all that types can say.

    Hypothesis chooses the seed only: to let it choose every part takes minutes.
    """

    def __init__(self, seed: int, *, odd: bool = False) -> None:
        self._random = Random(seed)
        self._odd = odd
        """Whether schemas also leave out types and have patterns, conditions, and what is not evaluated."""
        self._references = ["#/$defs/p", "#/$defs/q"]

    def document(self) -> dict[str, Any]:
        """A schema with definitions. Odd ones don't refer to themselves: validators of those don't end."""
        definitions: dict[str, Any] = {}
        for name in ("p", "q"):
            if self._odd:
                self._references = [f"#/$defs/{known}" for known in definitions]
            definitions[name] = self.schema(1)
        self._references = ["#/$defs/p", "#/$defs/q"]
        return {**self.schema(), "$defs": definitions}

    def value(self, depth: int = 0) -> Any:
        match 0 if depth == 3 else self._random.randrange(6):
            case 3:
                return [self.value(depth + 1) for _ in range(self._random.randrange(4))]
            case 4 | 5:
                return {name: self.value(depth + 1) for name in _NAMES if self._often(2)}
            case _:
                return self._random.choice(_SCALARS)

    def schema(self, depth: int = 0) -> dict[str, Any]:
        kind = self._random.randrange(10)
        if depth == 4 or kind < 4:
            return self._leaf()
        schema = self._object(depth) if kind < 8 else self._array(depth) if kind == 8 else {}
        for keyword in ("anyOf", "oneOf", "allOf"):
            if self._often(4):
                schema[keyword] = self._schemas(depth)
        if depth > 0 and self._often(8):
            schema["nullable"] = True
        if self._odd:
            self._make_odd(schema, depth)
        return schema or self._leaf()

    def _make_odd(self, schema: dict[str, Any], depth: int) -> None:
        if self._often(3):
            schema.pop("type", None)
        if self._often(4):
            patterns = self._random.sample(["^a", "b", "kind$", "."], self._random.randint(1, 2))
            schema["patternProperties"] = {pattern: self._schema_or_bool(depth) for pattern in patterns}
        if self._often(6):
            schema["unevaluatedProperties"] = self._schema_or_bool(depth)
        if self._often(8):
            schema["unevaluatedItems"] = self._schema_or_bool(depth)
        if self._often(6):
            schema |= {"if": self.schema(depth + 1), "then": self.schema(depth + 1), "else": self.schema(depth + 1)}
        if self._often(8):
            schema["dependentSchemas"] = {self._random.choice(_NAMES): self._schema_or_bool(depth)}
        if self._often(8):
            schema["not"] = self.schema(depth + 1)

    def anything(self, depth: int = 0) -> Any:
        """JSON that looks like a schema from afar."""
        match self._random.randrange(2 if depth == 5 else 8):
            case 0 | 1:
                return self._random.choice([None, True, 0, -1, 1e400, 10**400, "object", "#", "#/a", "\ud800", "array"])
            case 2:
                return [self.anything(depth + 1) for _ in range(self._random.randrange(4))]
            case _:
                names = self._random.sample(_KEYWORDS, self._random.randrange(7))
                return {name: self.anything(depth + 1) for name in names}

    def _object(self, depth: int) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object"}
        if self._often(2):
            schema["properties"] = {name: self._schema_or_bool(depth) for name in _NAMES if self._often(2)}
        if self._often(2):
            schema["required"] = [name for name in _NAMES if self._often(3)]
        if self._often(4):
            schema["additionalProperties"] = self._schema_or_bool(depth)
        return schema

    def _array(self, depth: int) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "array"}
        if self._often(2):
            schema["items"] = self._schema_or_bool(depth)
        if self._often(2):
            schema["prefixItems"] = self._schemas(depth)
        for keyword in ("minItems", "maxItems"):
            if self._often(3):
                schema[keyword] = self._random.randrange(4)
        return schema

    def _leaf(self) -> dict[str, Any]:
        match self._random.randrange(5 if self._references else 4):
            case 0:
                return {"type": self._random.choice(_TYPES)}
            case 1:
                return {"type": self._random.sample(_TYPES, self._random.randint(1, 3))}
            case 2:
                return {"enum": [self.value(1) for _ in range(self._random.randint(1, 3))]}
            case 3:
                return {"const": self.value(1), "nullable": self._often(4)}
            case _:
                return {"$ref": self._random.choice(self._references)}

    def _schemas(self, depth: int) -> list[Any]:
        return [self.schema(depth + 1) for _ in range(self._random.randint(1, 3))]

    def _schema_or_bool(self, depth: int) -> Any:
        return self._random.choice([True, False]) if self._often(6) else self.schema(depth + 1)

    def _often(self, one_in: int) -> bool:
        return self._random.randrange(one_in) == 0
