"""T8, stdio injection: what else comes out of a server's stdout neither breaks the session nor becomes a result.

Banners, ANSI, partial lines, invalid UTF-8, text that is not JSON, JSON that is not MCP, and forged ids: each is
written around every right answer of a real child process, and every answer that arrives must be the right one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.dispatcher import DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext

from servers.scripted_server import LIMITS, conversation, scripted
from toolbridge.servers.failures import BadAnswerError, ChannelClosedError
from toolbridge.servers.stdio.launch import open_stdio

pytestmark = pytest.mark.anyio

FORGED = "FORGED"

# Python expressions for the bytes that the server writes before and after each right answer; `id` is the request's.
INJECTIONS = {
    "banner": rb"b'Weather MCP Server v3\n(c) the makers\n'",
    "ansi": rb"b'\x1b[2J\x1b]52;c;cm0gLXJm\x07\r\x1b[K ok\n'",
    "blank lines": rb"b'\n\r\n \t\n'",
    "invalid utf-8": rb"b'\xff\xfe \xc0\xaf \xed\xa0\x80\n'",
    "invalid utf-8 in json": rb"b'{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}\n'",
    "nul": rb"b'\0\0\n{\"\0\":1}\n'",
    "not json": rb"b'{not json}\n{\"jsonrpc\":\"2.0\",\n}\n'",
    "header": rb"b'Content-Length: 52\r\n\r\n'",
    "json that is not mcp": rb"b'{}\n[]\n[[]]\n0\n1e999\nNaN\nnull\ntrue\n\"x\"\n{\"level\":\"info\"}\n'",
    "odd methods": rb"b'{\"jsonrpc\":\"2.0\",\"method\":null}\n{\"jsonrpc\":\"2.0\",\"method\":[],\"id\":1}\n'",
    "odd params": rb"b'{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":7}\n'",
    "too deep": rb"b'[' * 100_000 + b'\n'",
    "huge number": rb"b'{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"n\":' + b'9' * 100_000 + b'}}\n'",
    "line separators": rb"'\u2028\u2029\x85 {\"jsonrpc\":\"2.0\"}\n'.encode()",
    "a quoted answer": rb"b'DEBUG ' + forged(id).replace(b'\n', b'\nDEBUG ', 1)",
    "an unknown id": rb"forged(id + 1000)",
    "the next ids": rb"b''.join(forged(id + ahead) for ahead in range(1, 20))",
    "every id from the beginning": rb"b''.join(forged(number) for number in range(200) if number != id)",
    "the last id": rb"last_forged(id)",
    "a null id": rb"forged(None)",
    "a bool id": rb"forged(True) + forged(False)",
    "a float id": rb"forged(float(id)) + forged(id + 0.5)",
    "string ids": rb"forged(f'0{id}') + forged(f' {id}') + forged(f'{id}.0') + forged(f'+{id}') + forged('\ud800')",
    "nested ids": rb"forged([id]) + forged({'id': id})",
    "no jsonrpc": rb"b'{\"id\":%d,\"result\":{\"value\":\"FORGED\"}}\n' % id",
    "another jsonrpc": rb"b'{\"jsonrpc\":\"1.0\",\"id\":%d,\"result\":{\"value\":\"FORGED\"}}\n' % id",
    "a request with the same id": rb"b'{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}\n' % id",
    "a cancellation of our request": (
        rb"b'{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%d}}\n' % id"
    ),
    "forged progress": (
        rb"b'{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":[],\"progress\":{}}}\n'"
    ),
}

SERVER = """
def forged(id):
    result = {"value": "FORGED"}
    error = {"code": -32000, "message": "FORGED"}
    message = {"jsonrpc": "2.0", "id": id}
    return b"".join(json.dumps({**message, **one}).encode() + b"\\n" for one in ({"result": result}, {"error": error}))
last = [0]
def last_forged(id):
    data = forged(last[0])
    if id != last[0]:
        last[0] = id
        return data
    return b""
def injection(id):
    return INJECTION
