"""The weather server of fixtures/servers, which demos and documents use: by stdio and over HTTP."""

from __future__ import annotations

import socket
import subprocess
import sys

import anyio

from servers.fault_expectations import text_of
from servers.fault_servers import FIXTURES, manager_of
from servers.used_servers import LIMITS, call, tools_of, use_server
from toolbridge.config.server_config import ServerConfig
from toolbridge.servers.manager import ServerManager

WEATHER = str(FIXTURES.parent.parent / "bridge" / "toolbridge" / "demo" / "weather.py")


async def use_weather(manager: ServerManager) -> None:
    assert await tools_of(manager, "real") == {
        "get_forecast",
        "get_alerts",
        "list_stations",
        "slow",
        "fail",
        "picture",
        "big",
    }
    forecast = await call(manager, "real", "get_forecast", location="Austin", days=2)
    assert forecast["structuredContent"]["location"] == "Austin"
    assert [day["day"] for day in forecast["structuredContent"]["days"]] == [0, 1]
    stations = await call(manager, "real", "list_stations")
    assert [station["id"] for station in stations["structuredContent"]["result"]] == ["ATX", "OSL", "NBO"]
    picture = await call(manager, "real", "picture")
    assert [block["type"] for block in picture["content"]] == ["text", "image"]
    assert len(text_of(await call(manager, "real", "big", size=5_000_000))) == 5_000_000
    failure = await manager.call("real", "fail", {"message": "no"})
    assert failure["isError"] is True


def test_the_weather_server_by_stdio() -> None:
    use_server(ServerConfig(name="real", transport="stdio", command=sys.executable, args=(WEATHER,)), use_weather)


def test_the_weather_server_over_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]

    async def main() -> None:
        process = await anyio.open_process(
            [sys.executable, WEATHER, "--http", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        async with process:
            try:
                await _listening(port)
                server = ServerConfig(name="real", transport="http", url=f"http://127.0.0.1:{port}/mcp")
                async with manager_of([server], LIMITS) as manager:
                    await use_weather(manager)
            finally:
                process.kill()

    anyio.run(main)


async def _listening(port: int) -> None:
    with anyio.fail_after(60):
        while True:
            try:
                async with await anyio.connect_tcp("127.0.0.1", port):
                    return
            except OSError:
                await anyio.sleep(0.05)  # nothing tells when a port is open
