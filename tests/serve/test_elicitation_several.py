"""Several clients, each with a person of its own: nobody waits for, or is bound by, somebody else's."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from servers.fault_servers import fault_server
from servers.test_pool import until
from toolbridge import ApprovalStore, Config, ServerManager
from toolbridge.errors import ServerNotApprovedError
from toolbridge.serve.clients import Caller, Client, FormAnswer, Notification, Question, set_caller
from toolbridge.serve.elicitation import ClientApprover

pytestmark = pytest.mark.anyio


class Person:
    """Behind one client: answers when told to."""

    can_ask = has_elicitation = True

    def __init__(self, name: str) -> None:
        self.asked = 0
        self.answers = anyio.Event()
        self.answer = FormAnswer("decline")
        self.caller = Caller(Client(("test", name)), self, ask_seconds=60)

    async def ask(self, question: Question) -> FormAnswer:
        self.asked += 1
        await self.answers.wait()
        return self.answer

    async def notify(self, news: Notification, number: int) -> None:
        pass

    def says(self, answer: FormAnswer) -> None:
        self.answer = answer
        self.answers.set()


async def connect(manager: ServerManager, person: Person, outcomes: list[str]) -> None:
    set_caller(person.caller)
    try:
        await manager.connect("weather")
    except ServerNotApprovedError as error:
        outcomes.append(str(error))
    else:
        outcomes.append("connected")


@pytest.mark.parametrize("silent", [True, False])
async def test_a_client_whose_person_is_silent_or_refuses_does_not_keep_another_from_a_server(
    tmp_path: Path, silent: bool
) -> None:
    approver = ClientApprover(ApprovalStore(tmp_path / "approvals"), config_file=None)
    ann, bob = Person("ann"), Person("bob")
    anns, bobs = list[str](), list[str]()
    weather = ServerManager(Config.of(fault_server("weather", "fine")), approver=approver)
    async with weather as manager, anyio.create_task_group() as tasks:
        tasks.start_soon(connect, manager, ann, anns)
        await until(lambda: ann.asked == 1)
        tasks.start_soon(connect, manager, bob, bobs)
        await until(lambda: bob.asked == 1)
        if not silent:
            ann.says(FormAnswer("decline"))
            await until(lambda: bool(anns))
            assert "the person said no" in anns[0]
        bob.says(FormAnswer("accept", {"agree": True}))
    ann.caller.close()
    bob.caller.close()
    assert bobs == ["connected"]
    assert (ann.asked, bob.asked) == (1, 1)


async def test_a_client_that_can_not_ask_does_not_wait_for_somebody_elses_person(tmp_path: Path) -> None:
    approver = ClientApprover(ApprovalStore(tmp_path / "approvals"), config_file=None)
    ann, bob = Person("ann"), Person("bob")
    bob.can_ask = bob.has_elicitation = False
    bobs = list[str]()
    weather = ServerManager(Config.of(fault_server("weather", "fine")), approver=approver)
    async with weather as manager, anyio.create_task_group() as tasks:
        tasks.start_soon(connect, manager, ann, list[str]())
        await until(lambda: ann.asked == 1)
        await connect(manager, bob, bobs)
        assert "nobody approved it" in bobs[0]
        tasks.cancel_scope.cancel()
    ann.caller.close()
    bob.caller.close()
