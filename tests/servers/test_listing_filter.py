"""allowTools and denyTools name tools in any of their spellings; entries add up."""

from __future__ import annotations

import pytest

from toolbridge.servers.listing import by_original_name, exposed_tools, original_names, unmatched_names
from toolbridge_codegen.catalog import ToolDefinition

TOOLS = tuple(ToolDefinition(name, {"type": "object"}) for name in ("list", "read.file", "drop", "hub_list"))
ALL = ["list", "read.file", "drop", "hub_list"]


def exposed(allow: list[str] | None, deny: tuple[str, ...] = ()) -> list[str]:
    given = None if allow is None else tuple(allow)
    return [tool.name for tool in exposed_tools("git", TOOLS, given, deny)]


@pytest.mark.parametrize(
    ("entry", "meant"),
    [
        ("list", ["list"]),
        ("mcp__git__list", ["list"]),
        ("git_list", ["list"]),
        ("mcp:git_list", ["list"]),
        ("read.file", ["read.file"]),
        ("read_file", ["read.file"]),
        ("mcp__git__read.file", ["read.file"]),
        ("mcp__git__read_file", ["read.file"]),
        ("git_read_file", ["read.file"]),
        ("mcp:git_read_file", ["read.file"]),
        ("mcp__git__*", ALL),
        ("mcp:git_*", ALL),
        ("mcp__other__list", []),
        ("mcp__other__*", []),
        ("*", []),
        ("", []),
    ],
)
def test_a_tool_may_be_named_in_any_of_its_spellings(entry: str, meant: list[str]) -> None:
    assert exposed([entry]) == meant
    assert exposed(None, (entry,)) == [name for name in ALL if name not in meant]
    assert unmatched_names("git", TOOLS, (entry,), ()) == (() if meant else (entry,))
    assert unmatched_names("git", TOOLS, None, (entry,)) == (() if meant else (entry,))


def test_in_another_case_a_tool_is_denied_and_not_allowed() -> None:
    assert exposed(["LIST"]) == []
    assert exposed(None, ("LIST", "mcp__git__Drop")) == ["read.file", "hub_list"]
    assert exposed(None, ("mcp__Git__*",)) == []
    assert exposed(["mcp__Git__*"]) == []


def test_entries_add_up_and_a_wildcard_replaces_none() -> None:
    assert exposed(["list", "mcp__git__drop"]) == ["list", "drop"]
    assert exposed(["list", "mcp__git__*"]) == ALL
    assert exposed(["mcp__git__*"], ("git_drop",)) == ["list", "read.file", "hub_list"]
    assert exposed(["mcp__git__*"], ("mcp__git__*",)) == []
    assert exposed([]) == []
    assert exposed(None) == ALL


def test_a_name_that_could_mean_two_allows_the_one_that_has_it_and_denies_both() -> None:
    tools = tuple(ToolDefinition(name, {"type": "object"}) for name in ("list", "git_list"))
    assert [tool.name for tool in exposed_tools("git", tools, ("git_list",), ())] == ["git_list"]
    assert [tool.name for tool in exposed_tools("git", tools, None, ("git_list",))] == []


def test_a_spelling_that_two_tools_share_allows_neither_and_denies_both() -> None:
    tools = tuple(ToolDefinition(name, {"type": "object"}) for name in ("a.b", "a:b"))
    assert exposed_tools("git", tools, ("mcp__git__a_b",), ()) == ()
    assert exposed_tools("git", tools, None, ("mcp__git__a_b",)) == ()


@pytest.mark.parametrize(
    "entry",
    ["del-it", "del_it", "mcp__git-hub__del_it", "mcp:git-hub_del_it", "git-hub_del_it", "mcp__git_hub__del-it",
     "mcp:git_hub_del_it", "git_hub_del_it", "mcp__git_hub__*", "mcp:git_hub_*"],
)  # fmt: skip
def test_what_guest_code_calls_it_and_a_line_for_a_dash_will_do(entry: str) -> None:
    tools = (ToolDefinition("del-it", {"type": "object"}),)
    assert exposed_tools("git-hub", tools, None, (entry,)) == ()
    assert exposed_tools("git-hub", tools, (entry,), ()) == tools
    assert exposed_tools("git_hub", tools, (entry.replace("git_hub", "git-hub"),), ()) == tools


def test_a_tool_is_meant_by_its_short_name() -> None:
    tools = tuple(ToolDefinition(name, {"type": "object"}) for name in ("get-sum", "list.all"))
    for entry in ("my_server_get_sum", "mcp:my_server_get_sum", "my-server_get-sum"):
        assert [tool.name for tool in exposed_tools("my-server", tools, (entry,), ())] == ["get-sum"]
        assert [tool.name for tool in exposed_tools("my-server", tools, None, (entry,))] == ["list.all"]


@pytest.mark.parametrize("entry", ["del_it", "mcp__git__del_it", "git_del_it"])
def test_a_tool_that_is_listed_later_takes_no_deny_away(entry: str) -> None:
    tools = tuple(ToolDefinition(name, {"type": "object"}) for name in ("del-it", "del_it", "list"))
    assert [tool.name for tool in exposed_tools("git", tools, None, (entry,))] == ["list"]
    assert [tool.name for tool in exposed_tools("git", tools, (entry,), ())] == ["del_it"]


def test_what_is_said_of_tools_in_any_spelling_is_theirs() -> None:
    said = {"git_list": 1, "list": 2, "mcp:git_read_file": 3, "mcp__git__*": 4, "nowhere": 5, "mcp__git__drop": 6}
    assert by_original_name("git", TOOLS, said) == {
        "list": 2,
        "read.file": 3,
        "mcp__git__*": 4,
        "nowhere": 5,
        "drop": 6,
    }


def test_names_in_any_spelling_become_the_servers_own() -> None:
    written = ["git_list", "mcp__git__read_file", "nowhere"]
    assert original_names("git", ALL, written) == {"list", "read.file", "nowhere"}
