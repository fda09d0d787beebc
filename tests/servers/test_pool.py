"""The connections there may be at once: who gives one up for another, and who never does."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest

from servers.fault_expectations import text_of
from servers.fault_servers import fault_server, manager_of
from servers.test_manager import config, in_process
from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import ConnectionLimitError
from toolbridge.events import ServerEvent, StateChanged
from toolbridge.servers.manager import ServerManager
from toolbridge.trust.approval.approver import Approval, ApprovalRequest

pytestmark = pytest.mark.anyio


class Yes:
    async def approve(self, request: ApprovalRequest) -> Approval:
        return Approval(True)


class Person:
    """Thinks about one server until told to answer, and approves the others at once."""

    def __init__(self, thinks_about: str) -> None:
        self._thinks_about = thinks_about
        self.answer = anyio.Event()

    async def approve(self, request: ApprovalRequest) -> Approval:
        if request.server.name == self._thinks_about:
            await self.answer.wait()
        return Approval(True)


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not condition():  # noqa: ASYNC110  # there is no event for what servers do
            await anyio.sleep(0.005)


def shops(manager: ServerManager) -> dict[str, str]:
    return {status.name: status.state for status in manager.statuses()}


async def test_the_server_that_was_not_used_for_longest_makes_room_for_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events: list[ServerEvent] = []
    names = ("one", "two", "three")
    with caplog.at_level(logging.INFO, "toolbridge"):
        three = config(*map(in_process, names), connections=2)
        async with ServerManager(three, approver=Yes(), observers=[events.append]) as manager:
            await manager.connect("one")
            await manager.connect("two")
            await manager.call("one", "add", {"a": 1, "b": 1})
            await manager.connect("three")
            assert shops(manager) == {"one": "connected", "two": "closed", "three": "connected"}
            assert manager.status("two").last_error == ""
            await manager.call("two", "add", {"a": 1, "b": 1})
            assert shops(manager) == {"one": "closed", "two": "connected", "three": "connected"}
    assert StateChanged("two", "closed", reason="closed to make room for server 'three'") in events
    assert "Server 'two' was closed to make room for server 'three'." in caplog.messages


async def test_making_room_is_no_respawn() -> None:
    limits = ServerLimits(connections=1, respawns=0, close_seconds=0.2, connect_seconds=20.0)
    async with manager_of([fault_server("one", "fine"), fault_server("two", "fine")], limits) as manager:
        for _ in range(3):
            for name in ("one", "two"):
                assert text_of(await manager.call(name, "echo", {"text": name})) == name
        assert [status.respawns for status in manager.statuses()] == [0, 0]


async def test_a_server_with_a_call_under_way_is_never_closed_for_another() -> None:
    async with ServerManager(config(in_process("busy"), in_process("two"), connections=1), approver=Yes()) as manager:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.call, "busy", "wait", dict[str, object]())
            await until(lambda: manager.status("busy").state == "connected")
            with pytest.raises(ConnectionLimitError, match=r"'two'.*in use \(busy\)"):
                await manager.connect("two")
            with pytest.raises(ConnectionLimitError):
                await manager.connect("two", acquire="queue")
            tasks.cancel_scope.cancel()
        await manager.connect("two")


async def test_only_a_free_place_is_taken_where_no_more_is_wanted() -> None:
    async with ServerManager(config(in_process("one"), in_process("two"), connections=1), approver=Yes()) as manager:
        await manager.connect("one")
        with pytest.raises(ConnectionLimitError):
            await manager.connect("two", acquire="if_free")
        assert shops(manager) == {"one": "connected", "two": "idle"}


@pytest.mark.parametrize("begun", [False, True])
async def test_a_call_that_comes_while_all_are_started_in_turns_gets_its_answer(begun: bool) -> None:
    """Whoever waits for a server keeps it: nobody closes it between its start and the call."""
    names = [f"shop{number}" for number in range(4)]
    async with ServerManager(config(*map(in_process, names), connections=1), approver=Yes()) as manager:
        results: list[object] = []

        async def call(name: str) -> None:
            result = await manager.call(name, "add", {"a": 2, "b": 3})
            results.append(result["structuredContent"]["result"])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.start_all)
            if begun:
                await anyio.lowlevel.checkpoint()
            tasks.start_soon(call, "shop0")
    assert results == [5]


async def test_a_server_that_waits_for_approval_holds_up_no_other() -> None:
    person = Person(thinks_about="asked")
    async with ServerManager(
        config(in_process("asked"), in_process("other"), connections=1), approver=person
    ) as manager:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.start_all)
            await until(lambda: manager.status("other").state == "connected")
            assert manager.status("asked").state == "needs_approval"
            person.answer.set()
        assert manager.status("asked").tools == manager.status("other").tools == 3


async def test_those_who_come_while_a_server_is_closing_get_its_successor() -> None:
    limits = ServerLimits(close_seconds=0.2, connect_seconds=20.0)
    async with manager_of([fault_server("stubborn", "ignores-sigterm-and-eof")], limits) as manager:
        await manager.connect("stubborn")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.close_server, "stubborn")
            await until(lambda: manager._slots["stubborn"].close_count == 1)
            assert text_of(await manager.call("stubborn", "echo", {"text": "x"})) == "x"
