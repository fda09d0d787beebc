"""A friendly weather service: the MCP server that demos, docs and tests talk to.

    python -m toolbridge.demo.weather                 # on stdin and stdout
    python -m toolbridge.demo.weather --http 8000     # streamable HTTP, at http://127.0.0.1:8000/mcp

It knows no weather: every answer is worked out from its arguments, so that the same question always gets the
same answer, offline.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import struct
import zlib
from typing import Annotated, Literal

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, ImageContent, TextContent
from pydantic import BaseModel, Field

server = MCPServer(
    "weather",
    version="1.0.0",
    instructions="Forecasts, alerts and stations. Locations are names of places.",
    log_level="WARNING",
)

Location = Annotated[str, Field(description="A place, such as 'Austin' or 'Oslo'", min_length=1, max_length=200)]
Sky = Literal["sun", "cloud", "rain", "snow"]

_SKIES: tuple[Sky, ...] = ("sun", "cloud", "rain", "snow")
_HAZARDS = ("heat", "storm", "flood", "ice")
_SEVERITIES: tuple[Literal["minor", "severe"], ...] = ("minor", "severe")


class Day(BaseModel):
    """The weather of one day."""

    day: int = Field(description="Days from today: 0 is today")
    sky: Sky
    low: int = Field(description="Degrees Celsius")
    high: int = Field(description="Degrees Celsius")


class Forecast(BaseModel):
    """The days ahead at one place."""

    location: str
    days: list[Day]


class Alert(BaseModel):
    """A warning that is in force."""

    hazard: str
    severity: Literal["minor", "severe"]
    message: str


class Alerts(BaseModel):
    """Every warning in force at one place."""

    location: str
    alerts: list[Alert]


class Station(BaseModel):
    """Where weather is measured."""

    id: str
    name: str
    latitude: float
    longitude: float


_STATIONS = (
    Station(id="ATX", name="Austin", latitude=30.27, longitude=-97.74),
    Station(id="OSL", name="Oslo", latitude=59.91, longitude=10.75),
    Station(id="NBO", name="Nairobi", latitude=-1.29, longitude=36.82),
)


def _dice(*parts: object) -> bytes:
    """Returns 32 bytes that look random and depend on nothing but these parts."""
    return hashlib.sha256("\n".join(str(part) for part in parts).encode()).digest()


@server.tool()
def get_forecast(location: Location, days: Annotated[int, Field(ge=1, le=14)] = 3) -> Forecast:
    """Get the weather forecast for a location."""
    ahead: list[Day] = []
    for day in range(days):
        dice = _dice("forecast", location, day)
        low = dice[1] % 30 - 5
        ahead.append(Day(day=day, sky=_SKIES[dice[0] % len(_SKIES)], low=low, high=low + 3 + dice[2] % 10))
    return Forecast(location=location, days=ahead)


@server.tool()
def get_alerts(location: Location) -> Alerts:
    """Get the weather warnings in force at a location; there may be none."""
    dice = _dice("alerts", location)
    alerts = [
        Alert(hazard=hazard, severity=_SEVERITIES[number % 2], message=f"Expect {hazard} near {location}.")
        for hazard, number in zip(_HAZARDS, dice, strict=False)
        if number >= 192
    ]
    return Alerts(location=location, alerts=alerts)


@server.tool()
def list_stations() -> list[Station]:
    """List the stations where weather is measured."""
    return list(_STATIONS)


@server.tool()
async def slow(seconds: Annotated[float, Field(ge=0, le=3600)]) -> str:
    """Answer after a while: for trying timeouts and calls in parallel."""
    await anyio.sleep(seconds)
    return f"Waited {seconds:g} s"


@server.tool()
def fail(message: str = "The satellite is behind the moon.") -> str:
    """Fail with this message: for trying what a tool's error looks like."""
    raise ToolError(message)


@server.tool()
def picture(size: Annotated[int, Field(ge=1, le=512, description="Pixels a side")] = 16) -> CallToolResult:
    """Get a picture of the sky, with a caption."""
    image = ImageContent(type="image", data=base64.b64encode(_png(size)).decode(), mime_type="image/png")
    return CallToolResult(content=[TextContent(type="text", text=f"The sky, {size} × {size}"), image])


@server.tool()
def big(size: Annotated[int, Field(ge=0, le=100_000_000, description="Bytes")]) -> CallToolResult:
    """Get a text of this many bytes: for trying limits on the size of answers."""
    return CallToolResult(
        content=[TextContent(type="text", text="0123456789abcdef" * (size // 16) + "=" * (size % 16))]
    )


def _png(size: int) -> bytes:
    """Draws a PNG of `size` × `size` pixels that fades from the horizon's white to the sky's blue."""
    rows = b"".join(b"\0" + bytes((255 * row // size, 255 * row // size, 255)) * size for row in range(size))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def main() -> None:
    """Serves on stdin and stdout until the client is gone, or with `--http PORT` until interrupted; blocks."""
    parser = argparse.ArgumentParser(description="A friendly weather service.")
    parser.add_argument("--http", metavar="PORT", type=int, help="serve streamable HTTP on this port of loopback")
    port = parser.parse_args().http
    if port is None:
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=port)


if __name__ == "__main__":
    main()
