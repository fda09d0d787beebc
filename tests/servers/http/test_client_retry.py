"""Busy servers: what is asked again, when, and what never is."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from anyio.abc import SocketStream

from growth import patience
from servers.http_servers import Received, raw_server, reply, result, session
from toolbridge.servers.http.answers import HttpStatusError
from toolbridge.servers.http.client import parse_retry_after, retry_delay

NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        (" 7 ", 7.0),
        ("999999999", 999999999.0),
        ("9" * 5000, float("inf")),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("\u0661", None),
        (format_datetime(NOW + timedelta(seconds=30), usegmt=True), 30.0),
        (format_datetime(NOW - timedelta(days=1), usegmt=True), 0.0),
        ("Mon, 16 Nov 2026 12:00:05", 5.0),
        ("Mon, 99 Foo 99999 99:99:99 GMT", None),
    ],
)
def test_what_a_server_asks_for_is_understood_or_ignored(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, NOW) == seconds


def test_without_a_wish_the_pauses_grow_and_vary() -> None:
    def pause(attempts: int) -> float:
        delay = retry_delay("tools/list", 503, None, attempts=attempts, seconds_left=60)
        assert delay is not None
        return delay

    assert all(0.125 <= pause(1) <= 0.375 for _ in range(50))
    assert all(1.0 <= pause(4) <= 3.0 for _ in range(50))
    assert len({pause(2) for _ in range(10)}) > 1
    assert retry_delay("tools/list", 503, None, attempts=5, seconds_left=60) is None
    assert retry_delay("tools/list", 503, "3600", attempts=1, seconds_left=float("inf")) is None


@pytest.mark.parametrize("method", ["tools/call", "resources/read", "prompts/get", "completion/complete", "unknown"])
def test_what_may_have_an_effect_is_not_repeated(method: str) -> None:
    assert retry_delay(method, 503, "0", attempts=1, seconds_left=60) is None


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 408, 500, 501])
def test_only_a_busy_server_is_asked_again(status: int) -> None:
    assert retry_delay("tools/list", status, "0", attempts=1, seconds_left=60) is None


@pytest.mark.anyio
async def test_a_busy_server_is_asked_again_when_it_said_it_would_be_free() -> None:
    times: list[float] = []

    async def busy(request: Received, stream: SocketStream) -> None:
        times.append(time.monotonic())
        wait = reply(status="429 Too Many Requests", headers={"retry-after": "1"})
        await stream.send(wait if len(times) == 1 else reply(result(request)))

    async with raw_server(busy) as server, session(server.url()) as running:
        assert await running.ask("tools/list", timeout=60) == {"ok": True}
        assert 1.0 <= times[1] - times[0] < 1.0 + patience(1.0)


@pytest.mark.anyio
@pytest.mark.parametrize("status", ["429 T", "502 B", "503 S", "504 G"])
@pytest.mark.parametrize("method", ["initialize", "server/discover", "tools/list", "ping"])
async def test_connecting_and_listing_outlast_a_short_outage(method: str, status: str) -> None:
    async def busy(request: Received, stream: SocketStream) -> None:
        await stream.send(reply(status=status) if len(server.received) < 3 else reply(result(request)))

    async with raw_server(busy) as server, session(server.url()) as running:
        assert await running.ask(method, timeout=60) == {"ok": True}
        assert len(server.received) == 3


@pytest.mark.anyio
@pytest.mark.parametrize("status", ["429 T", "502 B", "503 S", "504 G"])
async def test_a_call_is_never_sent_twice(status: str) -> None:
    async def busy(request: Received, stream: SocketStream) -> None:
        await stream.send(reply(status=status, headers={"retry-after": "0"}))

    async with raw_server(busy) as server, session(server.url()) as running:
        assert isinstance(await running.error("tools/call"), HttpStatusError)
        assert len(server.received) == 1


@pytest.mark.anyio
async def test_a_wait_past_the_deadline_is_not_begun() -> None:
    async def busy(request: Received, stream: SocketStream) -> None:
        await stream.send(reply(status="503 S", headers={"retry-after": "3600"}))

    async with raw_server(busy) as server, session(server.url()) as running:
        began = time.monotonic()
        error = await running.error("tools/list", timeout=5)
        assert "asks to wait for 3600 s" in str(error)
        assert time.monotonic() - began < patience(1)
        assert len(server.received) == 1


@pytest.mark.anyio
async def test_an_outage_that_does_not_end_is_reported_as_one() -> None:
    async def busy(request: Received, stream: SocketStream) -> None:
        await stream.send(reply(status="503 S", headers={"retry-after": "0"}))

    async with raw_server(busy) as server, session(server.url()) as running:
        assert "503 Service Unavailable" in str(await running.error("tools/list"))
        assert len(server.received) == 5
