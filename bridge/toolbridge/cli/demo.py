"""`toolbridge demo`: the bundled servers, their stubs, and programs that call them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
import textwrap
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import click

from toolbridge.cli import OK
from toolbridge.cli.run_program import make_ready
from toolbridge.cli.terminal import write
from toolbridge.errors import GuestImageError

if TYPE_CHECKING:
    from toolbridge import Config, RunResult, Runtime
    from toolbridge.sandbox.outcome import SandboxLanguage

_CONNECT_SECONDS = 60  # the first import of the server's libraries is slow
_SHOWN_FUNCTION = "get_forecast"
# A server from a file, and one that only code can configure: an object of the program.
_CONFIGURATION = """\
{"mcpServers": {"weather": {
  "command": "toolbridge-demo-weather"
}}}
ServerConfig.in_process("atlas", atlas)   # in Python, without a process"""
_PLAIN = str.maketrans({"─": "-", "│": "|", "…": "...", "×": "x"})


@click.command(
    "demo",
    epilog="Exit codes: 0 shown; 4 toolbridge itself failed; 130 interrupted.",
)
def command() -> int:
    """Show it at work: two servers, eight small programs, and their results.

    The servers come with toolbridge and need no network. Your configuration and approvals are not touched.

    \b
    Example:  toolbridge demo
    """
    import anyio

    from toolbridge.cli.server_options import unless_terminated

    make_ready("javascript")
    with suppress(GuestImageError):  # reported by the program that needs it
        make_ready("python")
    # Listings and stubs go into a temporary directory. The server is started there, too: `python -m` imports from its
    # working directory first, and the caller's is untrusted.
    with tempfile.TemporaryDirectory(prefix="toolbridge-demo-", ignore_cleanup_errors=True) as directory:

        async def main() -> None:
            await _show(directory)

        anyio.run(unless_terminated, main)
    return OK


async def _show(directory: str) -> None:
    """Run the demo: connect both servers, print a stub, and run each program."""
    from toolbridge import open_runtime
    from toolbridge.approval import ApproveDigests
    from toolbridge.servers.lifecycle import prepare

    config = _configuration(directory)
    _say(f"Two MCP servers and {len(ACTS)} programs that call them. All of it stays on this machine.\n")
    _say(head(1, "A configuration names the servers"))
    _say(code(_CONFIGURATION))
    # The approved snapshot is the one that is started.
    digests = [prepare(server, os.environ)[0].digest for server in config.servers.values()]
    _say(
        words(
            "Nothing is started that nobody approved. You would be asked (toolbridge approve weather); these two come "
            f"with toolbridge, and the demo approves exactly what it starts: {digests[0][:15]}…, {digests[1][:15]}…"
        )
    )
    async with open_runtime(config, approver=ApproveDigests(*digests), pins="none", directory=directory) as runtime:
        began = perf_counter()
        for name in config.servers:
            await runtime.servers.connect(name)
        _say(took(perf_counter() - began, "connected"))
        _say(head(2, "A model sees their tools as typed functions"))
        began = perf_counter()
        _say(code(_stub_of(runtime, _SHOWN_FUNCTION)))
        counts = (f"{module.tools} functions in {module.specifier}" for module in runtime.list_modules())
        _say(took(perf_counter() - began, *counts))
        for number, act in enumerate(ACTS, 3):
            await _play(runtime, number, act)
    _say(
        "\nNow yours: name your servers in toolbridge.json, then\n"
        "   toolbridge approve NAME      toolbridge stubs      toolbridge run program.js\n" + _where()
    )


def _where() -> str:
    """The command that adds toolbridge to PATH, if a shell doesn't find it: `make demo` activates no environment."""
    scripts = os.path.dirname(os.path.abspath(sys.argv[0]))
    if shutil.which("toolbridge") is not None or not os.path.isfile(os.path.join(scripts, "toolbridge")):
        return ""
    return f"A shell finds them after\n   export PATH={shlex.quote(scripts)}:$PATH\n"


