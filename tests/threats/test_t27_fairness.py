"""T27, among clients of `toolbridge serve --http`: however much one of them opens, others get through."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
import pytest
from mcp import Client

from serve.http_service import HEADERS, INITIALIZE, HttpService, http_service_of, message, open_session
from serve.serving import run, text_of
from toolbridge.serve.clients import peer_of
from toolbridge.serve.fairness import LOOPBACK, Holder
from toolbridge.serve.http import Connections, HttpLimits, open_socket
from toolbridge.serve.http_guard import HttpSessions, Requests
from toolbridge.serve.run_code import SessionLimits

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
            for _ in range(67):  # a kept connection may be closed as idle at the moment of a request
                answer = await client.post(http.url, content=HELLO, headers={**HEADERS, "connection": "close"})
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


@pytest.fixture
def small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A response that is not read soon fills the sockets."""

    def open_small(host: str, port: int) -> socket.socket:
        listening = open_socket(host, port)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        return listening

    monkeypatch.setattr("serve.http_service.open_socket", open_small)


@asynccontextmanager
async def long_response(tmp_path: Path, *, send_seconds: float) -> AsyncGenerator[tuple[HttpService, socket.socket]]:
    """A program whose response of 90 kB is for its client to read."""
    limits = HttpLimits(send_seconds=send_seconds, shutdown_seconds=0.5)
    async with http_service_of(tmp_path, limits=limits) as http, httpx2.AsyncClient(timeout=60) as client:
        session = await open_session(client, http.url)
        body = message("tools/call", {"name": "run_code", "arguments": {"code": "'x'.repeat(90_000)"}})
        head = {**HEADERS, "host": f"127.0.0.1:{http.port}", "mcp-session-id": session, "content-length": len(body)}
        request = "POST /mcp HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in head.items()) + "\r\n"
        with socket.socket() as reading:
            reading.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            reading.setblocking(False)
            await asyncio.get_running_loop().sock_connect(reading, ("127.0.0.1", http.port))
            await asyncio.get_running_loop().sock_sendall(reading, request.encode() + body)
            yield http, reading


@pytest.mark.usefixtures("small_buffers")
async def test_a_client_that_does_not_read_its_response_is_hung_up_on(tmp_path: Path) -> None:
    """Else its request is under way, and its session in use, for as long as it likes."""
    async with long_response(tmp_path, send_seconds=0.2) as (http, unread):
        with anyio.fail_after(60):
            while not http.service.watch.runs or http.app.requests.count:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        assert len(unread.recv(2**20)) < 90_000


@pytest.mark.usefixtures("small_buffers")
async def test_a_client_that_reads_slowly_gets_all_of_its_response(tmp_path: Path) -> None:
    async with long_response(tmp_path, send_seconds=2) as (_, reading):
        got = 0
        while got < 90_000:
            await anyio.sleep(0.5)  # in all, longer than `send_seconds`
            for _ in range(4):
                part = await asyncio.get_running_loop().sock_recv(reading, 2_500)
                assert part, "it was hung up on"
                got += len(part)


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


class Held:
    """Requests that stay under way."""

    def __init__(self, total: int) -> None:
        self.requests = Requests(total)
        self._under_way: list[object] = []

    def streams(self, peer: str, session: str, most: int = 512) -> int:
        """How many of them a client gets."""
        client = Holder(peer, ("session", session))
        for number in range(most):
            if not self.requests.has_room(client, is_call=False):
                return number
            one = self.requests.under_way(client, is_call=False)
            one.__enter__()
            self._under_way.append(one)
        return most


@pytest.mark.parametrize("greedy", [1, 2, 7])
def test_however_many_are_greedy_each_leaves_room_for_one_more(greedy: int) -> None:
    held = Held(512)
    for _ in range(512):
        for number in range(greedy):
            held.streams(LOOPBACK, str(number), 1)
    assert 512 // (greedy + 1) - 1 <= 512 - held.requests.count <= 512 // (greedy + 1)


def test_however_many_sessions_an_address_opens_it_leaves_half() -> None:
    held = Held(512)
    assert sum(held.streams("10.0.0.1", str(number)) for number in range(600)) == 256
    assert held.streams("10.0.0.2", "other") == 64


