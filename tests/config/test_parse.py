"""A file as a whole: both forms, limits, names, and all mistakes at once."""

from __future__ import annotations

from typing import Any

import pytest

from config.loader import Loader
from growth import work_within
from toolbridge.errors import ConfigError

# ---- forms


def test_the_examples_of_vs_code_and_core_agent_are_read(load: Loader) -> None:
    vs_code = load(
        {
            "mcpServers": {
                "weather": {
                    "command": "node",
                    "args": ["weather-server.js"],
                    "env": {"API_KEY": "${WEATHER_API_KEY}"},
                },
                "github": {
                    "command": "npx",
                    "args": ["-y", "@modelcontextprotocol/server-github"],
                    "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"},
                    "allowTools": ["list_issues"],
                    "denyTools": ["delete_branch"],
                },
            }
        }
    )
    assert [(each.name, each.transport, each.command, each.args) for each in vs_code.servers.values()] == [
        ("weather", "stdio", "node", ("weather-server.js",)),
        ("github", "stdio", "npx", ("-y", "@modelcontextprotocol/server-github")),
    ]
    assert vs_code.servers["github"].allow_tools == ("list_issues",)
    assert vs_code.servers["github"].deny_tools == ("delete_branch",)
    core_agent = load(
        {
            "version": 1,
            "servers": {
                "filesystem": {"transport": "stdio", "command": "fs", "args": ["--root", "/tmp"], "env": {"L": "info"}},
                "github": {
                    "transport": "http",
                    "url": "https://api.example.com/mcp/",
                    "headers": {"Authorization": "Bearer ${env:GITHUB_TOKEN}"},
                },
            },
        }
    )
    assert [(each.name, each.transport, each.unset_env) for each in core_agent.servers.values()] == [
        ("filesystem", "stdio", "empty"),
        ("github", "http", "empty"),
    ]
    assert dict(core_agent.servers["github"].headers) == {"Authorization": "Bearer ${env:GITHUB_TOKEN}"}


@pytest.mark.parametrize(("form", "default"), [("mcpServers", "error"), ("servers", "empty")])
def test_an_unset_variable_is_an_error_or_empty_by_the_form_of_the_file(load: Loader, form: str, default: str) -> None:
    assert load.server({"command": "x"}, form).unset_env == default
    for chosen in ("error", "empty"):
        assert load.server({"command": "x", "unsetEnv": chosen}, form).unset_env == chosen


@pytest.mark.parametrize("version", [1, 1.0])
@pytest.mark.parametrize("form", ["mcpServers", "servers"])
def test_a_version_is_optional_in_both_forms(load: Loader, form: str, version: float) -> None:
    assert load({form: {}}).servers == load({form: {}, "version": version}).servers == {}


@pytest.mark.parametrize(
    ("document", "field", "text"),
    [
        ({}, None, "has neither 'mcpServers' nor 'servers'. Write {\"mcpServers\": {}}."),
        ({"mcpServers": {}, "servers": {}}, None, "has both 'mcpServers' and 'servers'."),
        ({"mcpServers": {}, "version": 2}, "version", "unknown version. Write 1, or leave it out."),
        ({"mcpServers": {}, "version": True}, "version", "unknown version."),
        ({"mcpServers": {}, "version": "1"}, "version", "unknown version."),
        ({"mcpServers": []}, "mcpServers", "expected an object"),
        ({"mcpServers": {}, "inputs": {}}, "inputs", "expected a list, found an object."),
        ({"mcpServers": {}, "$schema": 3}, "$schema", "expected text, found a number."),
        ({"mcpServers": {}, "mcpservers": {}}, "mcpservers", "unknown key. Did you mean 'mcpServers'?"),
        ({"servers": {}, "limit": {}}, "limit", "unknown key. Did you mean 'limits'?"),
        ({"servers": {}, "zzz": {}}, "zzz", "unknown key. Known are 'mcpServers', 'servers',"),
    ],
)
def test_a_mistake_at_the_top_is_explained(
    load: Loader, document: dict[str, Any], field: str | None, text: str
) -> None:
    (problem,) = load.problems(document)
    assert problem.field == field
    assert text in str(problem)


