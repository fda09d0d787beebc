"""What approvals are bound to: all that affects what runs, and nothing else."""

from __future__ import annotations

import hashlib
import re
from dataclasses import fields, replace
from typing import Any

import pytest

from toolbridge.config.config import configuration_digest, listing_key
from toolbridge.config.server_config import OAuth, Origin, ServerConfig
from trust.approval.approval_requests import unchecked

PROCESS = ServerConfig.stdio(
    "one",
    "npx",
    ["-y", "pkg"],
    cwd="/srv",
    env={"A": "${TOKEN}", "B": "literal"},
    env_required=["C", "D"],
    origin=Origin("project", "/p/toolbridge.json"),
)
REMOTE = ServerConfig.http(
    "one", "https://example.com/mcp", headers={"Authorization": "Bearer ${TOKEN}"}, oauth=OAuth("me")
)
EXECUTABLE = "/usr/bin/npx"

RUNS_DIFFERENTLY: list[tuple[ServerConfig, dict[str, Any]]] = [
    (PROCESS, {"name": "two"}),
    (PROCESS, {"transport": "sse"}),
    (PROCESS, {"command": "npx2"}),
    (PROCESS, {"args": ("-y", "pkg@latest")}),
    (PROCESS, {"args": ("-y pkg",)}),
    (PROCESS, {"args": ()}),
    (PROCESS, {"cwd": "/srv2"}),
    (PROCESS, {"cwd": None}),
    (PROCESS, {"env": {"A": "${TOKEN}"}}),
    (PROCESS, {"env": {"A": "${OTHER}", "B": "literal"}}),
    (PROCESS, {"env": {"A": "${TOKEN}", "B": "changed"}}),
    (PROCESS, {"env": {"A": "${TOKEN}", "B": "literal", "LD_PRELOAD": "/tmp/x.so"}}),
    (PROCESS, {"env": {"A": "${TOKEN}", "NODE_OPTIONS": "literal"}}),
    (PROCESS, {"env_required": ("C",)}),
    (PROCESS, {"inherit_env": True}),
    (PROCESS, {"unset_env": "empty"}),
    (PROCESS, {"origin": Origin("user", "/p/toolbridge.json")}),
    (PROCESS, {"origin": Origin("project", "/q/toolbridge.json")}),
    (PROCESS, {"origin": Origin("code")}),
    (PROCESS, {"origin": Origin("plugin", "acme")}),
    (REMOTE, {"url": "https://example.org/mcp"}),
    (REMOTE, {"headers": {}}),
    (REMOTE, {"headers": {"Authorization": "Bearer ${OTHER}"}}),
    (REMOTE, {"headers": {"X-Key": "Bearer ${TOKEN}"}}),
    (REMOTE, {"oauth": None}),
    (REMOTE, {"oauth": OAuth("other")}),
    (REMOTE, {"oauth": OAuth("me", scopes=("admin",))}),
    (REMOTE, {"oauth": OAuth("me", client_secret="${S}")}),
    (REMOTE, {"oauth": OAuth("me", redirect_port=8080)}),
]


@pytest.mark.parametrize(("server", "change"), RUNS_DIFFERENTLY, ids=lambda value: str(value)[:60])
def test_whatever_changes_what_runs_changes_the_digest(server: ServerConfig, change: dict[str, Any]) -> None:
    changed = unchecked(server, **change)
    assert configuration_digest(changed, EXECUTABLE) != configuration_digest(server, EXECUTABLE)
    assert listing_key(changed) != listing_key(server)


@pytest.mark.parametrize(
    "change",
    [
        {"allow_tools": ("a",)},
        {"deny_tools": ("a",)},
        {"labels": ("private",)},
        {"connect_timeout": 3.0},
        {"call_timeout": 3.0},
        {"display_name": "One"},
        {"description": "changed"},
        {"enabled": False},
        {"env": {"B": "literal", "A": "${TOKEN}"}},
        {"env_required": ("D", "C")},
    ],
)
def test_what_does_not_change_what_runs_asks_nobody_again(change: dict[str, Any]) -> None:
    assert configuration_digest(replace(PROCESS, **change), EXECUTABLE) == configuration_digest(PROCESS, EXECUTABLE)


def test_every_field_of_a_server_was_thought_of() -> None:
    """A new field must be put into the digest, or into the list of those that don't affect what runs."""
    hashed = {name for _, change in RUNS_DIFFERENTLY for name in change} | {"server"}
    ignored = {
        "labels",
        "allow_tools",
        "deny_tools",
        "output_schemas",
        "reading",
        "connect_timeout",
        "call_timeout",
        "display_name",
        "description",
        "enabled",
    }
    assert hashed | ignored == {field.name for field in fields(ServerConfig)}
    assert hashed & ignored == set()


def test_the_command_found_on_the_path_is_part_of_the_digest() -> None:
    digests = {configuration_digest(PROCESS, path) for path in (EXECUTABLE, "/tmp/evil/npx", None, "")}
    assert len(digests) == 4


def test_a_path_that_is_no_utf_8_has_a_digest() -> None:
    assert configuration_digest(PROCESS, "/opt/\udcff/npx") != configuration_digest(PROCESS, "/opt/?/npx")


def test_a_digest_is_a_sha_256() -> None:
    for digest in (configuration_digest(PROCESS, EXECUTABLE), listing_key(PROCESS)):
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", digest)


def test_a_digest_is_over_this_text_and_stays_the_same_between_versions() -> None:
    """Changing what is hashed makes everybody approve everything again: do it knowingly, with another version."""
    canonical = (
        '{"args":["-y","pkg"],"command":"npx","cwd":"/srv","env":{"A":"${TOKEN}","B":"literal"},'
        '"envRequired":["C","D"],"executable":"/usr/bin/npx","headers":{},"inheritEnv":false,"name":"one","oauth":null,'
        '"origin":["project","/p/toolbridge.json"],"purpose":"approval","server":null,"transport":"stdio",'
        '"unsetEnv":"error","url":null,"version":1}'
    )
    expected = hashlib.sha256(canonical.encode()).hexdigest()
    assert configuration_digest(PROCESS, EXECUTABLE) == f"sha256:{expected}"


def test_an_approval_and_a_listing_are_never_mistaken_for_each_other() -> None:
    assert configuration_digest(REMOTE, None) != listing_key(REMOTE)


class _Server:
    pass


def test_an_in_process_server_is_known_by_its_class() -> None:
    one, same = (ServerConfig.in_process("one", _Server()) for _ in range(2))
    other = ServerConfig.in_process("one", object())
    assert configuration_digest(one, None) == configuration_digest(same, None)
    assert configuration_digest(one, None) != configuration_digest(other, None)


def test_moving_text_from_one_field_to_another_changes_the_digest() -> None:
    one = ServerConfig.stdio("one", "a", ["b", "c"])
    assert (
        len(
            {
                configuration_digest(server, None)
                for server in (one, replace(one, args=("bc",)), replace(one, command="ab", args=("c",)))
            }
        )
        == 3
    )
