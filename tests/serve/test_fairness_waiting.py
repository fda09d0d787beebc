"""Two clients want the same server at once: neither waits for, nor gets, the answer of the other's person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import ElicitResult

from serve.http_service import http_service_of
from serve.serving import Person, no, run, text_of
from servers.fault_servers import fault_server
from toolbridge import Limits, ServerConfig
from toolbridge.serve.clients import Client as ServedClient
from toolbridge.serve.elicitation import OpenQuestions
from toolbridge.serve.service import ServeOptions

pytestmark = pytest.mark.anyio

ECHO = 'require("host:mcp-echo").echo({ text: "hello" })'


def process() -> ServerConfig:
    return fault_server("echo", "ask-ping", connect_timeout=60)


class Thinker(Person):
    """Answers when they are told to."""

    def __init__(self) -> None:
        super().__init__(no)
        self.is_asked = anyio.Event()
        self.decided = anyio.Event()

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.is_asked.set()
        await self.decided.wait()
        return await super().__call__(context, params)


async def test_who_waits_for_anothers_person_waits_no_longer_than_its_own_timeout(tmp_path: Path) -> None:
    thinker, person = Thinker(), Person()
    async with (
        http_service_of(tmp_path, process()) as http,
        Client(http.url, mode="legacy", elicitation_callback=thinker) as slow,
        Client(http.url, mode="legacy", elicitation_callback=person) as quick,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(slow.call_tool, "run_code", {"code": ECHO})
        await thinker.is_asked.wait()
        with anyio.fail_after(60):
            told = await quick.call_tool("run_code", {"code": ECHO, "timeout": 0.2})
        # Either way it is not the other's silence that it gets: its own person is asked, or it may try again.
        assert text_of(told).startswith("hello") or "another client's person" in text_of(told)
        tasks.cancel_scope.cancel()


async def test_anothers_no_is_not_this_clients(tmp_path: Path) -> None:
    thinker, person = Thinker(), Person()
    values: list[object] = []

    async def use(client: Client) -> None:
        values.append((await run(client, ECHO))["value"])

    async with (
        http_service_of(tmp_path, process(), options=ServeOptions(limits=Limits(call_seconds=20))) as http,
        Client(http.url, mode="legacy", elicitation_callback=thinker) as refusing,
        Client(http.url, mode="legacy", elicitation_callback=person) as willing,
    ):
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(refusing.call_tool, "run_code", {"code": ECHO})
                await thinker.is_asked.wait()
                tasks.start_soon(use, willing)
                await anyio.sleep(0.2)  # it may join the attempt, or not: its person is asked in the end
                thinker.decided.set()
    assert values == ["hello"]
    assert len(person.asked) == 1


async def test_time_counts_only_while_another_is_asked() -> None:
    questions, own, other = OpenQuestions(), ServedClient(("test", "a")), ServedClient(("test", "b"))
    with questions.patience("echo", own, 0.01) as scope:
        with questions.about("echo", own), questions.about("weather", other):
            await anyio.sleep(0.05)
        await anyio.sleep(0.05)
        with questions.about("echo", other):
            pass
        await anyio.sleep(0.05)
    assert not scope.cancelled_caught
    with anyio.fail_after(60), questions.about("echo", other), questions.patience("echo", own, 0.01) as scope:
        await anyio.sleep_forever()
    assert scope.cancelled_caught
