"""One call of the host's own tool by guest code, beside a function of a plain `Sandbox`: what gate and checks cost.

Both take and give the same object. A tool is checked against its schema, decided on by the gate, and recorded; a
function is only called. An `async` function is the like for like, and so is a plain one that is `quick`: both run
on the event loop. Any other plain function runs on a thread beside it, since it may block; a plain function of a
sandbox runs on the guest's own thread, which no tool may do.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Any

from bench.case import Bench
from bench.measure import Batch, compare, take_turns
from bench.report import Finding, Row
from bench.runtimes import LIMITS, CallingRuntime, calling_runtime
from toolbridge import Sandbox, create_server, tool

_WHAT = "call of the host's own tool"
_ASYNC = "an async function of a Sandbox"
_PLAIN = "a plain function of a Sandbox, on the guest's own thread"
_TARGET = 3.0
_CALLS = 500
_ARGUMENT = {"city": "Oslo", "days": 3}


@tool
async def echo(city: str, days: int) -> dict[str, Any]:
    return {"city": city, "days": days}


@tool("echo_plain")
def plain_echo(city: str, days: int) -> dict[str, Any]:
    return {"city": city, "days": days}


@tool("echo_quick", quick=True)
def quick_echo(city: str, days: int) -> dict[str, Any]:
    return {"city": city, "days": days}


async def _echo(value: Any) -> Any:
    return value


def _plain_echo(value: Any) -> Any:
    return value


def _program(module: str, function: str) -> str:
    return f"""
import {{ {function} }} from "{module}";
let reply;
for (let i = 0; i < {_CALLS}; i++) reply = {function}({{ city: "Oslo", days: 3 }});
reply
"""


def measure(bench: Bench) -> Iterable[Finding]:
    """Against both kinds of functions of a sandbox, awaited on the same event loop."""
    findings: list[Finding] = []
    for backend in ("asyncio", "trio"):
        server = create_server("own", [echo, quick_echo, plain_echo])
        # One each: a sandbox with a plain function keeps all of a program on a guest thread.
        awaited = Sandbox({"host:demo": {"echo": _echo}}, limits=LIMITS)
        plain = Sandbox({"host:demo": {"echo_plain": _plain_echo}}, limits=LIMITS)
        with awaited, plain, calling_runtime(server, backend=backend) as ours:
            contenders: dict[str, Batch] = {
                "ours": ours.program(_program("host:mcp-own", "echo"), _ARGUMENT, times=_CALLS),
                "ours, quick": ours.program(_program("host:mcp-own", "echo_quick"), _ARGUMENT, times=_CALLS),
                "ours, plain": ours.program(_program("host:mcp-own", "echo_plain"), _ARGUMENT, times=_CALLS),
                _ASYNC: _sandboxed(ours, awaited, "echo"),
                _PLAIN: _sandboxed(ours, plain, "echo_plain"),
            }
            samples = take_turns(contenders, bench.rounds(30))
        for name, kind, target in (
            ("ours", "", _TARGET),
            ("ours, quick", ", a quick plain function", _TARGET),
            ("ours, plain", ", a plain function on a thread", None),
        ):
            what = f"{_WHAT}{kind} ({backend})"
            findings.append(Row(what, _ASYNC, compare(samples[name], samples[_ASYNC]), target))
            findings.append(Row(what, _PLAIN, compare(samples[name], samples[_PLAIN])))
    return findings


def _sandboxed(ours: CallingRuntime, sandbox: Sandbox, function: str) -> Batch:
    program = _program("host:demo", function)

    async def run() -> float:
        began = perf_counter()
        result = await sandbox.run(program)
        seconds = (perf_counter() - began) / _CALLS
        assert result.value == _ARGUMENT, result.failure
        return seconds

    return lambda: ours.portal.call(run)
