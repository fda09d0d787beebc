"""T26, control-plane writes: what the host revoked or switched off is not brought back by a runtime for a task.

A task's description may be anybody's words, and with it comes a runtime of its own. It has what the runtime has that it
was made of, and nothing that was taken away there, whether before it was made, before it was entered, or since:
revoked, switched off, or no longer configured.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Literal, TypeAlias

import pytest

from runtime.worlds import ApproveAll, check_failure, named, runtime_of, value_of
from toolbridge import ApprovalStore, Config, Permissions, Runtime, Section, ServerConfig, ServerLimits
from toolbridge.errors import UnknownServerError
from toolbridge.prompt import render

pytestmark = pytest.mark.anyio

WEATHER = 'require("host:mcp-weather").list_stations().length'
OWN = 'require("host:mcp-own").who()'
SHOWN = 'require("host:mcp-shown").who()'
When: TypeAlias = Literal["before it is made", "before it is entered", "while it is open"]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


def opened(directory: Path, approver: ApproveAll) -> AbstractAsyncContextManager[Runtime]:
    """A runtime with a server of each kind: a process, functions of the host's, and a section's."""
    weather = ServerConfig.stdio("weather", sys.executable, ["-m", "toolbridge.demo.weather"], connect_timeout=60)
    prompt = render([Section("Shown", "shown", mcps=[named("shown")])])
    return runtime_of(directory, weather, named("own"), approver=approver, prompt=prompt, pins="none")


async def revoke(runtime: Runtime, directory: Path) -> None:
    for name in ("weather", "own", "shown"):
        await runtime.revoke(name, approvals=ApprovalStore(directory / "approvals"))


async def switch_off(runtime: Runtime, _directory: Path) -> None:
    await runtime.switch_gateway(on=False)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("when", ["before it is made", "before it is entered", "while it is open"])
@pytest.mark.parametrize("take_away", [revoke, switch_off], ids=lambda act: act.__name__)
async def test_a_task_has_no_server_that_was_taken_away_from_the_runtime_that_it_was_made_of(
    tmp_path: Path, take_away: Callable[[Runtime, Path], Awaitable[None]], when: When, depth: int
) -> None:
    approver = ApproveAll()
    async with opened(tmp_path, approver) as runtime, AsyncExitStack() as stack:
        if when == "before it is made":
            await take_away(runtime, tmp_path)
        task = runtime.for_task("x")
        if depth == 2:
            await stack.enter_async_context(task)
        for _ in range(depth - 1):  # of three, those between are never entered, and nobody keeps them
            task = task.for_task("y")
        if when == "before it is entered":
            await take_away(runtime, tmp_path)
        await stack.enter_async_context(task)
        if when == "while it is open":
            assert value_of(await task.run(f"[{WEATHER} > 0, {OWN}, {SHOWN}]")) == [True, "own", "shown"]
            await take_away(runtime, tmp_path)
        asked = list(approver.asked)
        assert dict(task.config.servers) == {}
        assert task.list_modules() == ()
        for program in (WEATHER, OWN, SHOWN):
            check_failure(await task.run(program), "type", "There is no module")
        assert approver.asked == asked, "somebody was asked again about a server that was taken away"


async def test_a_task_that_names_or_brings_what_was_revoked_does_not_get_it(tmp_path: Path) -> None:
    async with opened(tmp_path, ApproveAll()) as runtime:
        await revoke(runtime, tmp_path)
        with pytest.raises(UnknownServerError):
            async with runtime.for_task("x", servers=["own"]):
                pass
        async with runtime.for_task("x", servers=[named("own"), named("other")]) as task:
            assert list(task.config.servers) == ["other"]
            await task.reload()
            assert list(task.config.servers) == ["other"], "the task's runtime gave itself what was revoked above it"


async def test_what_is_given_back_is_there_again(tmp_path: Path) -> None:
    async with opened(tmp_path, ApproveAll()) as runtime, runtime.for_task("x") as task:
        await runtime.switch_gateway(on=False)
        await task.switch_gateway(on=True)
        check_failure(await task.run(OWN), "type", "There is no module")
        await runtime.switch_gateway(on=True)
        assert value_of(await task.run(OWN)) == "own"
        await revoke(runtime, tmp_path)
        await runtime.reload()
        assert value_of(await task.run(OWN)) == "own"
        await task.revoke("own", approvals=ApprovalStore(tmp_path / "approvals"))
        assert value_of(await runtime.run(OWN)) == "own"


@pytest.mark.parametrize("depth", [1, 2])
async def test_what_is_configured_no_more_is_gone_from_open_tasks_too(tmp_path: Path, depth: int) -> None:
    async with opened(tmp_path, ApproveAll()) as runtime, AsyncExitStack() as stack:
        task = runtime
        for _ in range(depth):
            task = await stack.enter_async_context(task.for_task("x", servers=["own", named("brought")]))
        assert value_of(await task.run(f"[{WEATHER} > 0, {OWN}]")) == [True, "own"]
        await runtime.reload(Config.of(named("other"), permissions=Permissions(deny=("mcp__brought__*",))))
        assert sorted(task.config.servers) == ["brought", "other", "shown"]
        for program in (WEATHER, OWN):
            check_failure(await task.run(program), "type", "There is no module")
        check_failure(await task.run('require("host:mcp-brought").who()'), "denied", "permissions.deny")
        assert value_of(await task.run('require("host:mcp-other").who()')) == "other"


async def test_a_task_that_was_reloaded_itself_keeps_its_configuration(tmp_path: Path) -> None:
    async with opened(tmp_path, ApproveAll()) as runtime, runtime.for_task("x") as task:
        await task.reload(Config.of(named("mine")))
        await runtime.reload(Config.of(named("other")))
        assert sorted(task.config.servers) == ["mine", "shown"]


async def test_a_task_that_has_no_room_for_its_own_beside_a_new_configuration_keeps_nothing_old(tmp_path: Path) -> None:
    async with opened(tmp_path, ApproveAll()) as runtime, runtime.for_task("x", servers=[named("brought")]) as task:
        await runtime.reload(Config.of(named("a"), named("b"), limits=ServerLimits(servers=3)))
        assert sorted(runtime.config.servers) == ["a", "b", "shown"]
        assert sorted(task.config.servers) == ["a", "b"]
