"""Permissions, flows, labels and the rest in files: what is read, and that a repository can only make it stricter."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config.loader import Loader
from growth import work_within
from toolbridge.config.config import Config, load_config
from toolbridge.config.policy import DEFAULT_FLOWS, FLOW_RULES, LABELS, LEVELS, Permissions, sides_of, strictest
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import ConfigError

TRIFECTA = "private+untrusted->external"
SWAPPED = "untrusted+private->external"


class Files:
    """A project's file and the user's."""

    def __init__(self, directory: Path) -> None:
        self.project, self.user = directory / "project", directory / "user"
        self.project.mkdir(exist_ok=True)
        self.user.mkdir(exist_ok=True)

    def load(self, project: object = None, user: object = None) -> Config:
        for path, document in ((self.project / "toolbridge.json", project), (self.user / "config.json", user)):
            path.unlink(missing_ok=True)
            if document is not None:
                text = document if isinstance(document, str) else json.dumps(document)
                path.write_text(text, encoding="utf-8")
        return load_config(directory=self.project, environ={"TOOLBRIDGE_CONFIG_DIR": str(self.user)})


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def having(**more: Any) -> dict[str, Any]:
    return {"mcpServers": {}, **more}


# ---- one file


@pytest.mark.parametrize("form", ["mcpServers", "servers"])
def test_both_forms_of_a_file_have_a_policy(files: Files, form: str) -> None:
    document = {
        form: {"a": {"command": "x", "labels": ["private", "external:send", "private"]}},
        "permissions": {"allow": ["mcp__a__b"], "ask": ["mcp:a_c"], "deny": ["*", "*"], "default": "ask"},
        "flows": {"private->external": "ask"},
        "errors": "return",
        "strictResults": True,
    }
    config = files.load(user=document)
    assert config.permissions == Permissions(("mcp__a__b",), ("mcp:a_c",), ("*",), "ask")
    assert dict(config.flows) == {TRIFECTA: "deny", "private->external": "ask"}
    assert (config.errors, config.strict_results, config.gateway) == ("return", True, True)
    assert config.servers["a"].labels == ("private", "external:send")
    assert config.warnings == ()


def test_without_any_of_it_everything_is_as_in_code(files: Files) -> None:
    config = files.load(having(), having())
    assert replace(config, files=()) == Config() == Config.of()
    assert (dict(config.flows), config.errors, config.strict_results) == ({TRIFECTA: "deny"}, "raise", False)


@pytest.mark.parametrize(
    ("document", "field", "words"),
    [
        (having(permissions={"deny": ["mcp__mail"]}), "permissions.deny[0]", "Write 'mcp__mail__*'"),
        (having(permissions={"deny": ["git-hub_del"]}), "permissions.deny[0]", "Write 'mcp:git-hub_del' if it begins"),
        (having(permissions={"deny": ["mcp__mail__"]}), "permissions.deny[0]", "Write 'mcp__mail__*'"),
        (having(permissions={"ask": ["*", "mail_*"]}), "permissions.ask[1]", "Write mcp__<server>__<tool>"),
        (having(permissions={"allow": ["mcp__a__get_*"]}), "permissions.allow[0]", "Write mcp__<server>__<tool>"),
        (having(permissions={"allow": ["mcp__*__get"]}), "permissions.allow[0]", "'*' stands for all tools"),
        (having(permissions={"denied": []}), "permissions.denied", "Known are 'allow', 'ask', 'deny'"),
        (having(permissions={"default": "never"}), "permissions.default", "'allow', 'ask' or 'deny', found 'never'"),
        (having(permission={}), "permission", "Did you mean 'permissions'?"),
        (having(flows={SWAPPED: "deny"}), f"flows.{SWAPPED}", f"Write '{TRIFECTA}'"),
        (having(flows={"private+untrusted>external": "deny"}), "flows.private+untrusted>external", "Did you mean"),
        (having(flows={TRIFECTA: "block"}), f"flows.{TRIFECTA}", "found 'block'"),
        (having(errors="throw"), "errors", "'raise' or 'return', found 'throw'"),
        (having(unattended="ask"), "unattended", "'allow', 'reads' or 'deny', found 'ask'"),
        (having(strict_results=True), "strict_results", "Did you mean 'strictResults'?"),
        (having(strictResults="yes"), "strictResults", "Write it without quotes"),
        (having(gateway="off"), "gateway", "expected true or false"),
    ],
)  # fmt: skip
def test_a_mistake_says_where_it_is_and_what_to_write(load: Loader, document: object, field: str, words: str) -> None:
    (problem,) = load.problems(document)
    assert problem.field == field
    assert words in str(problem)


def test_all_mistakes_are_reported_together(load: Loader) -> None:
    document = having(permissions={"deny": 1, "ask": ["x"]}, flows=3, errors=4, strictResults=5, gateway=6)
    fields = [problem.field for problem in load.problems(document)]
    assert sorted(map(str, fields)) == sorted(
        ["permissions.deny", "permissions.ask[0]", "flows", "errors", "strictResults", "gateway"]
    )


def test_a_label_that_is_none_says_how_to_write_one(load: Loader) -> None:
    problem = load.problem({"command": "x", "labels": ["private", "secret"]})
    assert (problem.field, "'private', 'untrusted' or 'external', found 'secret'" in str(problem)) == (
        "labels[1]",
        True,
    )


def test_every_rule_has_other_labels_on_its_left_than_on_its_right() -> None:
    assert len(set(FLOW_RULES)) == 9
    for rule in FLOW_RULES:
        left, right = sides_of(rule)
        assert left <= set(LABELS) - {right}
    assert set(DEFAULT_FLOWS) <= set(FLOW_RULES)


# ---- in code


def test_a_policy_made_in_code_is_checked_like_a_file() -> None:
    for make in (
        lambda: Permissions(deny=("mail",)),
        lambda: Permissions(ask="*"),  # pyright: ignore[reportArgumentType]
        lambda: Permissions(default="never"),  # pyright: ignore[reportArgumentType]
        lambda: Config.of(flows={"a->b": "deny"}),
        lambda: Config(flows={TRIFECTA: "never"}),  # pyright: ignore[reportArgumentType]
        lambda: Config.of(errors="throw"),  # pyright: ignore[reportArgumentType]
        lambda: ServerConfig.stdio("a", "x", labels=["secret"]),
        lambda: ServerConfig.stdio("a", "x", labels="private"),
    ):
        with pytest.raises(ConfigError):
            make()


def test_every_factory_takes_labels() -> None:
    labels = ["private", "external:x"]
    for server in (
        ServerConfig.stdio("a", "x", labels=labels),
        ServerConfig.npm("a", "x", labels=labels),
        ServerConfig.uvx("a", "x", labels=labels),
        ServerConfig.http("a", "https://example.com", labels=labels),
        ServerConfig.sse("a", "https://example.com", labels=labels),
        ServerConfig.in_process("a", object(), labels=labels),
    ):
        assert server.labels == ("private", "external:x")


def test_flows_in_code_come_on_top_of_the_default() -> None:
    assert dict(Config.of(flows={"private->external": "ask"}).flows) == {TRIFECTA: "deny", "private->external": "ask"}
    assert dict(Config.of(flows={TRIFECTA: "allow"}).flows) == {TRIFECTA: "allow"}


def test_what_the_caller_changes_later_changes_nothing() -> None:
    deny, labels, flows = ["*"], ["private"], {TRIFECTA: "deny"}
    config = Config.of(ServerConfig.stdio("a", "x", labels=labels), permissions=Permissions(deny=deny), flows=flows)  # pyright: ignore[reportArgumentType]
    deny.clear()
    labels.clear()
    flows[TRIFECTA] = "allow"
    assert (config.permissions.deny, config.servers["a"].labels, config.flows[TRIFECTA]) == (
        ("*",),
        ("private",),
        "deny",
    )
    with pytest.raises(TypeError):
        config.flows[TRIFECTA] = "allow"  # pyright: ignore[reportIndexIssue]


# ---- a project's file and the user's


def test_each_files_permissions_are_kept_apart(files: Files) -> None:
    config = files.load(having(permissions={"deny": ["mcp__a__*"]}), having(permissions={"allow": ["*"]}))
    assert (config.permissions, config.project_permissions) == (
        Permissions(allow=("*",)),
        Permissions(deny=("mcp__a__*",)),
    )


def test_a_given_file_is_a_projects_unless_it_is_in_the_users_directory(files: Files) -> None:
    """T25: naming a repository's file on the command line must not make it the user's own."""
    files.load(having(permissions={"ask": ["*"]}), having(permissions={"deny": ["*"]}))
    environ = {"TOOLBRIDGE_CONFIG_DIR": str(files.user)}
    given = load_config(files.project / "toolbridge.json", environ=environ)
    assert (given.permissions, given.project_permissions) == (Permissions(), Permissions(ask=("*",)))
    own = load_config(files.user / "config.json", environ=environ)
    assert (own.permissions, own.project_permissions) == (Permissions(deny=("*",)), Permissions())


def test_a_projects_allow_without_a_default_of_its_own_is_told_to_be_in_vain(files: Files) -> None:
    (warning,) = files.load(having(permissions={"allow": ["*"]})).warnings
    assert "'permissions.allow' has no effect: a project's file can only make rules stricter" in warning
    assert files.load(having(permissions={"allow": ["mcp__a__b"], "default": "ask"})).warnings == ()
    assert files.load(user=having(permissions={"allow": ["*"]})).warnings == ()


LEVEL = st.sampled_from(LEVELS)
FLOWS = st.dictionaries(st.sampled_from(FLOW_RULES), LEVEL, max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FLOWS, FLOWS)
def test_a_projects_flows_never_make_a_rule_less_strict(
    tmp_path: Path, project: dict[str, Any], user: dict[str, Any]
) -> None:
    both = Files(tmp_path).load(having(flows=project), having(flows=user))
    alone = Files(tmp_path).load(user=having(flows=user))
    for rule in FLOW_RULES:
        assert both.flows.get(rule, "allow") == strictest(alone.flows.get(rule, "allow"), project.get(rule, "allow"))
    looser = [rule for rule, level in project.items() if level != both.flows[rule]]
    assert [rule for rule in project if any(f"flows.{rule}'" in warning for warning in both.warnings)] == looser


def test_the_user_may_loosen_a_flow_and_a_project_may_not(files: Files) -> None:
    assert files.load(user=having(flows={TRIFECTA: "allow"})).flows[TRIFECTA] == "allow"
    config = files.load(having(flows={TRIFECTA: "allow"}))
    assert config.flows[TRIFECTA] == "deny"
    assert f"'flows.{TRIFECTA}' stays 'deny'" in config.warnings[0]


def test_labels_of_one_server_in_both_files_add_up(files: Files) -> None:
    """T22: a repository must not take the labels off a server by writing it again."""

    def labelled(*labels: str) -> dict[str, Any]:
        return {"mcpServers": {"a": {"command": "x", "labels": list(labels)}}}

    config = files.load(labelled("external"), labelled("private", "external"))
    assert config.servers["a"].labels == ("external", "private")
    assert config.servers["a"].origin.kind == "project"
    assert files.load(labelled(), labelled("private")).servers["a"].labels == ("private",)


def test_what_the_user_allows_is_not_said_of_a_projects_server_of_the_same_name(files: Files) -> None:
    servers = {"a": {"command": "x"}, "b": {"command": "x"}}
    project = {"mcpServers": {"a": {"command": "evil"}}}
    config = files.load(project, {"mcpServers": servers, "permissions": {"allow": ["*"]}})
    assert config.permissions.allow_except == {"a"}


def test_errors_are_won_by_the_project_and_strictness_by_whoever_wants_it(files: Files) -> None:
    config = files.load(having(errors="return", strictResults=False), having(errors="raise", strictResults=True))
    assert (config.errors, config.strict_results) == ("return", True)
    assert files.load(having(), having(errors="return")).errors == "return"


@pytest.mark.parametrize(("project", "user", "holds"), [("allow", "deny", "deny"), ("deny", "allow", "deny")])
def test_the_stricter_choice_for_unattended_calls_holds(files: Files, project: str, user: str, holds: str) -> None:
    assert files.load(having(unattended=project), having(unattended=user)).unattended == holds
    assert files.load(having(unattended="reads"), having()).unattended == "reads"


# ---- the switch


@pytest.mark.parametrize(
    "rest", [{}, {"mcpServers": {"a": {"command": "x"}}}, {"mcpServers": 3, "permissions": "broken"}]
)
def test_switched_off_nothing_else_is_looked_at(files: Files, rest: dict[str, Any]) -> None:
    config = files.load({"gateway": False, **rest})
    assert config == Config(gateway=False, files=(str(files.project / "toolbridge.json"),))
    assert (dict(config.servers), config.gateway) == ({}, False)


@pytest.mark.parametrize(
    "other", [None, having(gateway=True), {"mcpServers": {"a": {"command": "x"}}}, {"a": 1}, "{broken"]
)
def test_either_file_switches_off_whatever_the_other_says(files: Files, other: object) -> None:
    off = {"gateway": False}
    assert files.load(off, other) == Config(gateway=False, files=(str(files.project / "toolbridge.json"),))
    assert files.load(other, off) == Config(gateway=False, files=(str(files.user / "config.json"),))


@pytest.mark.parametrize("value", ["false", 0, None, "off", []])
def test_a_switch_that_is_neither_on_nor_off_is_an_error_and_starts_nothing(files: Files, value: object) -> None:
    with pytest.raises(ConfigError, match="gateway"):
        files.load(having(gateway=value))


def test_a_file_that_is_broken_is_an_error_if_nobody_switched_off(files: Files) -> None:
    with pytest.raises(ConfigError, match="is not JSON"):
        files.load("{", having(gateway=True))


def test_switched_off_in_code_there_are_no_servers() -> None:
    config = Config.of(ServerConfig.stdio("a", "x"))
    assert dict(replace(config, gateway=False).servers) == {}


# ---- in good time


def test_a_megabyte_of_rules_is_read_or_refused_in_good_time(load: Loader) -> None:
    patterns = [f"mcp__server__tool_{number}" for number in range(20_000)]
    assert len(load(having(permissions={"deny": patterns})).project_permissions.deny) == 20_000
    for document in (
        having(permissions={f"den{number}": 1 for number in range(30_000)}),
        having(permissions={"deny": [*patterns, "no pattern"]}),
        having(permissions={"deny": ["mcp__" + "_" * 500_000 + "*x"]}),
        having(permissions={"deny": ["mcp:" + "_" * 500_000 + " "]}),
        having(flows={f"private->external{number}": "deny" for number in range(30_000)}),
        {"mcpServers": {"a": {"command": "x", "labels": ["private:" + " " * 500_000]}}},
    ):
        with work_within(5):
            (problem, *_) = load.problems(document)
            assert len(str(problem)) < 20_000


def test_what_is_allowed_besides_is_added_and_replaces_nothing() -> None:
    permissions = Permissions(allow=("mcp__a__b",), deny=("mcp__a__c",), default="deny")
    more = permissions.with_allowed("mcp__own__*", "mcp__a__b")
    assert more == Permissions(("mcp__a__b", "mcp__own__*"), (), ("mcp__a__c",), "deny")
    with pytest.raises(ConfigError):
        permissions.with_allowed("own")


@pytest.mark.parametrize(
    "pattern",
    ["mcp__mail__sen?", "mcp__mail__[ds]end", "mcp:mail_{send}", "mcp__mail__^send$", "mcp__mail__(send|drop)",
     "mcp__mail__send,mcp__mail__drop"],
)  # fmt: skip
def test_a_wildcard_of_another_language_under_deny_is_an_error(files: Files, pattern: str) -> None:
    """It would deny nothing; under `allow` that is a warning, once the tools are known."""
    with pytest.raises(ConfigError, match=r"'permissions\.deny\[1\]': .* denies nothing: '.' is no wildcard here"):
        files.load({"mcpServers": {}, "permissions": {"deny": ["*", pattern]}})
    assert files.load({"mcpServers": {}, "permissions": {"ask": [pattern]}}).project_permissions.ask == (pattern,)
    with pytest.raises(ConfigError, match="denies nothing"):
        Permissions(deny=(pattern,))


@pytest.mark.parametrize("name", ["sen?", "send*", "*", "(send|drop)", "mcp__mail__sen*", "s.+"])
def test_a_wildcard_in_a_tool_that_a_server_is_denied_is_an_error(files: Files, name: str) -> None:
    with pytest.raises(ConfigError, match=r"'denyTools\[1\]': .* denies nothing: '.' is no wildcard here"):
        files.load({"mcpServers": {"mail": {"command": "x", "denyTools": ["send", name]}}})
    with pytest.raises(ConfigError, match="denies nothing"):
        ServerConfig.stdio("mail", "x", deny_tools=[name])
    files.load({"mcpServers": {"mail": {"command": "x", "denyTools": ["a/b.c", "mcp__mail__*", "mcp:mail_*"]}}})
