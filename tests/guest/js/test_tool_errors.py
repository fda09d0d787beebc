"""ToolError: the class and the fields that a failed call throws."""

from __future__ import annotations

from typing import Any

import pytest

from guest.handle_host import HEAD, HandleHost
from toolbridge import Sandbox
from toolbridge.boundary.host_call import CallFailed
from toolbridge.boundary.wire import ErrorFrame

CLASSES = {
    "timeout": "ToolTimeoutError",
    "denied": "ToolDeniedError",
    "disconnected": "ToolDisconnectedError",
    "invalid_arguments": "ToolArgumentsError",
    "limit": "ToolLimitError",
    "failed": "ToolFailedError",
}


def host_that_fails(error: ErrorFrame) -> HandleHost:
    host = HandleHost()

    def refuse() -> None:
        raise CallFailed(error)

    host.offer("refuse", refuse)
    return host


CALLS = ["demo.refuse()", "await later.refuse()", "parallel([[demo.refuse]])"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", CLASSES)
def test_each_kind_of_failure_has_its_class(sandbox: Sandbox, kind: str, call: str) -> None:
    host = host_that_fails(ErrorFrame(kind, "no", server="weather", tool="get-forecast"))
    found = host.value(
        sandbox,
        f"""
        const bridge = require("host:bridge");
        try {{ {call} }} catch (error) {{
          const classes = Object.keys(bridge).filter((name) => /Error$/.test(name) && error instanceof bridge[name]);
          ({{ classes, isError: error instanceof Error, text: String(error), own: {{ ...error }},
              quiet: [error.module, error.function] }})
        }}""",
    )
    assert found == {
        "classes": ["ToolError", CLASSES[kind]],
        "isError": True,
        "text": f"{CLASSES[kind]}: no",
        "own": {"server": "weather", "tool": "get-forecast", "kind": kind},
        "quiet": ["host:demo", "refuse"],
    }


@pytest.mark.parametrize("kind", ["unknown", "protocol", "constructor", "__proto__", "toString", ""])
def test_a_kind_without_a_class_is_a_tool_error(sandbox: Sandbox, kind: str) -> None:
    host = host_that_fails(ErrorFrame(kind, "no"))
    program = "try { demo.refuse() } catch (e) { [e.constructor === ToolError, e.name, e.kind] }"
    assert host.value(sandbox, program) == [True, "ToolError", kind]


def test_an_error_of_a_plain_host_function_names_it_as_the_tool(sandbox: Sandbox) -> None:
    host = host_that_fails(ErrorFrame("failed", "no"))
    program = "try { demo.refuse() } catch (error) { [error.server, error.tool, { ...error }] }"
    assert host.value(sandbox, program) == [
        "",
        "refuse",
        {"module": "host:demo", "function": "refuse", "kind": "failed"},
    ]


def test_a_frame_says_a_name_of_its_own(sandbox: Sandbox) -> None:
    host = host_that_fails(ErrorFrame("denied", "no", name="PolicyError", data={"rule": 3}))
    program = (
        'try { demo.refuse() } catch (e) { [String(e), e instanceof require("host:bridge").ToolDeniedError, e.data] }'
    )
    assert host.value(sandbox, program) == ["PolicyError: no", True, {"rule": 3}]


def test_a_logged_error_shows_the_programs_lines_and_none_of_ours(sandbox: Sandbox) -> None:
    host = host_that_fails(ErrorFrame("timeout", "too slow", server="weather", tool="get_forecast"))
    result = host.run(sandbox, "try { demo.refuse() } catch (error) { console.log(error) }")
    line = HEAD.count("\n") + 1
    assert result.stdout == (
        "ToolTimeoutError: too slow\n"
        "    at refuse (native)\n"
        f"    at <eval> (main.js:{line}:12) {{\n"
        "  server: 'weather',\n"
        "  tool: 'get_forecast',\n"
        "  kind: 'timeout'\n"
        "}\n"
    )


@pytest.mark.parametrize("call", CALLS)
def test_an_uncaught_error_is_reported_by_its_class_at_the_place_of_the_call(sandbox: Sandbox, call: str) -> None:
    host = host_that_fails(ErrorFrame("disconnected", "it went away", server="weather", tool="get_forecast"))
    failure = host.run(sandbox, f"const a = 1;\n\n{call}").failure
    assert failure is not None
    assert failure.message == "ToolDisconnectedError: it went away"
    assert failure.line == HEAD.count("\n") + 3


def test_an_errors_name_can_be_assigned_and_its_class_extended(sandbox: Sandbox) -> None:
    host = host_that_fails(ErrorFrame("failed", "no"))
    program = """
    class Mine extends ToolError {}
    const seen = [];
    try { demo.refuse() } catch (error) { error.name = "Other"; seen.push(String(error)); }
    const mine = new Mine("text");
    [...seen, mine instanceof ToolError, String(mine)]
    """
    assert host.value(sandbox, program) == ["Other: no", True, "ToolError: text"]


POLLUTED: list[Any] = [
    "for (const key of ['server', 'tool', 'data', 'name', 'kind', 'message']) "
    "Object.defineProperty(Object.prototype, key, { get() { ran.push(key); return 'polluted' }, configurable: true })",
    "Object.setPrototypeOf(Array.prototype, null); Array.prototype[Symbol.iterator] = () => { ran.push('iterator') }",
    "for (const key of ['get', 'set', 'enumerable', 'writable', 'value']) "
    "Object.defineProperty(Object.prototype, key, "
    "{ __proto__: null, get() { ran.push(key); return undefined }, configurable: true })",
]


@pytest.mark.parametrize("pollution", POLLUTED)
def test_an_error_is_made_without_running_the_programs_code(sandbox: Sandbox, pollution: str) -> None:
    host = host_that_fails(ErrorFrame("denied", "no"))
    program = f"""
    let ran = [];
    {pollution};
    let found;
    try {{ demo.refuse() }} catch (error) {{ found = error }}
    const count = ran.length;
    delete Object.prototype.value; // the end of a program is the engine's own, and minds it
    count + " " + found.kind + " " + found.tool + " " + (found.server === "") + " " + found.message
    """
    assert host.value(sandbox, program) == "0 denied refuse true no"
