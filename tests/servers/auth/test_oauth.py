"""Signing in to a server, against a real authorization server."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest
from anyio.abc import SocketStream
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl
from starlette.responses import Response

from servers.authorization_server import ProtectedServer, json_answer, protected_server
from servers.http_servers import LIMITS, Received, config, never, place, raw_server, reply, result, session
from toolbridge.config.server_config import OAuth
from toolbridge.errors import ServerConnectError, ServerError, ServerTimeoutError
from toolbridge.servers.auth.sign_in import BrowserSignIn, HeadlessSignIn
from toolbridge.servers.auth.tokens import Credentials, TokenStore
from toolbridge.servers.http.transport import sign_in_to, sign_out

pytestmark = pytest.mark.anyio

PING: dict[str, Any] = {"method": "ping", "headers": {"mcp-protocol-version": "2025-11-25"}}


@pytest.fixture
def protected() -> Generator[ProtectedServer]:
    with protected_server() as server:
        yield server


@pytest.fixture
def closed() -> Generator[ProtectedServer]:
    """One whose clients are registered by hand."""
    with protected_server(registration=False) as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    return TokenStore(tmp_path / "tokens", use_keyring=False)


@pytest.fixture
def port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


def browser(server: ProtectedServer) -> BrowserSignIn:
    return BrowserSignIn(seconds=10, open_page=server.sign_in)


async def initialize(running: Any) -> None:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = await running.ask("initialize", params, timeout=60)
    assert answer["serverInfo"]["name"] == "weather"


async def kept(store: TokenStore, server: ProtectedServer) -> Credentials:
    found = await store.load("weather", place(server.url))
    assert found is not None
    return found


async def test_a_person_signs_in_once_and_not_again(protected: ProtectedServer, store: TokenStore) -> None:
    for _ in range(2):
        async with session(protected.url, sign_in=browser(protected), store=store) as running:
            await initialize(running)
    assert len(protected.visited) == 1
    page = parse_qs(urlsplit(protected.visited[0]).query)
    assert page["code_challenge_method"] == ["S256"]
    assert page["resource"] == [protected.url]
    assert page["redirect_uri"][0].startswith("http://127.0.0.1:")
    assert protected.authorization.paths.count("/register") == 1


async def test_a_sign_in_before_the_first_connection(protected: ProtectedServer, store: TokenStore) -> None:
    server = config(protected.url)
    assert await sign_in_to(server, {}, LIMITS, sign_in=browser(protected), store=store) is True
    async with session(protected.url, store=store) as running:  # nobody is there to sign in now
        await initialize(running)
    assert await sign_out(server, store=store) is True
    assert await sign_out(server, store=store) is False
    async with session(protected.url, store=store) as running:
        with pytest.raises(ServerConnectError, match="toolbridge sign-in weather"):
            await initialize(running)


async def test_a_server_that_does_not_answer_does_not_hold_up_a_sign_in(store: TokenStore) -> None:
    sign_in = BrowserSignIn(seconds=1, open_page=lambda _: None)
    async with raw_server(never) as server:
        for transport in ("http", "sse"):
            with pytest.raises(ServerTimeoutError, match=r"within 0\.2 s"):
                await sign_in_to(
                    replace(config(server.url(), transport=transport), connect_timeout=0.2),
                    {},
                    LIMITS,
                    sign_in=sign_in,
                    store=store,
                )


async def test_a_server_that_wants_no_sign_in_is_said_to_want_none(store: TokenStore) -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        await stream.send(reply(result(request)))

    async with raw_server(answer) as server:
        sign_in = BrowserSignIn(seconds=1, open_page=lambda _: None)
        assert await sign_in_to(config(server.url()), {}, LIMITS, sign_in=sign_in, store=store) is False


async def test_without_a_browser_the_address_is_pasted(
    protected: ProtectedServer, store: TokenStore, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask() -> str:
        page = next(line for line in capsys.readouterr().err.splitlines() if "/authorize?" in line)
        return protected.where_it_ends(page.strip())

    async with session(protected.url, sign_in=HeadlessSignIn(ask=ask), store=store) as running:
        await initialize(running)


async def test_with_nobody_to_sign_in_nothing_is_asked_of_anybody(
    protected: ProtectedServer, store: TokenStore
) -> None:
    async with session(protected.url, store=store) as running:
        with pytest.raises(ServerConnectError, match="401 Unauthorized: it wants a sign-in: run `toolbridge sign-in"):
            await initialize(running)
    assert protected.authorization.paths == []
    assert protected.resource.paths == ["/mcp"]


async def test_a_token_that_was_taken_back_is_renewed_without_a_person(
    protected: ProtectedServer, store: TokenStore
) -> None:
    await sign_in_to(config(protected.url), {}, LIMITS, sign_in=browser(protected), store=store)
    protected.forget_access()
    async with session(protected.url, store=store) as running:
        await initialize(running)
    assert len(protected.visited) == 1
    assert (await kept(store, protected)).tokens is not None


async def test_a_token_that_has_ended_is_renewed_before_it_is_sent(
    protected: ProtectedServer, store: TokenStore
) -> None:
    protected.provider.lifetime = 1
    await sign_in_to(config(protected.url), {}, LIMITS, sign_in=browser(protected), store=store)
    protected.provider.lifetime = 3600
    before = len(protected.resource.paths)
    async with session(protected.url, store=store) as running:
        await initialize(running)
        assert protected.resource.paths[before:] == ["/mcp"]


async def test_a_sign_in_that_ended_for_good_is_asked_for_again(protected: ProtectedServer, store: TokenStore) -> None:
    await sign_in_to(config(protected.url), {}, LIMITS, sign_in=browser(protected), store=store)
    protected.forget_access()
    protected.provider.refresh.clear()
    async with session(protected.url, store=store) as running:
        with pytest.raises(
            ServerConnectError, match=r"could not be renewed .*invalid_grant.*: run `toolbridge sign-in"
        ):
            await initialize(running)
    async with session(protected.url, sign_in=browser(protected), store=store) as running:
        await initialize(running)
    assert len(protected.visited) == 2


async def test_an_authorization_server_that_is_down_does_not_cost_the_sign_in(
    protected: ProtectedServer, store: TokenStore
) -> None:
    await sign_in_to(config(protected.url), {}, LIMITS, sign_in=browser(protected), store=store)
    protected.forget_access()
    protected.authorization.instead["/token"] = Response("down", 503)
    async with session(protected.url, store=store) as running:
        with pytest.raises(ServerConnectError, match="answered HTTP 503"):
            await initialize(running)
        del protected.authorization.instead["/token"]
        await initialize(running)
    assert len(protected.visited) == 1


async def test_requests_at_once_cause_one_sign_in(protected: ProtectedServer, store: TokenStore) -> None:
    opening = session(protected.url, sign_in=browser(protected), store=store)
    async with opening as running, anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(initialize, running)
    assert len(protected.visited) == 1


async def test_the_deadline_of_a_request_stands_still_while_a_person_signs_in(
    protected: ProtectedServer, store: TokenStore
) -> None:
    def slowly(page: str) -> None:
        time.sleep(1.5)
        protected.sign_in(page)

    async with session(protected.url, sign_in=BrowserSignIn(open_page=slowly), store=store) as running:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        await running.ask("initialize", params, timeout=1.2)


async def test_nobody_is_asked_twice_in_vain(protected: ProtectedServer, store: TokenStore) -> None:
    opened: list[str] = []
    sign_in = BrowserSignIn(seconds=0.2, open_page=opened.append)
    async with session(protected.url, sign_in=sign_in, store=store) as running:
        with pytest.raises(ServerConnectError, match="nobody signed in within"):
            await initialize(running)
        with pytest.raises(ServerConnectError, match="it wants a sign-in"):
            await initialize(running)
    assert len(opened) == 1


async def test_only_a_request_that_somebody_waits_for_opens_a_browser(
    protected: ProtectedServer, store: TokenStore
) -> None:
    async with session(protected.url, sign_in=browser(protected), store=store) as running:
        await running.dispatcher.notify("notifications/initialized", None)
    assert protected.visited == []


async def test_the_scopes_of_the_configuration_are_asked_for(protected: ProtectedServer, store: TokenStore) -> None:
    oauth = OAuth(scopes=("read", "write"))
    async with session(protected.url, sign_in=browser(protected), store=store, oauth=oauth) as running:
        await initialize(running)
    assert protected.provider.asked[0].scopes == ["read", "write"]


async def test_without_scopes_in_the_configuration_the_servers_own_are_asked_for(
    protected: ProtectedServer, store: TokenStore
) -> None:
    async with session(protected.url, sign_in=browser(protected), store=store) as running:
        await initialize(running)
    assert protected.provider.asked[0].scopes == ["read"]


def registered_by_hand(port: int, method: str) -> OAuthClientInformationFull:
    return OAuthClientInformationFull(
        client_id="me",
        client_secret=None if method == "none" else "hand-made-secret",
        redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}/callback")],
        token_endpoint_auth_method=method,
        scope="read",
    )


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "none"])
async def test_a_client_that_was_registered_by_hand(
    closed: ProtectedServer, store: TokenStore, port: int, method: str
) -> None:
    client = closed.provider.clients["me"] = registered_by_hand(port, method)
    if method == "client_secret_post":
        metadata = {
            "issuer": f"{closed.issuer}/",
            "authorization_endpoint": f"{closed.issuer}/authorize",
            "token_endpoint": f"{closed.issuer}/token",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }
        closed.authorization.instead["/.well-known/oauth-authorization-server"] = json_answer(metadata)
    oauth = OAuth(client_id="me", redirect_port=port)
    options: dict[str, Any] = {"store": store, "oauth": oauth, "client_secret": client.client_secret}
    async with session(closed.url, sign_in=browser(closed), **options) as running:
        await initialize(running)
    assert "/register" not in closed.authorization.paths
    found = await kept(store, closed)
    assert found.client is not None
    assert found.client["issuer"].rstrip("/") == closed.issuer
    assert "hand-made-secret" not in json.dumps(found.client)


async def test_a_secret_made_by_hand_goes_to_no_other_authorization_server(
    closed: ProtectedServer, protected: ProtectedServer, store: TokenStore, port: int
) -> None:
    oauth = OAuth(client_id="me", redirect_port=port)
    options: dict[str, Any] = {"store": store, "oauth": oauth, "client_secret": "hand-made-secret"}
    closed.provider.clients["me"] = registered_by_hand(port, "client_secret_basic")
    async with session(closed.url, sign_in=browser(closed), **options) as running:
        await initialize(running)
    assert any(closed.authorization.credentials)
    # From now on the server names another authorization server, where "me" is known, too.
    other = protected
    other.provider.clients["me"] = registered_by_hand(port, "client_secret_basic")
    moved = {"resource": closed.url, "authorization_servers": [f"{other.issuer}/"], "scopes_supported": ["read"]}
    closed.resource.instead["/.well-known/oauth-protected-resource/mcp"] = json_answer(moved)
    closed.forget_access()
    closed.provider.refresh.clear()
    async with session(closed.url, sign_in=browser(other), **options) as running:
        with pytest.raises(ServerError):
            await initialize(running)
    assert "/token" in other.authorization.paths  # as a client of its own, newly registered
    assert not any(other.authorization.credentials)


async def test_a_client_registered_for_a_port_that_is_taken_is_registered_anew(
    protected: ProtectedServer, store: TokenStore
) -> None:
    server = config(protected.url)
    await sign_in_to(server, {}, LIMITS, sign_in=browser(protected), store=store)
    first = parse_qs(urlsplit(protected.visited[0]).query)["redirect_uri"][0]
    protected.forget_access()
    protected.provider.refresh.clear()
    taken = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=urlsplit(first).port or 0)
    async with taken:
        await sign_in_to(server, {}, LIMITS, sign_in=browser(protected), store=store)
    assert protected.authorization.paths.count("/register") == 2


# ---- servers that are up to something


HOSTILE = {
    "private address": ("http://192.168.1.1", "unencrypted"),
    "metadata address": ("http://169.254.169.254", "never reached"),
    "metadata by https": ("https://169.254.169.254", "never reached"),
    "plain http": ("http://auth.example.com", "unencrypted"),
    "user in the URL": ("https://user@auth.example.com", "user or password"),
    "another scheme": ("ftp://auth.example.com", "badly|named|answered"),
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_a_server_can_not_have_us_call_just_anybody(
    protected: ProtectedServer, store: TokenStore, case: str
) -> None:
    """The address of the authorization server is the server's own choice."""
    issuer, words = HOSTILE[case]
    metadata = {"resource": protected.url, "authorization_servers": [issuer]}
    protected.resource.instead["/.well-known/oauth-protected-resource/mcp"] = json_answer(metadata)
    protected.resource.instead["/.well-known/oauth-protected-resource"] = json_answer(metadata)
    async with session(protected.url, sign_in=browser(protected), store=store) as running:
        with pytest.raises(ServerConnectError, match=f"could not be signed in to: .*({words})"):
            await initialize(running)
    assert protected.visited == []


