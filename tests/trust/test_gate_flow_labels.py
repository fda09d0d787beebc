"""Labels and flows (T22): the servers that tainted a run decide which tools it may still call."""

from __future__ import annotations

import itertools

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbridge.config.policy import FLOW_RULES, LEVELS, Level, sides_of
from toolbridge.trust.gate import PermissionGate, RunFlows, ToolUse
from toolbridge.trust.permissions import SuggestedLabel, label_warnings, labels_of, suggested_labels
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, ToolSpec
from trust.gate_tools import Person, catalog_of, configured, labelled, spec

pytestmark = pytest.mark.anyio

FILES, WEB, MAIL = spec("files", "read"), spec("web", "get"), spec("mail", "send")
SERVERS = [labelled("files", "private"), labelled("web", "untrusted"), labelled("mail", "external")]
TRIFECTA = "private+untrusted->external"


async def test_the_third_leg_is_refused_and_all_three_calls_are_named() -> None:
    run = PermissionGate(configured(*SERVERS)).open_run()
    assert (await run.authorize(FILES, {})).allowed
    assert (await run.authorize(WEB, {})).allowed
    decision = await run.authorize(MAIL, {})
    assert (decision.allowed, decision.rule) == (False, f"flow {TRIFECTA}")
    assert decision.reason == (
        "This run has read private data (mcp__files__read, call 1) and read untrusted content (mcp__web__get, call 2), "
        f"so it may not send anything to an external place (mcp__mail__send): flows.{TRIFECTA}."
    )


@pytest.mark.parametrize("order", list(itertools.permutations([FILES, WEB, MAIL])))
async def test_only_an_external_call_that_comes_after_both_others_is_refused(order: list[ToolSpec]) -> None:
    run = PermissionGate(configured(*SERVERS)).open_run()
    for index, tool in enumerate(order):
        decision = await run.authorize(tool, {})
        assert decision.allowed == (tool is not MAIL or index < 2)


async def test_a_refused_call_does_not_taint() -> None:
    run = PermissionGate(configured(*SERVERS, deny=["mcp__files__*"])).open_run()
    assert [(await run.authorize(tool, {})).allowed for tool in (FILES, WEB, MAIL)] == [False, True, True]


async def test_a_retracted_call_does_not_taint() -> None:
    run = PermissionGate(configured(*SERVERS)).open_run()
    await run.authorize(FILES, {})
    await run.authorize(WEB, {})
    run.retract(FILES)
    assert (await run.authorize(MAIL, {})).allowed


async def test_taking_one_call_back_leaves_the_others() -> None:
    run = PermissionGate(configured(*SERVERS)).open_run()
    for tool in (FILES, FILES, WEB):
        await run.authorize(tool, {})
    run.retract(FILES)
    run.retract(spec("mail", "never_called"))
    assert not (await run.authorize(MAIL, {})).allowed
    run.retract(FILES)
    assert (await run.authorize(MAIL, {})).allowed


async def test_another_run_begins_afresh_and_a_session_goes_on() -> None:
    gate = PermissionGate(configured(*SERVERS))
    session = gate.open_run()
    await session.authorize(FILES, {})
    await session.authorize(WEB, {})
    assert (await gate.open_run().authorize(MAIL, {})).allowed
    assert not (await session.authorize(MAIL, {})).allowed


async def test_servers_without_labels_are_never_in_the_way() -> None:
    run = PermissionGate(configured("files", "web", "mail")).open_run()
    assert all([(await run.authorize(tool, {})).allowed for tool in (FILES, WEB, MAIL, FILES, MAIL)])


async def test_a_server_with_all_labels_can_be_called_once() -> None:
    run = PermissionGate(configured(labelled("github", "private", "untrusted", "external"))).open_run()
    tool = spec("github", "search")
    assert (await run.authorize(tool, {})).allowed
    assert "mcp__github__search, call 1" in (await run.authorize(tool, {})).reason


@pytest.mark.parametrize(
    "name", ["create_issue", "mcp__github__create_issue", "github_create_issue", "mcp:github_create_issue"]
)
def test_a_labelled_tool_may_be_named_in_any_of_its_spellings(name: str) -> None:
    config = configured(labelled("github", f"external:{name}"))
    assert labels_of(config, spec("github", "create_issue")) == {"external"}
    assert labels_of(config, spec("github", "search")) == frozenset()


async def test_a_label_of_one_tool_is_for_that_tool() -> None:
    config = configured(labelled("github", "private", "untrusted", "external:create_issue"))
    search, create = spec("github", "search"), spec("github", "create_issue")
    assert labels_of(config, search) == {"private", "untrusted"}
    assert labels_of(config, create) == {"private", "untrusted", "external"}
    run = PermissionGate(config).open_run()
    assert [(await run.authorize(tool, {})).allowed for tool in (search, search, create, search)] == [
        True,
        True,
        False,
        True,
    ]


def test_a_tool_whose_name_has_a_colon_is_labelled_by_its_whole_name() -> None:
    config = configured(labelled("s", "external:a:b"))
    assert labels_of(config, spec("s", "a:b")) == {"external"}
    assert labels_of(config, spec("s", "a")) == frozenset()


# ---- policy


