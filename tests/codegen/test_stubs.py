"""Stub sets: files, manifest and diagnostics for a whole catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from toolbridge_codegen.catalog import Export, ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.model import Diagnostic
from toolbridge_codegen.stubs import generate

STRING = {"type": "string"}


def with_a(schema: Any, name: str = "a") -> dict[str, Any]:
    return {"type": "object", "properties": {name: schema}, "required": [name]}


WEATHER = ServerListing(
    "my-weather",
    (
        ToolDefinition("get-forecast", with_a(STRING, "location"), description="Get the forecast"),
        ToolDefinition("odd", with_a(STRING, "a-b"), output_schema=with_a({"type": "number"})),
    ),
)
NOTES = ServerListing("notes", (ToolDefinition("add", with_a({"type": 5})),))
CATALOG = build_catalog([WEATHER, NOTES])


def test_typescript_has_a_file_for_each_server_and_one_for_the_bridge() -> None:
    stubs = generate(CATALOG, language="typescript")
    assert list(stubs.files) == ["bridge.d.ts", "mcp-my-weather.d.ts", "mcp-notes.d.ts"]
    text = stubs.files["mcp-my-weather.d.ts"]
    assert 'declare module "host:mcp-my-weather" {' in text
    assert 'declare module "host:mcp-my-weather/async" {' in text
    assert " type GetForecastOutput = any;\n" in text
    assert "export function get_forecast(input: GetForecastInput): GetForecastOutput;" in text


def test_python_has_a_package_for_each_server_and_one_module_for_the_bridge() -> None:
    stubs = generate(CATALOG, language="python")
    assert list(stubs.files) == [
        "host/__init__.pyi",
        "host/bridge.pyi",
        "host/mcp_my_weather/__init__.pyi",
        "host/mcp_my_weather/aio.pyi",
        "host/mcp_notes/__init__.pyi",
        "host/mcp_notes/aio.pyi",
    ]
    text = stubs.files["host/mcp_my_weather/__init__.pyi"]
    assert "\nGetForecastOutput: TypeAlias = Any\n" in text
    assert "def get_forecast(**input: Unpack[GetForecastInput]) -> GetForecastOutput:" in text


def test_compact_stubs_have_one_short_file_for_each_server() -> None:
    for language in ("typescript", "python"):
        stubs = generate(CATALOG, language=language, detail="compact")
        assert list(stubs.files) == ["mcp-my-weather.txt", "mcp-notes.txt"]
        assert "get_forecast" in stubs.files["mcp-my-weather.txt"]


def test_the_manifest_leads_from_each_function_to_its_tool() -> None:
    expected = {
        "host:mcp-my-weather": {
            "get_forecast": Export("my-weather", "get-forecast", "keywords"),
            "odd": Export("my-weather", "odd", "mapping"),
        },
        "host:mcp-notes": {"add": Export("notes", "add", "keywords")},
    }
    for language in ("typescript", "python"):
        assert generate(CATALOG, language=language).manifest == expected
        assert generate(CATALOG, language=language, detail="compact").manifest == expected


def test_diagnostics_say_what_the_stubs_do_not() -> None:
    expected = (Diagnostic("notes", "add", "/inputSchema/properties/a/type", "'type' is neither a string nor a list"),)
    for language in ("typescript", "python"):
        assert generate(CATALOG, language=language).diagnostics == expected


def test_failed_calls_may_return_their_error_instead() -> None:
    text = generate(CATALOG, language="typescript", errors="return").files["mcp-my-weather.d.ts"]
    assert "export function odd(input: OddInput): OddOutput | { error: string };" in text


def test_the_configuration_types_what_a_tool_leaves_open() -> None:
    schemas = {"get-forecast": with_a({"type": "integer"}, "celsius")}
    stubs = generate(build_catalog([replace(WEATHER, output_schemas=schemas)]), language="typescript")
    text = stubs.files["mcp-my-weather.d.ts"]
    assert "interface GetForecastOutput { celsius: number }" in text
    assert "export function get_forecast(input: GetForecastInput): GetForecastOutput;" in text


def test_an_output_schema_that_changes_nothing_is_reported() -> None:
    listing = replace(WEATHER, output_schemas={"odd": STRING, "gone": STRING})
    stubs = generate(build_catalog([listing]), language="typescript")
    no_tool = "there is an output schema in the configuration, but no such tool"
    not_used = "the configuration's output schema is not used: the tool has one of its own"
    assert stubs.diagnostics == (
        Diagnostic("my-weather", "gone", "", no_tool),
        Diagnostic("my-weather", "odd", "/outputSchema", not_used),
    )


def test_an_empty_catalog_has_only_the_bridge() -> None:
    assert list(generate(build_catalog([]), language="typescript").files) == ["bridge.d.ts"]
    assert list(generate(build_catalog([]), language="python").files) == ["host/__init__.pyi", "host/bridge.pyi"]


def test_a_server_without_tools_has_an_empty_module() -> None:
    stubs = generate(build_catalog([ServerListing("idle", ())]), language="typescript")
    assert 'declare module "host:mcp-idle" {' in stubs.files["mcp-idle.d.ts"]
    assert stubs.manifest == {"host:mcp-idle": {}}
