"""End to end in Python: a program, its calls of real servers, and its result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer

from runtime.worlds import ApproveAll, check_failure, runtime_of, value_of, weather, weather_process
from toolbridge import Config, Limits, Runtime, ServerConfig, open_runtime
from toolbridge.demo.atlas import server as atlas_server

pytestmark = pytest.mark.anyio
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


def shop(name: str = "shop") -> ServerConfig:
    server = MCPServer("shop")

    @server.tool()
    def price(item: str) -> float:
        """What an item costs."""
        return {"tea": 3.5, "cake": 4.25}[item]

    @server.tool()
    def double(number: int) -> dict[str, int]:
        """Twice the number."""
        return {"number": 2 * number}

    return ServerConfig.in_process(name, server)


async def run(runtime: Runtime, code: str, **options: Any) -> Any:
    return await runtime.run(code, language="python", **options)


async def test_a_program_imports_a_module_and_calls_a_tool_synchronously(tmp_path: Path) -> None:
    async with runtime_of(tmp_path, weather_process()) as runtime:
        result = await run(runtime, "from host.mcp_weather import get_forecast\nget_forecast(location='Austin, TX')")
    value = value_of(result)
    assert value["location"] == "Austin, TX"
    assert len(value["days"]) == 3
    calls = [(call.module, call.function, call.server, call.tool, call.outcome) for call in result.calls]
    assert calls == [("host:mcp-weather", "get_forecast", "weather", "get_forecast", "ok")]
    assert result.servers == ("weather",)


@pytest.mark.parametrize(
    "program",
    [
        "import host.mcp_weather as w\nw.get_forecast({'location': 'Oslo', 'days': 1})['location']",
        "import importlib\nimportlib.import_module('host:mcp-weather').get_forecast(location='Oslo')['location']",
        "from host.mcp_weather.aio import get_forecast\n(await get_forecast(location='Oslo'))['location']",
        "import host\nhost.mcp_weather.get_forecast(location='Oslo')['location']",
    ],
)
async def test_the_same_in_other_ways(tmp_path: Path, program: str) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        assert value_of(await run(runtime, program)) == "Oslo"


async def test_a_server_with_a_dash_and_one_with_an_underscore(tmp_path: Path) -> None:
    async with runtime_of(tmp_path, shop("corner-shop"), shop("big_shop")) as runtime:
        program = """
from host.mcp_corner_shop import price
from host.mcp_big_shop import price as other
[price(item="tea"), other(item="cake")]
"""
        result = await run(runtime, program)
        assert value_of(result) == [3.5, 4.25]
        assert [call.module for call in result.calls] == ["host:mcp-corner-shop", "host:mcp-big_shop"]
        assert runtime.servers_named_in(program) == ("big_shop", "corner-shop")


async def test_two_servers_are_joined_and_connected_together(tmp_path: Path) -> None:
    approver = ApproveAll()
    async with runtime_of(tmp_path, weather(), shop(), approver=approver) as runtime:
        result = await run(
            runtime,
            "from host.mcp_weather import list_stations\nfrom host.mcp_shop import price\n"
            "{'stations': len(list_stations()), 'tea': price(item='tea')}",
        )
    assert value_of(result) == {"stations": 3, "tea": 3.5}
    assert sorted(approver.asked) == ["shop", "weather"]


async def test_calls_of_the_aio_twin_overlap(tmp_path: Path) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        await runtime.start_all()
        result = await run(
            runtime,
            "import asyncio\nfrom host.mcp_weather.aio import slow\n"
            "await asyncio.gather(*(slow(seconds=0.5) for _ in range(10)))",
        )
    assert value_of(result) == ["Waited 0.5 s"] * 10
    # One after the other, the run would take as long as all of them.
    assert sum(call.seconds for call in result.calls) > 2 * result.usage.wall_seconds


async def test_whole_numbers_are_exact(tmp_path: Path) -> None:
    async with runtime_of(tmp_path, shop()) as runtime:
        assert value_of(await run(runtime, "from host.mcp_shop import double\ndouble(number=2 ** 80)")) == {
            "number": 2**81
        }


async def test_arguments_that_don_t_fit_are_answered_with_the_python_signature(tmp_path: Path) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        program = "from host.mcp_weather import get_forecast\nget_forecast(place='Oslo')"
        check_failure(await run(runtime, program), "type", "It takes: location, days", "line 2")
        result = await runtime.run(program, language="python", check=False)
    check_failure(result, "raised", "ToolArgumentsError", "location", "get_forecast(", "line 2")
    assert result.failure is not None
    assert "def " in result.failure.message or "location: str" in result.failure.message


async def test_a_misspelt_module_or_tool_is_answered_with_the_nearest(tmp_path: Path) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        for program, nearest in (
            ("from host.mcp_wether import get_forecast", "Did you mean 'host.mcp_weather'?"),
            ("from host.mcp_weather import get_forcast", "Did you mean: 'get_forecast'?"),
        ):
            check_failure(await run(runtime, program), "type", "Did you mean")
            check_failure(await runtime.run(program, language="python", check=False), "raised", nearest)


async def test_without_an_approver_the_import_fails_and_says_why(tmp_path: Path) -> None:
    async with open_runtime(Config.of(weather_process()), directory=tmp_path) as runtime:
        result = await run(runtime, "from host.mcp_weather import get_forecast")
    check_failure(result, "denied", "not approved")


async def test_a_session_keeps_state_and_handles(tmp_path: Path) -> None:
    async with runtime_of(tmp_path, weather()) as runtime, runtime.session("python") as session:
        assert value_of(await session.run("from host.mcp_weather import picture\ncaption, image = picture(size=64)\n1"))
        assert value_of(await session.run("image.slice(1, 4).text()")) == "PNG"
        assert value_of(await session.run("[image.mime, image]"))[0] == "image/png"


async def test_a_run_is_cancelled_with_its_call(tmp_path: Path) -> None:
    async with runtime_of(tmp_path, weather()) as runtime:
        await runtime.start_all()
        program = "from host.mcp_weather import slow\nslow(seconds=30)"
        result = await run(runtime, program, limits=Limits(wall_seconds=0.5))
    check_failure(result, "timeout", "host:mcp-weather slow: unfinished")


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("0*.js")))
async def test_an_example_gives_the_same_in_python_and_javascript(tmp_path: Path, name: str) -> None:
    atlas = ServerConfig.in_process("atlas", atlas_server)
    async with runtime_of(tmp_path, weather(), atlas, pins="none") as runtime:
        in_python = await run(runtime, (EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))
        in_javascript = await runtime.run((EXAMPLES / f"{name}.js").read_text(encoding="utf-8"))
    assert value_of(in_python) == value_of(in_javascript)
    assert in_python.stdout == in_javascript.stdout
    assert in_python.servers == in_javascript.servers
