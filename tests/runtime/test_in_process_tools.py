"""The host's own functions as modules of guest code: no approval, the same gate, and nothing of the host's insides."""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from observe.recorder import Recorder
from runtime.programs import Program, on_each_backend_and_in_each_language
from runtime.worlds import check_failure, value_of
from toolbridge import (
    Config,
    Limits,
    Permissions,
    Runtime,
    ServerConfig,
    ToolContext,
    create_server,
    open_runtime,
    tool,
)
from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import ServerClosedError, ServerTimeoutError
from toolbridge.events import CallProgressed
from toolbridge.runtime import Language

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@tool
def ping() -> str:
    """Check that the host is there."""
    return "pong"


async def handle_server_info(arguments: dict[str, Any]) -> dict[str, Any]:
    info: dict[str, Any] = {"product": "host", "port": 4242}
    if arguments.get("include_uptime"):
        info["uptime_seconds"] = 7
    return info


get_server_info = tool(
    "get_server_info",
    "Facts about the host.",
    {"properties": {"include_uptime": {"type": "boolean", "description": "Seconds since its start, too"}}},
    handle_server_info,
)


@tool
async def fail(path: str) -> None:
    """Raises."""
    raise ValueError(f"{path} and {Path.home() / 'secret.py'} \x1b[31mred")


@tool
def leave() -> None:
    """Ends the host, if it could."""
    raise SystemExit(3)


@tool(timeout=0.2)
async def dawdle() -> None:
    """Never comes back."""
    await anyio.sleep_forever()


@tool
def add(first: int, second: int = 1) -> int:
    """The sum."""
    return first + second


@tool
def picture() -> bytes:
    """Some bytes."""
    return b"\x00\x01\x02"


@tool
def where() -> int:
    """The thread that it runs on."""
    return threading.get_ident()


@tool
def count_to(most: int, context: ToolContext) -> int:
    """Counts, and says so."""
    for number in range(most):
        context.progress(number, most, f"at {number}")
    return most


HOST = create_server("host-tools", [ping, get_server_info, fail, leave, dawdle, add, picture, where, count_to])


def opened(directory: Path, *servers: ServerConfig, **options: Any) -> Runtime:
    return open_runtime(Config.of(*(servers or (HOST,))), directory=directory, **options)


BOTH = Program(
    """
import { ping, get_server_info } from "host:mcp-host-tools";
[ping(), get_server_info({}), get_server_info({ include_uptime: true }).uptime_seconds]
    """,
    """
from host.mcp_host_tools import ping, get_server_info
[ping(), get_server_info(), get_server_info(include_uptime=True)["uptime_seconds"]]
    """,
)


@on_each_backend_and_in_each_language
async def test_guest_code_calls_the_hosts_own_tools_without_anybodys_approval(
    tmp_path: Path, language: Language
) -> None:
    async with opened(tmp_path) as runtime:
        assert [module.specifier for module in runtime.list_modules()] == ["host:mcp-host-tools"]
        assert "get_server_info" in runtime.stubs("typescript")["mcp-host-tools.d.ts"]  # before anything is connected
        result = await runtime.run(BOTH.of(language), language=language)
        assert value_of(result) == ["pong", {"product": "host", "port": 4242}, 7]
        assert result.servers == ("host-tools",)
        assert runtime.servers.status("host-tools").state == "connected"
    assert not (tmp_path / "listings").exists()  # the host's code may say other things tomorrow


async def test_it_needs_no_sdk() -> None:
    program = (
        "import sys\n"
        "from toolbridge import Config, create_server, run_sync\n"
        "def ping() -> str: return 'pong'\n"
        "result = run_sync(Config.of(create_server('own', [ping])), 'require(\"host:mcp-own\").ping()')\n"
        "assert result.value == 'pong', result.failure\n"
        "assert 'mcp' not in sys.modules\n"
    )
    done = await anyio.run_process([sys.executable, "-c", program], check=False)
    assert (done.returncode, done.stderr) == (0, b"")


async def test_what_a_handler_raises_is_an_error_without_anything_of_the_host(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "toolbridge"):
        async with opened(tmp_path) as runtime:
            result = await runtime.run('require("host:mcp-host-tools").fail({ path: "/given/by/guest.txt" })')
            check_failure_words(result.failure, "ToolFailedError", "ValueError: /given/by/guest.txt and")
            assert "and ~/secret.py" in str(result.failure)
            assert "\x1b" not in str(result.failure)
            check_failure(await runtime.run('require("host:mcp-host-tools").leave()'), "raised", "SystemExit: 3")
            assert value_of(await runtime.run('require("host:mcp-host-tools").ping()')) == "pong"
    assert "The tool 'fail' raised ValueError" in caplog.text


def check_failure_words(failure: object, *words: str) -> None:
    assert all(word in str(failure) for word in words), str(failure)


