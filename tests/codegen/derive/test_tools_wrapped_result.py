"""Wrapped results: the stub has the type of the wrapped value exactly where the value is unwrapped."""

from __future__ import annotations

from typing import Any

import pytest

from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.derive.tools import is_wrapped_result, wrapped_schema
from toolbridge_codegen.stubs import generate

STRING = {"type": "string"}
WRAPPED: dict[str, Any] = {"type": "object", "properties": {"result": STRING}, "required": ["result"]}


@pytest.mark.parametrize(
    "schema",
    [
        WRAPPED,
        {**WRAPPED, "title": "toolOutput", "x-fastmcp-wrap-result": True, "additionalProperties": False, "$defs": {}},
        {"properties": {"result": True}, "required": ["result"]},
        {"type": "object", "properties": {"result": STRING}, "x-fastmcp-wrap-result": True},
        {"$ref": "#/$defs/Out", "$defs": {"Out": WRAPPED}},
        {"$ref": "#/definitions/A", "definitions": {"A": {"$ref": "#/definitions/B"}, "B": WRAPPED}},
    ],
    ids=str,
)
def test_one_required_property_result_is_a_wrapper(schema: dict[str, Any]) -> None:
    assert is_wrapped_result(schema)


@pytest.mark.parametrize(
    "schema",
    [
        *(None, True, 5, [], "x", {}, {"type": "object"}, {"type": "object", "x-fastmcp-wrap-result": True}),
        {"type": "object", "properties": {"result": STRING}},
        {**WRAPPED, "required": ["result", "other"]},
        {**WRAPPED, "required": "result"},
        {**WRAPPED, "type": ["object", "null"]},
        {**WRAPPED, "properties": {"result": STRING, "other": STRING}},
        {**WRAPPED, "properties": {"result": STRING, "other": STRING}, "x-fastmcp-wrap-result": True},
        {**WRAPPED, "properties": ["result"]},
        {**WRAPPED, "additionalProperties": STRING},
        {**WRAPPED, "anyOf": [{"required": ["error"]}]},
        {**WRAPPED, "patternProperties": {"^x": STRING}},
        {**WRAPPED, "nullable": True},
        {**WRAPPED, "$ref": "#/$defs/Out", "$defs": {"Out": WRAPPED}},
        {"$ref": "#/$defs/Out"},
        {"$ref": "#/$defs/Out", "$defs": {"Out": {"$ref": "#/$defs/Out"}}},
        {"$ref": "https://example.invalid/Out"},
        {"$ref": 5},
        {"$ref": "#/$defs/Out", "$defs": []},
    ],
    ids=str,
)
def test_anything_more_or_less_is_not(schema: Any) -> None:
    assert not is_wrapped_result(schema)
    assert wrapped_schema(schema) is None


def stubs(output: dict[str, Any], *, input_schema: dict[str, Any] | None = None) -> tuple[str, str]:
    tool = ToolDefinition("get", input_schema or {"type": "object"}, output_schema=output)
    catalog = build_catalog([ServerListing("x", (tool,))])
    typescript, python = (generate(catalog, language=language) for language in ("typescript", "python"))
    return typescript.files["mcp-x.d.ts"], python.files["host/mcp_x/__init__.pyi"]


@pytest.mark.parametrize(
    ("inside", "typescript", "python"),
    [
        (STRING, "string", "str"),
        ({"type": "array", "items": {"type": "integer"}}, "number[]", "list[int]"),
        ({"anyOf": [STRING, {"type": "null"}]}, "GetOutput", "GetOutput"),
        ({"$ref": "#/$defs/Person"}, "GetOutput", "GetOutput"),
        ({"type": "array", "items": {"$ref": "#/$defs/Person"}}, "Person[]", "list[Person]"),
        (True, "any", "Any"),
    ],
    ids=str,
)
def test_the_stub_has_the_type_of_the_wrapped_value(inside: Any, typescript: str, python: str) -> None:
    person = {
        "type": "object",
        "properties": {"name": STRING, "friend": {"$ref": "#/$defs/Person"}},
        "required": ["name"],
    }
    output = {**WRAPPED, "properties": {"result": inside}, "$defs": {"Person": person}}
    declared, typed = stubs(output)
    assert f"): {typescript};" in declared
    assert f") -> {python}:" in typed
    assert "result" not in declared + typed


def test_references_in_a_wrapped_result_resolve_in_the_whole_document() -> None:
    inside = {"type": "object", "properties": {"whole": {"$ref": "#"}, "same": {"$ref": "#/properties/result"}}}
    declared, _ = stubs({**WRAPPED, "properties": {"result": inside}})
    assert "interface GetOutput { whole?: { result: GetOutput }; same?: GetOutput }" in declared


def test_an_input_of_that_form_is_no_wrapper() -> None:
    declared, _ = stubs(WRAPPED, input_schema=WRAPPED)
    assert "result: string" in declared
    assert "): string;" in declared


def test_an_operators_schema_is_never_unwrapped() -> None:
    listing = ServerListing("x", (ToolDefinition("f", {"type": "object"}),), output_schemas={"f": WRAPPED})
    text = generate(build_catalog([listing]), language="typescript").files["mcp-x.d.ts"]
    assert "interface FOutput { result: string }" in text
