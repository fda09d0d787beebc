"""Profiles: servers that are there while a profile is chosen; a file's own, and no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from toolbridge import Config, load_config
from toolbridge.config.profiles import with_profiles
from toolbridge.errors import ConfigError

SERVERS: dict[str, Any] = {
    "notes": {"command": "notes"},
    "github": {"url": "https://x.test/mcp", "headers": {"A": "${A}", "B": "${B}"}},
    "database": {"command": "db", "env": {"WHERE": "staging", "TOKEN": "${T}"}, "labels": ["private"]},
}
PROFILES: dict[str, Any] = {
    "work": {"servers": ["github", "database"]},
    "release": {
        "mcpServers": ["database"],
        "overrides": {
            "database": {"env": {"WHERE": "production"}, "allowTools": ["query"], "labels": ["external"]},
        },
    },
    "slow": {"overrides": {"database": {"callTimeout": 60, "allowTools": ["query", "drop"]}}},
}


def written(directory: Path, *, form: str = "mcpServers", **document: Any) -> Path:
    path = directory / "toolbridge.json"
    path.write_text(json.dumps({form: SERVERS, "profiles": PROFILES, **document}), encoding="utf-8")
    return path


def load(path: Path) -> Config:
    return load_config(path, environ={"HOME": "/home/me"})


@pytest.mark.parametrize("form", ["mcpServers", "servers"])
def test_without_a_profile_there_are_only_the_servers_that_none_names(tmp_path: Path, form: str) -> None:
    config = load(written(tmp_path, form=form))
    assert (list(config.servers), config.warnings) == (["notes"], ())
    assert list(with_profiles(config, []).servers) == ["notes"]


def test_several_profiles_are_a_union_and_later_overrides_hold(tmp_path: Path) -> None:
    config = load(written(tmp_path))
    work = with_profiles(config, ["work"])
    assert list(work.servers) == ["notes", "github", "database"]
    assert work.servers["database"].env == {"WHERE": "staging", "TOKEN": "${T}"}
    both = with_profiles(config, ["work", "release"])
    database = both.servers["database"]
    assert list(both.servers) == ["notes", "github", "database"]
    assert database.env == {"WHERE": "production", "TOKEN": "${T}"}
    assert database.allow_tools == ("query",)
    assert database.labels == ("private", "external")  # never fewer
    stacked = with_profiles(config, ["release", "slow"]).servers["database"]
    assert (stacked.allow_tools, stacked.call_timeout) == (("query", "drop"), 60)
    assert with_profiles(config, ["slow", "release"]).servers["database"].allow_tools == ("query",)


def test_switching_leaves_nothing_of_the_profile_before(tmp_path: Path) -> None:
    config = load(written(tmp_path))
    switched = with_profiles(with_profiles(config, ["release"]), ["work"])
    assert switched == with_profiles(config, ["work"])
    assert with_profiles(switched, []).servers == config.servers


def test_a_profile_that_is_not_there_is_an_error_that_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no profile 'wrok'\. Known profiles: release, slow, work"):
        with_profiles(load(written(tmp_path)), ["wrok"])
    with pytest.raises(ConfigError, match="has no profiles"):
        with_profiles(Config(), ["work"])


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ({"servers": ["nowhere"]}, "names 'nowhere', which is no server of this file"),
        ({"servers": []}, "names no server"),
        ({}, "names no server"),
        ({"overrides": {"nowhere": {"env": {}}}}, "overrides 'nowhere', which is no server of this file"),
    ],
)
def test_a_profile_that_names_no_server_is_a_warning_and_the_rest_works(
    tmp_path: Path, profile: Any, words: str
) -> None:
    config = load(written(tmp_path, profiles={"empty": profile, "work": PROFILES["work"]}))
    assert words in " ".join(config.warnings)
    assert list(with_profiles(config, ["empty", "work"]).servers) == ["notes", "github", "database"]


@pytest.mark.parametrize(
    ("profiles", "field"),
    cast(
        "list[tuple[Any, str]]",
        [
            ([], "profiles"),
            ({"work": []}, "profiles.work"),
            ({"default": {}}, "profiles"),
            ({"a b": {}}, "profiles"),
            ({"a\n": {}}, "profiles"),
            ({"work": {"servers": "github"}}, "profiles.work.servers"),
            ({"work": {"servers": [""]}}, "profiles.work.servers[0]"),
            ({"work": {"servers": [], "mcpServers": []}}, "profiles.work.mcpServers"),
            ({"work": {"sever": []}}, "profiles.work.sever"),
            ({"work": {"description": 3}}, "profiles.work.description"),
            ({"work": {"overrides": []}}, "profiles.work.overrides"),
            ({"work": {"overrides": {"notes": []}}}, "profiles.work.overrides.notes"),
            ({"work": {"overrides": {"notes": {"trust": True}}}}, "profiles.work.overrides.notes.trust"),
            ({"work": {"overrides": {"notes": {"transport": "sse"}}}}, "profiles.work.overrides.notes.transport"),
            ({"work": {"overrides": {"notes": {"url": "https://x.test"}}}}, "profiles.work.overrides.notes': has both"),
            ({"work": {"overrides": {"notes": {"headers": {"A": "b"}}}}}, "profiles.work.overrides.notes.headers"),
            ({"work": {"overrides": {"notes": {"args": "x"}}}}, "profiles.work.overrides.notes.args"),
            ({"work": {"overrides": {"notes": {"disabled": 1}}}}, "profiles.work.overrides.notes.disabled"),
            ({f"p{number}": {} for number in range(101)}, "profiles"),
        ],
    ),
)
def test_a_profile_that_is_none_is_refused_with_its_place(tmp_path: Path, profiles: Any, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, profiles=profiles))
    assert field in {problem.field for problem in caught.value.problems} or field in str(caught.value)


def test_a_transport_is_not_overridden_and_the_message_says_what_to_do(tmp_path: Path) -> None:
    for key in ("transport", "type"):
        overrides = {"notes": {key: "sse"}}
        with pytest.raises(ConfigError, match=r"can't be overridden\. Write a second server, and name that"):
            load(written(tmp_path, profiles={"work": {"overrides": overrides}}))


def test_the_default_profile_is_none(tmp_path: Path) -> None:
    config = load(written(tmp_path, profiles={"work": {"servers": ["notes"]}}))
    assert with_profiles(config, ["default"]) == with_profiles(config, [])
    assert with_profiles(config, ["default", "work"]).active_profiles == ("work",)


def test_no_value_of_an_override_is_shown(tmp_path: Path) -> None:
    profiles = {"work": {"overrides": {"database": {"env": {"TOKEN": "hunter2"}}}}}
    config = load(written(tmp_path, profiles=profiles))
    assert "hunter2" not in repr(config)
    assert "hunter2" not in repr(with_profiles(config, ["work"]))


# ---- two files


@pytest.fixture
def two_files(tmp_path: Path) -> Any:
    def load_both(project: dict[str, Any], user: dict[str, Any]) -> Config:
        home = tmp_path / "user"
        home.mkdir()
        (tmp_path / "toolbridge.json").write_text(json.dumps({"mcpServers": {}, **project}), encoding="utf-8")
        (home / "config.json").write_text(json.dumps({"mcpServers": {}, **user}), encoding="utf-8")
        return load_config(directory=tmp_path, environ={"HOME": "/home/me", "TOOLBRIDGE_CONFIG_DIR": str(home)})

    return load_both


def test_a_projects_profile_neither_switches_on_nor_changes_a_users_server(two_files: Any) -> None:
    """T25: what a repository's file says of profiles is said of its own servers."""
    loosening: dict[str, Any] = {"denyTools": [], "env": {"WHERE": "evil"}, "labels": []}
    config = two_files(
        {"profiles": {"work": {"servers": ["mail", "db"], "overrides": {"db": loosening, "mail": loosening}}}},
        {
            "mcpServers": {
                "db": {"command": "db", "denyTools": ["drop"], "labels": ["private"]},
                "mail": {"command": "mail", "denyTools": ["send"]},
            },
            "profiles": {"private": {"servers": ["mail"]}},
        },
    )
    chosen = with_profiles(config, ["work"])
    assert list(chosen.servers) == ["db"]  # not `mail`, which waits for the user's own profile
    assert chosen.servers["db"].deny_tools == ("drop",)
    assert chosen.servers["db"].labels == ("private",)
    assert chosen.servers["db"].env == {}
    assert sum("which is no server of this file" in warning for warning in config.warnings) == 4


