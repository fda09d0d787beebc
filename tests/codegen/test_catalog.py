"""The catalog: lookups from names to tools."""

from __future__ import annotations

import random
from types import MappingProxyType
from typing import Any

import pytest

from codegen.schema_bombs import nested
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog

EMPTY: dict[str, Any] = {"type": "object"}


def tool(name: str, **more: Any) -> ToolDefinition:
    return ToolDefinition(name, EMPTY, **more)


def test_a_tool_is_found_by_each_of_its_names() -> None:
    catalog = build_catalog([ServerListing("weather", (tool("get-forecast"), tool("alerts")), display_name="Weather")])
    module = catalog.module("host:mcp-weather")
    assert module is not None
    assert (module.server, module.display_name, module.python_module) == ("weather", "Weather", "host.mcp_weather")
    assert (module.specifier, module.async_specifier) == ("host:mcp-weather", "host:mcp-weather/async")
    assert [each.identifier for each in module.tools] == ["alerts", "get_forecast"]
    forecast = catalog.tool("weather", "get-forecast")
    assert forecast is module.tools[1]
    assert forecast is catalog.named("mcp__weather__get-forecast")
    assert forecast is catalog.named("weather_get_forecast")
    assert catalog.tools == module.tools


def test_other_names_find_no_tool() -> None:
    catalog = build_catalog([ServerListing("weather", (tool("get-forecast"),))])
    assert catalog.tool("weather", "get_forecast") is None
    assert catalog.tool("Weather", "get-forecast") is None
    assert catalog.named("get-forecast") is None
    assert catalog.module("host:mcp-other") is None


def test_a_python_module_has_no_hyphen() -> None:
    (module,) = build_catalog([ServerListing("my-weather", ())]).modules
    assert (module.specifier, module.python_module) == ("host:mcp-my-weather", "host.mcp_my_weather")


def test_two_listings_of_one_server_are_refused() -> None:
    with pytest.raises(ValueError, match="would share a module"):
        build_catalog([ServerListing("a", ()), ServerListing("a", ())])


def test_the_order_of_servers_and_tools_does_not_matter() -> None:
    listings = [
        ServerListing(server, tuple(tool(name) for name in ("a-b", "a_b", "a.b", "x" * 99)))
        for server in ("s", "t", "u")
    ]
    expected = build_catalog(listings)
    for seed in range(5):
        mixed = [
            ServerListing(listing.server, tuple(random.Random(seed).sample(listing.tools, 4)))
            for listing in random.Random(seed).sample(listings, 3)
        ]
        assert build_catalog(mixed) == expected


def test_of_duplicate_names_the_one_kept_does_not_depend_on_the_order() -> None:
    one, two = tool("a", description="one"), tool("a", description="two")
    kept = [build_catalog([ServerListing("s", tools)]).tools for tools in ((one, two), (two, one))]
    assert [[each.definition.description for each in tools] for tools in kept] == [["one"], ["one"]]


@pytest.mark.parametrize(
    "schema",
    [
        MappingProxyType({"type": "object"}),
        nested(100_000, lambda inner: {"not": inner}),
        {"const": 10**5000},
        {"const": float("nan")},
        {"a": {1, 2}},
        None,
    ],
)
def test_two_tools_with_one_name_may_have_any_schema(schema: Any) -> None:
    tools = (ToolDefinition("a", schema, description="b"), ToolDefinition("a", schema, description="a"))
    assert build_catalog([ServerListing("s", tools)]).tools[0].definition.description == "a"


@pytest.mark.parametrize("name", ["", "../../etc/x", 'a" {} evil', "A", "a\n", "-a"])
def test_an_invalid_server_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not a server's name"):
        build_catalog([ServerListing(name, ())])


def test_servers_that_would_share_a_module_are_refused() -> None:
    with pytest.raises(ValueError, match="would share a module"):
        build_catalog([ServerListing("a-b", ()), ServerListing("a_b", ())])
