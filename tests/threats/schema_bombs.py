"""Schemas that are small and mean much, or are just large: recipes, since as files they would be megabytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]
STRING: Schema = {"type": "string"}
ELSEWHERE = (
    "https://example.invalid/a.json",
    "http://127.0.0.1:9/a.json#/$defs/a",
    "http://169.254.169.254/latest/meta-data",
    "file:///etc/passwd",
    "../../a.json",
    "a.json",
    "//example.invalid/a",
    "data:application/json,{}",
    "ftp://example.invalid/a",
    "urn:example:a",
    "http://json-schema.org/draft-07/schema#",
)
"""References that a careless resolver would follow."""


def nested(levels: int, wrap: Callable[[Schema], Schema]) -> Schema:
    """Built from the inside: no recursion of ours stands in the way."""
    schema = STRING
    for _ in range(levels):
        schema = wrap(schema)
    return {"type": "object", "properties": {"bomb": schema}}


def doubling(levels: int, both: Callable[[Schema, Schema], Schema]) -> Schema:
    """Each definition uses the next one twice: two to the power of `levels` when written out."""
    definitions = {
        f"d{level}": both({"$ref": f"#/$defs/d{level + 1}"}, {"$ref": f"#/$defs/d{level + 1}"})
        for level in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "object", "properties": {"leaf": STRING}}
    return {"type": "object", "properties": {"bomb": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def wide(key: str, values: Any, **more: Any) -> Schema:
    return {"type": "object", "properties": {"bomb": {key: values, **more}}}


def alternatives(groups: int, each: int) -> Schema:
    """An `allOf` of unions: all combinations of their members when multiplied out."""
    unions = [
        {
            "anyOf": [
                {"type": "object", "properties": {f"p{g}_{n}": STRING}, "required": [f"p{g}_{n}"]} for n in range(each)
            ]
        }
        for g in range(groups)
    ]
    return wide("allOf", unions)


def multiplied(levels: int) -> Schema:
    """Each definition asks twice for the next one or something else: choices of choices, met again on every way."""

    def either(level: int, name: str) -> Schema:
        other = {"type": "object", "properties": {f"{name}{level}": STRING}}
        return {"anyOf": [{"$ref": f"#/$defs/d{level + 1}"}, other]}

    definitions: Schema = {f"d{n}": {"allOf": [either(n, "p"), either(n, "q")]} for n in range(levels)}
    definitions[f"d{levels}"] = {"type": "object"}
    return {"type": "object", "properties": {"bomb": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def connected(count: int) -> Schema:
    """Every definition has a property of every definition."""
    definitions = {
        f"d{n}": {"type": "object", "properties": {f"p{m}": {"$ref": f"#/$defs/d{m}"} for m in range(count)}}
        for n in range(count)
    }
    return {"type": "object", "properties": {"bomb": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def chain(length: int, last: Schema) -> Schema:
    definitions: Schema = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(length)}
    definitions[f"d{length}"] = last
    return {"type": "object", "properties": {"bomb": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def unfolding(levels: int, width: int) -> Schema:
    """Different at every place, so that no two parts can share a declaration."""

    def level(depth: int, path: str) -> Schema:
        if not depth:
            return {"const": path}
        names = [f"{path}{n}" for n in range(width)]
        return {"type": "object", "properties": {name: level(depth - 1, name) for name in names}}

    return {"type": "object", "properties": {"bomb": level(levels, "p")}}


def _in_array(inner: Schema) -> Schema:
    return {"type": "array", "items": inner}


def _in_object(inner: Schema) -> Schema:
    return {"type": "object", "properties": {"a": inner}}


def _in_both(inner: Schema) -> Schema:
    return {"allOf": [inner, {"title": "x"}], "description": "y"}


BOMBS: dict[str, Callable[[], Schema]] = {
    "deep_objects_1000": lambda: nested(1000, _in_object),
    "deep_objects_100000": lambda: nested(100_000, _in_object),
    "deep_arrays_1000": lambda: nested(1000, _in_array),
    "deep_arrays_100000": lambda: nested(100_000, _in_array),
    "deep_all_of_100000": lambda: nested(100_000, lambda inner: {"allOf": [inner]}),
    "deep_all_of_pairs_1000": lambda: nested(1000, _in_both),
    "deep_any_of_100000": lambda: nested(100_000, lambda inner: {"anyOf": [inner]}),
    "deep_any_of_null_1000": lambda: nested(1000, lambda inner: {"anyOf": [inner, {"type": "null"}]}),
    "deep_one_of_objects_1000": lambda: nested(1000, lambda inner: {"oneOf": [_in_object(inner), _in_array(inner)]}),
    "deep_not_100000": lambda: nested(100_000, lambda inner: {"not": inner}),
    "deep_maps_100000": lambda: nested(100_000, lambda inner: {"type": "object", "additionalProperties": inner}),
    "deep_tuples_1000": lambda: nested(1000, lambda inner: {"type": "array", "prefixItems": [inner], "items": False}),
    "deep_conditions_100000": lambda: nested(100_000, lambda inner: {"if": inner, "then": inner, "else": inner}),
    "deep_pattern_properties_100000": lambda: nested(100_000, lambda inner: {"patternProperties": {"x": inner}}),
    "deep_definitions_100000": lambda: nested(100_000, lambda inner: {"$defs": {"a": inner}}),
    "deep_default_100000": lambda: wide("default", _deep_list(100_000), type="string"),
    "deep_enum_100000": lambda: wide("enum", [_deep_list(100_000)]),
    "deep_const_100000": lambda: wide("const", _deep_list(100_000)),
    "deep_examples_100000": lambda: wide("examples", [_deep_list(100_000)]),
    "deep_unknown_keyword_100000": lambda: wide("x-unknown", _deep_list(100_000)),
    "doubling_objects": lambda: doubling(64, lambda a, b: {"type": "object", "properties": {"a": a, "b": b}}),
    "doubling_all_of": lambda: doubling(64, lambda a, b: {"allOf": [a, b]}),
    "doubling_any_of": lambda: doubling(64, lambda a, b: {"anyOf": [a, b]}),
    "doubling_one_of_arrays": lambda: doubling(64, lambda a, b: {"oneOf": [_in_array(a), b]}),
    "doubling_tuples": lambda: doubling(64, lambda a, b: {"type": "array", "prefixItems": [a, b]}),
    "doubling_maps": lambda: doubling(
        64, lambda a, b: {"type": "object", "additionalProperties": a, "patternProperties": {"x": b}}
    ),
    "doubling_mixed_all_of": lambda: doubling(
        40, lambda a, b: {"allOf": [{"type": "object", "properties": {"a": a}}, {"properties": {"a": b}}]}
    ),
    "doubling_any_in_all_of": lambda: doubling(40, lambda a, b: {"allOf": [{"anyOf": [a, {"type": "null"}]}, b]}),
    "doubling_conditions": lambda: doubling(64, lambda a, b: {"if": a, "then": b, "else": a}),
    "doubling_unevaluated": lambda: doubling(64, lambda a, b: {"allOf": [a], "unevaluatedProperties": b}),
    "combinations_of_10_times_10": lambda: alternatives(10, 10),
    "combinations_of_30_times_2": lambda: alternatives(30, 2),
    "combinations_of_2000_times_2": lambda: alternatives(2000, 2),
    "combinations_of_90_times_200": lambda: alternatives(90, 200),
    "combinations_that_are_all_the_same": lambda: wide("allOf", [{"anyOf": [STRING] * 200} for _ in range(500)]),
    "multiplied_12": lambda: multiplied(12),
    "multiplied_20": lambda: multiplied(20),
    "multiplied_40": lambda: multiplied(40),
    "connected_300": lambda: connected(300),
    "unfolding_7_times_6": lambda: unfolding(6, 7),
    "properties_10000": lambda: {"type": "object", "properties": {f"p{n}": STRING for n in range(10_000)}},
    "properties_100000": lambda: {"type": "object", "properties": {f"p{n}": STRING for n in range(100_000)}},
    "properties_10000_objects": lambda: {
        "type": "object",
        "properties": {f"p{n}": {"type": "object", "properties": {"x": STRING}} for n in range(10_000)},
    },
    "properties_that_are_hostile_10000": lambda: {
        "type": "object",
        "properties": {f'"]);x{n}(\u202e\n': STRING for n in range(10_000)},
    },
    "required_100000": lambda: {"type": "object", "required": [f"p{n}" for n in range(100_000)]},
    "enum_100000": lambda: wide("enum", [f"v{n}" for n in range(100_000)]),
    "enum_of_long_strings": lambda: wide("enum", [f"{n}" + "v" * 100_000 for n in range(150)]),
    "enum_of_objects_10000": lambda: wide("enum", [{"a": n} for n in range(10_000)]),
    "any_of_10000_objects": lambda: wide(
        "anyOf", [{"type": "object", "properties": {f"p{n}": STRING}} for n in range(10_000)]
    ),
    "any_of_100000_constants": lambda: wide("anyOf", [{"const": n} for n in range(100_000)]),
    "any_of_5000_tuples": lambda: wide(
        "anyOf", [{"type": "array", "prefixItems": [{"const": n}]} for n in range(5000)]
    ),
    "all_of_10000_objects": lambda: wide(
        "allOf", [{"type": "object", "properties": {f"p{n}": STRING}} for n in range(10_000)]
    ),
    "all_of_2000_same_property": lambda: wide(
        "allOf", [{"properties": {"same": {"anyOf": [{"const": n}, {"const": "all"}]}}} for n in range(2000)]
    ),
    "all_of_1000_enums_of_200": lambda: wide("allOf", [{"enum": list(range(n, n + 200))} for n in range(1000)]),
    "types_100000": lambda: wide("type", ["string", "null"] * 50_000),
    "tuple_of_100000": lambda: wide("prefixItems", [STRING] * 100_000, type="array"),
    "tuple_of_minimum_1000000000": lambda: wide("prefixItems", [STRING], type="array", minItems=10**9),
    "array_of_minimum_1000000000": lambda: wide("items", STRING, type="array", minItems=10**9, maxItems=10**9),
    "number_of_4000_digits": lambda: wide("const", 10**4000, minimum=10**4000, default=10**4000),
    "reference_chain_100000": lambda: chain(100_000, STRING),
    "reference_loop_10000": lambda: chain(10_000, {"$ref": "#/$defs/d0"}),
    "references_100000_to_one": lambda: wide("anyOf", [{"$ref": "#/$defs/a"}] * 100_000) | {"$defs": {"a": STRING}},
    "references_100000_remote": lambda: wide(
        "anyOf", [{"$ref": f"https://example.invalid/{n}"} for n in range(100_000)]
    ),
    "references_to_elsewhere": lambda: {
        "type": "object",
        "$id": "https://example.invalid/tools/",
        "properties": {f"p{number}": {"$ref": reference} for number, reference in enumerate(ELSEWHERE)},
        "allOf": [{"$ref": "https://example.invalid/base.json"}],
    },
    "reference_of_a_megabyte": lambda: wide("$ref", "#" + "/a" * 500_000),
    "reference_of_percent_signs": lambda: wide("$ref", "#/" + "%25" * 300_000),
    "definitions_unused_100000": lambda: {"type": "object", "$defs": {f"d{n}": STRING for n in range(100_000)}},
    "anchors_50000": lambda: {
        "type": "object",
        "$defs": {f"d{n}": {"$anchor": f"a{n}", "$id": f"https://example.invalid/{n}"} for n in range(50_000)},
        "properties": {f"p{n}": {"$ref": f"#a{n}"} for n in range(500)},
    },
    "identifiers_nested_1000": lambda: nested(1000, lambda inner: {"$id": "a/", "anyOf": [inner, {"$ref": "#"}]}),
    "description_of_10_megabytes": lambda: wide("description", "word " * 2_000_000),
    "descriptions_10000": lambda: {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "description": "d" * 2000} for n in range(5_000)},
    },
    "property_name_of_a_megabyte": lambda: {"type": "object", "properties": {"n" * 1_000_000: STRING}},
    "property_names_of_100_kilobytes": lambda: {
        "type": "object",
        "properties": {f"{n}" + "\u202e" * 100_000: STRING for n in range(50)},
    },
    "default_of_a_megabyte": lambda: wide("default", [{"k": "v" * 1000}] * 1000),
    "patterns_10000": lambda: wide("patternProperties", {f"(a+)+{n}$": STRING for n in range(10_000)}, type="object"),
    "dependencies_10000": lambda: wide("dependentRequired", {f"p{n}": [f"p{n + 1}"] * 100 for n in range(10_000)}),
    "recursive_all_of": lambda: {
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]},
            "b": {"allOf": [{"$ref": "#/$defs/a"}]},
        },
    },
    "recursive_growing_all_of": lambda: {
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {
                "type": "object",
                "properties": {"x": {"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"y": {"$ref": "#/$defs/a"}}}]}},
            }
        },
    },
    "recursive_growing_unions": lambda: {
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {
                "anyOf": [
                    {"type": "array", "items": {"$ref": "#/$defs/a"}},
                    {"allOf": [{"$ref": "#/$defs/a"}, STRING]},
                ],
                "properties": {"x": {"allOf": [{"$ref": "#/$defs/a"}, {"required": ["x"]}]}},
            }
        },
    },
}


def _deep_list(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value
