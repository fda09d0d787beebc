"""One call of a real server's tool by guest code: the whole way through guest and bridge, beside the bare client.

Both have a server process of their own, `echo` of server-everything by stdio, and take turns.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack
from time import perf_counter, process_time

from anyio.from_thread import BlockingPortal
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextContent

from bench.case import Bench
from bench.measure import Batch, compare, take_turns
from bench.peer_packages import Missing, node_packages
from bench.report import Finding, Row, Skipped
from bench.runtimes import calling_runtime
from toolbridge import ServerConfig

_WHAT = "tool call by guest code, stdio"
_SDK = "the bare client of the MCP SDK"
_TARGET = 1.15
_CALLS = 200
_PACKAGE = "@modelcontextprotocol/server-everything"
_ANSWER = "Echo: hello"
_PROGRAM = f"""
import {{ echo }} from "host:mcp-everything";
let right = 0;
for (let i = 0; i < {_CALLS}; i++) right += echo({{ message: "hello" }}) === "{_ANSWER}";
right
"""


def measure(bench: Bench) -> Iterable[Finding]:
    """Against the SDK's own client: the time a caller waits, and the CPU time of this process."""
    packages = node_packages(_PACKAGE)
    if isinstance(packages, Missing):
        return [Skipped(_WHAT, packages.reason)]
    script = packages / "node_modules" / _PACKAGE / "dist" / "index.js"
    command, arguments = shutil.which("node") or "node", [str(script), "stdio"]
    findings: list[Finding] = []
    for backend in ("asyncio", "trio"):
        with ExitStack() as stack:
            server = ServerConfig.stdio("everything", command, arguments)
            ours = stack.enter_context(calling_runtime(server, backend=backend))
            nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            transport = stdio_client(StdioServerParameters(command=command, args=arguments), errlog=nowhere)
            client = stack.enter_context(
                ours.portal.wrap_async_context_manager(Client(transport, read_timeout_seconds=30.0))
            )
            our_cpu: list[float] = []
            their_cpu: list[float] = []

            async def calls(client: Client = client, cpu: list[float] = their_cpu) -> float:
                computed, began = process_time(), perf_counter()
                for _ in range(_CALLS):
                    (block,) = (await client.call_tool("echo", {"message": "hello"})).content
                    assert isinstance(block, TextContent)
                    assert block.text == _ANSWER
                seconds = (perf_counter() - began) / _CALLS
                cpu.append((process_time() - computed) / _CALLS)
                return seconds

            contenders: dict[str, Batch] = {
                "ours": ours.program(_PROGRAM, _CALLS, times=_CALLS, cpu=our_cpu),
                _SDK: _in_loop(ours.portal, calls),
            }
            samples = take_turns(contenders, bench.rounds(30))
        what = f"{_WHAT} ({backend})"
        findings.append(Row(what, _SDK, compare(samples["ours"], samples[_SDK]), _TARGET))
        findings.append(Row(f"{what}, CPU time", _SDK, compare(our_cpu[1:], their_cpu[1:])))
    return findings


def _in_loop(portal: BlockingPortal, function: Callable[[], Awaitable[float]]) -> Batch:
    return lambda: portal.call(function)
