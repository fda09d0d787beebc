"""T19, unframed output: a line without end, or a flood on either stream, is bounded before it is parsed."""

from __future__ import annotations

import gc
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from growth import patience
from servers.scripted_server import Conversation, conversation, scripted
from toolbridge.config.server_config import ServerLimits
from toolbridge.servers.failures import BadAnswerError, RequestTimedOutError
from toolbridge.servers.stdio.launch import open_stdio

STATM = Path("/proc/self/statm")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not STATM.exists(), reason="the process's memory is read from /proc"),
]

MIB = 2**20
LIMITS = ServerLimits(close_seconds=0.5, message_bytes=2 * MIB)


class Memory:
    """How much more memory this process had at its most, looked at again and again."""

    def __init__(self) -> None:
        self._before = _resident_bytes()
        self.most = 0

    async def watch(self) -> None:
        while True:
            self.most = max(self.most, _resident_bytes() - self._before)
            await anyio.sleep(0.01)


@asynccontextmanager
async def memory() -> AsyncGenerator[Memory]:
    gc.collect()
    seen = Memory()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(seen.watch)
        yield seen
        tasks.cancel_scope.cancel()


def _resident_bytes() -> int:
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_a_gigabyte_without_a_newline_costs_the_cap_at_most(tmp_path: Path) -> None:
    body = """
request = hear()
write(b'{"jsonrpc":"2.0","method":"')
for _ in range(1024):
    write(b"x" * 2**20)
write(b'"}\\n')
answer(request)
serve()
"""
    async with conversation(scripted(tmp_path, body), LIMITS) as talk:
        async with memory() as seen:
            assert await talk.ask("after the flood", seconds=240) == "after the flood"
        assert seen.most < 16 * MIB
        assert await talk.ask("and again") == "and again"


async def test_an_endless_line_holds_up_no_deadline_and_no_other_server(tmp_path: Path) -> None:
    endless = scripted(tmp_path, "hear()\nwhile True: write(b'x' * 2**20)")
    took: list[float] = []

    async def ask(flooding: Conversation) -> None:
        began = anyio.current_time()
        with pytest.raises(RequestTimedOutError):
            await flooding.ask(seconds=1)
        took.append(anyio.current_time() - began)

    async with (
        conversation(endless, LIMITS) as flooding,
        conversation(scripted(tmp_path, "serve()")) as fine,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(ask, flooding)
        for number in range(20):
            assert await fine.ask(number) == number
    assert took[0] < 1 + patience(1)


@pytest.mark.parametrize("head", ['{"jsonrpc":"2.0","id":%d,"result":{"value":"', '{"result":{"value":"'])
async def test_an_answer_past_the_cap_is_an_error_at_once(head: str, tmp_path: Path) -> None:
    tail = '"}}' if "id" in head else '"},"jsonrpc":"2.0","id":%d}'
    body = f"""
request = hear()
def fill(text): return (text % request["id"] if "%" in text else text).encode()
write(fill({head!r}) + b"x" * (50 * 2**20) + fill({tail!r}) + b"\\n")
serve()
"""
    async with conversation(scripted(tmp_path, body), LIMITS) as talk:
        with pytest.raises(BadAnswerError, match=r"too long: 524\d+ bytes"):
            await talk.ask(seconds=30)
        assert await talk.ask("fine") == "fine"


async def test_a_flood_on_stderr_is_read_and_thrown_away(tmp_path: Path) -> None:
    body = """
request = hear()
for block in (b"x" * 2**20, b"error: disk is slow\\n" * 50_000):
    for _ in range(100):
        write(block, 2)
write(b"the end\\n", 2)
answer(request)
serve()
"""
    async with conversation(scripted(tmp_path, body), LIMITS) as talk:
        async with memory() as seen:
            assert await talk.ask("done", seconds=30) == "done"
        assert seen.most < 16 * MIB
        assert len(talk.channel.end()) < 5_000


FLOODS: dict[str, Any] = {
    "progress": {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}},
    "log": {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 100}},
    "list_changed": {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
    "requests": {"jsonrpc": "2.0", "id": "again", "method": "ping"},
    "answers": {"jsonrpc": "2.0", "id": 1000, "result": {"x": 1}},
    "batch": [{"jsonrpc": "2.0", "method": "x"}] * 500,
    "noise": "not mcp",
}


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_of_messages_costs_neither_memory_nor_an_answer(name: str, tmp_path: Path) -> None:
    """Nobody handles what comes, and the server reads nothing meanwhile: whoever waits for either stands still."""
    body = f"""
message = {FLOODS[name]!r}
number = 0
request = hear()
for _ in range(60):
    block = b""
    while len(block) < 2**16:
        number += 1
        if "ping" in str(message): message["id"] = number
        block += (json.dumps(message) + "\\n").encode()
    write(block)
answer(request, "right")
serve()
"""

    async def stuck(*_: Any) -> Any:
        await anyio.sleep_forever()

    async with open_stdio("flood", scripted(tmp_path, body), LIMITS) as channel, anyio.create_task_group() as tasks:
        await tasks.start(channel.dispatcher.run, stuck, stuck)
        async with memory() as seen:
            for expected in ("right", "again"):
                result = await channel.dispatcher.send_raw_request("echo", {"value": "again"}, {"timeout": 30})
                assert result == {"value": expected}
        assert seen.most < 12 * MIB
        tasks.cancel_scope.cancel()
