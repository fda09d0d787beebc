"""The gate: patterns, the default, annotations, and what is said of a refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbridge.config.config import Config
from toolbridge.config.policy import LEVELS, Permissions
from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.errors import MisuseError
from toolbridge.trust import gate as gate_module
from toolbridge.trust.gate import Decision, PermissionGate
from toolbridge.trust.permissions import permission_verdict
from toolbridge_codegen.catalog import ToolSpec
from trust.gate_tools import Person, catalog_of, configured, spec

pytestmark = pytest.mark.anyio

SEND = "mcp__mail__send"
DESTRUCTIVE = {"destructiveHint": True}
OPEN_WORLD = {"openWorldHint": True}


async def decided(config: Config, tool: ToolSpec | None = None, person: Person | None = None) -> Decision:
    return await PermissionGate(config, person).open_run().authorize(tool or spec(), {})


def level(config: Config, tool: ToolSpec | None = None) -> str:
    return permission_verdict(config, tool or spec()).level


async def test_a_tool_that_nothing_speaks_of_is_allowed() -> None:
    assert await decided(configured()) == Decision(True, rule="default")


async def test_a_denied_tool_is_refused_and_the_pattern_is_named() -> None:
    decision = await decided(configured(deny=["mcp__mail__*"]))
    assert (decision.allowed, decision.rule) == (False, "deny mcp__mail__*")
    assert decision.reason == f"{SEND} is denied by the pattern 'mcp__mail__*' under permissions.deny."


async def test_a_tool_to_ask_about_is_refused_when_nobody_can_be_asked_and_the_ways_out_are_named() -> None:
    decision = await decided(configured(ask=[SEND]))
    assert (decision.allowed, decision.rule) == (False, f"ask {SEND}")
    assert "give can_use_tool to the runtime" in decision.reason
    assert f"remove the pattern '{SEND}' under permissions.ask" in decision.reason


async def test_a_default_of_ask_with_nobody_to_ask_says_what_to_allow() -> None:
    decision = await decided(configured(default="ask"))
    assert (decision.allowed, decision.rule) == (False, "default ask")
    assert f"add '{SEND}' to permissions.allow" in decision.reason


@pytest.mark.parametrize("default", LEVELS)
def test_the_default_holds_where_no_pattern_matches(default: str) -> None:
    config = configured(default=default, allow=["mcp__mail__read"], deny=["mcp__other__*"])
    assert level(config) == default
    assert level(config, spec(name="read")) == "allow"


PATTERNS = [SEND, "mcp:mail_send", "mcp__mail__*", "mcp:mail_*", "*"]
LISTS = st.lists(st.sampled_from([*PATTERNS, "mcp__mail__read", "mcp__other__*"]), max_size=3)


@given(LISTS, LISTS, LISTS, st.sampled_from(LEVELS))
def test_deny_wins_over_ask_over_allow_over_the_default_however_specific_each_is(
    allow: list[str], ask: list[str], deny: list[str], default: str
) -> None:
    expected = default
    for name, patterns in (("allow", allow), ("ask", ask), ("deny", deny)):
        expected = name if set(patterns) & set(PATTERNS) else expected
    assert level(configured(allow=allow, ask=ask, deny=deny, default=default)) == expected


PERMISSIONS = st.builds(Permissions, allow=LISTS, ask=LISTS, deny=LISTS, default=st.sampled_from(LEVELS))


@given(PERMISSIONS, PERMISSIONS, st.sampled_from([{}, DESTRUCTIVE]))
def test_a_projects_file_never_makes_a_decision_less_strict(
    own: Permissions, project: Permissions, annotations: dict[str, Any]
) -> None:
    tool = spec(annotations=annotations)
    alone = replace(configured(), permissions=own)
    both = replace(alone, project_permissions=project)
    found, least = (LEVELS.index(level(config, tool)) for config in (both, alone))
    assert found >= max(least, LEVELS.index(level(configured(project=project))))


def test_a_projects_allow_makes_exceptions_to_its_own_default_only() -> None:
    project = Permissions(allow=(SEND,), default="deny")
    assert level(configured(project=project)) == "allow"
    assert level(configured(project=project), spec(name="read")) == "deny"
    assert level(configured(project=project, default="ask")) == "ask"
    assert level(configured(project=project), spec(annotations=DESTRUCTIVE)) == "ask"


async def test_a_refusal_by_the_projects_file_says_so() -> None:
    decision = await decided(configured(project=Permissions(deny=("*",))))
    assert decision.reason == f"{SEND} is denied by the pattern '*' under permissions.deny of the project's file."


def test_what_the_user_allows_does_not_hold_for_a_projects_server_that_took_the_name() -> None:
    server = ServerConfig.stdio("mail", "evil", origin=Origin("project", "/p/toolbridge.json"))
    tool = spec(annotations=DESTRUCTIVE)
    for pattern in PATTERNS:
        assert level(configured(server, allow=[pattern], allow_except=["mail"]), tool) == "ask"
        assert level(configured(server, allow=[pattern]), tool) == "allow"
        assert level(configured(server, deny=[pattern], allow_except=["mail"]), tool) == "deny"


# ---- annotations


@pytest.mark.parametrize(
    ("annotations", "rule"),
    [
        (DESTRUCTIVE, "destructive"),
        (DESTRUCTIVE | {"readOnlyHint": True}, "destructive"),
        (OPEN_WORLD, "open world"),
        (OPEN_WORLD | {"readOnlyHint": False}, "open world"),
        (OPEN_WORLD | {"readOnlyHint": "true"}, "open world"),
    ],
)
async def test_a_tool_that_its_server_calls_dangerous_is_asked_about_if_somebody_is_there(
    annotations: dict[str, Any], rule: str
) -> None:
    tool, no, yes = spec(annotations=annotations), Person(False), Person(True)
    assert not (await decided(configured(), tool, no)).allowed
    assert (await decided(configured(), tool, yes)) == Decision(True, rule=rule)
    assert len(no.asked) == len(yes.asked) == 1
    assert "its server says" in yes.asked[0].reason
    assert (await decided(configured(), tool)).allowed


@pytest.mark.parametrize("pattern", PATTERNS)
async def test_what_a_person_allows_is_not_asked_about_again(pattern: str) -> None:
    person = Person(False)
    assert await decided(configured(allow=[pattern]), spec(annotations=DESTRUCTIVE), person) == Decision(
        True, rule=f"allow {pattern}"
    )
    assert person.asked == []


HARMLESS: list[Any] = [
    {},
    {"readOnlyHint": True},
    {"readOnlyHint": True, "openWorldHint": True},
    {"destructiveHint": False, "openWorldHint": False},
    {"destructiveHint": "true", "openWorldHint": 1},
    {"idempotentHint": True, "title": "\x1b[2J"},
    None,
    [],
    "destructiveHint",
]


@pytest.mark.parametrize("annotations", HARMLESS, ids=str)
async def test_other_annotations_whatever_they_are_ask_nobody(annotations: Any) -> None:
    tool = spec()
    tool = replace(tool, definition=replace(tool.definition, annotations=annotations))
    person = Person(False)
    assert (await decided(configured(), tool, person)).allowed
    assert person.asked == []


# ---- records, and a configuration that changes


async def test_every_decision_is_recorded_in_order() -> None:
    gate = PermissionGate(configured(deny=["mcp__mail__send"], ask=["mcp__mail__draft"]), Person(True)).open_run()
    for name in ("send", "draft", "read"):
        await gate.authorize(spec(name=name), {})
    assert [
        (each.server, each.tool, each.decision.allowed, each.decision.rule, each.asked) for each in gate.decisions
    ] == [
        ("mail", "send", False, "deny mcp__mail__send", False),
        ("mail", "draft", True, "ask mcp__mail__draft", True),
        ("mail", "read", True, "default", False),
    ]


async def test_the_records_of_a_long_session_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "MOST_DECISIONS", 3)
    gate = PermissionGate(configured()).open_run()
    for number in range(5):
        await gate.authorize(spec(name=f"t{number}"), {})
    assert [each.tool for each in gate.decisions] == ["t2", "t3", "t4"]


async def test_a_new_configuration_holds_at_once_in_runs_that_are_open() -> None:
    gate = PermissionGate(configured())
    run = gate.open_run()
    assert (await run.authorize(spec(), {})).allowed
    gate.config = configured(deny=["*"])
    assert not (await run.authorize(spec(), {})).allowed


def test_somebody_to_ask_has_to_be_a_function() -> None:
    with pytest.raises(MisuseError, match="can_use_tool is of type bool"):
        PermissionGate(configured(), True)  # pyright: ignore[reportArgumentType]


def test_the_gate_tells_of_patterns_and_labels_that_match_nothing() -> None:
    server = ServerConfig.stdio("mail", "x", labels=["external:sned", "external:send", "private"])
    catalog = catalog_of(mail=["send"])
    gate = PermissionGate(configured(server, deny=["mcp__mail__delete", SEND, "mcp__mial__*"]), listed=lambda: catalog)
    assert gate.warnings(catalog) == (
        "permissions.deny: 'mcp__mail__delete' matches no tool.",
        "server 'mail': the label 'external:sned' is of a tool that it does not have.",
    )
    catalog = catalog_of()
    assert gate.warnings(catalog) == ()


def denied(pattern: str, *tools: str) -> set[str]:
    """Which tools of a server a pattern under `deny` keeps from being called."""
    catalog = catalog_of(mail=list(tools))
    gate = PermissionGate(configured("mail", "web", deny=[pattern]), listed=lambda: catalog)
    return {tool.name for tool in catalog.tools if gate.policy_of(tool).permission.level == "deny"}


@pytest.mark.parametrize("pattern", ["mcp__mail__Delete", "mcp__MAIL__delete", "mcp:Mail_*", "mcp__mail__delete"])
def test_a_deny_in_another_case_denies(pattern: str) -> None:
    assert denied(pattern, "delete") == {"delete"}


@pytest.mark.parametrize("pattern", ["mcp__mail__delte", "mcp__mail__deletes", "mcp__mail__dleete", "mcp:mail_Delte"])
def test_a_misspelt_deny_denies_the_tool_that_it_most_likely_means_and_says_so(pattern: str) -> None:
    assert denied(pattern, "delete", "send") == {"delete"}
    catalog = catalog_of(mail=["delete"])
    gate = PermissionGate(configured(deny=[pattern]), listed=lambda: catalog)
    verdict = gate.policy_of(catalog.tools[0]).permission
    assert f"the pattern {pattern!r} under permissions.deny matches no tool, and is one letter away" in verdict.reason
    assert verdict.way_out == "write 'mcp__mail__delete' there if it is meant, else remove it"


@pytest.mark.parametrize(
    ("pattern", "tools"),
    [
        ("mcp__mail__get_users", ("get_user", "get_users")),  # it matches another
        ("mcp__mail__set_value", ("get_value",)),
        ("mcp__mail__run_v1", ("run_v2", "run_v11")),
        ("mcp__mail__purge", ("send", "delete")),  # not there, or not yet
        ("mcp__web__delte", ("delete",)),  # of another server
        ("mcp__mial__delete", ("delete",)),
    ],
)
def test_a_deny_of_another_tool_denies_no_bystander(pattern: str, tools: tuple[str, ...]) -> None:
    assert denied(pattern, *tools) <= {pattern.rpartition("__")[2]}


def test_a_decision_that_needs_nobody_is_made_at_once_and_recorded_like_any_other() -> None:
    config = configured(deny=["mcp__mail__read"])
    run = PermissionGate(config).open_run()
    assert run.authorize_at_once(spec()) == Decision(True, rule="default")
    refused = run.authorize_at_once(spec(name="read"))
    assert refused is not None
    assert not refused.allowed
    assert [(each.tool, each.decision.allowed, each.asked) for each in run.decisions] == [
        ("send", True, False),
        ("read", False, False),
    ]


async def test_where_somebody_has_to_be_asked_nothing_is_decided_at_once() -> None:
    person = Person(True)
    run = PermissionGate(configured(ask=[SEND]), person).open_run()
    assert run.authorize_at_once(spec()) is None
    assert (run.decisions, person.asked) == ([], [])
    assert (await run.authorize(spec(), {})).allowed
    assert len(person.asked) == 1


def test_a_new_configuration_holds_for_the_very_next_decision() -> None:
    gate = PermissionGate(configured())
    run, tool = gate.open_run(), spec()
    decisions = [run.authorize_at_once(tool)]
    gate.config = configured(deny=[SEND])
    decisions.append(run.authorize_at_once(tool))
    gate.config = configured()
    decisions.append(run.authorize_at_once(tool))
    assert [decision is not None and decision.allowed for decision in decisions] == [True, False, True]
