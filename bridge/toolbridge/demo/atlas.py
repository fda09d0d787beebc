"""Cities and what was measured in them: the second of the bundled servers, to be joined with the weather.

    python -m toolbridge.demo.atlas

Its figures are worked out from its arguments, so that the same question always gets the same answer, offline.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Annotated, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

server = MCPServer("atlas", version="1.0.0", instructions="Cities of the world, and an album.", log_level="WARNING")

Status = Literal["ok", "late", "broken"]
Continent = Literal["Africa", "America", "Asia", "Europe", "Oceania"]

# One line in 32 is late, and one is broken.
_OK: tuple[Status, ...] = ("ok",)
_STATUSES: tuple[Status, ...] = ("late", "broken", *_OK * 30)
_CITIES: dict[Continent, tuple[str, ...]] = {
    "Africa": ("Accra", "Cairo", "Dakar", "Kigali", "Lagos", "Nairobi"),
    "America": ("Austin", "Bogotá", "Havana", "Lima", "Montreal", "Quito"),
    "Asia": ("Almaty", "Hanoi", "Kyoto", "Mumbai", "Seoul", "Tbilisi"),
    "Europe": ("Bergen", "Lisbon", "Oslo", "Porto", "Tartu", "Vienna"),
    "Oceania": ("Apia", "Auckland", "Darwin", "Hobart", "Nadi", "Perth"),
}


class City(BaseModel):
    """A city, with the number of people in it."""

    name: str
    continent: Continent
    people: int


class Measurement(BaseModel):
    """What one sensor measured at one time."""

    sensor: str
    hour: int
    celsius: float
    status: Status


class Picture(BaseModel):
    """A picture as it was received."""

    name: str
    size: int = Field(description="Bytes")
    sha256: str


def _number(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256("\n".join(map(str, parts)).encode()).digest()[:4], "big")


@server.tool()
def list_cities(continent: Continent | None = None) -> list[City]:
    """List the cities, of one continent or of all."""
    return [
        City(name=name, continent=where, people=100_000 + _number(name) % 9_000_000)
        for where, names in _CITIES.items()
        if continent in (None, where)
        for name in names
    ]


@server.tool()
def list_measurements(
    city: Annotated[str, Field(min_length=1, max_length=200)], hours: Annotated[int, Field(ge=1, le=8_000)] = 24
) -> list[Measurement]:
    """List what the sensors of a city measured in the past hours: one line an hour, so it may be long."""
    return [
        Measurement(
            sensor=f"{city[:3].upper()}-{hour % 7}",
            hour=-hour,
            celsius=(_number(city, hour) % 400) / 10 - 5,
            status=_STATUSES[_number(city, hour, "status") % len(_STATUSES)],
        )
        for hour in range(hours)
    ]


@server.tool()
def add_picture(
    name: Annotated[str, Field(max_length=100)],
    data: Annotated[str, Field(description="The picture's bytes in base64", json_schema_extra={"format": "byte"})],
) -> Picture:
    """Add a picture to the album."""
    try:
        picture = base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise ToolError(f"The data of {name!r} is not base64: {error}") from error
    return Picture(name=name, size=len(picture), sha256=hashlib.sha256(picture).hexdigest())


def main() -> None:
    """Serves on stdin and stdout until the client is gone; blocks."""
    server.run("stdio")


if __name__ == "__main__":
    main()
