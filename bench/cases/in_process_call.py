"""One call of the host's own tool by guest code, beside a function of a plain `Sandbox`: what gate and checks cost.

Both take and give the same object. A tool is checked against its schema, decided on by the gate, and recorded; a
function is only called. Like is compared with like: a plain function that is `quick`, and so runs where guest code
waits for it, with a plain function of a sandbox; an `async` function with an `async` one, which is awaited on the same
event loop. Any other plain function runs on a thread, since it may block: its like is the same function on a thread of
anyio's, without any guest. A run makes so many calls that starting it, and checking its program, hardly counts: a
plain function's sandbox takes longer to start, which would flatter the tools. Nobody observes: events cost extra.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Any

import anyio.to_thread

from bench.case import Bench
from bench.measure import Batch, compare, take_turns
from bench.report import Finding, Row
from bench.runtimes import LIMITS, CallingRuntime, calling_runtime
from toolbridge import Sandbox, create_server, tool

_WHAT = "call of the host's own tool"
_PLAIN = "a plain function of a Sandbox"
_ASYNC = "an async function of a Sandbox"
_THREAD = "the function on a thread of anyio's"
_QUICK_TOOL = f"{_WHAT}, a quick function"
_ASYNC_TOOL = f"{_WHAT}, an async function"
_THREAD_TOOL = f"{_WHAT}, a function on a thread"
_ROWS = (
    (_QUICK_TOOL, _PLAIN, 3.0),
    (_ASYNC_TOOL, _ASYNC, 3.0),
    (_ASYNC_TOOL, _PLAIN, None),
    (_THREAD_TOOL, _THREAD, None),
    (_THREAD_TOOL, _PLAIN, None),
)
"""What is compared with what, and the highest ratio that will do."""
_CALLS = 2_000
_ARGUMENT = {"city": "Oslo", "days": 3}


@tool
async def echo(city: str, days: int) -> dict[str, Any]:
    return {"city": city, "days": days}


@tool("echo_on_a_thread")
def threaded_echo(city: str, days: int) -> dict[str, Any]:
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
    """Each kind of function, on both event loops."""
    findings: list[Finding] = []
    for backend in ("asyncio", "trio"):
        server = create_server("own", [echo, quick_echo, threaded_echo])
        # One each: a sandbox with a plain function keeps all of a program on a guest thread.
        awaited = Sandbox({"host:demo": {"echo": _echo}}, limits=LIMITS)
        plain = Sandbox({"host:demo": {"echo": _plain_echo}}, limits=LIMITS)
        with awaited, plain, calling_runtime(server, backend=backend) as ours:
            contenders: dict[str, Batch] = {
                _QUICK_TOOL: _called(ours, "echo_quick"),
                _ASYNC_TOOL: _called(ours, "echo"),
                _THREAD_TOOL: _called(ours, "echo_on_a_thread"),
                _PLAIN: _sandboxed(ours, plain),
                _ASYNC: _sandboxed(ours, awaited),
                _THREAD: _on_a_thread(ours),
            }
            samples = take_turns(contenders, bench.rounds(30))
        for what, against, target in _ROWS:
            findings.append(Row(f"{what} ({backend})", against, compare(samples[what], samples[against]), target))
    return findings


def _called(ours: CallingRuntime, function: str) -> Batch:
    return ours.program(_program("host:mcp-own", function), _ARGUMENT, times=_CALLS)


def _sandboxed(ours: CallingRuntime, sandbox: Sandbox) -> Batch:
    program = _program("host:demo", "echo")

    async def run() -> float:
        began = perf_counter()
        result = await sandbox.run(program)
        seconds = (perf_counter() - began) / _CALLS
        assert result.value == _ARGUMENT, result.failure
        return seconds

    return lambda: ours.portal.call(run)


def _on_a_thread(ours: CallingRuntime) -> Batch:
    async def run() -> float:
        began = perf_counter()
        for _ in range(_CALLS):
            reply = await anyio.to_thread.run_sync(_plain_echo, _ARGUMENT)
            assert reply is _ARGUMENT
        return (perf_counter() - began) / _CALLS

    return lambda: ours.portal.call(run)
