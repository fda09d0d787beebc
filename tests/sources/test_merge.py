"""One configuration of all sources: task > configured > sections > found by themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from toolbridge import Config, Permissions, Section, ServerConfig
from toolbridge.approval import Origin
from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import ConfigError, UnknownServerError
from toolbridge.events import ServerCollided, ServerIgnored
from toolbridge.prompt import render
from toolbridge.sources.merge import Task, merge_sources, shown_config
from toolbridge.sources.plugins import Plugin, read_provided


def server(name: str, command: str = "x", **more: Any) -> ServerConfig:
    return ServerConfig.stdio(name, command, **more)


def plugin(name: str, *servers: str, keywords: tuple[str, ...] = ("notes",)) -> Plugin:
    entries = [{"name": each, "package": "x", "keywords": list(keywords)} for each in servers]
    return Plugin(name, servers=read_provided(name, entries).servers)


def from_user(*servers: ServerConfig, **more: Any) -> Config:
    own = (each.with_origin(Origin("user", "/home/me/config.json")) for each in servers)
    return replace(Config.of(**more), servers={each.name: each for each in own})


def test_each_source_adds_its_own_and_says_why() -> None:
    prompt = render([Section("Git", "git", mcps=[server("git")])])
    task = Task("take notes", servers=(server("extra"),))
    merged = merge_sources(from_user(server("db")), prompt=prompt, task=task, plugins=[plugin("acme", "notes", "more")])
    assert merged.reasons == {
        "extra": "the task brings it",
        "db": "it is configured",
        "git": "the section 'git' declares it",
        "acme__notes": "the task mentions 'notes'",
        "acme__more": "the task mentions 'notes'",
    }
    assert set(merged.config.servers) == set(merged.reasons)
    assert merged.events == ()


def test_of_one_name_the_higher_source_holds_and_each_loss_is_told_once() -> None:
    config = from_user(server("db", "configured"), server("git", "configured"))
    prompt = render([Section("A", "a", mcps=[server("git", "section"), server("tea", "section")])])
    task = Task("", servers=(server("db", "task"), server("tea", "task")))
    merged = merge_sources(config, prompt=prompt, task=task)
    commands = {name: each.command for name, each in merged.config.servers.items()}
    assert commands == {"db": "task", "git": "configured", "tea": "task"}
    user = "user (/home/me/config.json)"
    assert merged.events == (
        ServerCollided("db", user, "task"),
        ServerCollided("git", "section (a)", user),
        ServerCollided("tea", "section (a)", "task"),
    )


def test_a_task_within_a_task_has_what_that_has_and_its_own_holds() -> None:
    outer = Task("take notes", servers=(server("db", "outer"), server("git")), capabilities=("fly",))
    inner = Task("", servers=(server("db", "inner"),), outer=outer)
    merged = merge_sources(from_user(server("db", "configured")), task=inner, plugins=[plugin("acme", "notes")])
    assert {name: each.command for name, each in merged.config.servers.items()} == {
        "db": "inner",
        "git": "x",
        "acme__notes": "npx",
    }
    assert merged.events == (
        ServerCollided("db", "outer task", "task"),
        ServerCollided("db", "user (/home/me/config.json)", "task"),
        ServerIgnored("fly", "task", "no plugin's server has this capability"),
    )
    assert merged.reasons["git"] == "the outer task brings it"


def test_what_was_revoked_is_left_out_whoever_brings_it() -> None:
    prompt = render([Section("A", "a", mcps=[server("my_db")])])
    task = Task("notes", servers=(server("my-db", "task"),))
    merged = merge_sources(
        from_user(server("my-db")),
        prompt=prompt,
        task=task,
        plugins=[plugin("acme", "notes")],
        revoked={"my-db", "acme__notes"},
    )
    assert list(merged.config.servers) == []
    assert merged.events == (
        ServerIgnored("my-db", "task", "it was revoked"),
        ServerIgnored("my-db", "user (/home/me/config.json)", "it was revoked"),
        ServerIgnored("my_db", "section (a)", "it was revoked"),
        ServerIgnored("acme__notes", "plugin (acme)", "it was revoked"),
    )


def test_names_that_are_one_module_in_python_collide_too() -> None:
    merged = merge_sources(from_user(server("my-db")), prompt=render([Section("A", "a", mcps=[server("my_db")])]))
    assert list(merged.config.servers) == ["my-db"]
    assert [event.server for event in merged.events if isinstance(event, ServerCollided)] == ["my_db"]


def test_the_same_server_from_two_sources_is_one_and_nobody_loses() -> None:
    merged = merge_sources(Config.of(server("db")), prompt=render([Section("A", "a", mcps=[server("db")])]))
    assert (list(merged.config.servers), merged.events) == (["db"], ())


def test_bare_names_of_two_plugins_are_both_kept() -> None:
    plugins = [plugin("acme", "db"), plugin("beta", "db")]
    merged = merge_sources(Config.of(server("db")), task=Task("take notes"), plugins=plugins)
    assert list(merged.config.servers) == ["db", "acme__db", "beta__db"]


def test_a_task_that_takes_a_name_keeps_its_labels_and_loses_what_was_allowed_of_it() -> None:
    config = from_user(server("db", labels=["private"]), permissions=Permissions(allow=("mcp__db__*",)))
    merged = merge_sources(config, task=Task("", servers=(server("db", "other"),)))
    assert merged.config.servers["db"].labels == ("private",)
    assert merged.config.permissions.allow_except == {"db"}


def test_without_a_task_plugins_attach_nothing() -> None:
    assert list(merge_sources(Config.of(), plugins=[plugin("acme", "notes")]).config.servers) == []


def test_what_is_left_out_is_told() -> None:
    refused = Plugin("bad", refusal="it is in 'plugins.deny' of the configuration")
    broken = Plugin("broken", problems=(("broken", "it raised ValueError"),))
    merged = merge_sources(Config.of(), task=Task("", capabilities=("fly",)), plugins=[refused, broken])
    assert merged.events == (
        ServerIgnored("bad", "plugin (bad)", "it is in 'plugins.deny' of the configuration"),
        ServerIgnored("broken", "plugin (broken)", "it raised ValueError"),
        ServerIgnored("fly", "task", "no plugin's server has this capability"),
    )


def test_plugins_do_not_push_the_number_of_servers_past_its_limit() -> None:
    config = Config.of(server("one"), limits=ServerLimits(servers=2))
    merged = merge_sources(config, task=Task("notes"), plugins=[plugin("acme", "a", "b", "c")])
    assert list(merged.config.servers) == ["one", "acme__a"]
    assert [event.server for event in merged.events if isinstance(event, ServerIgnored)] == ["acme__b", "acme__c"]
    with pytest.raises(ConfigError, match="at most 2"):
        merge_sources(config, task=Task("", servers=(server("two"), server("three"))))


def test_a_server_is_registered_with_the_source_that_it_came_from() -> None:
    prompt = render([Section("Data", "data", mcps=[server("shown")])])
    task = Task("take notes", [server("brought")], ())
    merged = merge_sources(from_user(server("own")), prompt=prompt, task=task, plugins=[plugin("acme", "db")])
    assert {name: merged.registered(name).origin for name in merged.config.servers} == {
        "brought": "task",
        "own": "user (/home/me/config.json)",
        "shown": "section (data)",
        "acme__db": "plugin (acme)",
    }


def test_a_name_that_two_plugins_have_is_an_error_that_names_both() -> None:
    plugins = [plugin("one", "db"), plugin("two", "db", "other")]
    with pytest.raises(ConfigError, match=r"'db' could mean one__db or two__db\. Name one in full"):
        merge_sources(Config.of(), task=Task("", ["db"], ()), plugins=plugins)
    for wanted in (["one__db"], ["other"]):
        merged = merge_sources(Config.of(), task=Task("", wanted, ()), plugins=plugins)
        assert len(merged.config.servers) == 1
    merged = merge_sources(from_user(server("db")), task=Task("", ["db"], ()), plugins=plugins)
    assert list(merged.config.servers) == ["db"], "a configured name means the configured server alone"


def test_a_name_that_is_nowhere_is_an_error() -> None:
    with pytest.raises(UnknownServerError):
        merge_sources(Config.of(), task=Task("", servers=("nowhere",)))


def test_while_the_gateway_is_off_there_is_nothing() -> None:
    prompt = render([Section("A", "a", mcps=[server("git")])])
    merged = merge_sources(Config(gateway=False), prompt=prompt, task=Task("", servers=(server("x"),)))
    assert (list(merged.config.servers), merged.events) == ([], ())


# ---- shown to people


def test_a_shown_configuration_has_references_and_never_a_value() -> None:
    config = Config.of(
        server(
            "db",
            env={
                "TOKEN": "${TOKEN}",
                "URL": "postgres://me:hunter2@${HOST}/x${env:NAME}",
                "KEY": "hunter2",
                "EMPTY": "",
                "ODD": "$${hunter2",
            },
            env_required=["HOME_TOKEN"],
            allow_tools=[],
            enabled=False,
        ),
        ServerConfig.http("web", "https://x.test/mcp?key=hunter2", headers={"Authorization": "Bearer ${WEB}"}),
    )
    shown = shown_config(config)["mcpServers"]
    assert "hunter2" not in str(shown)
    assert shown["db"] == {
        "transport": "stdio",
        "command": "x",
        "args": [],
        "env": {"TOKEN": "${TOKEN}", "URL": "***${HOST}***${env:NAME}", "KEY": "***", "EMPTY": "", "ODD": "***"},
        "envRequired": ["HOME_TOKEN"],
        "allowTools": [],
        "enabled": False,
    }
    assert shown["web"]["url"] == "https://x.test/mcp?***"
    assert shown["web"]["headers"] == {"Authorization": "***${WEB}"}
