"""T27, among clients of `toolbridge serve --http`: however much one of them opens, others get through."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client

from serve.http_service import HEADERS, INITIALIZE, HttpService, http_service_of, message, open_session
from serve.serving import run, text_of
from toolbridge.serve.clients import peer_of
from toolbridge.serve.guest_sessions import SessionLimits
from toolbridge.serve.http_admission import HttpSessions, Requests
from toolbridge.serve.http_app import HttpLimits

pytestmark = pytest.mark.anyio

HELLO = message("initialize", INITIALIZE)
PATIENT = HttpLimits(body_seconds=120, header_seconds=120, shutdown_seconds=0.5)
"""Nothing is given up because of the time that it takes: what gets through gets through by admission."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def sockets(http: HttpService, requests: list[str]) -> AsyncGenerator[None]:
    """Connections on which only this was sent, held open."""
    async with AsyncExitStack() as stack:
        for request in requests:
            stream = await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", http.port))
            if request:
                await stream.send(request.format(port=http.port).encode())
        await http_is_idle(http)
        yield


async def http_is_idle(http: HttpService) -> None:
    """What was sent has been looked at: a request that comes later is answered later."""
    async with httpx2.AsyncClient(timeout=60) as client:
        assert (await client.get(http.url.replace("/mcp", "/healthz"))).status_code == 200


def no_body(session: str = "") -> str:
    named = f"Mcp-Session-Id: {session}\r\n" if session else ""
    return f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{{port}}\r\n{named}Content-Length: 1000\r\n\r\n"


async def lists_tools(client: httpx2.AsyncClient, http: HttpService, session: str) -> int:
    """How an established client's call is answered."""
    headers = {**HEADERS, "mcp-session-id": session}
    return (await client.post(http.url, content=message("tools/list"), headers=headers)).status_code


async def test_made_up_session_ids_are_their_peers(tmp_path: Path) -> None:
    """512 connections, each with an id of its own, and no body: clients of both eras and a new one get through."""
    async with http_service_of(tmp_path, limits=PATIENT) as http, httpx2.AsyncClient(timeout=60) as client:
        session = await open_session(client, http.url)
        async with sockets(http, [no_body(f"made-up-{number}") for number in range(512)]):
            assert await lists_tools(client, http, session) == 200
            await open_session(client, http.url)
            async with Client(http.url, mode="auto") as modern:
                assert (await run(modern, "1 + 1"))["value"] == 2
        assert http.app.requests.count <= 512


async def test_sessions_that_one_peer_opened_do_not_starve_another(tmp_path: Path) -> None:
    """Ids that are known to us: each session may always have one call under way, the established one too."""
    limits = HttpLimits(requests=16, clients=64, body_seconds=120, shutdown_seconds=0.5)
    async with http_service_of(tmp_path, limits=limits) as http, httpx2.AsyncClient(timeout=60) as client:
        session = await open_session(client, http.url)
        opened = [await open_session(client, http.url) for _ in range(24)]
        async with sockets(http, [no_body(each) for each in opened for _ in range(2)]):
            assert await lists_tools(client, http, session) == 200
            await open_session(client, http.url)


async def test_a_client_that_reconnects_in_a_loop_locks_nobody_out(tmp_path: Path) -> None:
    async with http_service_of(tmp_path) as http, httpx2.AsyncClient(timeout=60) as client:
        established = await open_session(client, http.url, **{"user-agent": "editor"})
        assert await lists_tools(client, http, established) == 200

        async def reconnect() -> None:
            for _ in range(67):
                answer = await client.post(http.url, content=HELLO, headers=HEADERS)
                statuses.append(answer.status_code)

        statuses: list[int] = []
        async with anyio.create_task_group() as tasks:
            for _ in range(15):
                tasks.start_soon(reconnect)
        assert statuses == [200] * 1_005
        assert len(http.app.sessions) == 1_000
        assert await lists_tools(client, http, established) == 200
        assert await lists_tools(client, http, await open_session(client, http.url)) == 200


async def test_the_least_recently_used_idle_session_is_evicted(tmp_path: Path) -> None:
    limits = HttpLimits(clients=3, shutdown_seconds=0.5)
    async with http_service_of(tmp_path, limits=limits) as http, httpx2.AsyncClient(timeout=60) as client:
        first, second, third = [await open_session(client, http.url) for _ in range(3)]
        for each in (first, second, third, first):
            assert await lists_tools(client, http, each) == 200
        fourth = await open_session(client, http.url)
        statuses = [await lists_tools(client, http, each) for each in (first, second, third, fourth)]
        assert statuses == [200, 404, 200, 200]


