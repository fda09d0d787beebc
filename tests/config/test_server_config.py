"""Servers made in code: the same checks as for a file, nothing that can change afterwards, nothing secret in print."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from functools import partial
from typing import Any, cast

import pytest

from toolbridge.config.config import Config
from toolbridge.config.policy import PluginPolicy
from toolbridge.config.server_config import OAuth, Origin, ServerConfig, ServerLimits, checked_server
from toolbridge.errors import ConfigError, MisuseError

URL = "https://example.com/mcp"


def test_the_factories_make_what_they_say() -> None:
    marker = object()
    assert ServerConfig.npm("a", "pkg", description="Ours").description == "Ours"
    made = [
        ServerConfig.stdio("a", "node", ["server.js"], env={"A": "1"}),
        ServerConfig.npm("b", "@scope/pkg@1.2.3", ["/data"], inherit_env=True),
        ServerConfig.uvx("c", "mcp-server-time==1.0", ("--tz", "UTC"), call_timeout=5),
        ServerConfig.http("d", URL, headers={"X": "${Y}"}),
        ServerConfig.sse("e", URL, deny_tools=["t"]),
        ServerConfig.in_process("f", marker, description="here"),
    ]
    assert made == [
        ServerConfig("a", "stdio", command="node", args=("server.js",), env={"A": "1"}),
        ServerConfig(
            "b",
            "stdio",
            command="npx",
            args=("-y", "@scope/pkg@1.2.3", "/data"),
            inherit_env=True,
            description="MCP server: @scope/pkg@1.2.3",
        ),
        ServerConfig(
            "c",
            "stdio",
            command="uvx",
            args=("mcp-server-time==1.0", "--tz", "UTC"),
            call_timeout=5,
            description="MCP server: mcp-server-time==1.0",
        ),
        ServerConfig("d", "http", url=URL, headers={"X": "${Y}"}),
        ServerConfig("e", "sse", url=URL, deny_tools=("t",)),
        ServerConfig("f", "in_process", server=marker, description="here"),
    ]
    assert {server.origin for server in made} == {Origin("code")}


Make = Callable[[], ServerConfig]
HEADERS: dict[str, Any] = {"headers": {"A": "b"}}
ENV: dict[str, Any] = {"env": {"A": "b"}}


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: ServerConfig.stdio("a", ""), "command"),
        (lambda: ServerConfig.stdio("a", None), "command"),  # pyright: ignore[reportArgumentType]
        (lambda: ServerConfig.stdio("a", "x", "one two"), "args"),
        (lambda: ServerConfig.stdio("a", "x", [3]), "args[0]"),  # pyright: ignore[reportArgumentType]
        (lambda: ServerConfig.stdio("a", "x", cwd="relative"), "cwd"),
        (lambda: ServerConfig.stdio("a", "x", cwd="~/x"), "cwd"),
        (lambda: ServerConfig.stdio("a", "x", env={"A": 3}), "env.A"),  # pyright: ignore[reportArgumentType]
        (lambda: ServerConfig.stdio("a", "x", env={3: "A"}), "env"),  # pyright: ignore[reportArgumentType]
        (lambda: ServerConfig.stdio("a", "x", env={"A": "b\0"}), "env.A"),
        (lambda: ServerConfig.stdio("a", "x", env=[]), "env"),  # pyright: ignore[reportArgumentType]
        (lambda: ServerConfig.stdio("a", "x", env_required="TOKEN"), "env_required"),
        (lambda: ServerConfig.stdio("a", "x", unset_env="no"), "unset_env"),  # pyright: ignore[reportArgumentType]
        (lambda: ServerConfig.stdio("a", "x", allow_tools="read"), "allow_tools"),
        (lambda: ServerConfig.stdio("a", "x", call_timeout=0), "call_timeout"),
        (lambda: ServerConfig.stdio("a", "x", call_timeout=float("nan")), "call_timeout"),
        (lambda: ServerConfig.stdio("a", "x", call_timeout=float("inf")), "call_timeout"),
        (partial(ServerConfig.stdio, "a", "x", **HEADERS), "headers"),
        (lambda: ServerConfig.npm("a", ""), "package"),
        (lambda: ServerConfig.npm("a", "--package=evil"), "package"),
        (lambda: ServerConfig.npm("a", "pkg --flag"), "package"),
        (lambda: ServerConfig.npm("a", "pkg", "one two"), "args"),
        (lambda: ServerConfig.uvx("a", "-evil"), "package"),
        (lambda: ServerConfig.uvx("a", "pkg", [None]), "args[1]"),  # pyright: ignore[reportArgumentType]
        (lambda: ServerConfig.http("a", "example.com"), "url"),
        (lambda: ServerConfig.http("a", URL, headers={"A": "b\r\nC: d"}), "headers.A"),
        (lambda: ServerConfig.http("a", URL, oauth={"clientId": "x"}), "oauth"),  # pyright: ignore[reportArgumentType]
        (lambda: ServerConfig.http("a", URL, oauth=OAuth(redirect_port=0)), "oauth.redirectPort"),
        (partial(ServerConfig.sse, "a", URL, **ENV), "env"),
        (lambda: ServerConfig.in_process("a", None), "server"),
        (lambda: ServerConfig("a", "ws", url=URL), "transport"),  # pyright: ignore[reportArgumentType]
        (lambda: ServerConfig("a", "stdio", command="x", url=URL), None),
        (lambda: ServerConfig.stdio("Not Valid", "x"), None),
    ],
)
def test_a_server_that_can_not_be_used_is_not_made(make: Make, field: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    assert caught.value.field == field
    assert caught.value.server in ("a", "Not Valid")


def test_all_problems_of_a_server_are_reported_together() -> None:
    with pytest.raises(ConfigError) as caught:
        ServerConfig.stdio("Bad", "", cwd="x", call_timeout=-1)
    assert [problem.field for problem in caught.value.problems] == [None, "command", "cwd", "call_timeout"]


# ---- frozen


def test_what_the_caller_changes_later_changes_nothing() -> None:
    """T23: what was approved is what runs."""
    args, env, headers, tools = ["a"], {"A": "1"}, {"B": "2"}, ["t"]
    process = ServerConfig.stdio("one", "x", args, env=env, allow_tools=tools)
    remote = ServerConfig.http("two", URL, headers=headers)
    before = copy.copy(process), copy.copy(remote)
    args.append("--evil")
    env["LD_PRELOAD"] = "/tmp/evil.so"
    headers["X-Evil"] = "1"
    tools.append("delete")
    assert (process, remote) == before
    assert (process.args, dict(process.env), process.allow_tools) == (("a",), {"A": "1"}, ("t",))
    assert dict(remote.headers) == {"B": "2"}


def test_nothing_of_a_server_can_be_set() -> None:
    server = ServerConfig.stdio("one", "x", env={"A": "1"})
    with pytest.raises(FrozenInstanceError):
        server.command = "y"  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        server.env["A"] = "2"  # pyright: ignore[reportIndexIssue]


def test_servers_with_the_same_fields_are_equal_and_others_are_not() -> None:
    """`reload()` keeps what is equal."""
    one = ServerConfig.stdio("one", "x", env={"A": "1"})
    assert one == ServerConfig.stdio("one", "x", env={"A": "1"})
    assert one != ServerConfig.stdio("one", "x", env={"A": "2"})
    assert one.with_origin(Origin("user", "/f")) == replace(one, origin=Origin("user", "/f"))


# ---- print


def test_printing_a_server_shows_no_value_and_no_path_of_a_url() -> None:
    secret = "planted-77"
    servers: list[Any] = [
        ServerConfig.stdio("one", "x", env={"A_TOKEN": secret}),
        ServerConfig.http("two", f"https://example.com:8443/{secret}/mcp?key={secret}", headers={"X-Key": secret}),
        ServerConfig.http("three", URL, oauth=OAuth("me", secret)),
        checked_server(name="four", transport="http", url=f"https://[{secret}"),
        checked_server(name="five", transport="http", url=f"https://me:{secret}@example.com"),
        OAuth("me", secret),
    ]
    for server in [*servers, Config.of(*servers[:3])]:
        assert secret not in f"{server!r} {server}"
    assert "'https://example.com:8443/…'" in repr(servers[1])
    assert "headers=['X-Key']" in repr(servers[1])
    assert repr(servers[-1]) == "OAuth(client_id='me', client_secret=***, scopes=[], redirect_port=None)"


WRONG: tuple[Any, ...] = (
    object(),
    3,
    "x",
    "a\n",
    None,
    [3],
    {3: 4},
    {"a": None},
    b"x",
    True,
    float("nan"),
    type,
    ("a",),
)


@pytest.mark.parametrize("field", [field.name for field in fields(ServerConfig)])
def test_no_value_of_any_field_gets_past_the_constructor_or_ends_in_another_error(field: str) -> None:
    whole: list[dict[str, Any]] = [
        {"transport": "stdio", "command": "x"},
        {"transport": "http", "url": URL},
        {"transport": "in_process", "server": object()},
    ]
    for given in whole:
        for value in WRONG:
            with contextlib.suppress(ConfigError):
                made = ServerConfig(**cast("Any", {"name": "a", **given, field: value}))
                assert replace(made) == made
                assert repr(made)


@pytest.mark.parametrize("field", ["servers", "optional", "limits", "permissions", "project_permissions", "plugins"])
def test_no_argument_of_another_type_makes_a_configuration(field: str) -> None:
    for value in (object(), 3, "x", None, [3], {"a": None}, {"a": "x"}):
        with pytest.raises(MisuseError, match=rf"^{field}"):
            Config(**cast("Any", {field: value}))


def test_none_is_not_given() -> None:
    nothing: Any = {
        each.name: None for each in fields(ServerConfig) if each.name not in ("name", "transport", "command", "args")
    }
    assert ServerConfig.stdio("a", "x", None, **nothing) == ServerConfig.stdio("a", "x")  # pyright: ignore[reportArgumentType]
    for factory in (ServerConfig.npm, ServerConfig.uvx):
        assert factory("a", "x", None, env=None) == factory("a", "x")  # pyright: ignore[reportArgumentType]
    assert ServerConfig.http("a", URL, headers=None) == ServerConfig.http("a", URL)  # pyright: ignore[reportArgumentType]


# ---- together


def test_a_configuration_made_in_code_is_checked_like_a_file() -> None:
    servers = [ServerConfig.stdio(f"s{index}", "x") for index in range(51)]
    with pytest.raises(ConfigError, match="51 servers are configured; at most 50 may be"):
        Config.of(*servers)
    assert len(Config.of(*servers, limits=ServerLimits(servers=51)).servers) == 51
    with pytest.raises(ConfigError, match="51 servers are configured; at most 50 may be"):
        Config({server.name: server for server in servers})
    with pytest.raises(ConfigError, match="is missing; transport 'stdio' needs it"):
        ServerConfig("one", "stdio")
    for twins in ("x-y", "x_y"), ("x_y", "x-y"):
        with pytest.raises(ConfigError, match="only by '-' and '_'"):
            Config({name: ServerConfig.stdio(name, "x") for name in twins})
    for field in ("servers", "optional"):
        with pytest.raises(ConfigError, match=rf"server 's0': field '{field}': has another name as its key, 's0\\n'"):
            Config(**cast("Any", {field: {"s0\n": servers[0]}}))
    with pytest.raises(ConfigError, match="has the name of another server"):
        Config.of(servers[0], servers[0])


def test_plugins_may_be_denied_in_code() -> None:
    policy = PluginPolicy(deny=("acme",))
    assert Config.of(plugins=policy).plugins == policy
    assert Config.of().plugins == PluginPolicy()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Config.of("x"), r"servers\[0\] is of type str: expected a ServerConfig"),  # pyright: ignore[reportArgumentType]
        (lambda: Config.of(plugins=["acme"]), r"plugins is of type list: expected PluginPolicy"),  # pyright: ignore[reportArgumentType]
        (lambda: Config.of(permissions={}), r"permissions is of type dict: expected Permissions"),  # pyright: ignore[reportArgumentType]
        (lambda: Config.of(limits=5), r"limits is of type int: expected ServerLimits"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_is_no_configuration_is_told_by_its_type(make: Callable[[], object], words: str) -> None:
    with pytest.raises(MisuseError, match=words):
        make()
