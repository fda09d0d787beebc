"""T27, HTTP: secrets go to the server they were configured for, encrypted, and nobody is reached by way of another.

One test or more for each clause, end to end: a canary server, in place of whoever must not be reached, stays unasked.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpcore2
import pytest
from anyio.abc import SocketStream

from servers.certificates import certificate
from servers.http_servers import EVENTS_HEAD, RawServer, Received, chunk, place, raw_server, reply, result, session
from toolbridge.errors import ServerError
from toolbridge.servers.auth.sign_in import BrowserSignIn
from toolbridge.servers.auth.tokens import Credentials, TokenStore
from toolbridge.servers.failures import BadAnswerError
from toolbridge.servers.http import network as http_transport

pytestmark = pytest.mark.anyio

SECRET = "s3cret-of-the-configuration"
HEADERS = {"Authorization": f"Bearer {SECRET}", "X-Key": SECRET}
REFUSED = (ServerError, BadAnswerError)

Names = Callable[[str, list[str]], None]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Says what a name resolves to, in place of a name server that an attacker runs."""
    known: dict[str, list[str]] = {}
    system = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in known:
            return system(host, port, *args, **kwargs)
        families = {True: socket.AF_INET6, False: socket.AF_INET}
        return [(families[":" in each], socket.SOCK_STREAM, 6, "", (each, port)) for each in known[name]]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known.__setitem__


@asynccontextmanager
async def canary() -> AsyncGenerator[RawServer]:
    """Somebody who must not be asked anything."""

    async def steal(_request: Received, stream: SocketStream) -> None:
        await stream.send(reply({"jsonrpc": "2.0", "id": 1, "result": {"stolen": True}}))

    async with raw_server(steal) as server:
        yield server


async def refused(url: str, **options: Any) -> str:
    """The words with which a connection, or its first request, is refused."""
    options.setdefault("headers", HEADERS)
    words = ""
    with anyio.fail_after(60):
        try:
            async with session(url, **options) as running:
                try:
                    await running.ask()
                except REFUSED as error:
                    words = str(error)
        except REFUSED as error:
            words = str(error)
    assert words, "it was answered"
    assert SECRET not in words
    return words


# ---- credentials on cross-origin redirects


@pytest.mark.parametrize("status", ["301 M", "302 F", "303 S", "307 T", "308 P"])
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_redirect_does_not_take_credentials_to_another_origin(status: str, transport: str) -> None:
    async with canary() as other:

        async def move(_request: Received, stream: SocketStream) -> None:
            await stream.send(reply(status=status, headers={"location": other.url()}))

        async with raw_server(move) as server:
            words = await refused(server.url(), transport=transport)
        assert "redirect" in words or "GET" in words
        assert other.received == []


async def test_a_redirect_to_the_same_host_on_another_port_is_another_origin() -> None:
    async with canary() as other:

        async def move(request: Received, stream: SocketStream) -> None:
            target = "/step" if request.target == "/mcp" else other.url()
            await stream.send(reply(status="307 T", headers={"location": target}))

        async with raw_server(move) as server:
            assert f"127.0.0.1:{other.port}" in await refused(server.url())
            assert [each.target for each in server.received] == ["/mcp", "/step"]
        assert other.received == []


async def test_the_older_transport_does_not_post_to_another_origin() -> None:
    async with canary() as other:

        async def name_another(_request: Received, stream: SocketStream) -> None:
            await stream.send(EVENTS_HEAD + chunk(f"event: endpoint\ndata: {other.url()}\n\n".encode()))

        async with raw_server(name_another) as server:
            assert "another server" in await refused(server.url(), transport="sse")
        assert other.received == []


async def test_a_sign_in_does_not_follow_redirects_to_another_origin(tmp_path: Path) -> None:
    async with canary() as other:

        async def move(request: Received, stream: SocketStream) -> None:
            if request.target == "/mcp":
                await stream.send(reply(status="401 Unauthorized"))
            else:
                await stream.send(reply(status="307 T", headers={"location": other.url()}))

        opened: list[str] = []
        async with raw_server(move) as server:
            await refused(
                server.url(),
                headers={},
                sign_in=BrowserSignIn(seconds=1, open_page=opened.append),
                store=TokenStore(tmp_path / "tokens", use_keyring=False),
            )
            assert len(server.received) > 1
        assert (other.received, opened) == ([], [])


