"""What `toolbridge demo` shows: short programs, as a model would write them."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from toolbridge import RunResult
    from toolbridge.sandbox.outcome import SandboxLanguage


# How the demo's parts look on a terminal of 80 columns.


WIDTH = 80
_MARGIN = "   "


def head(number: int, title: str) -> str:
    """The title of a part, with a line that leads to the right edge."""
    text = f"{number}. {title} "
    return f"\n{text}{'─' * (WIDTH - len(text))}\n"


def code(text: str) -> str:
    """A program, a file, a stub: with a bar at its left."""
    return "".join(f"{_MARGIN}│ {line}\n" for line in text.split("\n"))


def words(text: str) -> str:
    """A remark."""
    return textwrap.fill(text, WIDTH, initial_indent=_MARGIN, subsequent_indent=_MARGIN) + "\n"


def took(seconds: float, *facts: str) -> str:
    """How long it took, at the right edge."""
    time = f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    return f"{', '.join((*facts, time)):>{WIDTH}}\n"


def outcome(result: RunResult) -> str:
    """The value of a run, or its failure as a model gets it."""
    arrow, space = f"{_MARGIN}=> ", f"{_MARGIN}   "
    if result.failure is None:
        lines = value_lines(result.value, WIDTH - len(arrow))
    else:
        lines = [part for line in str(result.failure).split("\n") for part in _folded(line, WIDTH - len(arrow))]
    return "".join(f"{arrow if index == 0 else space}{line}\n" for index, line in enumerate(lines))


def value_lines(value: Any, width: int) -> list[str]:
    """A value as JSON: what fits is on one line, down to where it does."""
    whole = json.dumps(value, ensure_ascii=False)
    if len(whole) <= width or not isinstance(value, dict | list) or not value:
        return [whole]
    opening, closing = whole[0], whole[-1]
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        parts = [(f"{json.dumps(key, ensure_ascii=False)}: ", each) for key, each in named.items()]
    else:
        parts = [("", each) for each in cast("list[Any]", value)]
    lines = [opening]
    for index, (key, each) in enumerate(parts):
        inner = value_lines(each, width - len(key) - 3)
        inner[-1] += "," if index < len(parts) - 1 else ""
        lines += [f"  {key}{inner[0]}", *(f"  {line}" for line in inner[1:])]
    return [*lines, closing]


def _folded(line: str, width: int) -> list[str]:
    """A line that is too long is broken between words; an excerpt of a program never is too long here."""
    inset = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(line, width, subsequent_indent=inset, break_on_hyphens=False) or [line]


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
