"""One attempt to connect for all who want a server, and each of them asked by whoever is theirs to ask."""

from __future__ import annotations

from contextvars import ContextVar

import anyio
import pytest

from servers.test_manager import config, in_process
from servers.test_pool import until
from toolbridge.errors import ServerClosedError, ServerNotApprovedError
from toolbridge.servers.manager import ServerManager
from toolbridge.trust.approval.approver import Approval, ApprovalRequest

pytestmark = pytest.mark.anyio

_person: ContextVar[str] = ContextVar("person")


class TwoPeople:
    """Asks the person of the current task, each of whom answers when told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.ended: list[str] = []
        self._answers = {name: anyio.Event() for name in ("ann", "bob")}
        self._yes: dict[str, bool] = {}

    def asker(self) -> object:
        return _person.get()

    def answer(self, name: str, *, yes: bool) -> None:
        self._yes[name] = yes
        self._answers[name].set()

    async def approve(self, request: ApprovalRequest) -> Approval:
        name = _person.get()
        self.asked.append(name)
        try:
            await self._answers[name].wait()
        finally:
            self.ended.append(name)
        return Approval(self._yes[name], f"{name} said no")


async def connect(manager: ServerManager, person: str, outcomes: dict[str, str]) -> None:
    _person.set(person)
    try:
        await manager.connect("shop")
    except (ServerNotApprovedError, ServerClosedError) as error:
        outcomes[person] = str(error)
    else:
        outcomes[person] = "connected"


async def test_one_persons_silence_keeps_no_other_from_answering() -> None:
    people, outcomes = TwoPeople(), dict[str, str]()
    async with ServerManager(config(in_process()), approver=people) as manager, anyio.create_task_group() as tasks:
        tasks.start_soon(connect, manager, "ann", outcomes)
        await until(lambda: people.asked == ["ann"])
        tasks.start_soon(connect, manager, "bob", outcomes)
        await until(lambda: people.asked == ["ann", "bob"])
        people.answer("bob", yes=True)
    assert outcomes == {"ann": "connected", "bob": "connected"}
    assert sorted(people.ended) == ["ann", "bob"]  # ann's question was called off


async def test_one_persons_no_is_nobody_elses() -> None:
    people, outcomes = TwoPeople(), dict[str, str]()
    async with ServerManager(config(in_process()), approver=people) as manager, anyio.create_task_group() as tasks:
        tasks.start_soon(connect, manager, "ann", outcomes)
        await until(lambda: people.asked == ["ann"])
        tasks.start_soon(connect, manager, "bob", outcomes)
        await until(lambda: people.asked == ["ann", "bob"])
        people.answer("ann", yes=False)
        await until(lambda: "ann" in outcomes)
        assert "ann said no" in outcomes["ann"]
        assert "bob" not in outcomes
        people.answer("bob", yes=True)
    assert outcomes["bob"] == "connected"
    assert people.asked == ["ann", "bob"]


async def test_a_no_of_one_who_joined_leaves_the_question_of_the_first() -> None:
    people, outcomes = TwoPeople(), dict[str, str]()
    async with ServerManager(config(in_process()), approver=people) as manager, anyio.create_task_group() as tasks:
        tasks.start_soon(connect, manager, "ann", outcomes)
        await until(lambda: people.asked == ["ann"])
        tasks.start_soon(connect, manager, "bob", outcomes)
        people.answer("bob", yes=False)
        await until(lambda: "bob" in outcomes)
        assert "bob said no" in outcomes["bob"]
        people.answer("ann", yes=True)
    assert outcomes["ann"] == "connected"


async def test_those_with_the_same_person_share_one_question() -> None:
    people, outcomes = TwoPeople(), dict[str, str]()
    async with ServerManager(config(in_process()), approver=people) as manager, anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(connect, manager, "ann", outcomes)
        await until(lambda: people.asked == ["ann"])
        people.answer("ann", yes=True)
    assert people.asked == ["ann"]


@pytest.mark.parametrize("how", ["close", "reload"])
async def test_a_yes_to_a_server_that_was_closed_or_is_gone_meanwhile_starts_nothing(how: str) -> None:
    people, outcomes = TwoPeople(), dict[str, str]()
    async with ServerManager(config(in_process()), approver=people) as manager:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connect, manager, "ann", outcomes)
            await until(lambda: people.asked == ["ann"])
            tasks.start_soon(connect, manager, "bob", outcomes)
            await until(lambda: people.asked == ["ann", "bob"])
            await (manager.close_server("shop") if how == "close" else manager.reload(config()))
            people.answer("bob", yes=True)
        assert len(outcomes) == 2
    assert all("was closed" in outcome for outcome in outcomes.values()), outcomes
