"""State that one program leaves for the next: its client's only, and not without limits."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from serve.serving import Era, client_of, run, service_of, text_of
from toolbridge.serve.run_code import SessionLimits
from toolbridge.serve.service import ServeOptions

pytestmark = pytest.mark.anyio


def limited(**limits: float) -> ServeOptions:
    return ServeOptions(sessions=SessionLimits(**limits))  # pyright: ignore[reportArgumentType]


async def test_a_session_keeps_state_and_programs_without_one_have_none(tmp_path: Path, era: Era) -> None:
    async with service_of(tmp_path) as service, client_of(service, era) as client:
        first = await run(client, "globalThis.count = 41; count", session="new")
        assert (await run(client, "count + 1", session=first["session"]))["value"] == 42
        assert (await run(client, "typeof count"))["value"] == "undefined"
        second = await run(client, "typeof count", session="new")
        assert second["value"] == "undefined"
        assert second["session"] != first["session"]


async def test_a_session_is_of_one_language(tmp_path: Path) -> None:
    async with service_of(tmp_path) as service, client_of(service, "legacy") as client:
        session = (await run(client, "1", session="new"))["session"]
        result = await client.call_tool("run_code", {"code": "1", "session": session, "language": "python"})
        assert f"Session '{session}' is for javascript." in text_of(result)


async def test_there_are_only_so_many(tmp_path: Path) -> None:
    async with (
        service_of(tmp_path, options=limited(total=3, of_client=2)) as service,
        client_of(service, "legacy") as client,
    ):
        kept = [(await run(client, "1", session="new"))["session"] for _ in range(2)]
        result = await client.call_tool("run_code", {"code": "1", "session": "new"})
        assert "There are too many sessions (2 of yours, 2 in all)" in text_of(result)
        assert (await run(client, "2", session=kept[0]))["value"] == 2
        assert len(service.sessions) == 2


async def test_one_that_nobody_uses_ends(tmp_path: Path) -> None:
    async with (
        service_of(tmp_path, options=limited(idle_seconds=0.05)) as service,
        client_of(service, "legacy") as client,
    ):
        session = (await run(client, "1", session="new"))["session"]
        await anyio.sleep(0.1)
        service.sessions.close_idle()
        result = await client.call_tool("run_code", {"code": "1", "session": session})
        assert "it has ended, and its state is gone" in text_of(result)
        assert len(service.sessions) == 0


async def test_a_busy_session_takes_no_second_program(tmp_path: Path) -> None:
    async with service_of(tmp_path) as service, client_of(service, "legacy") as client:
        session = (await run(client, "1", session="new"))["session"]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "run_code", {"code": "for (;;) {}", "session": session, "timeout": 2})
            with anyio.fail_after(60):
                while not service.watch.running:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
            result = await client.call_tool("run_code", {"code": "1", "session": session})
            assert "is busy with another program" in text_of(result)
            tasks.cancel_scope.cancel()


async def test_memory_of_a_session_is_bounded(tmp_path: Path) -> None:
    async with (
        service_of(tmp_path, options=limited(memory_bytes=16 * 2**20)) as service,
        client_of(service, "legacy") as client,
    ):
        result = await run(client, "globalThis.a = []; for (;;) a.push(new Uint8Array(2 ** 20))", session="new")
        assert "memory" in result["failure"]["text"]


async def test_without_sessions_the_argument_is_not_offered(tmp_path: Path, era: Era) -> None:
    async with service_of(tmp_path, options=limited(total=0)) as service, client_of(service, era) as client:
        (tool,) = [each for each in (await client.list_tools()).tools if each.name == "run_code"]
        assert "session" not in tool.input_schema["properties"]
        result = await client.call_tool("run_code", {"code": "1", "session": "new"})
        assert "run_code has no argument 'session'" in text_of(result)


SLOW = "const end = Date.now() + 400; while (Date.now() < end); 'done'"


async def test_each_program_of_a_session_has_its_own_timeout(tmp_path: Path, era: Era) -> None:
    async with service_of(tmp_path) as service, client_of(service, era) as client:
        first = await run(client, "globalThis.kept = 1; kept", session="new", timeout=0.3)
        second = await run(client, SLOW.replace("end", "first"), session=first["session"], timeout=20)
        assert (second["value"], second["failure"]) == ("done", None)
        assert (await run(client, "kept", session=first["session"]))["value"] == 1
        third = await run(client, SLOW.replace("end", "other"), session=first["session"], timeout=0.1)
        assert third["failure"]["kind"] == "timeout"
        assert "0.1 s" in third["failure"]["text"]