# ---- tokens of one resource


@pytest.mark.parametrize("kept_under", ["its own place", "the place of the other"])
async def test_a_token_for_one_path_is_not_sent_to_another_on_the_same_host(tmp_path: Path, kept_under: str) -> None:
    """Many servers may share a host, and whoever writes a configuration chooses their names."""

    async def answer(request: Received, stream: SocketStream) -> None:
        await stream.send(reply(result(request)))

    store = TokenStore(tmp_path / "tokens", use_keyring=False)
    async with raw_server(answer) as server:
        victim, attacker = server.url("/victim"), server.url("/attacker")
        is_misplaced = kept_under == "the place of the other"
        resource = {"resource": victim, "authorization_servers": ["https://x.example"]} if is_misplaced else None
        kept = Credentials(tokens={"access_token": SECRET}, resource=resource)
        await store.save("weather", place(attacker if is_misplaced else victim), kept)
        for url in (victim, attacker):
            async with session(url, store=store) as running:
                await running.ask("ping")
        sent = {each.target: each.headers.get("authorization") for each in server.received}
    assert sent == {"/victim": None if is_misplaced else f"Bearer {SECRET}", "/attacker": None}


# ---- metadata addresses


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "metadata.google.internal",
        "[fe80::1]",
        "[64:ff9b::169.254.169.254]",
        "[::ffff:0:169.254.169.254]",
        "[64:ff9b:1::169.254.169.254]",
        "0.0.0.0",
    ],
)
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_metadata_address_is_not_reached_in_any_spelling(host: str, transport: str) -> None:
    words = await refused(f"http://{host}/mcp", headers={}, transport=transport)
    assert "never reached" in words or "can't be understood" in words


@pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254", "::ffff:169.254.169.254"])
async def test_a_metadata_address_is_not_reached_by_a_harmless_name(names: Names, address: str) -> None:
    names("api.example.com", [address])
    assert "never reached" in await refused("https://api.example.com/mcp")


async def test_a_metadata_address_is_not_reached_by_a_redirect() -> None:
    async def move(_request: Received, stream: SocketStream) -> None:
        await stream.send(reply(status="307 T", headers={"location": "http://169.254.169.254/latest"}))

    async with raw_server(move) as server:
        assert "redirect to http://169.254.169.254" in await refused(server.url())


# ---- plain http with secrets


@pytest.mark.parametrize(
    "host", ["mcp.example.com", "192.168.1.10", "nas.local", "127.0.0.1.nip.io", "localhost.evil.example"]
)
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_secrets_are_not_sent_unencrypted_to_another_machine(host: str, transport: str) -> None:
    assert "use https" in await refused(f"http://{host}/mcp", transport=transport)


async def test_tokens_are_not_sent_unencrypted_to_another_machine(tmp_path: Path) -> None:
    """A server on plain http can ask for a sign-in; it gets none, and no token that was kept from better times."""
    opened: list[str] = []
    sign_in = BrowserSignIn(seconds=1, open_page=opened.append)
    store = TokenStore(tmp_path / "tokens", use_keyring=False)
    await store.save("weather", place("http://mcp.example.com/mcp"), Credentials(tokens={"access_token": SECRET}))

    async def ask(_request: Received, stream: SocketStream) -> None:
        await stream.send(reply(status="401 Unauthorized"))

    async with raw_server(ask) as server:
        # The only way to a server of ours by another machine's name is to say that it is a proxy.
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TOOLBRIDGE_PROXY", server.url(""))
            words = await refused("http://mcp.example.com/mcp", headers={}, sign_in=sign_in, store=store)
        assert [each.headers.get("authorization") for each in server.received] == [None]
    assert "use https" in words
    assert opened == []


@pytest.mark.parametrize("url", [f"https://user:{SECRET}@mcp.example.com/mcp", f"http://{SECRET}@127.0.0.1/mcp"])
async def test_secrets_in_the_url_itself_are_refused_and_not_repeated(url: str) -> None:
    assert "user or password" in await refused(url, headers={})


