"""A whole stdio channel: sessions of the SDK over it, how it tells its end, and that leaving it leaves nothing."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp.client._probe import negotiate_auto
from mcp.client.session import ClientSession

from growth import patience
from registry_packages import node_modules
from servers.live_processes import left_after, processes_by_a_word, zombies
from servers.scripted_server import LIMITS, Conversation, conversation, open_descriptors, scripted
from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import ServerConnectError
from toolbridge.servers import jsonrpc as line_dispatcher
from toolbridge.servers.failures import ChannelClosedError, RequestTimedOutError
from toolbridge.servers.stdio.launch import Launch, open_stdio

pytestmark = pytest.mark.anyio

MCP = """
while True:
    request = hear()
    if request.get("method") == "initialize":
        info = {"name": "scripted", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        say({"jsonrpc": "2.0", "id": request["id"], "result": result})
    elif request.get("method") == "tools/list":
        say({"jsonrpc": "2.0", "id": request["id"], "result": {"tools": []}})
    elif "id" in request:
        say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
"""


async def test_a_session_of_the_sdk_runs_over_it(tmp_path: Path) -> None:
    async with open_stdio("scripted", scripted(tmp_path, MCP), LIMITS) as channel:
        async with ClientSession(dispatcher=channel.dispatcher) as session:
            await negotiate_auto(session)
            assert session.protocol_version == "2025-06-18"
            assert (await session.list_tools()).tools == []
        assert "status" not in channel.end()


async def test_server_everything_answers() -> None:
    script = node_modules() / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    launch = Launch(shutil.which("node") or "", (str(script), "stdio"), {"PATH": os.environ["PATH"]}, None)
    reports: list[float] = []
    all_reported = anyio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reports.append(progress)
        if progress == total:
            all_reported.set()

    async with (
        open_stdio("everything", launch, LIMITS) as channel,
        ClientSession(dispatcher=channel.dispatcher) as session,
    ):
        with anyio.fail_after(30):
            await negotiate_auto(session)
            echo = {"name": "echo", "arguments": {"message": "Grüße \u2028 你好"}}
            result = await channel.dispatcher.send_raw_request("tools/call", echo, {"timeout": 10})
            assert result["content"] == [{"type": "text", "text": "Echo: Grüße \u2028 你好"}]
            long = {"name": "trigger-long-running-operation", "arguments": {"duration": 0.2, "steps": 2}}
            await channel.dispatcher.send_raw_request("tools/call", long, {"on_progress": on_progress})
            await all_reported.wait()  # reports are handled beside answers: the last one may come a moment later
            assert reports == [1, 2]


async def test_a_million_characters_go_there_and_back(tmp_path: Path) -> None:
    async with conversation(scripted(tmp_path, "serve()")) as talk:
        text = "ü\u2028😀\ud800\0" * 200_000
        assert await talk.ask(text, seconds=20) == text


async def test_many_calls_at_once_each_get_their_own_answer(tmp_path: Path) -> None:
    answers: dict[int, Any] = {}
    async with conversation(scripted(tmp_path, "serve()")) as talk, anyio.create_task_group() as tasks:

        async def ask(number: int) -> None:
            answers[number] = await talk.ask(number)

        for number in range(200):
            tasks.start_soon(ask, number)
    assert answers == {number: number for number in range(200)}


# ---- the end, in words


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "hear(); sys.exit('Error: no such database')",
            "it exited with status 1; it last wrote to stderr: Error: no su",
        ),
        ("hear(); os.kill(os.getpid(), signal.SIGKILL)", "it was ended by SIGKILL"),
        (
            "print('Listening', flush=True); hear(); os._exit(2)",
            "status 2; its stdout had a line that is not MCP: List",
        ),
    ],
)
async def test_a_call_in_flight_fails_at_once_and_the_channel_tells_why(body: str, words: str, tmp_path: Path) -> None:
    async with conversation(scripted(tmp_path, body)) as talk:
        began = anyio.current_time()
        with pytest.raises(ChannelClosedError):
            await talk.ask(seconds=30)
        assert anyio.current_time() - began < patience(5)
        assert words in talk.channel.end()
        with anyio.fail_after(60):
            await talk.ended.wait()


async def test_a_channel_that_is_open_tells_what_was_odd_about_it(tmp_path: Path) -> None:
    body = "print('Listening'); print('on', 80, flush=True); write(b'warming up\\n', 2); serve()"
    async with conversation(scripted(tmp_path, body)) as talk:
        await talk.ask()
        while "warming up" not in talk.channel.end():
            await anyio.lowlevel.checkpoint()
        expected = (
            "it last wrote to stderr: warming up; its stdout had 2 lines that are not MCP messages, the last: on 80"
        )
        assert talk.channel.end() == expected


async def test_how_a_server_ended_is_known_to_whoever_could_not_send_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is about to end has closed its stdin before it has a status: the first to notice is the sender."""
    monkeypatch.setattr(line_dispatcher, "_EXIT_STATUS_SECONDS", 10.0)
    body = """
os.close(0)
say({"jsonrpc": "2.0", "method": "closed"})
time.sleep(0.1)
write(b"boom\\n", 2)
os._exit(3)
"""
    async with conversation(scripted(tmp_path, body)) as talk:
        while not talk.notifications:
            await anyio.lowlevel.checkpoint()
        with pytest.raises(ChannelClosedError) as caught:
            await talk.ask()
        assert not caught.value.sent
        assert talk.channel.end() == "it exited with status 3; it last wrote to stderr: boom"


async def test_answers_that_are_in_the_pipe_are_delivered_before_the_end(tmp_path: Path) -> None:
    body = """
requests = [hear() for _ in range(20)]
for request in requests[:-1]:
    answer(request)
if os.fork() == 0: linger()  # holds the pipe open
os._exit(0)
"""
    outcomes: dict[int, Any] = {}
    async with conversation(scripted(tmp_path, body)) as talk, anyio.create_task_group() as tasks:

        async def ask(number: int) -> None:
            try:
                outcomes[number] = await talk.ask(number)
            except ChannelClosedError:
                outcomes[number] = "closed"

        for number in range(20):
            tasks.start_soon(ask, number)
    values = list(outcomes.values())
    assert values.count("closed") == 1
    assert {number for number, value in outcomes.items() if value == number} == set(outcomes) - {
        number for number, value in outcomes.items() if value == "closed"
    }


async def test_a_server_that_closes_its_stdout_and_lives_on_has_ended(tmp_path: Path) -> None:
    async with conversation(scripted(tmp_path, "hear(); os.close(1); linger()")) as talk:
        with pytest.raises(ChannelClosedError):
            await talk.ask(seconds=30)


async def test_a_server_that_writes_half_a_line_and_stalls_blocks_no_other(tmp_path: Path) -> None:
    stalled = scripted(tmp_path, 'hear(); write(b\'{"jsonrpc":"2.0","id":1,"resu\'); linger()')
    async with (
        conversation(stalled) as stuck,
        conversation(scripted(tmp_path, "serve()")) as fine,
        anyio.create_task_group() as tasks,
    ):

        async def wait() -> None:
            with pytest.raises(RequestTimedOutError):
                await stuck.ask(seconds=0.5)

        tasks.start_soon(wait)
        for number in range(20):
            assert await fine.ask(number) == number


# ---- leaving it


async def test_an_error_in_the_context_comes_out_as_it_is(tmp_path: Path) -> None:
    with processes_by_a_word() as word:
        with pytest.raises(ZeroDivisionError):
            async with open_stdio("scripted", scripted(tmp_path, "serve()", word), LIMITS):
                raise ZeroDivisionError
        assert await left_after(word, 0) == {}


async def test_what_can_not_be_started_is_one_typed_error() -> None:
    with pytest.raises(ServerConnectError, match="Server 'x' can't be started: there is no file"):
        async with open_stdio("x", Launch("/no/such/program", (), {}, None), LIMITS):
            raise AssertionError


async def test_a_dispatcher_that_still_runs_ends_with_its_channel(tmp_path: Path) -> None:
    before = open_descriptors()
    async with anyio.create_task_group() as tasks:
        async with open_stdio("scripted", scripted(tmp_path, "serve()"), LIMITS) as channel:
            talk = Conversation(channel)
            await tasks.start(talk.run)
            assert await talk.ask() == "hello"
        with anyio.fail_after(60):
            await talk.ended.wait()
        with pytest.raises(ChannelClosedError):
            await talk.ask()
    assert open_descriptors() == before


@asynccontextmanager
async def nothing_left() -> AsyncGenerator[str]:
    """No process, no descriptor, no warning about something unclosed."""
    before = open_descriptors()
    with processes_by_a_word() as word:
        yield word
        assert await left_after(word, 1) == {}
    gc.collect()
    assert open_descriptors() == before
    assert zombies() == 0


async def talk_a_little(launch: Launch) -> None:
    async with conversation(launch, ServerLimits(close_seconds=0.1)) as talk:
        for number in range(3):
            await talk.ask(number)
        with suppress(RequestTimedOutError):
            await talk.ask("x" * 200_000, seconds=0.001)


async def cancel_after(steps: int, function: Callable[[], Awaitable[None]]) -> bool:
    """Run something and cancel it after so many turns of the event loop; whether it was done before."""
    done = False
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            nonlocal done
            await function()
            done = True
            tasks.cancel_scope.cancel()

        tasks.start_soon(run)
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    return done


@pytest.mark.parametrize("steps", [*range(20), 30, 60, 100, 300, 1000, 3000])
async def test_cancelling_at_any_moment_leaves_nothing_behind(steps: int, tmp_path: Path) -> None:
    async with nothing_left() as word:
        await cancel_after(steps, lambda: talk_a_little(scripted(tmp_path, "serve()", word)))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("steps", [*range(12), 20, 60, 300, 1000, 3000])
async def test_cancelling_a_task_of_asyncio_at_any_moment_leaves_nothing_behind(steps: int, tmp_path: Path) -> None:
    """Once in the middle of things, and again while it is leaving."""
    import asyncio

    async with nothing_left() as word:
        task = asyncio.ensure_future(talk_a_little(scripted(tmp_path, "serve()", word)))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.1)  # a torn-off process is collected by the event loop, later
