"""A session: each program finds what the ones before it left, as in a notebook. Run it with `python`."""

import sys
from pathlib import Path
from typing import Literal

import anyio

from toolbridge import StoredApprovals, open_runtime

CONFIG = Path(__file__).parent / "toolbridge.json"

# What a model sends, turn by turn. It sees each value before it writes the next program.
JAVASCRIPT = [
    """
    import { list_cities } from "host:mcp-atlas";
    const cities = list_cities({ continent: "Europe" });
    cities.length
    """,
    """
    import { get_alerts } from "host:mcp-weather";
    const warned = cities.filter((city) => get_alerts({ location: city.name }).alerts.length > 0);
    warned.map((city) => city.name)
    """,
    """
    warned.reduce((sum, city) => sum + city.people, 0)
    """,
]

# The same by a model that writes Python.
PYTHON = [
    """
from host.mcp_atlas import list_cities
cities = list_cities(continent="Europe")
len(cities)
    """,
    """
from host.mcp_weather import get_alerts
warned = [city for city in cities if get_alerts(location=city["name"])["alerts"]]
[city["name"] for city in warned]
    """,
    """
sum(city["people"] for city in warned)
    """,
]


async def main(language: Literal["javascript", "python"]) -> None:
    turns = PYTHON if language == "python" else JAVASCRIPT
    async with open_runtime(CONFIG, approver=StoredApprovals()) as runtime, runtime.session(language) as session:
        for turn in turns:
            result = await session.run(turn)
            print(result.value if result.failure is None else result.failure)


if __name__ == "__main__":
    anyio.run(main, "python" if "python" in sys.argv[1:] else "javascript")
