"""Asking a person: what counts as an answer, how long it holds, and that nothing but yes is a yes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest

from toolbridge.config.server_config import ServerConfig
from toolbridge.trust.gate import Decision, PermissionGate, RunGate, ToolUse
from trust.gate_tools import Person, configured, labelled, spec

pytestmark = pytest.mark.anyio

REMEMBERED = Decision(True, remember=True)


def asking(person: Any, ask: Sequence[str] = ("*",)) -> RunGate:
    return PermissionGate(configured(ask=ask), person).open_run()


async def test_a_person_is_shown_the_call_and_why_they_are_asked() -> None:
    person = Person(True)
    assert await asking(person).authorize(spec(), {"to": "me"}) == Decision(True, rule="ask *")
    (use,) = person.asked
    assert (use.server, use.tool, dict(use.arguments)) == ("mail", "send", {"to": "me"})
    assert use.detail == 'send {"to": "me"}'
    assert use.reason == "mcp__mail__send has to be asked about: the pattern '*' under permissions.ask"


async def test_a_no_is_a_refusal_with_the_hosts_reason_if_it_gives_one() -> None:
    assert (
        await asking(Person(False)).authorize(spec(), {})
    ).reason == "mcp__mail__send is refused: the answer was no."
    decision = await asking(Person(Decision(False, "Not on a Sunday"))).authorize(spec(), {})
    assert decision == Decision(False, "Not on a Sunday", "ask *")


@pytest.mark.parametrize("answer", [None, 1, "yes", [True], {"allowed": True}, Decision("no"), Decision(1), object()])  # pyright: ignore[reportArgumentType]
async def test_what_is_no_clear_yes_is_a_no(answer: object) -> None:
    gate = asking(Person(answer))
    assert not (await gate.authorize(spec(), {})).allowed
    assert [record.decision.allowed for record in gate.decisions] == [False]


@pytest.mark.parametrize(
    "error", [ValueError("/home/me/secret"), RuntimeError(), TimeoutError(), ExceptionGroup("g", [ValueError("x")])]
)
async def test_a_host_that_fails_refuses_and_its_words_stay_with_it(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    gate = asking(Person(error, True))
    decision = await gate.authorize(spec(), {})
    assert (decision.allowed, decision.rule) == (False, "ask *")
    assert decision.reason == f"mcp__mail__send is refused: can_use_tool failed with {type(error).__name__}."
    assert [(record.message, record.exc_info is not None) for record in caplog.records] == [
        ("can_use_tool failed for mcp__mail__send", True)
    ]
    assert (await gate.authorize(spec(), {})).allowed, "the next one is asked about as usual"


async def test_a_cancelled_question_decides_nothing_and_blocks_nobody() -> None:
    async def never(use: ToolUse) -> bool:
        await anyio.sleep_forever()
        return True

    gate = asking(never)
    with anyio.move_on_after(0) as scope:
        await gate.authorize(spec(), {})
    assert scope.cancelled_caught
    assert gate.decisions == []
    gate._gate.can_use_tool = Person(True)  # pyright: ignore[reportPrivateUsage]
    with anyio.fail_after(60):
        assert (await gate.authorize(spec(), {})).allowed


# ---- how long an answer holds


async def test_an_answer_is_for_one_call_unless_it_is_to_be_remembered() -> None:
    person = Person(True, True, False)
    gate = asking(person)
    assert [(await gate.authorize(spec(), {})).allowed for _ in range(3)] == [True, True, False]
    assert len(person.asked) == 3


async def test_a_remembered_yes_covers_this_tool_of_this_server_and_no_other() -> None:
    person = Person(REMEMBERED, False)
    gate = asking(person)
    assert [(await gate.authorize(spec(), {"n": number})).allowed for number in range(3)] == [True] * 3
    assert len(person.asked) == 1
    assert not (await gate.authorize(spec(name="send_all"), {})).allowed
    assert not (await gate.authorize(spec(server="chat"), {})).allowed
    assert len(person.asked) == 3


async def test_a_remembered_yes_ends_with_the_run() -> None:
    gate = PermissionGate(configured(ask=["*"]), Person(REMEMBERED, False))
    assert (await gate.open_run().authorize(spec(), {})).allowed
    assert not (await gate.open_run().authorize(spec(), {})).allowed


async def test_a_remembered_no_is_not_asked_again() -> None:
    person = Person(Decision(False, "never", remember=True), True)
    gate = asking(person)
    assert [(await gate.authorize(spec(), {})).reason for _ in range(2)] == ["never", "never"]
    assert len(person.asked) == 1
    assert (await gate.authorize(spec(name="read"), {})).allowed


async def test_a_remembered_yes_does_not_reach_over_a_deny() -> None:
    gate = PermissionGate(configured(ask=["*"]), Person(REMEMBERED))
    run = gate.open_run()
    assert (await run.authorize(spec(), {})).allowed
    gate.config = configured(ask=["*"], deny=["mcp__mail__send"])
    assert not (await run.authorize(spec(), {})).allowed


async def test_a_remembered_yes_to_a_pattern_is_none_to_a_flow() -> None:
    person = Person(REMEMBERED, False)
    servers = [labelled("files", "private"), labelled("web", "untrusted"), labelled("mail", "external")]
    config = configured(*servers, ask=["mcp__mail__*"], flows={"private+untrusted->external": "ask"})
    gate = PermissionGate(config, person).open_run()
    assert (await gate.authorize(spec(), {})).allowed
    assert (await gate.authorize(spec("files", "read"), {})).allowed
    assert (await gate.authorize(spec("web", "get"), {})).allowed
    assert not (await gate.authorize(spec(), {})).allowed
    assert "read private data (mcp__files__read, call 2)" in person.asked[1].reason


async def test_a_yes_to_one_server_is_none_to_another_that_takes_its_name() -> None:
    """T25: a reload in the middle of a session can put another program behind a name."""
    gate = PermissionGate(configured("mail", ask=["*"]), Person(REMEMBERED, False))
    run = gate.open_run()
    assert (await run.authorize(spec(), {})).allowed
    gate.config = configured(ServerConfig.stdio("mail", "evil"), ask=["*"])
    assert not (await run.authorize(spec(), {})).allowed


async def test_a_server_that_changes_while_a_person_thinks_is_refused() -> None:
    gate = PermissionGate(configured("mail", ask=["*"]))

    async def reload_and_agree(use: ToolUse) -> Decision:
        gate.config = configured(ServerConfig.stdio("mail", "evil"), ask=["*"])
        return REMEMBERED

    gate.can_use_tool = reload_and_agree
    decision = await gate.open_run().authorize(spec(), {})
    assert (decision.allowed, "changed meanwhile" in decision.reason) == (False, True)


async def test_a_rule_that_turns_stricter_while_a_person_thinks_holds() -> None:
    gate = PermissionGate(configured("mail", ask=["*"]))

    async def forbid_and_agree(use: ToolUse) -> bool:
        gate.config = replace(gate.config, permissions=replace(gate.config.permissions, deny=("*",)))
        return True

    gate.can_use_tool = forbid_and_agree
    assert (await gate.open_run().authorize(spec(), {})).rule == "deny *"


# ---- several at once


class Slow:
    """A person who answers when told to; counts how many questions were open at once, by tool."""

    def __init__(self, answer: Decision | bool) -> None:
        self.answer, self.go = answer, anyio.Event()
        self.asked: list[str] = []
        self.open: dict[str, int] = {}
        self.most = 0

    async def __call__(self, use: ToolUse) -> Decision | bool:
        self.asked.append(use.tool)
        self.open[use.tool] = self.open.get(use.tool, 0) + 1
        self.most = max(self.most, self.open[use.tool])
        await self.go.wait()
        self.open[use.tool] -= 1
        return self.answer


async def at_once(gate: RunGate, person: Slow, names: list[str]) -> list[bool]:
    allowed: list[bool] = []

    async def one(name: str) -> None:
        allowed.append((await gate.authorize(spec(name=name), {})).allowed)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(one, name)
            await anyio.wait_all_tasks_blocked()
            person.go.set()
    return allowed


@pytest.mark.parametrize("answer", [REMEMBERED, Decision(False, remember=True)])
async def test_calls_that_wait_share_an_answer_that_is_remembered(answer: Decision) -> None:
    person = Slow(answer)
    assert await at_once(asking(person), person, ["send"] * 5) == [answer.allowed] * 5
    assert person.asked == ["send"]


@pytest.mark.parametrize("answer", [True, False])
async def test_calls_that_wait_are_each_asked_about_one_after_the_other_otherwise(answer: bool) -> None:
    person = Slow(answer)
    assert await at_once(asking(person), person, ["send"] * 5) == [answer] * 5
    assert (person.asked, person.most) == (["send"] * 5, 1)


async def test_a_question_about_one_tool_does_not_hold_up_another() -> None:
    person = Slow(True)
    gate = asking(person, ask=["mcp__mail__send", "mcp__mail__draft"])

    async def pending(name: str) -> None:
        await gate.authorize(spec(name=name), {})

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pending, "send")
            tasks.start_soon(pending, "draft")
            await anyio.wait_all_tasks_blocked()
            assert sorted(person.asked) == ["draft", "send"]
            assert (await gate.authorize(spec(name="read"), {})).allowed
            person.go.set()
