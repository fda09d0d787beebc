"""Streamable HTTP: real servers of the SDK in both eras; sessions, streams, and the end of both."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from anyio.abc import SocketStream
from mcp.client._probe import negotiate_auto
from mcp.client.session import ClientSession
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

from growth import patience
from servers.http_servers import (
    EVENTS_HEAD,
    LIMITS,
    Received,
    Session,
    chunk,
    config,
    events,
    hang_up,
    never,
    raw_server,
    reply,
    result,
    session,
    until,
    uvicorn_server,
)
from toolbridge.errors import ServerConnectError, ServerDisconnectedError
from toolbridge.servers.failures import BadAnswerError, ChannelClosedError, RequestTimedOutError
from toolbridge.servers.http.streamable import HttpDispatcher
from toolbridge.servers.http.transport import open_http

pytestmark = pytest.mark.anyio


class City(BaseModel):
    name: str


def weather() -> MCPServer:
    server = MCPServer("weather")

    @server.tool()
    def forecast(city: str) -> str:
        return f"Sunny in {city}"

    @server.tool()
    async def wait(seconds: float) -> str:
        await anyio.sleep(seconds)
        return "done"

    @server.tool()
    async def ask_back(context: Context[Any]) -> str:
        await context.report_progress(1, 2, "half")
        answer = await context.elicit("Which city?", City)
        return f"{answer.action} {answer.data.name if answer.action == 'accept' else ''}"

    @server.tool()
    def large(size: int) -> str:
        return "x" * size

    return server


@pytest.fixture(scope="module")
def real_server() -> Generator[str]:
    with uvicorn_server(weather().streamable_http_app()) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@asynccontextmanager
async def client(url: str, **callbacks: Any) -> AsyncGenerator[ClientSession]:
    async with (
        open_http(config(url), {}, LIMITS, sign_in=None) as channel,
        ClientSession(dispatcher=channel.dispatcher, **callbacks) as sdk,
    ):
        yield sdk


def text_of(answer: types.CallToolResult) -> str:
    assert isinstance(answer.content[0], types.TextContent)
    return answer.content[0].text


# ---- real servers


@pytest.mark.parametrize("era", ["newest", "handshake"])
async def test_a_real_server_is_listed_and_called_in_both_eras(real_server: str, era: str) -> None:
    async with client(real_server) as sdk:
        if era == "newest":
            await negotiate_auto(sdk)
        else:
            await sdk.initialize()
        assert sdk.protocol_version == ("2026-07-28" if era == "newest" else "2025-11-25")
        assert "forecast" in {tool.name for tool in (await sdk.list_tools()).tools}
        assert text_of(await sdk.call_tool("forecast", {"city": "Austin"})) == "Sunny in Austin"


async def test_calls_at_once_do_not_wait_for_each_other(real_server: str) -> None:
    async with client(real_server) as sdk:
        await sdk.initialize()
        began = time.monotonic()
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(sdk.call_tool, "wait", {"seconds": 0.5})
        assert time.monotonic() - began < patience(3)


async def test_a_call_that_takes_too_long_ends_at_its_deadline_and_the_next_one_is_answered(real_server: str) -> None:
    async with client(real_server) as sdk:
        await sdk.initialize()
        began = time.monotonic()
        with pytest.raises(RequestTimedOutError):
            await sdk.call_tool("wait", {"seconds": 60}, read_timeout_seconds=0.3)
        assert time.monotonic() - began < patience(1.3)
        assert text_of(await sdk.call_tool("forecast", {"city": "Rome"})) == "Sunny in Rome"


async def test_a_server_asks_back_and_reports_progress_during_a_call(real_server: str) -> None:
    async def elicit(_context: object, _params: object) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": "Austin"})

    reports: list[tuple[float, float | None, str | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async with client(real_server, elicitation_callback=elicit) as sdk:
        await sdk.initialize()
        answer = await sdk.call_tool("ask_back", {}, progress_callback=report)
        assert text_of(answer) == "accept Austin"
        await until(lambda: reports)  # handled beside the answer
        assert reports == [(1, 2, "half")]


async def test_an_answer_of_several_megabytes_arrives(real_server: str) -> None:
    async with client(real_server) as sdk:
        await sdk.initialize()
        assert len(text_of(await sdk.call_tool("large", {"size": 3_000_000}))) == 3_000_000


async def test_the_session_is_ended_when_the_channel_closes() -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        if request.method == "GET":
            await stream.send(reply(status="405 Method Not Allowed"))
        elif "id" in request.message:
            await stream.send(reply(result(request), headers={"mcp-session-id": "s1"}))
        else:
            await stream.send(reply(status="202 Accepted"))

    async with raw_server(answer) as server:
        async with session(server.url()) as running:
            await running.ask("initialize")
            await running.dispatcher.notify("notifications/initialized", None)
            await running.ask()
        ended = [each for each in server.received if each.method == "DELETE"]
        assert [each.headers["mcp-session-id"] for each in ended] == ["s1"]
        assert [each.headers.get("mcp-session-id") for each in server.received if each.rpc == "tools/call"] == ["s1"]


# ---- sessions


@pytest.mark.parametrize(
    "gone",
    [
        reply("Session not found", status="404 Not Found", kind="text/plain"),
        reply({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "x"}}, status="404 Not Found"),
        reply(
            {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "No valid session ID provided"}},
            status="400 Bad Request",
        ),
    ],
    ids=["404", "404 with an error", "400 about the session"],
)
async def test_a_session_that_is_gone_ends_the_channel_with_a_reason(gone: bytes) -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        if request.rpc == "initialize":
            await stream.send(reply(result(request), headers={"mcp-session-id": "s1"}))
        elif request.rpc == "slow":
            await anyio.sleep_forever()
        else:
            await stream.send(gone)

    async with raw_server(answer) as server, session(server.url()) as running:
        await running.ask("initialize")
        waiting: list[Exception] = []
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                waiting.append(await running.error("slow"))

            tasks.start_soon(wait)
            await until(lambda: "slow" in server.methods())
            assert isinstance(await running.error(), ChannelClosedError)
            assert running.ended.is_set()  # whoever connects anew now finds the old connection gone
        assert isinstance(waiting[0], ChannelClosedError)
        assert "no longer knows the session" in running.channel.end()
        assert isinstance(await running.error("ping"), ChannelClosedError)
        assert not [each for each in server.received if each.method == "DELETE"]


async def test_a_method_that_is_not_found_is_no_session_that_is_gone() -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "Method not found"}}
        if request.rpc == "initialize":
            await stream.send(reply(result(request), headers={"mcp-session-id": "s1"}))
        else:
            await stream.send(reply(error, status="404 Not Found"))

    async with raw_server(answer) as server, session(server.url()) as running:
        await running.ask("initialize")
        assert (await running.error("server/unheard-of")).error.code == -32601
        assert not running.ended.is_set()


@pytest.mark.parametrize("session_id", ["é", "a" * 20_000, "a b\x01"])
async def test_a_session_id_that_can_not_be_sent_back_is_refused(session_id: str) -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        await stream.send(reply(result(request), headers={"mcp-session-id": session_id}))

    async with raw_server(answer) as server, session(server.url()) as running:
        with pytest.raises((BadAnswerError, ServerDisconnectedError)):
            await running.ask("initialize")


# ---- what the server says on its own


async def test_the_event_stream_of_a_session_brings_notifications_and_requests() -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        if request.method == "GET":
            changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            ping = {"jsonrpc": "2.0", "id": "p1", "method": "ping"}
            await stream.send(EVENTS_HEAD + chunk(events(b"nonsense", [1], changed, ping)))
            await anyio.sleep_forever()
        elif request.rpc == "initialize":
            await stream.send(reply(result(request), headers={"mcp-session-id": "s1"}))
        else:
            await stream.send(reply(status="202 Accepted"))

    async with raw_server(answer) as server, session(server.url()) as running:
        await running.ask("initialize")
        await running.dispatcher.notify("notifications/initialized", None)
        await until(lambda: any("result" in each.message for each in server.received))
        assert running.notifications == [("notifications/tools/list_changed", None)]
        answers = [each.message for each in server.received if "result" in each.message]
        assert answers == [{"jsonrpc": "2.0", "id": "p1", "result": {"answered": "ping"}}]


async def test_an_event_stream_that_ends_at_once_is_not_opened_in_a_flood() -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        if request.method == "GET":
            await stream.send(reply(b"retry: 0\n\n", kind="text/event-stream"))
        elif request.rpc == "initialize":
            await stream.send(reply(result(request), headers={"mcp-session-id": "s1"}))
        else:
            await stream.send(reply(status="202 Accepted"))

    async with raw_server(answer) as server, session(server.url()) as running:
        await running.ask("initialize")
        await running.dispatcher.notify("notifications/initialized", None)
        await anyio.sleep(1.2)
        assert 1 <= len([each for each in server.received if each.method == "GET"]) <= 2


async def test_a_flood_of_notifications_and_requests_holds_up_no_answer() -> None:
    async def flood(request: Received, stream: SocketStream) -> None:
        if request.rpc != "tools/call":
            await stream.send(reply(status="202 Accepted"))
            return
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 1000}}
        asked = [{"jsonrpc": "2.0", "id": f"r{n}", "method": "ping"} for n in range(500)]
        progress = {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": 1, "progress": 10**400},
        }
        await stream.send(reply(events(*[note] * 5000, *asked, progress, result(request)), kind="text/event-stream"))

    async with raw_server(flood) as server, session(server.url()) as running:
        running.stuck = True
        assert await running.ask() == {"ok": True}
        assert isinstance(running.dispatcher, HttpDispatcher)
        assert len(running.requests) <= 16
        assert len(running.dispatcher._inbound._queue._waiting) <= 256


@pytest.mark.parametrize("how", ["401", "hangs up"])
async def test_a_request_that_was_taken_never_looks_as_if_it_had_not_been_sent(how: str) -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        if request.rpc == "tools/call":
            await stream.send(EVENTS_HEAD + chunk(b"id: 7\nretry: 0\ndata: {}\n\n") + chunk(b""))
        elif how == "401":
            await stream.send(reply(status="401 Unauthorized"))
        else:
            hang_up()

    async with raw_server(answer) as server, session(server.url()) as running:
        with pytest.raises(ServerDisconnectedError, match="may have taken effect"):
            await running.ask("tools/call")
        assert server.methods() == ["tools/call", "GET"]


async def test_a_stream_that_breaks_is_resumed_where_it_stopped_without_asking_again() -> None:
    ids: list[object] = []

    async def answer(request: Received, stream: SocketStream) -> None:
        if request.method == "POST":
            ids.append(request.message["id"])
            note = {"jsonrpc": "2.0", "method": "notifications/message"}
            await stream.send(
                EVENTS_HEAD + chunk(b"retry: 10\n\n" + events(b"", note, ids=True)) + chunk(b"id: 9\ndata: {")
            )
            hang_up()
        last = request.headers["last-event-id"]
        await stream.send(
            reply(events({"jsonrpc": "2.0", "id": ids[0], "result": {"after": last}}), kind="text/event-stream")
        )

    async with raw_server(answer) as server, session(server.url()) as running:
        assert await running.ask() == {"after": "2"}
        assert [each.method for each in server.received] == ["POST", "GET"]


async def test_a_stream_that_breaks_again_and_again_is_given_up() -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        await stream.send(EVENTS_HEAD + chunk(b"retry: 0\n\n" + events(b"", ids=True)))
        hang_up()

    async with raw_server(answer) as server, session(server.url()) as running:
        assert isinstance(await running.error(timeout=1.5), (RequestTimedOutError, BadAnswerError))
        assert len(server.received) <= 5


# ---- abandoning


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_a_request_that_nobody_waits_for_is_called_off(era: str) -> None:
    closed = anyio.Event()

    async def answer(request: Received, stream: SocketStream) -> None:
        if request.rpc == "tools/call":
            try:
                await stream.receive()
            except anyio.EndOfStream:
                closed.set()
                raise
        await stream.send(reply(status="202 Accepted"))

    async with raw_server(answer) as server, session(server.url()) as running:
        await running.error(timeout=0.2, headers={"mcp-protocol-version": era})
        with anyio.fail_after(60):
            await closed.wait()
        if era == "2025-11-25":
            await until(lambda: "notifications/cancelled" in server.methods())
        if era == "2026-07-28":
            await anyio.sleep(0.2)
            assert "notifications/cancelled" not in server.methods()


async def test_cancelling_the_caller_ends_the_request_at_once() -> None:
    async with raw_server(never) as server, session(server.url()) as running:
        began = time.monotonic()
        with anyio.move_on_after(0.2):
            await running.ask(timeout=30)
        assert time.monotonic() - began < patience(1)


async def test_a_notification_that_is_not_taken_holds_up_nobody() -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        if "id" not in request.message:
            await anyio.sleep_forever()
        if request.rpc == "slow":
            await anyio.sleep_forever()
        await stream.send(reply(result(request)))

    async with raw_server(answer) as server, session(server.url()) as running:
        await running.error("slow", timeout=0.1)  # is called off by a notification
        began = time.monotonic()
        assert await running.ask("ping") == {"ok": True}
        assert time.monotonic() - began < patience(1)


async def test_an_exception_of_the_host_closes_everything() -> None:
    async def fail_soon(running: Session) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.error)
            await anyio.sleep(0.1)
            raise ZeroDivisionError

    async with raw_server(never) as server:
        with pytest.raises(BaseExceptionGroup) as raised:
            async with session(server.url()) as running:
                await fail_soon(running)
        assert raised.group_contains(ZeroDivisionError)


# ---- unreachable


async def test_a_server_that_is_not_there_is_said_to_be_not_there() -> None:
    async def never(_request: Received, _stream: SocketStream) -> None:
        hang_up()

    async with raw_server(never) as server:
        url = server.url()
    async with session(url) as running:
        with pytest.raises(ServerConnectError, match="could not be reached"):
            await running.ask()
        with pytest.raises(ServerConnectError, match="could not be reached"):
            await running.ask("ping")


@pytest.mark.parametrize("headers", [{"X-Key": "a\r\nb"}, {"Host": "x"}])
async def test_what_is_against_the_rules_is_refused_before_anything_is_opened(headers: Mapping[str, str]) -> None:
    with pytest.raises(ServerConnectError, match="'weather' was not reached"):
        async with session("http://127.0.0.1:9/mcp", headers=headers):
            pass


async def test_a_request_before_run_or_after_the_end_is_told_so() -> None:
    async with open_http(config("http://127.0.0.1:9/mcp"), {}, LIMITS, sign_in=None) as channel:
        with pytest.raises(RuntimeError, match="before run"):
            await channel.dispatcher.send_raw_request("ping", None)
    async with session("http://127.0.0.1:9/mcp") as running:
        pass
    with pytest.raises(ChannelClosedError):
        await running.ask()


async def test_chosen_ids_are_kept_and_do_not_collide() -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        if request.rpc == "slow":
            await anyio.sleep(0.5)
        await stream.send(reply(result(request, {"id": request.message["id"]})))

    async with raw_server(answer) as server, session(server.url()) as running, anyio.create_task_group() as tasks:

        async def slow() -> None:
            assert await running.ask("slow", request_id="listen-1") == {"id": "listen-1"}

        tasks.start_soon(slow)
        await until(lambda: server.received)
        with pytest.raises(ValueError, match="in flight"):
            await running.ask("ping", request_id="listen-1")
