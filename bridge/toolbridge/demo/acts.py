"""What `toolbridge demo` shows: short programs, as a model would write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolbridge.sandbox.dialect import SandboxLanguage


@dataclass(frozen=True, slots=True)
class Act:
    """One program, and why it is shown."""

    title: str
    program: str
    seconds: float = 30
    """How long it may take."""
    language: SandboxLanguage = "javascript"


ACTS = (
    Act(
        "A tool is a function, and returns its result",
        """\
import { get_forecast } from "host:mcp-weather";
get_forecast({ location: "Austin, TX", days: 2 })""",
    ),
    Act(
        "Ten calls at once, five of them of 0.3 s, are done in 0.3 s",
        """\
import { get_forecast, slow } from "host:mcp-weather/async";
const cities = ["Austin", "Cairo", "Kyoto", "Lisbon", "Oslo"];
const days = await Promise.all(cities.map(async (location) => {
  const [forecast] = await Promise.all([
    get_forecast({ location, days: 1 }),
    slow({ seconds: 0.3 }), // as a server far away would be
  ]);
  return [location, forecast.days[0].high];
}));
Object.fromEntries(days)""",
    ),
    Act(
        "Two servers are joined; only the answer comes back, not the data",
        """\
import { list_cities } from "host:mcp-atlas";
import { get_alerts } from "host:mcp-weather";
import { parallel } from "host:bridge";
const cities = list_cities({ continent: "Africa" });
const warnings = parallel(
  cities.map((city) => [get_alerts, { location: city.name }]),
);
cities
  .map((city, i) => ({ ...city, alerts: warnings[i].alerts.length }))
  .filter((city) => city.alerts > 0)""",
    ),
    Act(
        "A picture stays on the host: the program passes it on by its handle",
        """\
import { picture } from "host:mcp-weather";
import { add_picture } from "host:mcp-atlas";
const [caption, image] = picture({ size: 256 });
const stored = add_picture({ name: "sky.png", data: image });
({ caption, image, stored: stored.size })""",
    ),
    Act(
        "Python is there as well, with its standard library",
        """\
from statistics import mean
from host.bridge import parallel
from host.mcp_atlas import list_cities
from host.mcp_weather import get_forecast
names = [city["name"] for city in list_cities(continent="Europe")]
weeks = parallel([(get_forecast, {"location": name}) for name in names])
{week["location"]: round(mean(day["high"] for day in week["days"]), 1)
 for week in weeks}""",
        language="python",
    ),
    Act(
        "A mistake comes back as something to repair",
        """\
import { get_forecast } from "host:mcp-weather";
get_forecast({ city: "Oslo", days: 99 })""",
    ),
    Act(
        "An endless loop is stopped",
        "while (true) {}",
        seconds=1,
    ),
    Act(
        "There is nothing to steal",
        'require("fs").readFileSync("/etc/passwd")',
    ),
)
