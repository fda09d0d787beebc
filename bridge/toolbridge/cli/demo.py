"""`toolbridge demo`: from a configuration to results, with the servers that come along, in a few seconds."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING

import click

from toolbridge.cli import OK
from toolbridge.cli.run import make_ready
from toolbridge.cli.terminal import write
from toolbridge.errors import GuestImageError

if TYPE_CHECKING:
    from toolbridge import Config, Runtime
    from toolbridge.demo.acts import Act

_CONNECT_SECONDS = 60  # a slow machine may need long for the first import of the server's libraries
_SHOWN_FUNCTION = "get_forecast"
# As a file has it, and what no file can have: a server that is an object of the program.
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
    """See it at work: two servers, eight small programs, and what becomes of them.

    The servers come with toolbridge and need no network. Your configuration and approvals are not touched.

    \b
    Example:  toolbridge demo
    """
    import anyio

    from toolbridge.cli.server_options import unless_terminated

    make_ready("javascript")
    with suppress(GuestImageError):  # said where it is missed
        make_ready("python")
    # Listings and stubs are kept where they vanish. The server is started there, too: `python -m` looks for modules in
    # its working directory first, and what is in the one that this command was called from is anybody's.
    with tempfile.TemporaryDirectory(prefix="toolbridge-demo-", ignore_cleanup_errors=True) as directory:

        async def main() -> None:
            await _show(directory)

        anyio.run(unless_terminated, main)
    return OK


async def _show(directory: str) -> None:
    from toolbridge import open_runtime
    from toolbridge.approval import ApproveDigests
    from toolbridge.demo import acts as layout
    from toolbridge.demo.acts import ACTS
    from toolbridge.servers.lifecycle import prepare

    config = _configuration(directory)
    _say(f"Two MCP servers and {len(ACTS)} programs that call them. All of it stays on this machine.\n")
    _say(layout.head(1, "A configuration names the servers"))
    _say(layout.code(_CONFIGURATION))
    # The snapshot that is approved here is the one that is started: see servers/start.py.
    digests = [prepare(server, os.environ)[0].digest for server in config.servers.values()]
    _say(
        layout.words(
            "Nothing is started that nobody approved. You would be asked (toolbridge approve weather); these two come "
            f"with toolbridge, and the demo approves exactly what it starts: {digests[0][:15]}…, {digests[1][:15]}…"
        )
    )
    async with open_runtime(config, approver=ApproveDigests(*digests), pins="none", directory=directory) as runtime:
        began = perf_counter()
        for name in config.servers:
            await runtime.servers.connect(name)
        _say(layout.took(perf_counter() - began, "connected"))
        _say(layout.head(2, "A model sees their tools as typed functions"))
        began = perf_counter()
        _say(layout.code(_stub_of(runtime, _SHOWN_FUNCTION)))
        counts = (f"{module.tools} functions in {module.specifier}" for module in runtime.list_modules())
        _say(layout.took(perf_counter() - began, *counts))
        for number, act in enumerate(ACTS, 3):
            await _play(runtime, number, act)
    _say(
        "\nNow yours: name your servers in toolbridge.json, then\n"
        "   toolbridge approve NAME      toolbridge stubs      toolbridge run program.js\n" + _where()
    )


def _where() -> str:
    """Where the commands are if a shell doesn't find them: the environment of `make demo` is not activated."""
    scripts = os.path.dirname(os.path.abspath(sys.argv[0]))
    if shutil.which("toolbridge") is not None or not os.path.isfile(os.path.join(scripts, "toolbridge")):
        return ""
    return f"A shell finds them after\n   export PATH={shlex.quote(scripts)}:$PATH\n"


async def _play(runtime: Runtime, number: int, act: Act) -> None:
    from toolbridge import Limits
    from toolbridge.demo import acts as layout

    _say(layout.head(number, act.title) + layout.code(act.program))
    began = perf_counter()
    limits = Limits(wall_seconds=act.seconds, cpu_seconds=act.seconds)
    try:
        result = await runtime.run(act.program, language=act.language, limits=limits)
    except GuestImageError as error:  # the other language's programs can be shown without it
        _say(layout.words(str(error)))
        return
    seconds = perf_counter() - began
    count = len(result.calls)
    calls = (f"{count} call" if count == 1 else f"{count} calls",) if count else ()
    _say(layout.outcome(result) + layout.took(seconds, *calls))


def _configuration(directory: str) -> Config:
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
    encoding = "utf-8" if sys.stdout is None else sys.stdout.encoding or "utf-8"  # pyright: ignore[reportUnnecessaryComparison]
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_PLAIN)
    write(sys.stdout, text)