@pytest.mark.parametrize(
    "place",
    ["http://192.168.7.7/prm", "https://169.254.169.254/prm", "file:///etc/passwd", "https://[", "http://metadata/"],
)
async def test_the_place_of_its_metadata_is_no_way_around_that(store: TokenStore, place: str) -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        challenge = {"www-authenticate": f'Bearer resource_metadata="{place}"'}
        await stream.send(reply(status="401 Unauthorized", headers=challenge))

    opened: list[str] = []
    async with raw_server(answer) as server:
        sign_in = BrowserSignIn(seconds=1, open_page=opened.append)
        async with session(server.url(), sign_in=sign_in, store=store) as running:
            with pytest.raises(ServerConnectError, match="could not be signed in to"):
                await running.ask("initialize")
        assert {each.target for each in server.received} == {"/mcp"}
    assert opened == []


@pytest.mark.parametrize("endpoint", ["authorization_endpoint", "token_endpoint", "registration_endpoint"])
async def test_an_authorization_server_can_not_pass_us_on_to_just_anybody(
    protected: ProtectedServer, store: TokenStore, endpoint: str
) -> None:
    metadata = {
        "issuer": f"{protected.issuer}/",
        "authorization_endpoint": f"{protected.issuer}/authorize",
        "token_endpoint": f"{protected.issuer}/token",
        "registration_endpoint": f"{protected.issuer}/register",
        endpoint: "http://192.168.1.1/x",
    }
    protected.authorization.instead["/.well-known/oauth-authorization-server"] = json_answer(metadata)
    async with session(protected.url, sign_in=browser(protected), store=store) as running:
        with pytest.raises(ServerConnectError, match="unencrypted"):
            await initialize(running)
    assert [page for page in protected.visited if "192.168" in page] == []


