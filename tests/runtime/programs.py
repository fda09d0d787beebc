"""The same programs in each language: what a runtime does must not depend on what a program is written in."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from toolbridge.runtime import Language

LANGUAGES: tuple[Language, ...] = ("javascript", "python")

in_each_language = pytest.mark.parametrize("language", LANGUAGES)

on_each_backend_and_in_each_language = pytest.mark.parametrize(
    ("anyio_backend", "language"),
    # The languages meet the event loop in the same code: one backend is enough for the second.
    [("asyncio", "javascript"), ("trio", "javascript"), ("asyncio", "python")],
)


class Program(NamedTuple):
    """One program in each language."""

    javascript: str
    python: str

    def of(self, language: Language) -> str:
        """The one in this language."""
        return self.python if language == "python" else self.javascript


ONE_AND_ONE = Program("1 + 1", "1 + 1")

IMPORT = Program('import "host:mcp-weather"; 0', "import host.mcp_weather\n0")

FORECAST = Program(
    'const weather = require("host:mcp-weather"); weather.get_forecast({ location: "Austin, TX" })',
    "from host.mcp_weather import get_forecast\nget_forecast(location='Austin, TX')",
)

STATIONS = Program(
    'require("host:mcp-weather").list_stations().length',
    "import host\nlen(host.mcp_weather.list_stations())",
)

TWO_SERVERS = Program(
    """
        import { list_stations } from "host:mcp-weather";
        import { price, stock } from "host:mcp-shop";
        ({ stations: list_stations().length, tea: price({ item: "tea" }) * stock().tea })
    """,
    """
from host.mcp_weather import list_stations
from host.mcp_shop import price, stock
{"stations": len(list_stations()), "tea": price(item="tea") * stock()["tea"]}
    """,
)

TEN_AT_ONCE = Program(
    """
        import { slow } from "host:mcp-weather/async";
        await Promise.all(Array.from({ length: 10 }, () => slow({ seconds: 0.5 })))
    """,
    """
import asyncio
from host.mcp_weather.aio import slow
await asyncio.gather(*(slow(seconds=0.5) for _ in range(10)))
    """,
)

BAD_ARGUMENTS = Program(
    """
        import { get_forecast } from "host:mcp-weather";
        import { ToolError } from "host:bridge";
        try { get_forecast({ location: 5, days: 99 }); } catch (error) {
          [error instanceof ToolError, error.kind, error.server, error.tool, error.message]
        }
    """,
    """
from host.mcp_weather import get_forecast
from host.bridge import ToolError
try:
    get_forecast(location=5, days=99)
except Exception as error:
    result = [isinstance(error, ToolError), error.kind, error.server, error.tool, error.message]
    """,
)

FAIL = Program(
    'require("host:mcp-weather").fail({ message: "no signal" })',
    'import host; host.mcp_weather.fail(message="no signal")',
)

RETURNED_ERRORS = Program(
    """
        const weather = require("host:mcp-weather");
        [weather.fail({ message: "no signal" }), weather.get_forecast({})]
    """,
    """
from host import mcp_weather
[mcp_weather.fail(message="no signal"), mcp_weather.get_forecast()]
    """,
)

LATE_CALL = Program(
    """
        import { slow, list_stations } from "host:mcp-weather";
        let kind;
        try { slow({ seconds: 60 }); } catch (error) { kind = error.kind; }
        [kind, list_stations().length]
    """,
    """
from host.bridge import ToolTimeoutError
from host.mcp_weather import slow, list_stations
try:
    slow(seconds=60)
except ToolTimeoutError as error:
    kind = error.kind
[kind, len(list_stations())]
    """,
)

ENDLESS_CALL = Program(
    'require("host:mcp-weather").slow({ seconds: 60 })',
    "from host.mcp_weather import slow\nslow(seconds=60)",
)

CALL_AND_LOOP = Program(
    'require("host:mcp-weather").list_stations(); while (true) {}',
    "from host.mcp_weather import list_stations\nlist_stations()\nwhile True: pass",
)

FIRST_TURN = Program(
    'const weather = require("host:mcp-weather"); let first = weather.list_stations()[0];',
    "from host import mcp_weather as weather\nfirst = weather.list_stations()[0]",
)

SECOND_TURN = Program(
    "weather.get_forecast({ location: first.name, days: 1 }).location",
    'weather.get_forecast(location=first["name"], days=1)["location"]',
)


def forecast_at(place: str) -> Program:
    """Asks for a forecast, and gives the place that it is for."""
    return Program(
        f'require("host:mcp-weather").get_forecast({{ location: "{place}", days: 1 }}).location',
        f'from host.mcp_weather import get_forecast\nget_forecast({{"location": "{place}", "days": 1}})["location"]',
    )
