"""The older HTTP transport: a real server of the SDK, and servers that get it wrong."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from mcp.client._probe import negotiate_auto
from mcp.client.session import ClientSession
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError

from growth import patience
from servers.http_servers import (
    EVENTS_HEAD,
    LIMITS,
    RawServer,
    Received,
    Session,
    chunk,
    config,
    events,
    hang_up,
    place,
    raw_server,
    reply,
    session,
    until,
    uvicorn_server,
)
from toolbridge.errors import ServerConnectError, ServerDisconnectedError, ServerError, ServerTimeoutError
from toolbridge.servers.auth.tokens import Credentials, TokenStore
from toolbridge.servers.failures import BadAnswerError, ChannelClosedError, RequestTimedOutError
from toolbridge.servers.http.transport import open_sse

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def real_server() -> Generator[str]:
    server = MCPServer("weather")

    @server.tool()
    def large(size: int) -> str:
        return "x" * size

    with uvicorn_server(server.sse_app()) as port:
        yield f"http://127.0.0.1:{port}/sse"


async def test_a_real_server_is_listed_and_called(real_server: str) -> None:
    async with (
        open_sse(config(real_server, transport="sse"), {}, LIMITS, sign_in=None) as channel,
        ClientSession(dispatcher=channel.dispatcher) as sdk,
    ):
        await negotiate_auto(sdk)
        assert [tool.name for tool in (await sdk.list_tools()).tools] == ["large"]
        answer: Any = await sdk.call_tool("large", {"size": 2_000_000})
        assert len(answer.content[0].text) == 2_000_000  # more than the SDK's own client takes


class SseServer:
    """Answers every request on the one stream, unless it is told to do otherwise."""

    def __init__(self) -> None:
        self.endpoint = "/messages?session=1"
        self.streams: list[SocketStream] = []
        self.post: Callable[[Received], bytes | None] = lambda _: None
        self.say: Callable[[Received], list[object]] = lambda r: [
            {"jsonrpc": "2.0", "id": r.message["id"], "result": {"ok": True}}
        ]

    async def __call__(self, request: Received, stream: SocketStream) -> None:
        if request.method == "GET":
            self.streams.append(stream)
            await stream.send(EVENTS_HEAD + chunk(f"event: endpoint\ndata: {self.endpoint}\n\n".encode()))
            await anyio.sleep_forever()
        refusal = self.post(request)
        await stream.send(refusal or reply("Accepted", status="202 Accepted", kind="text/plain"))
        if refusal is None and "id" in request.message and "method" in request.message:
            await self.streams[-1].send(chunk(events(*self.say(request))))


@asynccontextmanager
async def running(sse: SseServer, **options: Any) -> AsyncGenerator[tuple[RawServer, Session]]:
    async with raw_server(sse) as server, session(server.url("/sse"), transport="sse", **options) as opened:
        yield server, opened


async def test_one_post_that_fails_costs_that_request_only() -> None:
    sse = SseServer()
    sse.post = lambda r: reply("no", status="500 Oops", kind="text/html") if r.rpc == "tools/call" else None
    async with running(sse) as (_server, opened):
        assert "500 Internal Server Error" in str(await opened.error())
        assert await opened.ask("ping") == {"ok": True}


async def test_a_post_may_take_as_long_as_a_call_of_its_server() -> None:
    class Busy(SseServer):
        async def __call__(self, request: Received, stream: SocketStream) -> None:
            if request.method == "POST":
                await anyio.sleep(0.6)
            await super().__call__(request, stream)

    limits = replace(LIMITS, call_seconds=0.2)
    async with running(Busy(), limits=limits) as (_server, opened):
        with pytest.raises(ServerTimeoutError, match="did not take the request"):
            await opened.ask()
    async with running(Busy(), limits=limits, call_timeout=20.0) as (_server, opened):
        assert await opened.ask() == {"ok": True}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (reply(status="403 Forbidden"), "does not allow"),
        (reply(status="307 T", headers={"location": "https://evil.example/"}), "redirect to https://evil.example"),
        (reply({"error": {"code": -32602, "message": "No such city"}}, status="400 Bad"), "No such city"),
    ],
    ids=["403", "redirect", "an error of its own"],
)
async def test_what_a_post_is_refused_with_is_told(answer: bytes, words: str) -> None:
    sse = SseServer()
    sse.post = lambda r: answer if r.rpc == "tools/call" else None
    async with running(sse) as (_server, opened):
        assert words in str(await opened.error())
        assert await opened.ask("ping") == {"ok": True}


@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ("401", ServerConnectError, "it wants a sign-in"),
        ("hangs up", ServerDisconnectedError, "may have taken effect"),
    ],
)
async def test_a_post_that_came_to_nothing_is_no_refusal_by_the_server(
    how: str, kind: type[ServerError], words: str
) -> None:
    sse = SseServer()

    def post(request: Received) -> bytes | None:
        if request.rpc == "tools/call" and how == "hangs up":
            hang_up()
        return reply(status="401 Unauthorized") if request.rpc == "tools/call" else None

    sse.post = post
    async with running(sse) as (_server, opened):
        with pytest.raises(kind, match=words):
            await opened.ask()
        assert await opened.ask("ping") == {"ok": True}


async def test_a_server_that_can_not_be_posted_to_any_more_is_not_reached() -> None:
    listener: Any = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port: int = listener.extra(SocketAttribute.local_port)

    async def open_a_stream_and_no_more() -> None:
        async with await listener.listeners[0].accept() as stream:
            await listener.aclose()
            await stream.send(EVENTS_HEAD + chunk(b"event: endpoint\ndata: /messages\n\n"))
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_a_stream_and_no_more)
        async with session(f"http://127.0.0.1:{port}/sse", transport="sse") as opened:
            with pytest.raises(ServerConnectError, match="could not be reached"):
                await opened.ask()
        tasks.cancel_scope.cancel()


async def test_a_notification_that_is_not_answered_holds_up_no_request() -> None:
    sse = SseServer()

    async def stuck(request: Received, stream: SocketStream) -> None:
        if request.rpc.startswith("notifications/"):
            await anyio.sleep_forever()
        await sse(request, stream)

    async with raw_server(stuck) as server, session(server.url("/sse"), transport="sse") as opened:
        for _ in range(20):
            await opened.dispatcher.notify("notifications/progress", {})
        assert await opened.ask() == {"ok": True}
        assert server.methods().count("notifications/progress") <= 4


async def test_a_busy_server_is_asked_again_for_its_stream() -> None:
    sse = SseServer()

    async def busy(request: Received, stream: SocketStream) -> None:
        if len(server.received) <= 2:
            await stream.send(reply(status="503 S", headers={"retry-after": "0"}))
        else:
            await sse(request, stream)

    async with raw_server(busy) as server, session(server.url("/sse"), transport="sse") as opened:
        assert await opened.ask() == {"ok": True}
        assert server.methods() == ["GET", "GET", "GET", "tools/call"]


async def test_a_post_that_is_not_answered_holds_up_no_other_request() -> None:
    sse = SseServer()

    async def stuck(request: Received, stream: SocketStream) -> None:
        if request.rpc == "tools/call":
            await anyio.sleep_forever()
        await sse(request, stream)

    async with raw_server(stuck) as server, session(server.url("/sse"), transport="sse") as opened:
        for _ in range(50):  # more than there are connections
            assert isinstance(await opened.error(timeout=0.02), RequestTimedOutError)
        began = time.monotonic()
        assert await opened.ask("ping") == {"ok": True}
        assert time.monotonic() - began < patience(2)


async def test_a_server_that_repeats_our_token_does_not_get_it_into_an_error(tmp_path: Path) -> None:
    sse = SseServer()
    sse.say = lambda r: [
        {"jsonrpc": "2.0", "id": r.message["id"], "error": {"code": 1, "message": r.headers["authorization"]}}
    ]
    store = TokenStore(tmp_path / "tokens", use_keyring=False)
    async with raw_server(sse) as server:
        await store.save("weather", place(server.url("/sse")), Credentials(tokens={"access_token": "t0ken-of-ours"}))
        async with session(server.url("/sse"), transport="sse", store=store) as opened:
            assert str(await opened.error()) == "Bearer ***"


async def test_an_answer_past_the_cap_fails_its_own_request() -> None:
    sse = SseServer()
    sse.say = lambda r: [
        {"jsonrpc": "2.0", "id": r.message["id"], "result": {"text": "x" * (200_000 * (r.rpc != "ping"))}}
    ]
    async with running(sse, limits=replace(LIMITS, message_bytes=100_000)) as (_server, opened):
        error = await opened.error()
        assert isinstance(error, MCPError)
        assert "too long" in str(error)
        assert await opened.ask("ping") == {"text": ""}


@pytest.mark.parametrize(
    "said", [b"nonsense", b"\xff\xfe", b"[" * 100_000, b"[1, 2]", b'{"id": 99, "result": {}}', b"null"]
)
async def test_nonsense_on_the_stream_costs_nothing(said: bytes) -> None:
    sse = SseServer()
    sse.say = lambda r: [said, {"jsonrpc": "2.0", "id": r.message["id"], "result": {"ok": True}}]
    async with running(sse) as (_server, opened):
        assert await opened.ask() == {"ok": True}


async def test_an_answer_in_several_lines_of_data_is_one() -> None:
    sse = SseServer()
    sse.say = lambda r: [
        json.dumps({"jsonrpc": "2.0", "id": r.message["id"], "result": {"ok": True}}, indent=1)
        .replace("\n", "\ndata: ")
        .encode()
    ]
    async with running(sse) as (_server, opened):
        assert await opened.ask() == {"ok": True}


async def test_the_end_of_the_stream_ends_the_channel_with_a_reason() -> None:
    sse = SseServer()
    sse.say = lambda _: []
    async with running(sse) as (server, opened):
        async with anyio.create_task_group() as tasks:

            async def end() -> None:
                await until(lambda: len(server.received) == 2)
                await sse.streams[0].aclose()

            tasks.start_soon(end)
            assert isinstance(await opened.error(timeout=5), ChannelClosedError)
        assert opened.channel.end() == "it ended its stream of events"
        with anyio.fail_after(60):
            await opened.ended.wait()


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://evil.example/messages",
        "http://127.0.0.1:1/messages",
        "//evil.example/messages",
        "http://user@127.0.0.1/",
        "file:///etc/passwd",
        "http://[::1",
        "http://169.254.169.254/",
        "x" * 10_000 + "://",
    ],
)
async def test_messages_are_posted_to_no_other_server(endpoint: str) -> None:
    sse = SseServer()
    sse.endpoint = endpoint
    async with raw_server(sse) as server:
        with pytest.raises(ServerConnectError, match=r"place to post|another server"):
            async with session(server.url("/sse"), transport="sse", headers={"X-Key": "k"}):
                pass
        assert [each.method for each in server.received] == ["GET"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (reply(status="404 Not Found"), "404 Not Found"),
        (reply("<html>", kind="text/html"), "text/html in place of a stream of events"),
        (reply(b"", kind="text/event-stream"), "ended its stream of events before"),
        (reply(status="401 Unauthorized"), "run `toolbridge sign-in weather`"),
        (
            reply(status="302 Found", headers={"location": "https://evil.example/sse"}),
            "redirect to https://evil.example",
        ),
    ],
    ids=["404", "a page", "no events", "401", "a redirect elsewhere"],
)
async def test_what_is_no_stream_is_refused_with_words(answer: bytes, words: str) -> None:
    async def respond(_request: Received, stream: SocketStream) -> None:
        await stream.send(answer)

    async with raw_server(respond) as server:
        with pytest.raises((ServerError, BadAnswerError), match=words):
            async with session(server.url("/sse"), transport="sse"):
                pass


async def test_a_busy_server_is_asked_again_for_a_listing_and_never_for_a_call() -> None:
    sse = SseServer()
    busy = reply(status="503 S", headers={"retry-after": "0"})
    async with running(sse) as (server, opened):
        sse.post = lambda _: busy if len(server.received) < 4 else None
        assert await opened.ask("tools/list") == {"ok": True}
        sent = len(server.received)
        sse.post = lambda _: busy
        assert "503" in str(await opened.error("tools/call"))
        assert len(server.received) == sent + 1


async def test_what_comes_after_a_notification_waits_for_it() -> None:
    sse = SseServer()

    async def slow(request: Received, stream: SocketStream) -> None:
        if request.rpc == "notifications/initialized":
            await anyio.sleep(0.3)
            assert server.methods()[-1] == "notifications/initialized"
        await sse(request, stream)

    async with raw_server(slow) as server, session(server.url("/sse"), transport="sse") as opened:
        await opened.dispatcher.notify("notifications/initialized", None)
        assert await opened.ask("tools/list") == {"ok": True}


async def test_a_server_that_hangs_up_at_once_is_reported() -> None:
    async def respond(_request: Received, _stream: SocketStream) -> None:
        hang_up()

    async with raw_server(respond) as server:
        with pytest.raises(ServerError, match="broke off"):
            async with session(server.url("/sse"), transport="sse"):
                pass
