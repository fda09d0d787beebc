"""All about one module."""

from __future__ import annotations

import json
from typing import Any

import pytest

from describe.listings import catalog, tool, weather
from toolbridge.describe.module_info import ModuleInfo, ParameterInfo, claims_of, module_info
from toolbridge.describe.modules import GuestLanguage
from toolbridge_codegen.catalog import Catalog
from toolbridge_codegen.stubs import generate


def info(known: Catalog, specifier: str, language: GuestLanguage = "typescript") -> ModuleInfo:
    found = module_info(known, specifier, language=language)
    assert found is not None
    return found


def parameters(schema: dict[str, Any], language: GuestLanguage = "typescript") -> tuple[ParameterInfo, ...]:
    (function,) = info(catalog(x=[tool("f", input_schema=schema)]), "host:mcp-x", language).functions
    return function.parameters


def test_a_function_is_told_with_everything_that_is_known_of_it() -> None:
    found = info(weather(), "host:mcp-weather")
    forecast, stations = found.functions
    assert forecast.identifier == "get_forecast"
    assert forecast.tool == "get-forecast"
    assert forecast.signature == (
        'get_forecast(input: { location: string; days?: number; units?: "metric" | "imperial" }): any'
    )
    assert forecast.summary == "Get the weather forecast for a location"
    assert forecast.description == "Get the weather forecast for a location. Needs no key."
    assert forecast.parameters == (
        ParameterInfo("location", "string", True, None, "City, or latitude and longitude", ()),
        ParameterInfo("days", "number", False, "3", "", ("minimum: 1", "maximum: 14")),
        ParameterInfo("units", '"metric" | "imperial"', False, '"metric"', "Defaults to metric", ()),
    )
    assert forecast.notes == (
        "its server calls it 'get-forecast'",
        "its server claims: read-only",
        "its server claims: reaches beyond its own data",
    )
    assert (stations.parameters, stations.notes) == ((), ())
    assert found.renamed == {"get_forecast": "get-forecast"}


def test_types_are_in_the_language_that_was_asked_for() -> None:
    forecast = info(weather(), "host:mcp-weather", "python").functions[0]
    assert [parameter.type for parameter in forecast.parameters] == ["str", "int", '"metric" | "imperial"']
    assert forecast.signature.startswith("get_forecast(location: str, ")


@pytest.mark.parametrize(
    "name",
    [
        *("host:mcp-weather", "host.mcp_weather", "weather"),
        *("mcp__weather__get-forecast", "weather_get_forecast", "mcp:weather_get_forecast"),
    ],
)
def test_a_module_is_found_by_any_of_its_names_and_of_its_tools_full_names(name: str) -> None:
    assert info(weather(), name).specifier == "host:mcp-weather"


@pytest.mark.parametrize("name", ["", "host:mcp-nope", "host:mcp-weather/async", "WEATHER", "\ud800"])
def test_there_is_nothing_about_a_module_that_does_not_exist(name: str) -> None:
    assert module_info(weather(), name) is None


def test_a_language_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="perl"):
        module_info(weather(), "weather", language="perl")  # pyright: ignore[reportArgumentType]


def test_the_stub_is_the_one_that_programs_are_checked_against() -> None:
    files = {**generate(weather(), language="typescript").files, **generate(weather(), language="python").files}
    assert info(weather(), "weather").stub == files["mcp-weather.d.ts"]
    assert info(weather(), "weather", "javascript").stub == files["mcp-weather.d.ts"]
    assert info(weather(), "weather", "python").stub == files["host/mcp_weather/__init__.pyi"]


def test_returned_errors_are_in_the_stub() -> None:
    found = module_info(weather(), "weather", errors="return")
    assert found is not None
    assert "{ error: string }" in found.stub
    assert all(function.signature.endswith(" | { error: string }") for function in found.functions)
    assert [parameter.type for parameter in found.functions[0].parameters][:2] == ["string", "number"]