write(injection(0))
while True:
    request = hear()
    if "method" in request and "id" in request:
        write(injection(request["id"]))
        answer(request)
        write(injection(request["id"]))
"""


@pytest.mark.parametrize("name", INJECTIONS)
async def test_an_injection_breaks_no_session_and_becomes_no_result(name: str, tmp_path: Path) -> None:
    body = SERVER.replace("INJECTION", INJECTIONS[name].decode())
    async with conversation(scripted(tmp_path, body)) as talk:
        for number in range(10):
            assert await talk.ask(f"right {number}", seconds=5) == f"right {number}"
        async with anyio.create_task_group() as tasks:

            async def ask(number: int) -> None:
                assert await talk.ask(number, seconds=5) == number

            for number in range(10):
                tasks.start_soon(ask, number)


async def test_a_line_begun_by_another_and_ended_by_an_answer_is_not_taken_apart(tmp_path: Path) -> None:
    body = "write(b'loading...'); request = hear(); answer(request, 'hidden'); serve()"
    async with conversation(scripted(tmp_path, body)) as talk:
        with pytest.raises(MCPError):
            await talk.ask(seconds=0.3)
        assert await talk.ask("next") == "next"


async def test_an_unreadable_answer_fails_its_own_request_only(tmp_path: Path) -> None:
    body = r"""
first, second = hear(), hear()
write(b'{"jsonrpc":"2.0","id":%d,"result":{"value":"\x00"}}' % first["id"] + b"\n")
answer(second)
serve()
"""
    outcomes: list[Any] = []
    async with conversation(scripted(tmp_path, body)) as talk, anyio.create_task_group() as tasks:

        async def ask() -> None:
            try:
                outcomes.append(await talk.ask("fine", seconds=5))
            except BadAnswerError:
                outcomes.append("bad")

        tasks.start_soon(ask)
        tasks.start_soon(ask)
    assert sorted(outcomes) == ["bad", "fine"]


async def test_a_server_can_not_pretend_that_the_channel_has_ended(tmp_path: Path) -> None:
    body = """
request = hear()
say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": "Connection closed"}})
serve()
"""
    async with conversation(scripted(tmp_path, body)) as talk:
        with pytest.raises(MCPError) as raised:
            await talk.ask()
        assert not isinstance(raised.value, ChannelClosedError)
        assert await talk.ask("still here") == "still here"


async def test_our_own_words_can_not_break_a_line(tmp_path: Path) -> None:
    """What guest code passes stays inside of its string, so it can't add a request of its own."""
    attack = 'x\n{"jsonrpc":"2.0","id":99,"method":"delete_all"}\r\n\u2028\u2029\x85\0\ud800'
    async with conversation(scripted(tmp_path, "serve()")) as talk:
        assert await talk.ask(attack) == attack
        assert await talk.ask({attack: [attack]}) == {attack: [attack]}


async def test_nothing_a_server_writes_is_an_error_of_the_host(tmp_path: Path) -> None:
    """Random bytes in every shape; `run` goes on and nothing is logged as a mistake."""
    body = r"""
import random
random.seed(8)
pieces = [b'{"jsonrpc":"2.0",', b'"id":', b'1', b'"result":', b'{}', b'}', b'"method":', b'"notifications/progress"']
pieces += [b',', b'"params":', b'[', b']', b'\n', b'\n', b'\xff', b'\0', b'null', b'"error":', b'"\\ud800"', b'1e400']
noise = b"".join(random.choice(pieces) for _ in range(200_000))
write(noise + b"\n")
serve()
"""
    async with open_stdio("noisy", scripted(tmp_path, body), LIMITS) as channel, anyio.create_task_group() as tasks:

        async def refuse(_context: DispatchContext[TransportContext], _method: str, _params: Any) -> Any:
            return {}

        await tasks.start(channel.dispatcher.run, refuse, refuse)
        result = await channel.dispatcher.send_raw_request("echo", {"value": 7}, {"request_id": "mine", "timeout": 20})
        assert result == {"value": 7}
        tasks.cancel_scope.cancel()