def test_one_client_leaves_room_for_another_of_its_address() -> None:
    held = Held(512)
    assert held.streams("10.0.0.1", "greedy") == 128
    assert held.streams("10.0.0.1", "other") > 0


def test_each_client_may_always_have_one_call() -> None:
    held = Held(4)
    assert sum(held.streams(LOOPBACK, str(number)) for number in range(4)) == 4
    requests = held.requests
    newcomer = Holder(LOOPBACK, ("peer", ""))
    assert not requests.has_room(newcomer, is_call=False)
    assert requests.has_room(newcomer, is_call=True)
    with requests.under_way(newcomer, is_call=True):
        assert not requests.has_room(newcomer, is_call=True)
    assert requests.has_room(newcomer, is_call=True)


async def test_only_its_own_address_makes_a_client_give_up_a_body() -> None:
    requests, owed = Requests(1), anyio.CancelScope()
    with requests.awaiting_body(Holder("10.0.0.1", ("peer", "")), owed, is_only_call=False):
        with requests.under_way(Holder("10.0.0.1", ("peer", "")), is_call=False):
            assert not requests.has_room(Holder("10.0.0.2", ("peer", "")), is_call=False)
            assert not requests.shed("10.0.0.2")
            assert not owed.cancel_called
            assert requests.has_room(Holder("10.0.0.1", ("session", "a")), is_call=False)
        assert owed.cancel_called


def test_whoever_has_most_sessions_loses_one_first() -> None:
    sessions = HttpSessions(4)
    for name, owner in (("a", "10.0.0.1"), ("b", "10.0.0.2"), ("c", "10.0.0.2"), ("d", "10.0.0.2"), ("e", "10.0.0.2")):
        sessions.add(name, (owner, f"agent {name}"))
    sessions.begin("b", "GET")
    assert sessions.victim() == "c"


def test_made_up_user_agents_cost_a_client_with_several_sessions_none() -> None:
    """Two of an editor, and one each of agents that were thought up: nothing tells who is greedy, but who used what."""
    sessions = HttpSessions(6)
    for number in range(6):
        sessions.add(str(number), (LOOPBACK, "editor" if number < 2 else f"made up {number}"))
        for _ in range(2):
            sessions.begin(str(number), "POST")
            sessions.end(str(number), "POST")
    for name in ("0", "1"):
        sessions.begin(name, "POST")
        sessions.end(name, "POST")
    sessions.add("new", (LOOPBACK, "made up"))
    assert sessions.victim(new="new") == "2"


class FakeConnection:
    """What `Connections` sees of one."""

    def __init__(self, host: str) -> None:
        self.client = (host, 1)
        self.transport = self
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


def test_one_address_leaves_half_of_the_connections() -> None:
    connections = Connections(8, lambda _: False)

    def connect(host: str) -> FakeConnection:
        connection = FakeConnection(host)
        connections.add(cast("Any", connection))
        if not connection.is_aborted:
            connections.use(cast("Any", connection))
        return connection

    assert [connect("10.0.0.1").is_aborted for _ in range(6)] == [False] * 4 + [True] * 2
    assert not connect("10.0.0.2").is_aborted


def test_a_new_address_gets_a_connection_of_the_one_with_the_most() -> None:
    """However many addresses hold idle connections, a newcomer is let in."""
    connections = Connections(4, lambda _: False)
    hosts = ["10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]
    opened = [FakeConnection(host) for host in hosts]
    for each in opened:
        connections.add(cast("Any", each))
    assert [each.is_aborted for each in opened] == [True, False, False, False, False]


def test_the_oldest_idle_connection_of_the_same_address_goes() -> None:
    connections = Connections(4, lambda _: False)
    other, first, second, third = (FakeConnection(host) for host in ("10.0.0.2", *["10.0.0.1"] * 3))
    for each in (other, first, second, third):
        connections.add(cast("Any", each))
    assert [each.is_aborted for each in (other, first, second, third)] == [False, True, False, False]


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("127.0.0.1", LOOPBACK),
        ("127.1.2.3", LOOPBACK),
        ("::1", LOOPBACK),
        ("::ffff:127.0.0.2", LOOPBACK),
        ("", ""),
    ],
)
def test_one_host_is_one_peer(address: str, peer: str) -> None:
    assert peer_of({"client": (address, 1)}) == peer
