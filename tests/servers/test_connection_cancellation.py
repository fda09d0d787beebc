"""Whenever the host is cancelled, and whatever it raises: every server is closed, and nothing else comes of it."""

from __future__ import annotations

import gc
import logging
from functools import cache

import anyio
import pytest

from servers.cancel_points import run_and_cancel
from servers.fault_expectations import text_of
from servers.fault_run import ApproveAll
from servers.fault_servers import fault_server, manager_of
from servers.live_processes import left_after, processes, processes_by_a_word, zombies
from toolbridge.config.config import Config
from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import ServerClosedError, ServerError, ServerNotApprovedError
from toolbridge.events import ServerEvent
from toolbridge.servers.manager import ServerManager
from toolbridge.trust.approval.approver import Approval, ApprovalRequest

BACKENDS = ("asyncio", "trio")
POINTS = 12
LIMITS = ServerLimits(close_seconds=0.2, call_seconds=0.2, connections=10)


async def busy_program(word: str) -> None:
    """A little of everything that takes time: starting, listing, calling, timing out, dying, reloading, closing."""
    servers = {
        server.name: server
        for server in (
            fault_server("fine", "fine", word),
            fault_server("modern", "list-changes", "--modern", word),
            fault_server("silent", "silent-at-call", word),
            fault_server("mortal", "kill-at-call", word),
        )
    }
    async with ServerManager(Config(servers=servers, limits=LIMITS), approver=ApproveAll()) as manager:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.start_all)
            for server, tool in (("fine", "echo"), ("modern", "faulty"), ("silent", "faulty"), ("mortal", "faulty")):
                tasks.start_soon(_call, manager, server, tool)
        await _call(manager, "mortal", "echo")
        await manager.reload(Config(servers={"fine": servers["fine"], "silent": servers["silent"]}, limits=LIMITS))
        await manager.close_server("fine")
        await _call(manager, "fine", "echo")


async def _call(manager: ServerManager, server: str, tool: str) -> None:
    try:
        await manager.call(server, tool, {"text": "x"})
    except ServerError:
        return  # some of them do fail


def check_nothing_is_left(word: str, caplog: pytest.LogCaptureFixture) -> None:
    gc.collect()  # warnings of what was never closed or awaited come out here, and are errors
    assert anyio.run(left_after, word) == {}
    assert zombies() == 0
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert [record.getMessage() for record in caplog.records if record.name.startswith(("asyncio", "trio"))] == []


@cache
def steps_of_the_whole_program(backend: str) -> int:
    with processes_by_a_word() as word:
        ending = run_and_cancel(lambda: busy_program(word), backend, at_step=None)
    assert not ending.cancelled
    return ending.steps


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("point", range(POINTS))
def test_cancelling_at_any_step_closes_everything(backend: str, point: int, caplog: pytest.LogCaptureFixture) -> None:
    # The number of steps is never quite the same; between points, there is room for chance.
    step = 1 + point * steps_of_the_whole_program(backend) // POINTS
    with processes_by_a_word() as word:
        ending = run_and_cancel(lambda: busy_program(word), backend, at_step=step)
        assert ending.cancelled or ending.steps < step + 5
        check_nothing_is_left(word, caplog)


# ---- errors of the host's own


class HostBugError(Exception):
    """Something that has nothing to do with any server."""


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_in_the_hosts_task_closes_everything_and_comes_out_as_it_is(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(word: str) -> None:
        async with manager_of(
            [fault_server("fine", "fine", word), fault_server("hung", "hang-at-list", word)]
        ) as manager:
            await manager.connect("fine")
            raise HostBugError

    with processes_by_a_word() as word:
        with pytest.raises(HostBugError):
            anyio.run(main, word, backend=backend)
        check_nothing_is_left(word, caplog)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_beside_calls_and_connects_under_way_closes_everything(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(word: str) -> None:
        servers = [
            fault_server("silent", "silent-at-call", word),
            fault_server("hung", "hang-at-negotiate", word),
            fault_server("stubborn", "ignores-sigterm-and-eof", word),
        ]
        async with manager_of(servers, ServerLimits(close_seconds=0.2)) as manager:
            await manager.connect("stubborn")
            await manager.connect("silent")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_call, manager, "silent", "faulty")
                tasks.start_soon(_call, manager, "hung", "echo")
                await _until_there_are(3, word)
                raise HostBugError

    with processes_by_a_word() as word:
        with pytest.raises(ExceptionGroup) as caught:  # of the host's own task group
            anyio.run(main, word, backend=backend)
        assert caught.group_contains(HostBugError)
        check_nothing_is_left(word, caplog)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_caller_that_is_cancelled_costs_neither_the_connection_nor_other_callers(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(word: str) -> None:
        async with manager_of([fault_server("silent", "silent-at-call", word)]) as manager:
            # While it is being connected,
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(manager.connect, "silent")
                    await _until_there_are(1, word)
                    scope.cancel()
            await manager.connect("silent")
            (process,) = processes(word)
            # and while it is called.
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_call, manager, "silent", "faulty")
                assert text_of(await manager.call("silent", "echo", {"text": "x"})) == "x"
                tasks.cancel_scope.cancel()
            assert text_of(await manager.call("silent", "echo", {"text": "y"})) == "y"
            assert list(processes(word)) == [process]

    with processes_by_a_word() as word:
        anyio.run(main, word, backend=backend)
        check_nothing_is_left(word, caplog)


@pytest.mark.parametrize("backend", BACKENDS)
def test_observers_and_approvers_that_raise_do_no_harm(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    class Failing:
        async def approve(self, request: ApprovalRequest) -> Approval:
            if request.server.name == "fine":
                return Approval(True)
            raise HostBugError("no")

    def observe(event: ServerEvent) -> None:
        raise HostBugError

    async def main(word: str) -> None:
        servers = {name: fault_server(name, "fine", word) for name in ("fine", "refused")}
        manager = ServerManager(Config(servers=servers), approver=Failing(), observers=[observe])
        async with manager:
            with pytest.raises(ServerNotApprovedError, match="'refused'"):
                await manager.connect("refused")
            assert text_of(await manager.call("fine", "echo", {"text": "x"})) == "x"

    with processes_by_a_word() as word:
        anyio.run(main, word, backend=backend)
        caplog.clear()  # that an observer raised is in it
        check_nothing_is_left(word, caplog)


@pytest.mark.parametrize("backend", BACKENDS)
def test_closing_twice_and_from_several_tasks_is_one_closing(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main(word: str) -> None:
        servers = [fault_server("fine", "fine", word), fault_server("stubborn", "ignores-sigterm-and-eof", word)]
        async with manager_of(servers, ServerLimits(close_seconds=0.2)) as manager:
            await manager.start_all()
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(manager.close)
                    tasks.start_soon(manager.close_server, "stubborn")
            assert {status.state for status in manager.statuses()} == {"closed"}
            assert await left_after(word, 0) == {}
            await manager.close()
            with pytest.raises(ServerClosedError):
                await manager.call("fine", "echo", {"text": "x"})

    with processes_by_a_word() as word:
        anyio.run(main, word, backend=backend)
        check_nothing_is_left(word, caplog)


async def _until_there_are(number: int, word: str) -> None:
    with anyio.fail_after(60):
        while len(processes(word)) < number:  # noqa: ASYNC110  # the start of a process is no event
            await anyio.sleep(0.01)
