"""Who decides: the store, a person at a terminal, the host's function. Whatever goes wrong is a refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.trust.approval.approver import Approval, ApprovalRequest, Approver, Terminal
from toolbridge.trust.approval.approvers import PROCESS_WARNING, CallbackApprover, StoredApprovals, TerminalApprover
from toolbridge.trust.approval.store import ApprovalStore
from trust.approval.approval_requests import request, stdio


class Person(Terminal):
    """A terminal at which these answers are typed. The real one is tried in tests/cli/test_approve.py."""

    def __init__(self, *answers: str, there: bool = True) -> None:
        self.answers = list(answers)
        self.there = there
        self.shown: list[str] = []
        self.asking = 0
        self.most_asking = 0

    @property
    def is_there(self) -> bool:
        return self.there

    async def ask(self, text: str, question: str) -> str:
        self.shown.append(text + question)
        self.asking += 1
        self.most_asking = max(self.most_asking, self.asking)
        await anyio.lowlevel.checkpoint()
        self.asking -= 1
        return self.answers.pop(0)


@pytest.fixture
def store(tmp_path: Path) -> ApprovalStore:
    return ApprovalStore(tmp_path / "approvals")


def ask(approver: Approver, asked: ApprovalRequest | None = None) -> Approval:
    return anyio.run(approver.approve, asked or request())


# ---- the store


def test_the_store_approves_what_is_in_it_and_says_how_to_approve_the_rest(store: ApprovalStore) -> None:
    asked = request()
    assert ask(StoredApprovals(store), asked) == Approval(
        False, "nobody approved it. Run `toolbridge approve weather` if you trust it"
    )
    store.approve(asked)
    assert ask(StoredApprovals(store), asked) == Approval(True)


def test_the_command_in_a_refusal_names_the_file_that_was_given(store: ApprovalStore) -> None:
    reason = ask(StoredApprovals(store, config_file="my file.json")).reason
    assert "`toolbridge approve weather --config 'my file.json'`" in reason


def test_a_refusal_says_what_changed_or_when_it_was_revoked(store: ApprovalStore) -> None:
    store.approve(request())
    assert "(program, args changed)" in ask(StoredApprovals(store), request(args=("x",), executable="/tmp/npx")).reason
    store.revoke("weather")
    assert "its approval was revoked on 20" in ask(StoredApprovals(store)).reason


def test_a_server_made_in_code_is_approved_by_its_program(store: ApprovalStore) -> None:
    asked = request(origin=Origin("code"))
    assert f'ApproveDigests("{asked.digest}")' in ask(StoredApprovals(store), asked).reason


@pytest.mark.parametrize("approver", [StoredApprovals, TerminalApprover])
def test_an_object_of_the_hosts_own_program_is_approved(approver: Any, store: ApprovalStore) -> None:
    own = ServerConfig("own", "in_process", server=object())
    assert ask(approver(store), request(own)).approved is True
    foreign = ServerConfig("acme__own", "in_process", server=object(), origin=Origin("plugin", "acme"))
    assert ask(StoredApprovals(store), request(foreign)).approved is False


def test_a_disabled_server_is_refused_by_everybody_and_nobody_is_asked(store: ApprovalStore) -> None:
    person = Person("y")

    async def never(request: ApprovalRequest) -> bool:
        raise AssertionError

    store.approve(request())
    store.set_enabled(stdio(), False)
    for approver in (
        StoredApprovals(store),
        TerminalApprover(store, terminal=person),
        CallbackApprover(never, store=store),
    ):
        assert ask(approver) == Approval(False, "you disabled it; `toolbridge enable weather` takes that back")
    assert person.shown == []


def test_the_store_is_read_at_every_question(store: ApprovalStore) -> None:
    """Another process may have revoked it in the meantime."""
    approver = StoredApprovals(store)
    store.approve(request())
    assert ask(approver).approved
    ApprovalStore(Path(store.path).parent).revoke("weather")
    assert not ask(approver).approved


# ---- a person


@pytest.mark.parametrize("answer", ["y\n", "Y\n", "yes\n", " YES \n"])
def test_a_yes_is_remembered(store: ApprovalStore, answer: str) -> None:
    person = Person(answer)
    approver = TerminalApprover(store, terminal=person)
    assert ask(approver) == Approval(True)
    assert ask(approver) == Approval(True)
    assert len(person.shown) == 1
    assert PROCESS_WARNING in person.shown[0]
    assert person.shown[0].endswith("[y/N] ")
    assert store.answer(request()).standing == "approved"


@pytest.mark.parametrize("answer", ["", "\n", "n\n", "no\n", "yy\n", "yes please\n", "1\n", "true\n", "\x1b\n", "ｙ\n"])
def test_anything_else_is_a_no_and_is_not_remembered(store: ApprovalStore, answer: str) -> None:
    person = Person(answer, answer)
    approver = TerminalApprover(store, terminal=person)
    assert ask(approver) == Approval(False, "you said no")
    assert not ask(approver).approved
    assert len(person.shown) == 2
    assert store.answer(request()).standing == "unknown"


def test_without_a_terminal_nobody_is_asked(store: ApprovalStore) -> None:
    person = Person("y\n", there=False)
    answer = ask(TerminalApprover(store, terminal=person))
    assert not answer.approved
    assert "`toolbridge approve weather`" in answer.reason
    assert "--yes" not in answer.reason  # models read it: it must not tell them how to do without a person
    assert person.shown == []


def test_questions_are_asked_one_at_a_time_and_once(store: ApprovalStore) -> None:
    person = Person("y\n", "n\n")
    approver = TerminalApprover(store, terminal=person)
    answers: dict[int, bool] = {}

    async def one(number: int, asked: ApprovalRequest) -> None:
        answers[number] = (await approver.approve(asked)).approved

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(one, number, request())
            await anyio.lowlevel.checkpoint()
        await one(9, request(name="other"))

    anyio.run(main)
    assert answers == {0: True, 1: True, 2: True, 3: True, 9: False}
    assert len(person.shown) == 2
    assert person.most_asking == 1


def test_a_yes_that_can_not_be_kept_is_a_refusal_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    store = ApprovalStore(tmp_path / "home" / "approvals")
    answer = ask(TerminalApprover(store, terminal=Person("y\n")))
    assert not answer.approved
    assert "TOOLBRIDGE_STATE_DIR" in answer.reason


def test_a_damaged_store_asks_nobody(store: ApprovalStore) -> None:
    store.approve(request())
    Path(store.path).write_text("{")
    person = Person("y\n")
    assert "is damaged" in ask(TerminalApprover(store, terminal=person)).reason
    assert person.shown == []


# ---- the host's function


@pytest.mark.parametrize("given", [True, Approval(True)])
def test_the_hosts_function_approves_and_a_store_remembers(store: ApprovalStore, given: Any) -> None:
    asked: list[ApprovalRequest] = []

    async def decide(request: ApprovalRequest) -> Any:
        asked.append(request)
        return given

    assert ask(CallbackApprover(decide)).approved is True
    assert store.answer(request()).standing == "unknown"
    approver = CallbackApprover(decide, store=store)
    assert [ask(approver).approved for _ in range(3)] == [True] * 3
    assert asked == [request(), request()]


@pytest.mark.parametrize("given", [False, Approval(False, "not on Sundays"), None, "yes", 1, object()])
def test_anything_but_a_clear_yes_of_the_hosts_function_is_a_refusal(store: ApprovalStore, given: Any) -> None:
    async def decide(request: ApprovalRequest) -> Any:
        return given

    answer = ask(CallbackApprover(decide, store=store))
    assert answer.approved is False
    assert store.answer(request()).standing == "unknown"
    if not isinstance(given, (bool, Approval)):
        assert type(given).__name__ in answer.reason
