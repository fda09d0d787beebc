"""From a JSON Schema to a normalized one: `$ref` resolution, kinds, notes."""
