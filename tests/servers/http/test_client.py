"""The client of one server: what it sends, to whom, and what others get to see of it."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import SocketStream

from growth import patience
from servers.certificates import certificate
from servers.http_servers import EVENTS_HEAD, Received, chunk, events, hang_up, raw_server, reply, result, session
from toolbridge.errors import ServerConnectError
from toolbridge.servers.http import network as http_transport
from toolbridge.servers.http.network import FOR_THE_SERVER, open_client, read_body, unlogged
from toolbridge.servers.http.ssrf import HttpRuleError

pytestmark = pytest.mark.anyio

SECRET = "s3cret-of-the-configuration"


async def good(request: Received, stream: SocketStream) -> None:
    await stream.send(reply(result(request)))


async def test_the_configured_headers_are_sent_with_every_request() -> None:
    async with raw_server(good) as server, session(server.url(), headers={"X-Key": SECRET}) as running:
        await running.ask()
        await running.dispatcher.notify("notifications/x", None)
        assert [each.headers["x-key"] for each in server.received] == [SECRET, SECRET]
        assert all(each.headers["user-agent"].startswith("toolbridge/") for each in server.received)


async def test_headers_of_the_protocol_are_passed_on_and_no_others() -> None:
    headers = {"Mcp-Method": "tools/call", "MCP-Protocol-Version": "2026-07-28", "X-Evil": "1", "authorization": "x"}
    async with raw_server(good) as server, session(server.url()) as running:
        await running.ask(headers=headers)
        sent = server.received[0].headers
        assert (sent["mcp-method"], sent["mcp-protocol-version"]) == ("tools/call", "2026-07-28")
        assert "x-evil" not in sent
        assert "authorization" not in sent


async def test_a_header_of_the_protocol_that_can_not_be_sent_fails_its_request() -> None:
    async with raw_server(good) as server, session(server.url()) as running:
        with pytest.raises(ServerConnectError, match="mcp-name has a line break"):
            await running.ask(headers={"Mcp-Name": f"a\r\nX-Evil: {SECRET}"})
        with pytest.raises(ServerConnectError, match="was not reached: The header 'mcp-param-my region'") as caught:
            await running.ask(headers={"Mcp-Param-My Region": "x"})
        assert "taken effect" not in str(caught.value)
        with pytest.raises(ServerConnectError, match=r"was not reached: The header 'mcp-param-a+…' is too long"):
            await running.ask(headers={"Mcp-Param-" + "a" * 300: "x"})
        assert await running.ask() == {"ok": True}
        assert len(server.received) == 1


async def test_cookies_are_not_kept() -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        await stream.send(reply(result(request), headers={"set-cookie": "id=1; Path=/"}))

    async with raw_server(answer) as server, session(server.url()) as running:
        await running.ask()
        await running.ask()
        assert "cookie" not in server.received[1].headers


async def test_a_connection_is_used_again() -> None:
    streams: set[SocketStream] = set()

    async def answer(request: Received, stream: SocketStream) -> None:
        streams.add(stream)
        await good(request, stream)

    async with raw_server(answer) as server, session(server.url()) as running:
        for _ in range(5):
            await running.ask()
        assert len(streams) == 1


@pytest.mark.parametrize("ends", [True, False])
async def test_the_connection_of_an_event_stream_is_used_again_if_the_stream_ends(ends: bool) -> None:
    streams: set[SocketStream] = set()

    async def answer(request: Received, stream: SocketStream) -> None:
        streams.add(stream)
        await stream.send(EVENTS_HEAD + chunk(events(result(request))) + (b"0\r\n\r\n" if ends else b""))

    async with raw_server(answer) as server, session(server.url()) as running:
        began = time.monotonic()
        for _ in range(20):
            assert await running.ask() == {"ok": True}
        assert len(streams) == (1 if ends else 20)
        assert time.monotonic() - began < patience(2)


async def test_a_server_that_closes_without_saying_so_loses_no_call() -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        await stream.send(reply(result(request)))
        await anyio.sleep(0.003)  # long enough for the next request to be on its way
        hang_up()

    async with raw_server(answer) as server, session(server.url()) as running:
        await running.ask("server/discover")
        await running.ask("tools/list")
        for _ in range(30):
            assert await running.ask("tools/call") == {"ok": True}


async def test_a_server_that_keeps_connections_is_never_asked_to_close_them() -> None:
    async with raw_server(good) as server, session(server.url()) as running:
        for _ in range(5):
            await running.ask()
        assert {each.headers.get("connection") for each in server.received} == {"keep-alive"}


# ---- proxies


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def proxy(_request: Received, stream: SocketStream) -> None:
        await stream.send(reply(status="502 Bad Gateway"))

    async with raw_server(proxy) as other, raw_server(good) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, other.url(""))
        async with session(server.url()) as running:
            assert await running.ask() == {"ok": True}
        assert other.received == []


async def test_a_proxy_that_was_configured_is_used_and_asked_for_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async def proxy(request: Received, stream: SocketStream) -> None:
        await stream.send(reply(result(request)))

    async with raw_server(proxy) as other:
        monkeypatch.setenv("TOOLBRIDGE_PROXY", other.url(""))
        async with session("http://mcp.example.com/mcp") as running:
            assert await running.ask() == {"ok": True}
        assert other.received[0].target == "http://mcp.example.com/mcp"
        with pytest.raises(ServerConnectError, match="never reached"):
            async with session("http://169.254.169.254/mcp"):
                pass


async def test_this_machine_is_not_looked_for_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw_server(good) as other, raw_server(good) as server:
        monkeypatch.setenv("TOOLBRIDGE_PROXY", other.url(""))
        async with session(server.url()) as running:
            assert await running.ask() == {"ok": True}
        assert other.received == []


# ---- the transport's own checks


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "https://evil.example/", "http://169.254.169.254/"])
async def test_a_request_for_the_server_goes_nowhere_else_whoever_made_it(url: str) -> None:
    opening = open_client(httpx2.URL("http://127.0.0.1:9/mcp"), secrets=True, connections=1, connect_seconds=1)
    async with opening as client:
        request = client.build_request("GET", url, extensions={FOR_THE_SERVER: True})
        with pytest.raises(HttpRuleError, match="elsewhere"):
            await client.send(request)


async def test_httpx_itself_would_not_carry_a_request_elsewhere_either() -> None:
    """Were redirects ever left to httpx, the transport would still refuse the second request."""

    async def elsewhere(_request: Received, stream: SocketStream) -> None:
        await stream.send(reply(status="307 T", headers={"location": "http://127.0.0.1:1/steal"}))

    async with raw_server(elsewhere) as server:
        opening = open_client(httpx2.URL(server.url()), secrets=True, connections=1, connect_seconds=1)
        async with opening as client:
            request = client.build_request("GET", server.url(), extensions={FOR_THE_SERVER: True})
            with pytest.raises(HttpRuleError, match="elsewhere"):
                await client.send(request, follow_redirects=True)


async def test_a_body_is_read_and_the_connection_given_back_on_any_event_loop() -> None:
    async with (
        raw_server(good) as server,
        open_client(httpx2.URL(server.url()), secrets=False, connections=1, connect_seconds=1) as client,
    ):
        for _ in range(3):
            request = client.build_request("POST", server.url(), json={"id": 1}, extensions={FOR_THE_SERVER: True})
            with anyio.fail_after(60):
                response = await client.send(request, stream=True)
                assert b"ok" in await read_body(response, 1000)
                await response.aclose()


# ---- TLS


async def test_tls_and_the_host_header_use_the_name_though_the_address_is_what_is_connected_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, path = certificate(tmp_path, "localhost")
    seen: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: seen.append(name)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    http_transport._tls.cache_clear()
    try:
        async with raw_server(good, tls=context) as server:
            url = server.url().replace("127.0.0.1", "localhost")
            async with session(url, headers={"Authorization": f"Bearer {SECRET}"}) as running:
                assert await running.ask() == {"ok": True}
            assert server.received[0].headers["host"] == f"localhost:{server.port}"
            assert seen == ["localhost"]
            async with session(server.url()) as running:  # the certificate is not for this name
                with pytest.raises(ServerConnectError, match="could not be reached"):
                    await running.ask()
            assert len(server.received) == 1
    finally:
        http_transport._tls.cache_clear()


# ---- logs


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
async def test_no_library_logs_what_it_does_for_us(level: int, caplog: pytest.LogCaptureFixture) -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        await stream.send(reply(result(request), headers={"x-echo": SECRET, "set-cookie": f"id={SECRET}"}))

    with caplog.at_level(level):
        async with raw_server(answer) as server:
            url = server.url(f"/mcp?key={SECRET}")
            async with session(url, headers={"Authorization": f"Bearer {SECRET}"}) as running:
                await running.ask()
    assert SECRET not in caplog.text
    assert "HTTP Request" not in caplog.text


async def test_what_others_do_with_the_same_libraries_is_logged_as_before(caplog: pytest.LogCaptureFixture) -> None:
    with unlogged():
        pass
    with caplog.at_level(logging.INFO):
        async with raw_server(good) as server, httpx2.AsyncClient() as client:
            await client.post(server.url(), json={"id": 1})
    assert "HTTP Request" in caplog.text


async def test_no_repr_shows_a_header(caplog: pytest.LogCaptureFixture) -> None:
    del caplog
    async with session("http://127.0.0.1:9/mcp", headers={"Authorization": SECRET}) as running:
        shown: Any = (running.dispatcher, running.channel)
        assert SECRET not in repr(shown)
