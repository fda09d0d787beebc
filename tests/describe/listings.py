"""Catalogs for tests."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from codegen import corpus
from toolbridge_codegen.catalog import Catalog, ServerListing, ToolDefinition, build_catalog

NO_INPUT: dict[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Status:
    """A configured server, as far as descriptions ask for it."""

    name: str
    state: str = "idle"
    tools: int | None = None
    display_name: str = ""


def tool(name: str, description: str = "", *, input_schema: Any = NO_INPUT, **more: Any) -> ToolDefinition:
    """A tool without parameters, unless it is given some."""
    return ToolDefinition(name, input_schema, description=description, **more)


def catalog(**servers: list[ToolDefinition]) -> Catalog:
    """A catalog of these servers; `_` in a name stands for `-`."""
    return build_catalog(ServerListing(name.replace("_", "-"), tuple(tools)) for name, tools in servers.items())


WEATHER = tool(
    "get-forecast",
    "Get the weather forecast for a location. Needs no key.",
    input_schema={
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "City, or latitude and longitude"},
            "days": {"type": "integer", "default": 3, "minimum": 1, "maximum": 14},
            "units": {"enum": ["metric", "imperial"], "description": "Defaults to metric", "default": "metric"},
        },
        "required": ["location"],
    },
    annotations={"readOnlyHint": True, "openWorldHint": True},
)


def weather() -> Catalog:
    """One server with two tools."""
    return catalog(weather=[WEATHER, tool("list_stations", "List all stations.")])


@cache
def real() -> Catalog:
    """The tools of 20 real servers, where there are any."""
    return build_catalog(each.listing for each in corpus.real_listings())


def large(servers: int, tools: int) -> Catalog:
    """A catalog of ordinary tools, as many as these."""
    deeds = ("create", "delete", "list", "update", "search")
    things = ("invoice", "customer", "order", "shipment", "payment", "report", "ticket", "refund", "contract", "note")
    definitions = [
        tool(
            f"{deeds[number % 5]}_{things[number // 5 % 10]}_{number}",
            f"{deeds[number % 5].title()} the {things[number // 5 % 10]} with this number. "
            + "It is kept for audit. " * 8,
            input_schema={
                "type": "object",
                "properties": {
                    f"{things[number // 5 % 10]}_id": {"type": "string", "description": "Which one, by its number"},
                    "verbose": {"type": "boolean", "description": "Whether to give all of its fields"},
                    "limit": {"type": "integer"},
                },
            },
        )
        for number in range(tools)
    ]
    return build_catalog(ServerListing(f"server-{number}", tuple(definitions)) for number in range(servers))