def test_a_profile_of_both_files_is_both(two_files: Any) -> None:
    config = two_files(
        {"mcpServers": {"site": {"command": "s"}}, "profiles": {"work": {"servers": ["site"]}}},
        {"mcpServers": {"mail": {"command": "m"}}, "profiles": {"work": {"servers": ["mail"]}}},
    )
    assert list(config.servers) == []
    chosen = with_profiles(config, ["work"])
    assert {name: server.origin.kind for name, server in chosen.servers.items()} == {"site": "project", "mail": "user"}


def test_a_users_override_is_not_of_a_projects_server_that_took_the_name(two_files: Any) -> None:
    config = two_files(
        {"mcpServers": {"db": {"command": "evil"}}},
        {
            "mcpServers": {"db": {"command": "db"}},
            "profiles": {"work": {"servers": ["db"], "overrides": {"db": {"env": {"TOKEN": "${T}"}}}}},
        },
    )
    database = with_profiles(config, ["work"]).servers["db"]
    assert (database.command, database.env, database.origin.kind) == ("evil", {}, "project")


@pytest.mark.parametrize(
    ("project", "user", "allowed"),
    [
        ({}, {}, {"a", "b"}),
        ({"deny": ["a"]}, {}, {"b"}),
        ({}, {"deny": ["a"]}, {"b"}),
        ({"allow": ["a", "b"]}, {"deny": ["a"]}, {"b"}),
        ({"allow": ["a", "b"]}, {"allow": ["b"]}, {"b"}),
        ({"allow": ["*"]}, {"allow": ["b"]}, {"b"}),
        ({"allow": ["a"]}, {"allow": ["*"]}, {"a"}),
    ],
)
def test_a_projects_rules_for_plugins_only_take_away(
    two_files: Any, project: Any, user: Any, allowed: set[str]
) -> None:
    config = two_files({"plugins": project}, {"plugins": user})
    assert {name for name in ("a", "b") if not config.plugins.refusal(name)} == allowed


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ([], "plugins"),
        ({"allow": "a"}, "plugins.allow"),
        ({"deny": [3]}, "plugins.deny[0]"),
        ({"dny": []}, "plugins.dny"),
    ],
)
def test_rules_for_plugins_that_are_none_are_refused_with_their_place(tmp_path: Path, value: Any, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, plugins=value))
    assert [problem.field for problem in caught.value.problems] == [field]


def test_the_working_directory_of_an_override_is_read_as_that_of_a_server(tmp_path: Path) -> None:
    overrides = {"one": {"cwd": "sub"}, "two": {"cwd": "~/notes"}}
    servers = {name: {"command": "x"} for name in overrides}
    file = tmp_path / "toolbridge.json"
    file.write_text(json.dumps({"mcpServers": servers, "profiles": {"work": {"overrides": overrides}}}))
    chosen = with_profiles(load_config(file, environ={"HOME": "/home/somebody"}), ["work"])
    assert chosen.servers["one"].cwd == str(tmp_path / "sub")
    assert chosen.servers["two"].cwd == "/home/somebody/notes"