# ---- CR/LF in headers


@pytest.mark.parametrize("value", [f"{SECRET}\r\nX-Evil: 1", f"{SECRET}\n", f"{SECRET}\r", f"{SECRET}\0"])
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_header_that_would_be_two_is_refused_and_not_repeated(value: str, transport: str) -> None:
    async with canary() as server:
        assert "line break" in await refused(server.url(), headers={"X-Key": value}, transport=transport)
        assert "name" in await refused(server.url(), headers={f"X-Key: {value}": "x"}, transport=transport)
        assert server.received == []


# ---- DNS rebinding to loopback


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_name_that_was_made_to_lead_to_this_machine_does_not_reach_it(
    names: Names, address: str, transport: str
) -> None:
    async with canary() as local:
        names("rebind.example.com", [address])
        url = f"http://rebind.example.com:{local.port}/mcp"
        assert "this machine" in await refused(url, headers={}, transport=transport)
        assert local.received == []


async def test_a_name_is_resolved_once_so_that_there_is_no_second_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address that is checked is the address that is used: a name server that changes its mind gains nothing."""
    asked: list[str] = []
    answers = [["192.0.2.1"], ["127.0.0.1"], ["127.0.0.1"]]  # 192.0.2.1 is nobody's

    def getaddrinfo(host: Any, port: Any, *_args: Any, **_kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        if name != "rebind.example.com":
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, port))]
        asked.append(name)
        (address,) = answers[min(len(asked), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    async with canary() as local:
        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        async with session(f"http://rebind.example.com:{local.port}/mcp") as running:
            for _ in range(2):
                with pytest.raises(REFUSED), anyio.move_on_after(1):
                    await running.ask(timeout=0.5)
        assert asked == ["rebind.example.com"] * 2
        assert local.received == []


# ---- and the same for whom a server names: a sign-in makes requests to wherever it says


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch, names: Names) -> Callable[[str, str, int], None]:
    """A name, the address that it leads to, and the port here at which that address is found: tests reach nobody."""
    places: dict[str, int] = {}
    backend: Any = httpcore2.AnyIOBackend
    connect = backend.connect_tcp

    async def connect_tcp(self: Any, host: str, port: int, **options: Any) -> Any:
        return await connect(self, "127.0.0.1" if host in places else host, places.get(host, port), **options)

    def add(name: str, address: str, port: int) -> None:
        names(name, [address])
        places[address] = port

    monkeypatch.setattr(backend, "connect_tcp", connect_tcp)
    return add


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("https://inside.example.com/prm", "private network"),
        ("https://rebind.example.com/prm", "this machine"),
        ("https://127.0.0.1/prm", "this machine"),
        ("https://10.0.0.1/prm", "private network"),
        ("https://localhost/prm", "this machine"),
        ("https://link.example.com/prm", "never reached"),
    ],
)
async def test_a_public_server_can_not_have_us_call_into_the_private_network(
    internet: Callable[[str, str, int], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    words: str,
) -> None:
    context, path = certificate(tmp_path, "mcp.example.com")
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    http_transport._tls.cache_clear()

    async def challenge(_request: Received, stream: SocketStream) -> None:
        header = {"www-authenticate": f'Bearer resource_metadata="{where}"'}
        await stream.send(reply(status="401 Unauthorized", headers=header))

    async with canary() as inside, raw_server(challenge, tls=context) as server:
        internet("mcp.example.com", "93.184.216.34", server.port)
        internet("inside.example.com", "10.0.0.1", inside.port)
        internet("rebind.example.com", "127.0.0.1", inside.port)
        internet("link.example.com", "169.254.169.254", inside.port)
        said = await refused(
            "https://mcp.example.com/mcp",
            headers={},
            sign_in=BrowserSignIn(seconds=1, open_page=lambda _: None),
            store=TokenStore(tmp_path / "tokens", use_keyring=False),
        )
        assert words in said
        assert len(server.received) == 1
        assert inside.received == []
    http_transport._tls.cache_clear()
