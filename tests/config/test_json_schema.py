"""The generated JSON Schema: valid, never stricter than the parser, and refusing what a schema can tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from jsonschema import Draft202012Validator

from toolbridge.cli.commands import toolbridge
from toolbridge.config.config import load_config
from toolbridge.config.fields import TRANSPORT_OF_SPELLING
from toolbridge.config.json_schema import json_schema
from toolbridge.config.parse import TOP_LEVEL_KEYS
from toolbridge.config.policy import FLOW_RULES
from toolbridge.config.values import RESERVED_NAMES
from toolbridge.errors import ConfigError

URL = "https://example.com/mcp"


def schema_accepts(document: Any) -> bool:
    return Draft202012Validator(json_schema()).is_valid(document)  # pyright: ignore[reportUnknownMemberType]  # the stubs leave a type open


def parser_accepts(directory: Path, document: object) -> bool:
    path = directory / "a.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    try:
        load_config(path, environ={"HOME": "/home/me"})
    except ConfigError:
        return False
    return True


def one(**entry: Any) -> dict[str, Any]:
    return {"mcpServers": {"one": entry}}


def named(*names: str) -> dict[str, Any]:
    return {"mcpServers": {name: {"command": "x"} for name in names}}


VALID: list[dict[str, Any]] = [
    {"mcpServers": {}},
    {"servers": {}},
    {"version": 1, "servers": {}},
    {"version": 1.0, "mcpServers": {}},
    {"$schema": "x", "mcpServers": {}},
    {"servers": {}, "inputs": []},
    {"servers": {}, "inputs": [{"id": "a"}]},
    {"mcpServers": {}, "limits": {}},
    {"mcpServers": {}, "limits": {"servers": 1, "callSeconds": 0.5, "closeSeconds": 0, "respawns": 0}},
    {"mcpServers": {}, "limits": {"connections": 7.0}},
    {"mcpServers": {}, "gateway": True},
    {"gateway": False},
    {"gateway": False, "mcpServers": {}},
    {"gateway": False, "mcpServers": [], "other": {"not": "looked at"}, "version": 7},
    {"servers": {}, "permissions": {}},
    {"mcpServers": {}, "permissions": {"ask": ["*"], "deny": [], "default": "ask", "allow": ["mcp__a__b", "mcp:a_b"]}},
    {
        "mcpServers": {},
        "permissions": {
            "deny": ["mcp___a__b", "mcp__a____", "mcp:a__", "mcp__a__*", "mcp:a_*", "mcp__a-b__c__d", "mcp__a__b.c/d!"]
        },
    },
    {"mcpServers": {}, "permissions": {"default": "allow"}},
    {"mcpServers": {}, "flows": {}},
    {"servers": {}, "flows": {"private+untrusted->external": "deny", "untrusted->private": "ask"}},
    {"mcpServers": {}, "errors": "return", "strictResults": True},
    {"mcpServers": {}, "errors": "raise", "strictResults": False},
    *({"mcpServers": {}, "unattended": value} for value in ("allow", "reads", "deny")),
    one(command="x", labels=[]),
    one(url=URL, labels=["private", "untrusted", "external"]),
    one(command="x", labels=["external:send mail", "external:a:b", "private:\u5929", "external: x\n"]),
    one(command="x"),
    one(command="x", args=[]),
    one(command="x", args=["", "a b", "\n"]),
    one(command="x", cwd="/srv"),
    one(command="x", cwd="sub"),
    one(command="x", cwd="~"),
    one(command="x", env={}),
    one(command="x", env={"A": "", "B.c-d": "${X}", "é": "é"}),
    one(command="x", envRequired=["A"]),
    one(command="x", env_required=[]),
    one(command="x", inheritEnv=True),
    one(command="x", unsetEnv="empty"),
    one(command="x", reading="literal"),
    one(command="x", outputSchemas={"t": {"type": "object"}}),
    one(command="x", type="stdio"),
    one(command="x", transport="stdio"),
    one(command="x", allowTools=[], denyTools=["a"]),
    one(command="x", connectTimeout=1, callTimeout=0.5),
    one(command="x", callTimeout=3600),
    one(command="x", description=""),
    one(command="x", enabled=False),
    one(command="x", disabled=True),
    one(command="x", gallery=True, version="1.0", dev={"watch": "*"}),
    one(url=URL),
    one(url="http://localhost:8080"),
    one(url="HTTPS://example.com?x=@1"),
    one(url="https://example.com/@scope/x"),
    one(url="https://[::1]:8080/mcp"),
    *(one(url=URL, type=spelling) for spelling in TRANSPORT_OF_SPELLING if spelling != "stdio"),
    one(url=URL, headers={}),
    one(url=URL, headers={"Authorization": "Bearer ${env:TOKEN}", "x_y": "\t"}),
    one(url=URL, oauth={}),
    one(url=URL, oauth={"clientId": "a", "clientSecret": "${B}", "scopes": ["a"], "redirectPort": 1}),
    one(url=URL, unsetEnv="error", allowTools=["a"], callTimeout=2, disabled=False, description="d"),
    named("GitHub", "file.system", "my server", "天气", "a" * 256),
    named("host", "ha", "mcps", "fetch2"),
    named(*(f"s{index}" for index in range(50))),
]

BAD_PATTERNS: list[Any] = [
    "", " ", "**", "weather", "mcp", "mcp__", "mcp__weather", "mcp__weather__", "mcp:weather", "mcp:",
    " mcp__a__b", "mcp__a__b c", "MCP__a__b", "mcp__a__\u200bb",
    "mcp____x", "mcp__a_b", "mcp:_x", "mcp:_*", "mcp____*", "mcp__a__" + "x" * 1000,
    "mcp__\u0430__b", "mcp__a__\u202e", "host:mcp-a", 1, None, ["*"],
]  # fmt: skip

BAD_PERMISSIONS: list[Any] = [None, [], "deny", {"denied": []}, {"deny": "*"}]
BAD_FLOWS: list[Any] = [None, [], "deny", {"private+untrusted->external": "no"}]
BAD_LABELS: list[Any] = ["private", None, {}, [1], ["Private"], ["other"], [""]]

INVALID: list[object] = [
    [],
    None,
    "x",
    {},
    {"mcpServers": {}, "servers": {}},
    {"mcpServers": []},
    {"mcpServers": None},
    {"servers": "x"},
    {"mcpServers": {}, "other": 1},
    {"mcpServers": {}, "version": 2},
    {"mcpServers": {}, "version": "1"},
    {"mcpServers": {}, "version": True},
    {"mcpServers": {}, "inputs": {}},
    {"mcpServers": {}, "$schema": 1},
    {"mcpServers": {}, "limits": []},
    {"mcpServers": {}, "limits": {"server": 1}},
    {"mcpServers": {}, "limits": {"servers": 0}},
    {"mcpServers": {}, "limits": {"servers": 1.5}},
    {"mcpServers": {}, "limits": {"servers": "1"}},
    {"mcpServers": {}, "limits": {"servers": True}},
    {"mcpServers": {}, "limits": {"tools": 100_001}},
    {"mcpServers": {}, "limits": {"callSeconds": 0}},
    {"mcpServers": {}, "gateway": "false"},
    {"mcpServers": {}, "gateway": 0},
    {"mcpServers": {}, "gateway": None},
    {"gateway": True},
    {"gateway": 0},
    *({"mcpServers": {}, "permissions": value} for value in BAD_PERMISSIONS),
    {"mcpServers": {}, "permissions": {"default": "no"}},
    {"mcpServers": {}, "permissions": {"default": ["ask"]}},
    {"mcpServers": {}, "permissions": {"default": None}},
    *({"mcpServers": {}, "permissions": {"deny": [pattern]}} for pattern in BAD_PATTERNS),
    *({"mcpServers": {}, "flows": value} for value in BAD_FLOWS),
    *({"mcpServers": {}, "flows": {rule: "deny"}} for rule in ("", "private", "->", "a->b", "private->private")),
    {"mcpServers": {}, "flows": {"untrusted+private->external": "deny"}},
    {"mcpServers": {}, "flows": {"private+untrusted->external": True}},
    *({"mcpServers": {}, "errors": value} for value in ("", "throw", True, None, ["raise"])),
    *({"mcpServers": {}, "strictResults": value} for value in ("true", 1, None)),
    *({"mcpServers": {}, "unattended": value} for value in ("", "ask", "read", True, None)),
    *(one(command="x", labels=value) for value in BAD_LABELS),
    *(one(command="x", labels=[value]) for value in ("private:", "private: ", ":x")),
    {"mcpServers": {"one": None}},
    {"mcpServers": {"one": "npx"}},
    {"mcpServers": {"one": []}},
    one(),
    one(type="stdio"),
    one(type="http"),
    one(command="x", url=URL),
    one(command="x", type="http"),
    one(url=URL, type="stdio"),
    one(url=URL, transport="in_process"),
    one(url=URL, transport="websocket"),
    one(command="x", type="stdio", transport="stdio"),
    one(command="x", comand="y"),
    one(command="x", timeout=3),
    one(command="x", autoApprove=[]),
    one(command=""),
    one(command=" "),
    one(command=3),
    one(command=None),
    one(command="x", args="y"),
    one(command="x", args=[1]),
    one(command="x", cwd=""),
    one(command="x", env=[]),
    one(command="x", env={"A": 1}),
    one(command="x", env={"A": None}),
    one(command="x", envRequired="A"),
    one(command="x", envRequired=[], env_required=[]),
    one(command="x", inheritEnv="yes"),
    one(command="x", unsetEnv="ignore"),
    one(command="x", headers={}),
    one(command="x", oauth={}),
    one(command="x", allowTools="a"),
    one(command="x", allowTools=[""]),
    one(command="x", denyTools=[None]),
    one(command="x", callTimeout=0),
    one(command="x", callTimeout=3601),
    one(command="x", callTimeout=True),
    one(command="x", connectTimeout="1"),
    one(command="x", description=1),
    one(command="x", enabled=1),
    one(command="x", enabled=True, disabled=False),
    one(url=""),
    one(url="example.com"),
    one(url="ftp://example.com"),
    one(url="https://"),
    one(url="https://user:pw@example.com"),
    one(url="https://user@example.com/x"),
    one(url="https://example.com/a b"),
    one(url=URL, args=[]),
    one(url=URL, env={}),
    one(url=URL, cwd="/"),
    one(url=URL, inheritEnv=False),
    one(url=URL, env_required=[]),
    one(url=URL, headers={"A": 1}),
    one(url=URL, oauth=True),
    one(url=URL, oauth={"clientID": "x"}),
    one(url=URL, oauth={"clientId": ""}),
    one(url=URL, oauth={"scopes": "a b"}),
    one(url=URL, oauth={"redirectPort": 0}),
    one(url=URL, oauth={"redirectPort": 1.5}),
    one(url=URL, oauth={"redirectPort": 65536}),
    one(url=URL, oauth={"clientSecret": 3}),
    one(url=3),
    one(url=URL, headers="A: b"),
    one(url=URL, envRequired=["A"]),
    one(url=URL, transport="stdio"),
    one(command="x", transport="sse"),
    one(command="x", disabled="no"),
    *(named(name) for name in sorted(RESERVED_NAMES)),
    named("fs_read"),
    named("fs_write"),
    named("a__b"),
    named("host:x"),
    named("HA:x"),
    named(""),
    named(" "),
    named("a" * 257),
]

BEYOND_A_SCHEMA: list[Any] = [
    named("my-db", "my_db"),
    named("GitHub", "github"),
    named("MCP"),  # a reserved name in disguise
    named("a\u200bb"),
    named("a\n"),
    named(*(f"s{index}" for index in range(51))),
    one(command="x", env={"A": "1"}, envRequired=["A"]),
    one(url=URL, headers={"Host": "x"}),
    one(url=URL, headers={"X-A": "1", "x-a": "2"}),
    one(url="https://example.com:99999"),
    one(url="https://[::1"),
    one(command="\ud800"),
    *({"mcpServers": {}, "permissions": {"deny": [pattern]}} for pattern in ("mcp__*__x", "mcp__a__get_*", "mcp:a_b*")),
    *({"mcpServers": {}, "permissions": {"deny": [pattern]}} for pattern in ("mcp__a__b\n", "*\n")),
    *(one(command="x", labels=[value]) for value in ("external\n", "external:\0")),
    one(command="a\0"),
    one(command="x", args=["\0"]),
    one(command="x", env={"A=B": "1"}),
    one(command="x", env={"": "1"}),
    one(command="x", env={"A B": "1"}),
    one(command="x", env={"A": "\0"}),
    one(command="x", envRequired=["A=1"]),
    one(url="https://example.com/\n"),
    one(url="https://example.com/#x"),
    one(url="https://example.com\\x"),
    one(url=URL, headers={"A": "b\n"}),
    one(url=URL, headers={"A": "b\r\nC: d"}),
    one(url=URL, headers={"A": "é"}),
    one(url=URL, headers={"A b": "c"}),
    one(url=URL, headers={"": "c"}),
    one(url=URL, headers={"A" * 257: "b"}),
    one(command="x", env_required=["A=1"]),
]


def test_the_schema_is_one_of_draft_2020_12_and_knows_every_key() -> None:
    Draft202012Validator.check_schema(json_schema())
    file = json_schema()["$defs"]["file"]["properties"]
    assert set(file) == set(TOP_LEVEL_KEYS)
    assert tuple(file["flows"]["properties"]) == FLOW_RULES


def test_the_command_prints_the_schema() -> None:
    assert json.loads(CliRunner().invoke(toolbridge, ["config-schema"]).output) == json_schema()


def test_schema_and_parser_accept(tmp_path: Path) -> None:
    for document in VALID:
        assert (schema_accepts(document), parser_accepts(tmp_path, document)) == (True, True), document


def test_schema_and_parser_refuse(tmp_path: Path) -> None:
    for document in INVALID:
        assert (schema_accepts(document), parser_accepts(tmp_path, document)) == (False, False), document


def test_the_parser_refuses_documents_that_a_schema_can_not(tmp_path: Path) -> None:
    for document in BEYOND_A_SCHEMA:
        assert (schema_accepts(document), parser_accepts(tmp_path, document)) == (True, False), document
