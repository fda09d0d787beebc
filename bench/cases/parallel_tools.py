"""Twenty calls of a tool that takes 50 ms, at once: by promises and by `parallel()`, in this process and by stdio."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import anyio
from mcp.server import MCPServer

from bench.case import Bench
from bench.measure import against_constant, take_turns
from bench.report import Finding, Row
from bench.runtimes import calling_runtime
from toolbridge import ServerConfig

_SERVER = Path(__file__).parents[1] / "probes" / "prepared_server.py"
_CALLS = 20
_SECONDS = 0.05
_TARGET = 60e-3 / _SECONDS
_PROMISES = f"""
import {{ wait }} from "host:mcp-clock/async";
(await Promise.all(Array.from({{ length: {_CALLS} }}, () => wait({{ seconds: {_SECONDS} }})))).length
"""
_PARALLEL = f"""
import {{ wait }} from "host:mcp-clock";
import {{ parallel }} from "host:bridge";
parallel(Array.from({{ length: {_CALLS} }}, () => [wait, {{ seconds: {_SECONDS} }}])).length
"""


def measure(bench: Bench) -> Iterable[Finding]:
    """Against one call's own time."""
    servers = {
        "in process": ServerConfig.in_process("clock", _clock()),
        "stdio": ServerConfig.stdio("clock", sys.executable, ["-S", "-E", str(_SERVER)]),
    }
    for where, server in servers.items():
        with calling_runtime(server) as ours:
            contenders = {
                "Promise.all": ours.program(_PROMISES, _CALLS),
                "parallel()": ours.program(_PARALLEL, _CALLS),
            }
            samples = take_turns(contenders, bench.rounds(20))
        for how, seconds in samples.items():
            what = f"20 tools of 50 ms at once, {where}, {how}"
            yield Row(what, "one tool's 50 ms", against_constant(seconds, _SECONDS), _TARGET)


def _clock() -> MCPServer:
    server = MCPServer("clock", log_level="ERROR")

    @server.tool(structured_output=False)
    async def wait(seconds: float) -> str:  # pyright: ignore[reportUnusedFunction]  # the decorator keeps it
        """Wait so long."""
        await anyio.sleep(seconds)
        return "waited"

    return server
