"""T27, from the other side: who may talk to `toolbridge serve --http`, and how much of our time anybody gets."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import httpx2
import pytest

from runtime.worlds import weather
from serve.http_service import HEADERS, INITIALIZE, http_service_of, message, open_session, raw
from toolbridge.serve.http import HttpLimits
from toolbridge.serve.http_guard import guard_of

pytestmark = pytest.mark.anyio

TOKEN = "a-token-that-nobody-guesses"
HELLO = message("initialize", INITIALIZE)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize(
    "host",
    [
        "rebound.example",
        "rebound.example:{port}",
        "127.0.0.1.nip.example:{port}",
        "127.0.0.1",
        "localhost.evil.example:{port}",
        "127.0.0.1:{port}@evil.example",
        "0.0.0.0:{port}",
        "",
    ],
)
async def test_a_name_that_was_bound_to_loopback_is_not_ours(tmp_path: Path, host: str) -> None:
    async with http_service_of(tmp_path) as http, httpx2.AsyncClient() as client:
        headers = {**HEADERS, "host": host.format(port=http.port)}
        answer = await client.post(http.url, content=HELLO, headers=headers)
        assert answer.status_code == 421
        assert "mcp-session-id" not in answer.headers


async def test_two_hosts_are_none(tmp_path: Path) -> None:
    async with http_service_of(tmp_path) as http:
        ours = f"127.0.0.1:{http.port}"
        request = f"POST /mcp HTTP/1.1\r\nHost: {ours}\r\nHost: {ours}\r\nContent-Length: 0\r\n\r\n".encode()
        answer = await raw(http.port, request, until=b"\r\n")
        assert answer.split(b" ")[1] in (b"400", b"421")


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "http://localhost:1", "http://127.0.0.1", "null", "http://127.0.0.1:{port}.evil.example"],
    ids=["another", "another port", "no port", "null", "a longer name"],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_a_page_of_another_origin_is_refused(tmp_path: Path, origin: str, method: str) -> None:
    async with http_service_of(tmp_path) as http, httpx2.AsyncClient() as client:
        headers = {**HEADERS, "origin": origin.format(port=http.port)}
        answer = await client.request(method, http.url, content=HELLO, headers=headers)
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers


async def test_our_own_address_and_no_origin_are_served(tmp_path: Path) -> None:
    async with http_service_of(tmp_path) as http, httpx2.AsyncClient() as client:
        await open_session(client, http.url)
        await open_session(client, http.url, origin=f"http://localhost:{http.port}")
        await open_session(client, http.url, host=f"localhost:{http.port}")


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", TOKEN],
)
async def test_without_the_token_nothing_is_served(tmp_path: Path, authorization: str | None) -> None:
    async with http_service_of(tmp_path, token=TOKEN) as http, httpx2.AsyncClient() as client:
        given = {} if authorization is None else {"authorization": authorization}
        for method, path in (("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/metrics")):
            url = http.url.replace("/mcp", path)
            answer = await client.request(method, url, content=HELLO, headers={**HEADERS, **given})
            assert answer.status_code == 401, (method, path)
            assert answer.headers["www-authenticate"].startswith("Bearer")
        await open_session(client, http.url, authorization=f"Bearer {TOKEN}")


async def test_a_body_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    limits = HttpLimits(body_bytes=10_000, shutdown_seconds=0.5)
    async with http_service_of(tmp_path, limits=limits) as http:
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{http.port}\r\nContent-Type: application/json\r\n".encode()
        declared = await raw(http.port, head + b"Content-Length: 1000000000\r\n\r\n", until=b"\r\n")
        assert declared.split(b" ")[1] == b"413"
        chunks = b"".join(b"1000\r\n" + b"x" * 4096 + b"\r\n" for _ in range(4))
        chunked = await raw(http.port, head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks, until=b"\r\n")
        assert chunked.split(b" ")[1] == b"413"


async def test_a_body_that_comes_too_slowly_is_given_up(tmp_path: Path) -> None:
    limits = HttpLimits(body_seconds=0.5, shutdown_seconds=0.5)
    async with http_service_of(tmp_path, limits=limits) as http:
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{http.port}\r\nContent-Type: application/json\r\n".encode()
        answer = await raw(http.port, head + b"Content-Length: 1000\r\n\r\n{", until=b"\r\n", seconds=10)
        assert answer.split(b" ")[1] == b"408"
        assert http.app.calls == 0


async def test_headers_that_come_too_slowly_are_given_up(tmp_path: Path) -> None:
    limits = HttpLimits(header_seconds=0.5, shutdown_seconds=0.5)
    async with (
        http_service_of(tmp_path, limits=limits) as http,
        await anyio.connect_tcp("127.0.0.1", http.port) as stream,
    ):
        await stream.send(b"POST /mcp HTTP/1.1\r\nHost: 127.")
        with anyio.fail_after(30), pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await stream.receive()


MODERN = {**HEADERS, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "run_code"}
SLOW = message(
    "tools/call",
    {
        "name": "run_code",
        "arguments": {"code": 'require("host:mcp-weather").slow({ seconds: 30 })'},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
)


@pytest.mark.parametrize("total", [2, 4])
async def test_one_request_too_many_is_told_to_come_back(tmp_path: Path, total: int) -> None:
    """Beside one call, half of the requests are left for others; of one address, clients of 2026-07-28 are one."""
    limits = HttpLimits(requests=total, shutdown_seconds=0.5)
    async with (
        http_service_of(tmp_path, weather(), limits=limits) as http,
        httpx2.AsyncClient(timeout=60) as client,
        anyio.create_task_group() as tasks,
    ):
        session = await open_session(client, http.url)
        for number in range(1 + total // 2):
            headers = {**MODERN, "mcp-session-id": f"made-up-{number}"}
            tasks.start_soon(partial(client.post, http.url, content=SLOW, headers=headers))
        with anyio.fail_after(30):
            while http.app.calls < 1 + total // 2:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        for headers in (MODERN, HEADERS, {**HEADERS, "mcp-session-id": "made up"}):
            refused = await client.post(http.url, content=SLOW, headers=headers)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert "Too many requests" in refused.text
        headers = {**HEADERS, "mcp-session-id": session}
        assert (await client.post(http.url, content=message("tools/list"), headers=headers)).status_code == 200
        health = await client.get(http.url.replace("/mcp", "/healthz"))
        assert health.status_code == 200
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("session", ["0" * 32, "", "a", "../../etc", "x" * 5_000])
async def test_a_forged_session_is_none(tmp_path: Path, session: str) -> None:
    async with http_service_of(tmp_path) as http, httpx2.AsyncClient() as client:
        await open_session(client, http.url)
        headers = {**HEADERS, "mcp-session-id": session}
        for method in ("POST", "GET", "DELETE"):
            answer = await client.request(method, http.url, content=message("tools/list"), headers=headers)
            assert answer.status_code in (400, 404), method


async def test_nobody_else_is_reached_by_a_name_that_begins_like_ours() -> None:
    guard = guard_of("127.0.0.1", 8787)
    assert "127.0.0.1:8787" in guard.hosts
    assert not any(each.startswith("0.0.0.0") for each in guard.hosts)
    everywhere = guard_of("0.0.0.0", 8787, more_hosts=("Tools.example.org",), token=TOKEN)
    assert everywhere.hosts == {"tools.example.org", "tools.example.org:8787"}
    assert everywhere.origins == frozenset()