async def _play(runtime: Runtime, number: int, act: Act) -> None:
    """Run one program and print it with its result; a missing engine is only printed."""
    from toolbridge import Limits

    _say(head(number, act.title) + code(act.program))
    began = perf_counter()
    limits = Limits(wall_seconds=act.seconds, cpu_seconds=act.seconds)
    try:
        result = await runtime.run(act.program, language=act.language, limits=limits)
    except GuestImageError as error:  # programs in the other language can still run
        _say(words(str(error)))
        return
    seconds = perf_counter() - began
    count = len(result.calls)
    calls = (f"{count} call" if count == 1 else f"{count} calls",) if count else ()
    _say(outcome(result) + took(seconds, *calls))


def _configuration(directory: str) -> Config:
    """Both servers: one is a process started in `directory`, one an object of this program."""
    from toolbridge import Config, ServerConfig
    from toolbridge.demo.atlas import server as atlas

    words = ["-m", "toolbridge.demo.weather"]
    weather = ServerConfig.stdio("weather", sys.executable, words, cwd=directory, connect_timeout=_CONNECT_SECONDS)
    return Config.of(weather, ServerConfig.in_process("atlas", atlas))


def _stub_of(runtime: Runtime, function: str) -> str:
    """The lines of the weather's stub that declare one function."""
    lines = runtime.module_info("host:mcp-weather").stub.split("\n")
    functions = [index for index, line in enumerate(lines) if line.startswith(" export function ")]
    last = next(index for index in functions if lines[index].startswith(f" export function {function}("))
    first = max((index for index in functions if index < last), default=0) + 1
    return "\n".join([lines[0], *lines[first : last + 1], " …"])


def _say(text: str) -> None:
    """Print a text, with ASCII for lines and dots if stdout can't encode them."""
    encoding = "utf-8" if sys.stdout is None else sys.stdout.encoding or "utf-8"  # pyright: ignore[reportUnnecessaryComparison]
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_PLAIN)
    write(sys.stdout, text)


# ── layout: 80 columns ───────────────────────────────────────────────────────────────────────────────────────────────

WIDTH = 80
_MARGIN = "   "


def head(number: int, title: str) -> str:
    """A part's title, followed by a rule up to the right edge."""
    text = f"{number}. {title} "
    return f"\n{text}{'─' * (WIDTH - len(text))}\n"


def code(text: str) -> str:
    """A block of code, each line after a bar."""
    return "".join(f"{_MARGIN}│ {line}\n" for line in text.split("\n"))


def words(text: str) -> str:
    """A remark, wrapped and indented."""
    return textwrap.fill(text, WIDTH, initial_indent=_MARGIN, subsequent_indent=_MARGIN) + "\n"


def took(seconds: float, *facts: str) -> str:
    """A duration with other facts, right-aligned."""
    time = f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    return f"{', '.join((*facts, time)):>{WIDTH}}\n"


def outcome(result: RunResult) -> str:
    """The value of a run, or its failure as a model gets it, as indented lines."""
    arrow, space = f"{_MARGIN}=> ", f"{_MARGIN}   "
    if result.failure is None:
        lines = value_lines(result.value, WIDTH - len(arrow))
    else:
        lines = [part for line in str(result.failure).split("\n") for part in _folded(line, WIDTH - len(arrow))]
    return "".join(f"{arrow if index == 0 else space}{line}\n" for index, line in enumerate(lines))


def value_lines(value: Any, width: int) -> list[str]:
    """A value as JSON, nested only where it exceeds the width; items that can't be split may exceed it."""
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
    """Break a line between words, keeping its indentation."""
    inset = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(line, width, subsequent_indent=inset, break_on_hyphens=False) or [line]


# ── the programs ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Act:
    """A program of the demo, with its title and time limit."""

    title: str
    program: str
    seconds: float = 30
    """Time limit."""
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