BAD_ANSWERS: dict[str, Response] = {
    "no JSON": Response(b"\xff\xfe<html>", 200),
    "500": Response(b"\xff\xfe", 500),
    "deep": Response(b"[" * 50_000, 200),
    "endless": Response(b" " * 3_000_000, 200),
    "list": json_answer([]),
    "odd types": json_answer({"access_token": 7, "expires_in": "soon", "client_id": [1]}),
    "huge lifetime": json_answer({"access_token": "a", "expires_in": 10**400, "client_id": "x"}),
    "empty": Response(b"", 200),
    "redirect elsewhere": Response(b"", 307, headers={"location": "https://evil.example/token"}),
    "echo": json_answer({"error": "invalid_request", "error_description": "you sent code_verifier=SECRET"}, 400),
}
PATHS = ["/.well-known/oauth-authorization-server", "/register", "/token"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("how", BAD_ANSWERS)
async def test_whatever_an_authorization_server_answers_is_a_typed_error(
    store: TokenStore, path: str, how: str, shared: ProtectedServer, caplog: pytest.LogCaptureFixture
) -> None:
    shared.authorization.instead = {path: BAD_ANSWERS[how]}
    try:
        async with session(
            shared.url, sign_in=BrowserSignIn(seconds=1, open_page=shared.sign_in), store=store
        ) as running:
            with caplog.at_level(logging.DEBUG), anyio.fail_after(60), pytest.raises(ServerConnectError) as raised:
                await initialize(running)
    finally:
        shared.authorization.instead = {}
    assert "SECRET" not in str(raised.value)
    assert "SECRET" not in caplog.text
    assert "Traceback" not in caplog.text


async def test_an_answer_of_an_authorization_server_is_read_up_to_a_bound(
    protected: ProtectedServer, store: TokenStore
) -> None:
    metadata = {
        "issuer": f"{protected.issuer}/",
        "authorization_endpoint": f"{protected.issuer}/authorize",
        "token_endpoint": f"{protected.issuer}/token",
        "padding": "x" * 300_000,
    }
    protected.authorization.instead["/.well-known/oauth-authorization-server"] = json_answer(metadata)
    async with session(protected.url, sign_in=browser(protected), store=store) as running:
        with pytest.raises(ServerConnectError, match="too long"):
            await initialize(running)


@pytest.fixture(scope="module")
def shared() -> Generator[ProtectedServer]:
    with protected_server() as server:
        yield server


async def test_a_server_that_repeats_our_token_does_not_get_it_into_an_error(store: TokenStore) -> None:
    token = "t0ken-of-ours-1234567890"

    async def answer(request: Received, stream: SocketStream) -> None:
        sent = request.headers.get("authorization", "")
        error = {"code": -32000, "message": f"bad token {sent}"}
        await stream.send(reply({**result(request), "error": error, "result": None}))

    async with raw_server(answer) as server:
        await store.save("weather", place(server.url()), Credentials(tokens={"access_token": token}))
        async with session(server.url(), store=store) as running:
            error = await running.error()
        assert server.received[0].headers["authorization"] == f"Bearer {token}"
    assert token not in str(error)
    assert "bad token" in str(error)


async def test_a_token_that_can_not_be_sent_is_not_sent(store: TokenStore) -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        await stream.send(reply(result(request)))

    async with raw_server(answer) as server:
        await store.save("weather", place(server.url()), Credentials(tokens={"access_token": "a\r\nX-Evil: 1"}))
        async with session(server.url(), store=store) as running:
            with pytest.raises(ServerConnectError, match="authorization has a line break"):
                await running.ask()
        assert server.received == []


async def test_tokens_are_in_no_log_repr_or_error(
    protected: ProtectedServer, store: TokenStore, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with session(protected.url, sign_in=browser(protected), store=store) as running:
            await initialize(running)
            protected.forget_access()
            await initialize(running)
            await running.ask(**PING)
    found = await kept(store, protected)
    assert found.tokens is not None
    output = capsys.readouterr()
    for secret in (found.tokens["access_token"], found.tokens["refresh_token"]):
        assert secret not in caplog.text + output.err + output.out + repr(found) + repr(running)