@pytest.mark.parametrize("language", ["typescript", "python"])
def test_in_place_of_a_stub_that_nobody_could_read_there_is_the_compact_form(language: GuestLanguage) -> None:
    tools = [tool(f"tool_{number:04}", "word " * 300) for number in range(1_000)]
    lines = info(catalog(big=tools), "big", language).stub.splitlines()
    assert len(lines) == 1_001
    assert all(line.startswith(f"tool_{number:04}(") for number, line in enumerate(lines[1:]))


@pytest.mark.parametrize(("language", "mark"), [("typescript", "//"), ("python", "#")])
def test_a_compact_form_that_is_too_long_as_well_is_cut_at_a_whole_line(language: GuestLanguage, mark: str) -> None:
    schema = {"type": "object", "properties": {f"a_long_name_{number}": {"type": "string"} for number in range(20)}}
    tools = [tool(f"tool_{number:04}", "word " * 300, input_schema=schema) for number in range(1_000)]
    stub = info(catalog(big=tools), "big", language).stub
    *lines, last = stub.splitlines()
    assert len(stub) <= 200_100
    assert last == f"{mark} … and {1_001 - len(lines)} more"
    assert all(line.startswith("tool_") for line in lines[1:])


def test_nested_types_and_unions_have_a_text() -> None:
    schema = {
        "type": "object",
        "properties": {
            "filter": {"type": "object", "properties": {"by": {"type": "array", "items": {"type": "string"}}}},
            "when": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "odd-name": {"type": "boolean"},
        },
    }
    assert [parameter.type for parameter in parameters(schema)] == ["{ by?: string[] }", "string | null", "boolean"]
    assert [parameter.name for parameter in parameters(schema)] == ["filter", "when", "odd-name"]


def test_an_input_that_is_a_choice_has_the_parameters_of_all_its_members() -> None:
    def member(**properties: str) -> dict[str, Any]:
        known = {name: {"type": kind} for name, kind in properties.items()}
        return {"type": "object", "properties": known, "required": list(known), "additionalProperties": False}

    schema = {"oneOf": [member(id="string", deep="boolean"), member(id="integer")]}
    told = {parameter.name: (parameter.type, parameter.required) for parameter in parameters(schema)}
    assert told == {"id": ("string | number", True), "deep": ("boolean", False)}


def test_a_default_is_told_even_where_the_description_has_it_and_when_it_is_nothing() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "default": 5, "description": "default: 5"},
            "b": {"default": None},
            "c": {"default": {"x": [1, "two"]}},
            "d": {"type": "string"},
        },
    }
    assert [parameter.default for parameter in parameters(schema)] == ["5", "null", '{"x": [1, "two"]}', None]


def test_many_parameters_are_cut_and_that_is_said() -> None:
    schema = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(300)}}
    (function,) = info(catalog(x=[tool("f", input_schema=schema)]), "x").functions
    assert len(function.parameters) == 200
    assert function.notes == ("only the first 200 parameters are listed; the stub has all",)


@pytest.mark.parametrize(
    ("annotations", "claims"),
    [
        ({}, ()),
        ({"readOnlyHint": False, "destructiveHint": True}, ("changes something", "may delete or overwrite")),
        ({"destructiveHint": False}, ("only adds, never deletes or overwrites",)),
        ({"idempotentHint": True}, ("safe to repeat",)),
        ({"readOnlyHint": "true", "destructiveHint": 1, "idempotentHint": [True], "title": "Ignore this"}, ()),
    ],
)
def test_annotations_are_told_as_claims_and_only_where_they_are_truth_values(
    annotations: dict[str, Any], claims: tuple[str, ...]
) -> None:
    (spec,) = catalog(x=[tool("f", annotations=annotations)]).tools
    assert claims_of(spec) == claims


def test_what_a_type_cannot_say_is_among_the_diagnostics() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "https://example.invalid/a.json"}}}
    found = info(catalog(x=[tool("f", input_schema=schema)]), "x")
    assert found.diagnostics
    assert all(line.startswith("f /inputSchema") for line in found.diagnostics)


def test_everything_can_be_written_as_json() -> None:
    text = json.dumps(info(weather(), "weather").as_json())
    told = json.loads(text)
    assert told["module"] == "host:mcp-weather"
    assert told["functions"][0]["parameters"][0]["name"] == "location"
    assert told["renamed"] == {"get_forecast": "get-forecast"}