async def test_a_policy_may_ask_or_allow() -> None:
    for level, person, allowed in (("ask", Person(True), True), ("ask", Person(False), False), ("allow", None, True)):
        flows: dict[str, Level] = {TRIFECTA: level}  # pyright: ignore[reportAssignmentType]
        run = PermissionGate(configured(*SERVERS, flows=flows), person).open_run()
        assert [(await run.authorize(tool, {})).allowed for tool in (FILES, WEB, MAIL)] == [True, True, allowed]
        assert person is None or "has to ask before it may send anything" in person.asked[0].reason


async def test_a_flow_to_ask_about_is_refused_when_nobody_can_be_asked() -> None:
    run = PermissionGate(configured(*SERVERS, flows={TRIFECTA: "ask"})).open_run()
    decision = [await run.authorize(tool, {}) for tool in (FILES, WEB, MAIL)][-1]
    assert not decision.allowed
    assert "give can_use_tool to the runtime" in decision.reason
    assert f"set flows.{TRIFECTA} to 'allow'" in decision.reason


async def test_one_question_covers_a_pattern_and_a_flow() -> None:
    person = Person(True)
    run = PermissionGate(configured(*SERVERS, ask=["mcp__mail__*"], flows={TRIFECTA: "ask"}), person).open_run()
    assert [(await run.authorize(tool, {})).allowed for tool in (FILES, WEB, MAIL)] == [True] * 3
    (use,) = person.asked
    assert "mcp__mail__*" in use.reason
    assert "read private data" in use.reason


async def test_what_the_user_allows_by_pattern_is_still_subject_to_flows() -> None:
    run = PermissionGate(configured(*SERVERS, allow=["*"])).open_run()
    assert [(await run.authorize(tool, {})).allowed for tool in (FILES, WEB, MAIL)] == [True, True, False]


LABEL_SETS = st.frozensets(st.sampled_from(["private", "untrusted", "external"]))


@given(
    st.dictionaries(st.sampled_from(FLOW_RULES), st.sampled_from(LEVELS)), st.lists(LABEL_SETS, max_size=4), LABEL_SETS
)
def test_the_strictest_rule_that_applies_holds(
    flows: dict[str, Level], before: list[frozenset[str]], labels: frozenset[str]
) -> None:
    run = RunFlows()
    for number, each in enumerate(before):
        run.add_call(spec("s", f"t{number}"), each)
    seen = frozenset[str]().union(*before)
    applying = [level for rule, level in flows.items() if sides_of(rule)[0] <= seen and sides_of(rule)[1] in labels]
    expected = max(applying, key=LEVELS.index, default="allow")
    assert run.verdict(flows, spec(), labels).level == expected


# ---- at once


async def test_of_calls_at_once_each_is_decided_with_those_before_it_in_mind() -> None:
    run = PermissionGate(configured(*SERVERS)).open_run()
    allowed: dict[str, bool] = {}

    async def call(tool: ToolSpec) -> None:
        decision = await run.authorize(tool, {})
        allowed[run.decisions[-1].server] = decision.allowed

    async with anyio.create_task_group() as tasks:
        for tool in (FILES, WEB, MAIL):
            tasks.start_soon(call, tool)
    order = [record.server for record in run.decisions]
    assert allowed == {server: server != "mail" or order[-1] != "mail" for server in order}


async def test_what_is_sent_while_a_person_thinks_counts() -> None:
    """Otherwise a program asks early, reads both, and sends when the answer comes."""
    gate = PermissionGate(configured(*SERVERS, ask=["mcp__mail__*"]))
    run = gate.open_run()

    async def read_both_and_agree(use: ToolUse) -> bool:
        assert (await run.authorize(FILES, {})).allowed
        assert (await run.authorize(WEB, {})).allowed
        return True

    gate.can_use_tool = read_both_and_agree
    assert (await run.authorize(MAIL, {})).rule == f"flow {TRIFECTA}"


async def test_the_flows_of_a_run_grow_with_its_tools_and_not_with_its_calls() -> None:
    run = RunFlows()
    for _ in range(1000):
        run.add_call(FILES, frozenset({"private"}))
    assert len(run._sent) == 1  # pyright: ignore[reportPrivateUsage]


# ---- suggestions and warnings


def test_annotations_suggest_labels_and_give_none() -> None:
    tools = (
        ToolDefinition("query", {}, annotations={"openWorldHint": False}),
        ToolDefinition("search", {}, annotations={"openWorldHint": True, "readOnlyHint": True}),
        ToolDefinition("post", {}, annotations={"openWorldHint": True}),
        ToolDefinition("plain", {}),
        ToolDefinition("odd", {}, annotations=["openWorldHint"]),  # pyright: ignore[reportArgumentType]
    )
    assert suggested_labels(ServerListing("s", tools)) == (
        SuggestedLabel("private", ("query",)),
        SuggestedLabel("untrusted", ("search", "post")),
        SuggestedLabel("external", ("post",)),
    )
    assert labels_of(configured("s"), spec("s", "post", {"openWorldHint": True})) == frozenset()


def test_a_label_of_a_tool_that_is_not_there_is_told() -> None:
    config = configured(labelled("mail", "external:sned", "private"))
    assert label_warnings(config, catalog_of()) == ()
    (warning,) = label_warnings(config, catalog_of(mail=["send"]))
    assert "'external:sned' is of a tool that it does not have" in warning


def test_a_call_that_is_decided_at_once_counts_for_flows_and_is_decided_by_them() -> None:
    run = PermissionGate(configured(*SERVERS)).open_run()
    decisions = [run.authorize_at_once(tool) for tool in (FILES, WEB, MAIL)]
    assert [decision is not None and decision.allowed for decision in decisions] == [True, True, False]
