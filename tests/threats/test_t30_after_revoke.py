"""T30, boundary abuse: functions that guest code has kept do nothing once their server is taken away.

A session keeps a module's functions; a program may hold them while the host revokes, disables, removes or closes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.worlds import runtime_of, value_of
from threats.gated_servers import Reached
from toolbridge import Runtime
from toolbridge.errors import SandboxClosedError
from toolbridge.runtime import RuntimeSession
from toolbridge.trust.approval.store import ApprovalStore

pytestmark = pytest.mark.anyio

HELD = """
    const { read } = require("host:mcp-notes");
    const later = require("host:mcp-notes/async");
    read({ text: "before" })
"""
# Every way to call what is held: each must fail, with an error of ours.
CALLS = """
    const { parallel } = require("host:bridge");
    const name = (error) => [error.name, error.server, error.tool];
    const outcomes = [];
    try { read({ text: "after" }); outcomes.push("called"); } catch (error) { outcomes.push(name(error)); }
    outcomes.push(...parallel([[read, { text: "a" }], [read, { text: "b" }]], { errors: "collect" }).map(name));
    outcomes.push(await later.read({ text: "c" }).then(() => "called", name));
    outcomes
"""
REMOVED = [["ToolFailedError", "notes", "read"]] * 4


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def holding(directory: Path, reached: Reached) -> AsyncGenerator[tuple[Runtime, RuntimeSession]]:
    """A session that holds the functions of a server that it has called."""
    notes, other = (reached.server(name, {"read": {"readOnlyHint": True}}) for name in ("notes", "other"))
    async with runtime_of(directory, notes, other, pins="none") as runtime, runtime.session() as session:
        assert value_of(await session.run(HELD)) == "notes did read"
        yield runtime, session


async def remove(runtime: Runtime, _directory: Path) -> None:
    rest = {name: server for name, server in runtime.config.servers.items() if name != "notes"}
    await runtime.reload(replace(runtime.config, servers=rest))


async def disable(runtime: Runtime, _directory: Path) -> None:
    servers = dict(runtime.config.servers)
    servers["notes"] = replace(servers["notes"], enabled=False)
    await runtime.reload(replace(runtime.config, servers=servers))


async def revoke(runtime: Runtime, directory: Path) -> None:
    await runtime.revoke("notes", approvals=ApprovalStore(directory / "approvals"))


async def switch_off(runtime: Runtime, _directory: Path) -> None:
    await runtime.switch_gateway(on=False)


async def hide(runtime: Runtime, _directory: Path) -> None:
    servers = dict(runtime.config.servers)
    servers["notes"] = replace(servers["notes"], deny_tools=("read",))
    await runtime.reload(replace(runtime.config, servers=servers))


@pytest.mark.parametrize("take_away", [remove, disable, revoke, switch_off, hide], ids=lambda act: act.__name__)
async def test_a_function_that_is_held_does_nothing_once_its_server_is_taken_away(
    tmp_path: Path, take_away: Callable[[Runtime, Path], Awaitable[None]]
) -> None:
    reached = Reached()
    async with holding(tmp_path, reached) as (runtime, session):
        await take_away(runtime, tmp_path)
        assert reached.calls == [("notes", "read")]
        result = await session.run(CALLS)
    assert value_of(result) == REMOVED
    assert reached.calls == [("notes", "read")], "the server was reached after it was taken away"
    assert {call.outcome for call in result.calls} == {"failed"}


async def test_what_is_held_calls_no_other_server_that_takes_the_name(tmp_path: Path) -> None:
    """The same name with another command is another server: the program's functions call what is there now, or fail."""
    before, after = Reached(), Reached()
    async with holding(tmp_path, before) as (runtime, session):
        servers = dict(runtime.config.servers)
        servers["notes"] = after.server("notes", {"write": {}})
        await runtime.reload(replace(runtime.config, servers=servers))
        await runtime.start_all()
        result = await session.run(CALLS)
    assert value_of(result) == REMOVED
    assert (before.calls, after.calls) == ([("notes", "read")], [])


async def test_a_closed_session_or_runtime_runs_nothing(tmp_path: Path) -> None:
    reached = Reached()
    async with holding(tmp_path, reached) as (runtime, session):
        await runtime.close()
        with pytest.raises(SandboxClosedError):
            await session.run(CALLS)
    assert reached.calls == [("notes", "read")]
