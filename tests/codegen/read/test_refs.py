"""`$ref` resolution inside a document; nothing is fetched."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cases import each
from codegen.acceptance import accepts
from codegen.notation import problems, result_model, written
from toolbridge_codegen.read.refs import Document, RefusedReferenceError, Target

STRING = {"type": "string"}
DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def found(document: dict[str, Any], reference: str, holder: dict[str, Any] | None = None) -> Any:
    return Document(document).resolve(reference, document if holder is None else holder).schema


@pytest.mark.parametrize(
    ("document", "reference"),
    [
        ({"$defs": {"a": STRING}}, "#/$defs/a"),
        ({"definitions": {"a": STRING}}, "#/definitions/a"),
        ({"$defs": {"a/b": STRING}}, "#/$defs/a~1b"),
        ({"$defs": {"a~b": STRING}}, "#/$defs/a~0b"),
        ({"$defs": {"~1": STRING}}, "#/$defs/~01"),
        ({"$defs": {"a b": STRING}}, "#/$defs/a%20b"),
        ({"$defs": {"ä": STRING}}, "#/$defs/%C3%A4"),
        ({"$defs": {"": STRING}}, "#/$defs/"),
        ({"anyOf": [{}, STRING]}, "#/anyOf/1"),
        ({"properties": {"a": {"properties": {"b": STRING}}}}, "#/properties/a/properties/b"),
        ({"properties": {"x": {"definitions": {"a": STRING}}}}, "#/properties/x/definitions/a"),
        ({"$defs": {"a": {"$anchor": "here", **STRING}}}, "#here"),
        ({"$defs": {"a": {"$dynamicAnchor": "here", **STRING}}}, "#here"),
        ({"definitions": {"a": {"$id": "#here", **STRING}}}, "#here"),
        ({"definitions": {"a": {"id": "#here", **STRING}}}, "#here"),
        ({"$schema": DRAFT_4, "definitions": {"a": {"id": "a.json", **STRING}}}, "a.json"),
        ({"$id": "http://example.com/root.json", "$defs": {"a": STRING}}, "http://example.com/root.json#/$defs/a"),
        ({"$id": "http://example.com/root.json", "$defs": {"a": STRING}}, "root.json#/$defs/a"),
        ({"$id": "http://example.com/root.json", "$defs": {"a": {"$id": "a.json", **STRING}}}, "a.json"),
        ({"$id": "http://example.com/x/", "$defs": {"a": {"$id": "../a.json", **STRING}}}, "http://example.com/a.json"),
        ({"$id": "urn:example:root", "$defs": {"a": STRING}}, "urn:example:root#/$defs/a"),
        ({"$defs": {"a": {"$id": "a.json", "$defs": {"b": STRING}}}}, "a.json#/$defs/b"),
        ({"$defs": {"a": STRING}}, "a"),
    ],
)
def test_a_reference_is_resolved(document: dict[str, Any], reference: str) -> None:
    target = found(document, reference)
    assert {keyword: target[keyword] for keyword in STRING} == STRING


def test_a_pointer_is_relative_to_the_nearest_resource_around_it() -> None:
    holder = {"$ref": "#/$defs/a"}
    inner = {"$id": "inner.json", "$defs": {"a": {"type": "integer"}}, "properties": {"x": holder}}
    assert found({"$defs": {"a": STRING}, "properties": {"inner": inner}}, "#/$defs/a", holder) == {"type": "integer"}


def test_a_pointer_for_an_embedded_root_is_resolved_from_its_parents() -> None:
    holder = {"$ref": "#/$defs/a"}
    embedded = {"$defs": {"a": STRING}, "properties": {"x": holder}}
    assert found({"properties": {"config": embedded}}, "#/$defs/a", holder) == STRING


@pytest.mark.parametrize(("there", "meant"), [("$defs", "definitions"), ("definitions", "$defs")])
def test_moved_definitions_are_resolved(there: str, meant: str) -> None:
    assert found({there: {"a": STRING}}, f"#/{meant}/a") == STRING


def test_a_target_knows_its_pointer_and_its_definition() -> None:
    document = Document({"$defs": {"a/b": STRING}})
    assert document.resolve("#/$defs/a~1b", document.root) == Target(STRING, "/$defs/a~1b", "a/b")


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("http://example.com/schema.json", "is remote"),
        ("other.json#/a", "is remote"),
        ("file:///etc/passwd", "is remote"),
        ("http://[/", "is remote"),
        ("#/$defs/missing", "leads nowhere"),
        ("#missing", "leads nowhere"),
        ("#/enum/0", "leads nowhere"),
        ("#/title", "leads nowhere"),
        ("#/anyOf/99999999999999999999", "leads nowhere"),
        ("#/" + "a" * 5000, "is too long"),
    ],
)
def test_an_unresolvable_reference_is_refused(reference: str, problem: str) -> None:
    document = {"title": "x", "enum": ["a"], "anyOf": [STRING]}
    with pytest.raises(RefusedReferenceError, match=f"^{problem}$"):
        found(document, reference)


def test_anchors_inside_values_are_ignored() -> None:
    document = {"default": {"$id": "http://example.com/a"}, "properties": {"default": {"$id": "http://example.com/b"}}}
    with pytest.raises(RefusedReferenceError):
        found(document, "http://example.com/a")
    assert found(document, "http://example.com/b") == {"$id": "http://example.com/b"}


def test_a_refused_reference_is_unknown_and_reported_with_its_place() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}, "b": STRING}}
    assert written(schema) == "{a?: unknown, b?: string}"
    assert problems(schema) == [
        ("/outputSchema/properties/a/$ref", "the reference 'https://example.com/a.json' is remote")
    ]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "unknown"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "unknown"),
        ({"$ref": "#"}, "unknown"),
        ({"allOf": [{"$ref": "#"}], "type": "string"}, "string"),
        ({"anyOf": [{"$ref": "#"}, STRING]}, "string"),
        ({"anyOf": [{"$ref": "#"}]}, "unknown"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": STRING}}, "string"),
        ({"type": "object", "properties": {"next": {"$ref": "#"}}}, "{next?: @ToolOutput}"),
        ({"type": "array", "items": {"$ref": "#"}}, "@ToolOutput[]"),
        ({"type": "object", "additionalProperties": {"$ref": "#"}}, "{*: @ToolOutput}"),
        (
            {"$dynamicAnchor": "node", "type": "object", "properties": {"child": {"$dynamicRef": "#node"}}},
            "{child?: @ToolOutput}",
        ),
        ({"type": "object", "properties": {"child": {"$recursiveRef": "#"}}}, "{child?: @ToolOutput}"),
    ],
)
def test_recursive_references_stay_recursive(schema: Any, expected: str) -> None:
    assert written(schema) == expected


def test_a_choice_that_leads_through_another_back_to_itself_loses_nothing() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#/$defs/b"}},
        "$defs": {
            "a": {"anyOf": [{"$ref": "#/$defs/b"}, {"type": "string"}]},
            "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "integer"}]},
        },
    }
    assert written(schema) == "{a?: integer | string, b?: integer | string}"


def test_a_dynamic_reference_resolves_in_the_whole_document() -> None:
    items = {"type": "array", "items": {"$dynamicRef": "#item"}}
    generic = {"$id": "list", **items, "$defs": {"item": {"$dynamicAnchor": "item", "type": "integer"}}}
    schema = {"$ref": "list", "$defs": {"list": generic, "item": {"$dynamicAnchor": "item", **STRING}}}
    assert written(schema) == "string[]"
    assert not problems(schema)


def test_a_dynamic_reference_with_several_candidates_is_unknown() -> None:
    def list_of(kind: str) -> dict[str, Any]:
        return {"$id": kind, "$ref": "list", "$defs": {"item": {"$dynamicAnchor": "item", "type": kind}}}

    generic = {
        "$id": "list",
        "type": "array",
        "items": {"$dynamicRef": "#item"},
        "$defs": {"item": {"$dynamicAnchor": "item"}},
    }
    schema = {
        "type": "object",
        "properties": {"names": {"$ref": "string"}, "sizes": {"$ref": "integer"}},
        "$defs": {"list": generic, "names": list_of("string"), "sizes": list_of("integer")},
    }
    assert written(schema) == "{names?: unknown[], sizes?: unknown[]}"
    assert any("may mean several schemas" in message for _, message in problems(schema))


def test_a_recursive_reference_means_the_whole_document_where_both_are_open_to_it() -> None:
    tree = {"type": "array", "items": {"$recursiveRef": "#"}}
    inner = {"$id": "inner", "$recursiveAnchor": True, "type": "object", "properties": {"children": tree}}
    schema = {"$recursiveAnchor": True, "$ref": "inner", "properties": {"size": STRING}, "$defs": {"inner": inner}}
    assert written(schema) == "{size?: string, children?: @ToolOutput[]}"


def test_a_reference_beside_nullable_is_relative_to_its_own_resource() -> None:
    x = {"nullable": True, "$ref": "#/$defs/a", "anyOf": [STRING, {"type": "null"}]}
    inner = {"$id": "inner", "type": "object", "properties": {"x": x}, "$defs": {"a": STRING}}
    schema = {"$ref": "inner", "$defs": {"a": {"type": "integer"}, "inner": inner}}
    assert written(schema) == "{x?: string | null}"


def test_a_json_value_is_a_recursive_union() -> None:
    value = {"$ref": "#/$defs/value"}
    schema = {
        "$ref": "#/$defs/value",
        "$defs": {
            "value": {
                "anyOf": [
                    {"type": ["string", "null"]},
                    {"type": "array", "items": value},
                    {"type": "object", "additionalProperties": value},
                ]
            }
        },
    }
    assert written(schema) == "string | @ToolOutput[] | {*: @ToolOutput} | null"


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        ("https://json-schema.org/draft/2020-12/schema", "{a: string}"),
        ("http://json-schema.org/draft-07/schema#", "{a?: string}"),
    ],
)
def test_keywords_beside_a_reference_count_from_2019_on(dialect: str, expected: str) -> None:
    schema = {
        "$schema": dialect,
        "$ref": "#/$defs/a",
        "required": ["a"],
        "$defs": {"a": {"type": "object", "properties": {"a": STRING}}},
    }
    assert written(schema) == expected


@pytest.mark.parametrize("beside", [{"description": "x"}, {"type": "object"}, {"nullable": False}])
def test_a_reference_with_nothing_of_weight_beside_it_keeps_the_definition(beside: dict[str, Any]) -> None:
    from codegen.notation import result_model

    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/place", **beside}, "y": {"$ref": "#/$defs/place"}},
        "$defs": {"place": {"type": "object", "properties": {"street": STRING, "town": STRING}}},
    }
    model, _ = result_model(schema)
    assert [declaration.name for declaration in model.declarations] == ["ToolOutput", "Place"]


REMOTE = "https://elsewhere.example/part"
PARTS: tuple[dict[str, Any], ...] = (
    {"properties": {"q": {}}},
    {"additionalProperties": True},
    {"prefixItems": [{}, {}]},
    {"items": {}},
    {"type": "string"},
)
"""What the remote schema may turn out to be."""


def _random_part(chance: Random, levels: int) -> dict[str, Any]:
    """2020-12: keywords that depend on what others evaluate, dynamic references, patterns, remote references."""
    inner = partial(_random_part, chance, levels - 1)
    makers: list[Callable[[], dict[str, Any]]] = [
        lambda: {"type": chance.choice(["string", "number", "object", "array"])},
        lambda: {"$ref": REMOTE},
        lambda: {"$dynamicRef": "#T"},
        lambda: {"$ref": "list"},
    ]
    if levels:
        makers += [
            lambda: {"properties": {name: inner() for name in chance.sample("abq", 2)}},
            lambda: {"patternProperties": {"^a": inner()}},
            lambda: {"prefixItems": [inner()]},
            lambda: {chance.choice(["allOf", "anyOf"]): [inner(), inner()]},
            lambda: {"if": inner(), chance.choice(["then", "else"]): inner()},
            lambda: {"dependentSchemas": {chance.choice("abq"): inner()}},
        ]
    whole: dict[str, Any] = {}
    for _ in range(chance.randint(1, 3)):
        whole |= chance.choice(makers)()
    for keyword in ("unevaluatedProperties", "unevaluatedItems"):
        if chance.random() < 0.4:
            whole[keyword] = chance.choice([False, {"type": "string"}])
    return whole


VALUES: tuple[Any, ...] = (
    *("x", 1, None, [], ["x"], [1, "x"], ["x", ["x"]], {}, {"a": "x"}, {"q": 1}, {"a": "x", "q": "x"}),
    *({"a": {"q": "x"}}, {"b": ["x"]}, {"a": {}, "b": 1}, {"other": "x"}, [{"a": "x"}]),
)


@each("seed", range(300))
def test_no_valid_instance_is_refused_whatever_an_unresolved_or_dynamic_reference_means(seed: int) -> None:
    chance = Random(seed)
    generic: dict[str, Any] = {"$id": "list", "type": "array", "items": {"$dynamicRef": "#T"}}
    generic["$defs"] = {"T": {"$dynamicAnchor": "T", **_random_part(chance, 0)}}
    schema: dict[str, Any] = {"$id": "https://here.example/root", **_random_part(chance, 2)}
    schema["$defs"] = {"list": generic, "T": {"$dynamicAnchor": "T", "type": chance.choice(["string", "number"])}}
    model, _ = result_model(schema, reading="literal")
    output = model.functions[0].output
    for part in PARTS:
        meant = {**schema, "$defs": {**schema["$defs"], "remote": {"$id": REMOTE, **part}}}
        validator: Any = Draft202012Validator(meant)
        for value in VALUES:
            try:
                is_valid = validator.is_valid(value)
            except RecursionError:  # a reference that leads back to itself
                continue
            assert not is_valid or accepts(model, output, value), (schema, part, value)
