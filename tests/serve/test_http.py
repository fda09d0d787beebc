"""Serving over HTTP: clients of both eras, many at once, gone in the middle, and at the end."""

from __future__ import annotations

from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client

from growth import patience
from runtime.worlds import weather
from serve.http_service import HEADERS, http_service_of, message, open_session
from serve.serving import Era, Person, call, run, text_of
from toolbridge import Permissions
from toolbridge.serve.http import HttpLimits

pytestmark = pytest.mark.anyio

FORECAST = 'require("host:mcp-weather").get_forecast({ location: "Oslo" }).days.length'
SLOW = 'require("host:mcp-weather").slow({ seconds: 30 })'


async def until(is_so: object, seconds: float = 60.0) -> None:
    assert callable(is_so)
    with anyio.fail_after(seconds):
        while not is_so():  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_clients_of_both_eras_are_served(tmp_path: Path, era: Era) -> None:
    person = Person()
    ask = Permissions(ask=("mcp__weather__*",))
    async with (
        http_service_of(tmp_path, weather(), permissions=ask) as http,
        Client(http.url, mode=era, elicitation_callback=person) as client,
    ):
        assert (await run(client, FORECAST))["value"] == 3
        assert "host:mcp-weather" in text_of(await call(client, "search_tools", {"query": "forecast"}))
    assert len(person.asked) == 1


async def test_a_session_is_its_clients_own(tmp_path: Path) -> None:
    async with http_service_of(tmp_path) as http:
        async with Client(http.url, mode="legacy") as client:
            session = (await run(client, "globalThis.secret = 7; 1", session="new"))["session"]
            async with Client(http.url, mode="legacy") as other:
                stolen = await other.call_tool("run_code", {"code": "secret", "session": session})
                assert "There is no session" in text_of(stolen)
            async with Client(http.url, mode="auto") as modern:
                stolen = await modern.call_tool("run_code", {"code": "secret", "session": session})
                assert "There is no session" in text_of(stolen)
            assert (await run(client, "secret", session=session))["value"] == 7
        await until(lambda: len(http.service.sessions) == 0)  # the client said goodbye


async def test_many_clients_at_once_get_their_own_results(tmp_path: Path, era: Era) -> None:
    wrong: list[object] = []

    async def use(number: int) -> None:
        async with Client(http.url, mode=era) as client:
            for turn in range(3):
                location = f"place-{number}-{turn}"
                code = f'require("host:mcp-weather").get_forecast({{ location: "{location}" }}).location'
                value = (await run(client, code))["value"]
                if value != location:
                    wrong.append((location, value))

    async with http_service_of(tmp_path, weather()) as http, anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(use, number)
    assert wrong == []


async def test_a_client_that_is_gone_in_the_middle_of_a_run_leaves_nothing(tmp_path: Path, era: Era) -> None:
    """Its socket closes, and nothing else is said: the guest, its call and its caller are gone at once."""
    async with http_service_of(tmp_path, weather()) as http:
        async with httpx2.AsyncClient(timeout=30) as raw:
            headers = dict(HEADERS)
            params: dict[str, object] = {"name": "run_code", "arguments": {"code": SLOW}}
            if era == "legacy":
                headers["mcp-session-id"] = await open_session(raw, http.url)
            else:
                headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "run_code"}
                params["_meta"] = {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
                    "io.modelcontextprotocol/clientCapabilities": {},
                }
            with anyio.move_on_after(1.0):
                answer = await raw.post(http.url, content=message("tools/call", params, 2), headers=headers)
                raise AssertionError(answer.text)
            assert http.service.watch.running == 1
        began = anyio.current_time()
        await until(lambda: not http.service.watch.running and not http.app.calls)
        assert anyio.current_time() - began < patience(5)  # it takes a few hundredths; a busy machine is given more
        assert http.service.watch.callers_of("weather") == {}


async def test_health_and_metrics(tmp_path: Path) -> None:
    async with http_service_of(tmp_path) as http, httpx2.AsyncClient() as raw:
        health = await raw.get(http.url.replace("/mcp", "/healthz"))
        assert (health.status_code, health.json()) == (200, {"ok": True})
        async with Client(http.url, mode="auto") as client:
            await run(client, "1")
        metrics = (await raw.get(http.url.replace("/mcp", "/metrics"))).text
        assert "# TYPE toolbridge_runs_total counter\ntoolbridge_runs_total 1\n" in metrics


async def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    async with http_service_of(tmp_path) as http, httpx2.AsyncClient() as raw:
        assert (await raw.get(http.url.replace("/mcp", "/"))).status_code == 404
        assert (await raw.put(http.url, content=b"{}")).status_code == 405


async def test_a_call_under_way_may_end_before_the_server_does(tmp_path: Path) -> None:
    limits = HttpLimits(shutdown_seconds=30)
    results: list[object] = []

    async def use(url: str) -> None:
        async with httpx2.AsyncClient(timeout=30) as raw:
            headers = {**HEADERS, "mcp-session-id": await open_session(raw, url)}
            code = 'require("host:mcp-weather").slow({ seconds: 1 })'
            params = {"name": "run_code", "arguments": {"code": code}}
            answer = await raw.post(url, content=message("tools/call", params, 2), headers=headers)
            results.append(answer.text)

    async with anyio.create_task_group() as tasks, http_service_of(tmp_path, weather(), limits=limits) as http:
        tasks.start_soon(use, http.url)
        await until(lambda: http.service.watch.running)
    assert "slept" in str(results) or '"failure":null' in str(results)