async def test_a_call_takes_no_longer_than_its_tool_may(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        result = await runtime.run('require("host:mcp-host-tools").dawdle()')
        check_failure(result, "raised", "ToolTimeoutError", "within 0.2 s")
        with pytest.raises(ServerTimeoutError):
            await runtime.servers.call("host-tools", "dawdle", {}, timeout=0)


async def test_arguments_that_do_not_fit_never_reach_the_handler(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        program = 'require("host:mcp-host-tools").add({ first: "one" })'
        check_failure(await runtime.run(program), "type", "not assignable to type 'number'")
        result = await runtime.run(program, check=False)
        check_failure(result, "raised", "ToolArgumentsError", "first")
        result = await runtime.run('require("host:mcp-host-tools").add({ first: 1, third: 3 })', check=False)
        check_failure(result, "raised", "ToolArgumentsError", "third")
        # The same for a host that calls past the check of the calls' path.
        raw = await runtime.servers.call("host-tools", "add", {"first": "one"})
        assert raw["isError"] is True
        assert "first: " in raw["content"][0]["text"]
        raw = await runtime.servers.call("host-tools", "get_server_info", {"include_uptime": 3})
        assert raw["isError"] is True


async def test_plain_functions_run_beside_the_event_loop(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        assert value_of(await runtime.run('require("host:mcp-host-tools").where()')) != threading.get_ident()


async def test_quick_functions_run_on_the_event_loop_itself(tmp_path: Path) -> None:
    @tool(quick=True)
    def where() -> int:
        return threading.get_ident()

    failing = tool("failing", "", None, lambda: 1 // 0, quick=True)
    async with opened(tmp_path, create_server("own", [where, failing])) as runtime:
        assert value_of(await runtime.run('require("host:mcp-own").where()')) == threading.get_ident()
        check_failure(await runtime.run('require("host:mcp-own").failing()'), "raised", "ZeroDivisionError")


async def test_bytes_are_a_handle(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        program = 'const p = require("host:mcp-host-tools").picture(); [p.mime, p.size, Array.from(p.bytes())]'
        assert value_of(await runtime.run(program)) == ["application/octet-stream", 3, [0, 1, 2]]


async def test_they_pass_the_same_gate(tmp_path: Path) -> None:
    config = Config.of(HOST, permissions=Permissions(deny=("mcp__host-tools__add",)))
    async with open_runtime(config, directory=tmp_path) as runtime:
        result = await runtime.run('require("host:mcp-host-tools").add({ first: 1 })')
        check_failure(result, "denied", "ToolDeniedError", "is denied by the pattern")
        assert value_of(await runtime.run('require("host:mcp-host-tools").ping()')) == "pong"


async def test_progress_is_told_to_observers_in_order_and_never_after_the_end(tmp_path: Path) -> None:
    recorder = Recorder()
    async with opened(tmp_path, observers=[recorder]) as runtime:
        value_of(await runtime.run('require("host:mcp-host-tools").count_to({ most: 3 })'))
    told = [(event.done, event.total, event.message) for event in recorder.of(CallProgressed)]
    assert told == [(0.0, 3.0, "at 0"), (1.0, 3.0, "at 1"), (2.0, 3.0, "at 2")]
    assert recorder.broken_promises() == []
    assert recorder.threads == {threading.get_ident()}


async def test_they_hold_no_connection_of_those_there_may_be(tmp_path: Path) -> None:
    config = Config.of(
        *(create_server(f"own{number}", [ping]) for number in range(3)), limits=ServerLimits(connections=1)
    )
    async with open_runtime(config, directory=tmp_path) as runtime:
        assert {status.state for status in await runtime.start_all()} == {"connected"}


async def test_closing_one_ends_its_calls(tmp_path: Path) -> None:
    began = anyio.Event()

    async def wait() -> None:
        began.set()
        await anyio.sleep_forever()

    async with opened(tmp_path, create_server("own", [wait])) as runtime, anyio.create_task_group() as tasks:

        async def call() -> None:
            with pytest.raises(ServerClosedError):
                await runtime.servers.call("own", "wait", {})

        tasks.start_soon(call)
        with anyio.fail_after(60):
            await began.wait()
            await runtime.servers.close_server("own")


async def test_a_function_that_is_stuck_costs_its_caller_only(tmp_path: Path) -> None:
    free = threading.Event()

    def stuck() -> str:
        free.wait(60)
        return "late"

    try:
        async with opened(
            tmp_path, create_server("own", [tool("stuck", "", None, stuck, timeout=0.1), ping])
        ) as runtime:
            result = await runtime.run('require("host:mcp-own").stuck()')
            check_failure(result, "raised", "ToolTimeoutError")
            assert value_of(await runtime.run('require("host:mcp-own").ping()')) == "pong"
    finally:
        free.set()


@pytest.mark.parametrize("value", [object(), {"a": {1, 2}, "b": object()}])
async def test_a_result_without_a_json_form_is_an_error_of_the_tool(tmp_path: Path, value: object) -> None:
    async with opened(tmp_path, create_server("own", [tool("odd", "", None, lambda: value)])) as runtime:
        result = await runtime.run('require("host:mcp-own").odd()')
        check_failure(result, "raised", "its result has no JSON form")


async def test_many_at_once_are_answered(tmp_path: Path) -> None:
    async with opened(tmp_path, limits=Limits(wall_seconds=60)) as runtime:
        program = """
import { add } from "host:mcp-host-tools";
import { parallel } from "host:bridge";
parallel(Array.from({ length: 50 }, (_, first) => [add, { first }])).reduce((a, b) => a + b)
        """
        assert value_of(await runtime.run(program)) == sum(range(1, 51))
