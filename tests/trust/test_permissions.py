"""Patterns mean tools by their identity: what could be read in two ways restricts both, and allows neither."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbridge.config.server_config import ServerConfig
from toolbridge.trust.permissions import allowing_match, pattern_warnings, restricting_match, stray_patterns
from toolbridge_codegen.catalog import Catalog, ServerListing, ToolDefinition, ToolSpec, build_catalog
from trust.gate_tools import catalog_of, configured, spec


def tool_of(catalog: Catalog, server: str, name: str) -> ToolSpec:
    tool = catalog.tool(server, name)
    assert tool is not None
    return tool


def restricts(pattern: str, tool: ToolSpec, display_name: str = "") -> bool:
    return restricting_match([pattern], tool, display_name) is not None


def allows(pattern: str, tool: ToolSpec, *servers: str) -> bool:
    return allowing_match([pattern], tool, servers or (tool.server,)) is not None


@pytest.mark.parametrize("pattern", ["mcp__mail__send", "mcp:mail_send", "mcp__mail__*", "mcp:mail_*", "*"])
def test_every_form_matches_its_tool(pattern: str) -> None:
    assert restricts(pattern, spec("mail", "send"))
    assert allows(pattern, spec("mail", "send"))


@pytest.mark.parametrize(
    "pattern",
    ["mcp__mail__sen", "mcp__mail__send_all", "mcp__mai__*", "mcp__mail_2__*", "mcp:mai_*",
     "mcp__mail__send__", "mcp:mail__send", "mcp__mail___send", "mcp__mail__mail_send", "mcp:send_*"],
)  # fmt: skip
def test_no_pattern_matches_by_a_part_of_a_name(pattern: str) -> None:
    assert not restricts(pattern, spec("mail", "send"))
    assert not allows(pattern, spec("mail", "send"))


def test_the_first_pattern_that_matches_is_the_one_that_is_named() -> None:
    assert restricting_match(["mcp__web__*", "*", "mcp__mail__send"], spec()) == "*"
    assert allowing_match(["mcp__web__*", "mcp:mail_*", "*"], spec(), ["mail"]) == "mcp:mail_*"


# ---- what could be read in two ways

JOINS = [
    ("mcp:git_hub_delete", ("git", "hub_delete"), ("git_hub", "delete")),
    ("mcp__a___t", ("a", "_t"), ("a_", "t")),
    ("mcp__acme__db__query", ("acme", "db__query"), ("acme__db", "query")),
]


@pytest.mark.parametrize(("pattern", "one", "other"), JOINS)
def test_a_pattern_that_could_mean_two_tools_restricts_both_and_allows_neither(
    pattern: str, one: tuple[str, str], other: tuple[str, str]
) -> None:
    listings = [ServerListing(server, (ToolDefinition(name, {}),)) for server, name in (one, other)]
    catalog = build_catalog(listings)
    for identity in (one, other):
        tool = tool_of(catalog, *identity)
        assert restricts(pattern, tool)
        assert not allows(pattern, tool, one[0], other[0])
        assert allows(f"mcp__{tool.server}__*", tool, one[0], other[0])


@pytest.mark.parametrize(("pattern", "one", "other"), JOINS)
def test_a_tool_can_not_take_an_allow_that_was_meant_for_a_server_that_is_not_listed_yet(
    pattern: str, one: tuple[str, str], other: tuple[str, str]
) -> None:
    """Alone in the catalog each has the very name that the pattern says, and is still not the one meant for sure."""
    for identity in (one, other):
        alone = spec(*identity)
        assert pattern in (alone.qualified_name, f"mcp:{alone.short_name}")
        assert allows(pattern, alone, identity[0])
        assert not allows(pattern, alone, one[0], other[0])


@pytest.mark.parametrize(("pattern", "one", "other"), JOINS)
def test_another_servers_tool_can_not_talk_a_tool_out_of_a_deny(
    pattern: str, one: tuple[str, str], other: tuple[str, str]
) -> None:
    """A tool that is listed later may change a name in the catalog; the rule was written before."""
    for denied, added in ((one, other), (other, one)):
        before = spec(*denied)
        listings = [ServerListing(server, (ToolDefinition(name, {}),)) for server, name in (denied, added)]
        after = tool_of(build_catalog(listings), *denied)
        for name in (
            before.qualified_name,
            f"mcp:{before.short_name}",
            after.qualified_name,
            f"mcp:{after.short_name}",
        ):
            assert restricts(name, before)
            assert restricts(name, after)


NAMES = st.text(alphabet="ab_-.é ", min_size=1, max_size=4)


@given(NAMES, st.lists(NAMES, max_size=4), st.lists(NAMES, max_size=4))
def test_a_deny_by_any_name_that_a_tool_ever_had_still_denies_it(
    name: str, others: list[str], later: list[str]
) -> None:
    """Whatever its server lists besides it: rug pull by renaming."""

    def among(names: list[str]) -> ToolSpec:
        tools = tuple(ToolDefinition(each, {}) for each in dict.fromkeys([name, *names]))
        return tool_of(build_catalog([ServerListing("s-t", tools)]), "s-t", name)

    before, after = among(others), among(later)
    assert restricts(before.qualified_name, after)
    assert restricts(f"mcp:{before.short_name}", after)


@given(st.sets(NAMES, min_size=2, max_size=5))
def test_an_allow_by_a_tools_name_allows_that_tool_alone(names: set[str]) -> None:
    catalog = build_catalog([ServerListing("s-t", tuple(ToolDefinition(each, {}) for each in sorted(names)))])
    for tool in catalog.tools:
        assert re.fullmatch(r"[A-Za-z0-9_]{1,64}", tool.short_name)
        for pattern in (tool.qualified_name, f"mcp:{tool.short_name}", f"mcp:s-t_{tool.name}"):
            assert [other.name for other in catalog.tools if allows(pattern, other)] == [tool.name]


def test_twins_are_told_apart_where_a_pattern_can_mean_one_only() -> None:
    catalog = catalog_of(s=["delete-all", "delete_all"])
    dash, line = tool_of(catalog, "s", "delete-all"), tool_of(catalog, "s", "delete_all")
    assert (restricts("mcp__s__delete-all", line), restricts("mcp__s__delete-all", dash)) == (False, True)
    # Alone, `delete-all` is `delete_all` to guest code: who wrote this may have seen it so.
    assert (restricts("mcp__s__delete_all", line), restricts("mcp__s__delete_all", dash)) == (True, True)
    assert (allows("mcp__s__delete_all", line), allows("mcp__s__delete_all", dash)) == (True, False)


@pytest.mark.parametrize("name", ["del-it", "del.it", "class", "2fa"])
@pytest.mark.parametrize("later", [[], ["del_it", "class_", "_2fa"]], ids=["alone", "with a twin"])
def test_a_tool_is_restricted_by_what_guest_code_calls_it_whatever_is_listed_later(name: str, later: list[str]) -> None:
    called = spec("git-hub", name).identifier
    tool = tool_of(catalog_of(**{"git-hub": [name, *later]}), "git-hub", name)
    for each in {called, tool.identifier}:
        assert restricts(f"mcp__git-hub__{each}", tool)
        assert restricts(f"mcp:git-hub_{each}", tool)


@pytest.mark.parametrize("server", ["git-hub", "git_hub", "a-b_c-d", "acme__my-db"])
def test_a_server_is_meant_with_a_dash_for_a_line_and_the_reverse(server: str) -> None:
    tool = spec(server, "del-it")
    plugin, _, own = server.rpartition("__")
    whole = f"{plugin}__" if plugin else ""
    for written in (whole + own.replace("-", "_"), whole + own.replace("_", "-")):
        for pattern in (f"mcp__{written}__*", f"mcp:{written}_*", f"mcp__{written}__del-it", f"mcp:{written}_del-it"):
            assert restricts(pattern, tool)
            assert allows(pattern, tool)
        assert restricts(f"mcp__{written}__del_it", tool)
        assert not allows(f"mcp__{written}__del_it", tool), "what guest code calls it may be another tool tomorrow"
    assert not restricts(f"mcp--{server}--*", tool)


def test_an_allow_with_a_dash_for_a_line_can_still_mean_two_servers() -> None:
    tool = spec("git-hub", "delete")
    assert allows("mcp:git_hub_delete", tool, "git-hub")
    assert not allows("mcp:git_hub_delete", tool, "git-hub", "git")
    assert not allows("mcp:git_hub_delete", spec("git", "hub_delete"), "git-hub", "git")
    assert restricts("mcp:git_hub_delete", spec("git", "hub_delete"))


def test_a_tool_is_restricted_by_its_original_name_however_the_catalog_calls_it() -> None:
    long = "a_very_long_name_" * 5
    tool = spec("s", long)
    assert tool.qualified_name != f"mcp__s__{long}"
    assert restricts(f"mcp__s__{long}", tool)
    assert restricts("mcp__s__files/delete", spec("s", "files/delete"))


def test_a_server_is_restricted_by_the_name_that_its_file_uses() -> None:
    assert restricts("mcp__GitHub__*", spec("github", "delete"), "GitHub")
    assert restricts("mcp__GitHub__delete", spec("github", "delete"), "GitHub")
    assert not allows("mcp__GitHub__*", spec("github", "delete"))


def test_case_matters_to_an_allow_alone() -> None:
    for pattern in ("mcp__mail__Send", "mcp__Mail__*"):
        assert restricts(pattern, spec("mail", "send"))
        assert not allows(pattern, spec("mail", "send"))


# ---- warnings


def test_an_allow_in_another_case_is_told() -> None:
    config = configured("mail", allow=["mcp__Mail__*", "mcp__mail__Send"], ask=["mcp__Mail__send"])
    assert pattern_warnings(config, catalog_of(mail=["send"])) == (
        "permissions.allow: 'mcp__Mail__*' matches nothing: the server is 'mail', in lower case.",
        "permissions.allow: 'mcp__mail__Send' matches no tool.",
    )
    assert stray_patterns(config) == ()


def test_a_pattern_of_a_server_whose_tools_are_not_known_yet_is_left_alone() -> None:
    config = configured("mail", "web", deny=["mcp__mail__delete", "mcp__web__delete", "mcp__web__*", "*"])
    assert pattern_warnings(config, catalog_of()) == ()
    assert pattern_warnings(config, catalog_of(mail=["send"])) == (
        "permissions.deny: 'mcp__mail__delete' matches no tool.",
    )


def test_an_allow_that_is_read_in_two_ways_says_what_to_write() -> None:
    config = configured("git", "git_hub", allow=["mcp:git_hub_delete", "mcp__git_hub__delete"])
    assert pattern_warnings(config, catalog_of(git=["x"], git_hub=["delete"])) == (
        "permissions.allow: 'mcp:git_hub_delete' could mean a tool of git or of git_hub, so it allows neither. "
        "Write mcp__<server>__<tool>.",
    )
    config = configured("a", "a_", allow=["mcp__a___t"])
    (warning,) = pattern_warnings(config, catalog_of())
    assert warning.endswith("it allows neither. Write mcp__<server>__* for all tools of one.")


def test_a_name_of_a_file_is_known() -> None:
    server = ServerConfig.stdio("github", "x", display_name="GitHub")
    config = configured(server, deny=["mcp__GitHub__*", "mcp__GitHub__delete", "mcp__GitLab__*"])
    assert pattern_warnings(config, catalog_of(github=["delete"])) == ()
    other = ServerConfig.stdio("other", "x")
    assert (
        stray_patterns(replace(configured(deny=["mcp__acme__db__*", "mcp__other__x"]), optional={"other": other})) == ()
    )
    (warning,) = stray_patterns(config)
    assert "'mcp__GitLab__*' names no server" in warning
