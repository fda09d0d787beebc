"""Notes: constraints that types don't express, from the nearest description."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.notation import build, result_model
from toolbridge_codegen.catalog import ToolDefinition
from toolbridge_codegen.escaping import brief_json
from toolbridge_codegen.model import Docs, ObjectType

STRING = {"type": "string"}
NOTHING: dict[str, Any] = {"not": {}}
NULL = {"type": "null"}


def with_a(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, **more}


@pytest.mark.parametrize(
    ("schema", "notes"),
    [
        ({"default": 5}, ("default: 5",)),
        ({"default": None}, ()),
        ({"const": "a"}, ()),
        ({"const": {"k": "v"}}, ('constant: {"k": "v"}',)),
        ({"const": [1, 2]}, ("constant: [1, 2]",)),
        ({"const": 2**60}, ("constant: 1152921504606846976",)),
        ({"const": 1e300}, ("constant: 1e+300",)),
        ({"enum": [{"k": 1}, "s", [2]]}, ('constants: {"k": 1}, [2]',)),
        ({"anyOf": [{"const": {"k": 1}}, {"const": {"k": 2}}]}, ('constant: {"k": 1}', 'constant: {"k": 2}')),
        ({"type": "array", "items": {"const": {"k": 1}}}, ('each constant: {"k": 1}',)),
        ({"format": "date-time"}, ("format: date-time",)),
        ({"pattern": "^a\u202e$"}, ("pattern: ^a$",)),
        ({"minimum": 1, "maximum": 10.5}, ("minimum: 1", "maximum: 10.5")),
        ({"minimum": 1, "exclusiveMinimum": True}, ("exclusive minimum: 1",)),
        ({"exclusiveMaximum": 3}, ("exclusive maximum: 3",)),
        ({"minimum": -(2**53 - 1), "maximum": 2**53 - 1}, ()),
        ({"multipleOf": 0.5}, ("multiple of: 0.5",)),
        ({"minLength": 1}, ("not empty",)),
        ({"minLength": 2, "maxLength": 2}, ("characters: 2",)),
        ({"maxLength": 5}, ("characters: at most 5",)),
        ({"minItems": 2, "maxItems": 4, "uniqueItems": True}, ("items: 2 to 4", "items: unique")),
        ({"type": "array", "items": {"type": "string", "format": "uri"}}, ("each format: uri",)),
        ({"not": {"const": 1}}, ('not: {"const": 1}',)),
        ({"anyOf": [NOTHING, {"type": "string", "format": "date"}]}, ("format: date",)),
        ({"propertyNames": {"pattern": "^x"}}, ('property names: {"pattern": "^x"}',)),
        ({"propertyNames": STRING}, ()),
        ({"contains": {"const": 1}}, ('contains an item: {"const": 1}',)),
        ({"dependentRequired": {"a": ["b", "c"]}}, ('with "a" also: "b" + "c"',)),
        ({"dependencies": {"a": {"required": ["b"]}}}, ('with "a" also: {"required": ["b"]}',)),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b", "c"]}]}, ('exactly one of: "a" | "b" + "c"',)),
        ({"anyOf": [{"required": ["a"]}, {"not": STRING}]}, ('at least one of: "a" | {"not": {"type": "string"}}',)),
        ({"if": {"const": 1}, "then": False}, ('if {"const": 1} then false',)),
        (
            {"oneOf": [{"const": "a", "description": "first"}, {"const": "b", "title": "second"}]},
            ('"a": first', '"b": second'),
        ),
        (
            {"anyOf": [{"type": "string", "description": "an ID"}, {"title": "Many", "description": "IDs"}, {}]},
            ("string: an ID", "Many: IDs"),
        ),
        (
            {"description": "d", "type": "array", "items": {"type": "string", "description": "an ID", "pattern": "^x"}},
            ("each: an ID", "each pattern: ^x"),
        ),
        ({"anyOf": [{"type": "string", "format": "date"}, NULL]}, ("format: date",)),
        ({"contentEncoding": "base64", "contentMediaType": "image/png"}, ("encoding: base64", "media type: image/png")),
    ],
)
def test_constraints_beyond_the_type_are_noted(schema: Any, notes: tuple[str, ...]) -> None:
    model, _ = build(ToolDefinition("tool", with_a(schema)))
    (declaration, *_) = model.declarations
    assert isinstance(declaration.type, ObjectType)
    assert declaration.type.properties[0].docs.notes == notes


@pytest.mark.parametrize(
    ("schema", "docs"),
    [
        ({"description": " two\n\nlines\u200b ", "deprecated": True}, Docs("two\n\nlines", (), deprecated=True)),
        ({"description": 5, "title": ["x"]}, Docs()),
        ({"title": "A"}, Docs()),
        ({"title": "The letter"}, Docs("The letter")),
        ({"description": "d", "title": "The letter"}, Docs("d")),
        ({"$ref": "#/$defs/text", "description": "nearest"}, Docs("nearest", ("not empty",))),
        ({"$ref": "#/$defs/text"}, Docs("far", ("not empty",))),
        ({"description": "one (default: 5)", "default": 5}, Docs("one (default: 5)")),
        ({"description": "Defaults to 5.", "default": 5}, Docs("Defaults to 5.")),
        ({"description": "by default 'asc'", "default": "asc"}, Docs("by default 'asc'")),
        ({"description": "default=-1", "default": -1}, Docs("default=-1")),
        ({"description": "default ''", "default": ""}, Docs("default ''")),
        ({"description": "default of 100", "default": 1}, Docs("default of 100", ("default: 1",))),
        ({"description": "default 1.5, or -1", "default": 1}, Docs("default 1.5, or -1", ("default: 1",))),
        ({"description": "falsely default", "default": False}, Docs("falsely default", ("default: false",))),
        ({"description": "default us-east", "default": "us"}, Docs("default us-east", ('default: "us"',))),
        ({"description": "the default", "default": ""}, Docs("the default", ('default: ""',))),
        ({"type": "array", "items": {"type": "string", "description": "an ID"}}, Docs("an ID")),
    ],
)
def test_the_nearest_description_is_the_one_that_counts(schema: Any, docs: Docs) -> None:
    definitions = {"text": {"type": "string", "description": "far", "minLength": 1}}
    model, _ = build(ToolDefinition("tool", with_a(schema, **{"$defs": definitions})))
    assert isinstance(model.declarations[0].type, ObjectType)
    assert model.declarations[0].type.properties[0].docs == docs


def test_a_default_is_not_noted_where_it_can_never_apply() -> None:
    model, _ = build(ToolDefinition("tool", with_a({"default": 5}, required=["a"])))
    assert isinstance(model.declarations[0].type, ObjectType)
    assert model.declarations[0].type.properties[0].docs == Docs()


def test_of_a_result_only_the_format_is_noted() -> None:
    model, _ = result_model(with_a({"type": "string", "format": "date", "minLength": 3, "default": "x"}))
    assert isinstance(model.declarations[0].type, ObjectType)
    assert model.declarations[0].type.properties[0].docs == Docs(notes=("format: date",))


def test_a_definition_is_described_where_it_is_declared_and_only_there() -> None:
    place = {"type": "object", "description": "A place", "properties": {"street": STRING, "town": STRING}}
    use = {"$ref": "#/$defs/place"}
    schema = {"type": "object", "properties": {"from": {**use, "description": "Start"}, "to": use}}
    model, _ = result_model({**schema, "$defs": {"place": place}})
    output, declared = model.declarations
    assert declared.docs == Docs("A place")
    assert isinstance(output.type, ObjectType)
    assert [known.docs for known in output.type.properties] == [Docs("Start"), Docs()]


@pytest.mark.parametrize(
    ("value", "limit", "expected"),
    [
        ({"a": [1, None, True], "b": "x"}, 100, '{"a": [1, null, true], "b": "x"}'),
        ("a\nb\u202e", 100, '"a\\nb"'),
        ("abcdef", 5, '"abc…'),
        ([1, 2, 3, 4, 5], 8, "[1, 2,…"),
        ([10**5000], 100, "[a very large number]"),
        (float("nan"), 100, "NaN"),
        ({}, 100, "{}"),
    ],
)
def test_a_value_is_noted_briefly(value: Any, limit: int, expected: str) -> None:
    assert brief_json(value, limit) == expected


def test_a_constant_without_a_literal_is_noted_of_results_too_and_bounded() -> None:
    model, diagnostics = result_model(with_a({"const": {"k" * 50: ["v" * 1000] * 1000}, "maxProperties": 3}))
    (declaration,) = [each for each in model.declarations if isinstance(each.type, ObjectType)]
    assert isinstance(declaration.type, ObjectType)
    (note,) = declaration.type.properties[0].docs.notes
    assert note.startswith('constant: {"kkk')
    assert len(note) <= 200
    assert diagnostics == ()