async def test_when_all_sessions_are_in_use_a_new_client_is_told_to_come_back(tmp_path: Path) -> None:
    limits = HttpLimits(clients=2, shutdown_seconds=0.5)
    async with http_service_of(tmp_path, limits=limits) as http, AsyncExitStack() as stack:
        client = await stack.enter_async_context(httpx2.AsyncClient(timeout=60))
        for _ in range(2):
            session = await open_session(client, http.url)
            headers = {**HEADERS, "mcp-session-id": session}
            await stack.enter_async_context(client.stream("GET", http.url, headers=headers))
        answer = await client.post(http.url, content=HELLO, headers=HEADERS)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


async def test_an_evicted_session_takes_its_guests_along(tmp_path: Path) -> None:
    limits = HttpLimits(clients=1, shutdown_seconds=0.5)
    async with http_service_of(tmp_path, limits=limits) as http, httpx2.AsyncClient(timeout=60) as client:
        session = await open_session(client, http.url)
        params = {"name": "run_code", "arguments": {"code": "1", "session": "new"}}
        headers = {**HEADERS, "mcp-session-id": session}
        await client.post(http.url, content=message("tools/call", params), headers=headers)
        assert len(http.service.sessions) == 1
        await open_session(client, http.url)
        assert len(http.service.sessions) == 0


async def test_idle_connections_keep_nobody_out(tmp_path: Path) -> None:
    """1,100 of them, silent or with half of their headers: the oldest idle one is closed for each new one."""
    async with http_service_of(tmp_path, limits=PATIENT) as http, httpx2.AsyncClient(timeout=60) as client:
        session = await open_session(client, http.url)
        async with sockets(http, ["", "POST /mcp HTTP/1.1\r\nHost: 127."] * 550):
            assert await lists_tools(client, http, session) == 200
            async with httpx2.AsyncClient(timeout=60) as other:
                await open_session(other, http.url)


async def test_one_address_has_four_guests_through_however_many_http_sessions(tmp_path: Path) -> None:
    async with http_service_of(tmp_path) as http, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Client(http.url, mode="legacy")) for _ in range(4)]
        kept: list[tuple[Client, str]] = []
        for number in range(16):
            client = clients[number % 4]
            answer = await client.call_tool("run_code", {"code": "1", "session": "new"})
            if not answer.is_error:
                assert answer.structured_content is not None
                kept.append((client, answer.structured_content["session"]))
            else:
                assert "too many sessions (4 of your address, 4 in all)" in text_of(answer)
        assert (len(kept), len(http.service.sessions)) == (4, 4)
        newcomer = await stack.enter_async_context(Client(http.url, mode="legacy"))
        assert (await run(newcomer, "1", session="new"))["session"]
        oldest, *others = kept
        gone = await oldest[0].call_tool("run_code", {"code": "1", "session": oldest[1]})
        assert "it has ended" in text_of(gone)
        for client, session in others:
            assert (await run(client, "2", session=session))["value"] == 2


def test_more_guests_in_all_are_more_for_each_address() -> None:
    assert [SessionLimits(total=total).share for total in (1, 16, 64)] == [4, 4, 16]


@pytest.mark.parametrize("greedy", [1, 2, 7])
def test_however_many_are_greedy_each_leaves_room_for_one_more(greedy: int) -> None:
    requests = Requests(512)
    clients = [("session", str(number)) for number in range(greedy)]
    for _ in range(512):
        for client in clients:
            if requests.has_room(client):
                requests.add(client)
    assert requests.has_room(("peer", "10.0.0.1"))
    assert 512 // (greedy + 1) - 1 <= 512 - requests.count <= 512 // (greedy + 1)


def test_whoever_has_most_sessions_loses_one_first() -> None:
    sessions = HttpSessions(4)
    for name, owner in (("a", "10.0.0.1"), ("b", "10.0.0.2"), ("c", "10.0.0.2"), ("d", "10.0.0.2"), ("e", "10.0.0.2")):
        sessions.add(name, (owner, "agent"))
    sessions.begin("b", "GET")
    assert sessions.victim() == "c"


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_one_host_is_one_peer(address: str, peer: str) -> None:
    assert peer_of({"client": (address, 1)}) == peer