def test_a_schema_and_inputs_are_accepted_and_inputs_are_warned_of(load: Loader) -> None:
    document: dict[str, Any] = {"$schema": "x", "inputs": [{"id": "token", "type": "promptString"}], "servers": {}}
    assert load(document).warnings == (
        f"{load.path}: 'inputs' has no effect: values are not prompted for, and a server that uses one won't start.",
    )
    assert load({**document, "inputs": []}).warnings == ()


# ---- names


def test_a_mapped_name_keeps_what_was_written_for_display(load: Loader) -> None:
    config = load(
        {"mcpServers": {"GitHub": {"command": "x"}, "file.system": {"command": "x"}, "plain": {"command": "x"}}}
    )
    assert {name: each.display_name for name, each in config.servers.items()} == {
        "github": "GitHub",
        "file_system": "file.system",
        "plain": "",
    }


# ---- limits


def test_limits_are_read_and_the_others_keep_their_defaults(load: Loader) -> None:
    limits = load({"mcpServers": {}, "limits": {"connections": 10, "connectSeconds": 2.5, "messageBytes": 1024}}).limits
    assert (limits.connections, limits.connect_seconds, limits.message_bytes) == (10, 2.5, 1024)
    assert (limits.servers, limits.respawns) == (50, 3)


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ([], "limits"),
        ({"connections": 0}, "limits.connections"),
        ({"connections": 2.5}, "limits.connections"),
        ({"connections": "5"}, "limits.connections"),
        ({"connections": True}, "limits.connections"),
        ({"messageBytes": 10**400}, "limits.messageBytes"),
        ({"callSeconds": 0}, "limits.callSeconds"),
        ({"call_seconds": 1}, "limits.call_seconds"),
    ],
)
def test_a_limit_out_of_range_or_unknown_is_rejected(load: Loader, limits: object, field: str) -> None:
    (problem,) = load.problems({"mcpServers": {}, "limits": limits})
    assert problem.field == field


def test_one_server_too_many_is_a_loud_error_that_names_the_count(load: Loader) -> None:
    servers = {f"s{index}": {"command": "x"} for index in range(51)}
    (problem,) = load.problems({"mcpServers": servers})
    assert str(problem) == (
        f"{load.path}: field 'limits.servers': 51 servers are configured; at most 50 may be. "
        'Remove some, or raise the limit: "limits": {"servers": 51}.'
    )
    assert len(load({"mcpServers": servers, "limits": {"servers": 51}}).servers) == 51
    servers.popitem()
    assert len(load({"mcpServers": servers}).servers) == 50


# ---- mistakes


def test_all_problems_of_a_file_are_reported_together(load: Loader) -> None:
    document = {
        "mcpServers": {"a": {"command": 3, "args": 3, "x": 1}, "b": {}, "mcp": {"url": "x"}, "good": {"command": "x"}},
        "limits": {"tools": 0},
    }
    problems = load.problems(document)
    assert [(problem.server, problem.field) for problem in problems] == [
        (None, "limits.tools"),
        ("a", "x"),
        ("a", "command"),
        ("a", "args"),
        ("b", None),
        ("mcp", None),
        ("mcp", "url"),
    ]
    with pytest.raises(ConfigError) as caught:
        load(document)
    text = str(caught.value)
    assert text.startswith(f"{load.path}: 7 problems:\n  field 'limits.tools': ")
    assert [str(ConfigError(each.problem, server=each.server, field=each.field)) in text for each in problems] == [
        True
    ] * 7


def test_a_file_of_nothing_but_mistakes_is_refused_in_good_time(load: Loader) -> None:
    documents: list[dict[str, Any]] = [
        {"mcpServers": {f"s{index}": {f"k{n}": 1 for n in range(10)} for index in range(5_000)}},
        {"mcpServers": {"a": {f"comman{index}": 1 for index in range(50_000)}}},
        {f"mcpServer{index}": 1 for index in range(50_000)},
        {"mcpServers": {}, "limits": {f"tool{index}": 1 for index in range(50_000)}},
        {"mcpServers": {f"s{index}": {"command": "x"} for index in range(20_000)}},
    ]
    for document in documents:
        with work_within(5):
            with pytest.raises(ConfigError) as caught:
                load(document)
            assert len(str(caught.value)) < 20_000
