"""`docs/config.schema.json` and the parser agree: on a corpus, on random documents, and on every key and number."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from toolbridge.config.config import Config
from toolbridge.config.fields import ATTRIBUTE_OF_KEY, OAUTH_KEYS, TRANSPORT_OF_SPELLING, WITHOUT_EFFECT
from toolbridge.config.load import load_config
from toolbridge.config.parse import LIMIT_OF_KEY, TOP_LEVEL_KEYS
from toolbridge.config.policy import DEFAULT_FLOWS, FLOW_RULES, LEVELS, PERMISSION_KEYS, Permissions
from toolbridge.config.server_config import RANGES, ServerLimits
from toolbridge.config.values import RESERVED_NAMES
from toolbridge.errors import ConfigError

SCHEMA_FILE = Path(__file__).parents[2] / "docs" / "config.schema.json"
URL = "https://example.com/mcp"


@cache
def schema() -> dict[str, Any]:
    return json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))


@cache
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(schema())
    return Draft202012Validator(schema())


def fits(document: Any) -> bool:
    return validator().is_valid(document)  # pyright: ignore[reportUnknownMemberType]  # the stubs leave a type open


def problems_of_parser(directory: Path, document: object) -> list[str]:
    path = directory / "a.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    try:
        load_config(path, environ={"HOME": "/home/me"})
    except ConfigError as error:
        return [str(problem) for problem in error.problems]
    return []


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
    "", " ", "**", "weather", "mcp", "mcp__", "mcp__weather", "mcp__weather__", "mcp:weather", "mcp:", "mcp__*__x",
    "mcp__a__get_*", "mcp:a_b*", "mcp__a__b\n", " mcp__a__b", "mcp__a__b c", "MCP__a__b", "mcp__a__\u200bb",
    "mcp____x", "mcp__a_b", "mcp:_x", "mcp:_*", "mcp____*", "mcp__a__" + "x" * 1000,
    "mcp__\u0430__b", "mcp__a__\u202e", "host:mcp-a", 1, None, ["*"], "*\n",
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
    *(one(command="x", labels=[value]) for value in ("private:", "private: ", ":x", "external\n", "external:\0")),
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
    one(command="a\0"),
    one(command="x", args="y"),
    one(command="x", args=[1]),
    one(command="x", args=["\0"]),
    one(command="x", cwd=""),
    one(command="x", env=[]),
    one(command="x", env={"A": 1}),
    one(command="x", env={"A": None}),
    one(command="x", env={"A=B": "1"}),
    one(command="x", env={"": "1"}),
    one(command="x", env={"A B": "1"}),
    one(command="x", env={"A": "\0"}),
    one(command="x", envRequired="A"),
    one(command="x", envRequired=["A=1"]),
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
    one(url="https://example.com/\n"),
    one(url="https://example.com/#x"),
    one(url="https://example.com\\x"),
    one(url=URL, args=[]),
    one(url=URL, env={}),
    one(url=URL, cwd="/"),
    one(url=URL, inheritEnv=False),
    one(url=URL, env_required=[]),
    one(url=URL, headers={"A": "b\n"}),
    one(url=URL, headers={"A": "b\r\nC: d"}),
    one(url=URL, headers={"A": "é"}),
    one(url=URL, headers={"A": 1}),
    one(url=URL, headers={"A b": "c"}),
    one(url=URL, headers={"": "c"}),
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
    one(url=URL, headers={"A" * 257: "b"}),
    one(url=URL, envRequired=["A"]),
    one(url=URL, transport="stdio"),
    one(command="x", transport="sse"),
    one(command="x", env_required=["A=1"]),
    one(command="x", disabled="no"),
    *(named(name) for name in sorted(RESERVED_NAMES)),
    named("fs_read"),
    named("fs_write"),
    named("a__b"),
    named("host:x"),
    named("HA:x"),
    named(""),
    named(" "),
    named("a\n"),
    named("a" * 257),
]

BEYOND_A_SCHEMA = {
    "names differ only by - and _": named("my-db", "my_db"),
    "names become the same": named("GitHub", "github"),
    "a reserved name in disguise": named("MCP"),
    "an invisible character in a name": named("a\u200bb"),
    "too many servers": named(*(f"s{index}" for index in range(51))),
    "a variable declared twice": one(command="x", env={"A": "1"}, envRequired=["A"]),
    "a header of the transport": one(url=URL, headers={"Host": "x"}),
    "headers that differ by capital letters": one(url=URL, headers={"X-A": "1", "x-a": "2"}),
    "a port out of range": one(url="https://example.com:99999"),
    "a broken address": one(url="https://[::1"),
    "half a surrogate pair": one(command="\ud800"),
}
BEYOND_MESSAGES = (
    *("only by '-' and '_'", "as does", "is also in 'env'", "set by the transport", "is there twice"),
    "no such file",
)


def test_both_accept(tmp_path: Path) -> None:
    for document in VALID:
        assert (fits(document), problems_of_parser(tmp_path, document)) == (True, []), document


def test_both_reject(tmp_path: Path) -> None:
    for document in INVALID:
        assert not fits(document), document
        assert problems_of_parser(tmp_path, document) != [], document


@pytest.mark.parametrize("why", BEYOND_A_SCHEMA)
def test_the_parser_rejects_what_a_schema_can_not_express(tmp_path: Path, why: str) -> None:
    assert problems_of_parser(tmp_path, BEYOND_A_SCHEMA[why]) != []
    assert fits(BEYOND_A_SCHEMA[why])


# ---- random documents

TEXTS: list[Any] = [
    "x",
    "raise",
    "",
    " ",
    "stdio",
    "http",
    "sse",
    "error",
    "empty",
    URL,
    "ftp://x",
    "a\0b",
    "é",
    "host",
]
SCALARS: list[Any] = [0, 1, 2.5, 5000, True, False, None]
LISTS: list[Any] = [["private"], [], ["A"], ["A", 1], [""]]
OBJECTS: list[Any] = [
    {"deny": ["*"]},
    {"private->external": "ask"},
    {},
    {"A": "1"},
    {"A": 1},
    {"a b": "1"},
    {"A": "\n"},
    {"scopes": []},
]
ODD_VALUES = st.sampled_from([*TEXTS, *SCALARS, *LISTS, *OBJECTS])
SERVER_KEYS = st.sampled_from([*ATTRIBUTE_OF_KEY, *WITHOUT_EFFECT, "timeout"])
RIGHT_VALUES: dict[str, Any] = (
    {"command": "x", "args": ["a"], "cwd": "/srv", "env": {"A": "1"}, "envRequired": ["B"], "env_required": ["B"]}
    | {"inheritEnv": True, "unsetEnv": "empty", "url": URL, "headers": {"X-A": "1"}, "oauth": {"clientId": "a"}}
    | {
        "allowTools": ["a"],
        "denyTools": [],
        "reading": "intended",
        "outputSchemas": {"a": {"type": "string"}},
        "connectTimeout": 1,
        "callTimeout": 1,
        "description": "d",
    }
    | {"labels": ["private", "external:a"], "enabled": True, "disabled": False, "transport": "stdio", "type": "http"}
)


@st.composite
def servers(draw: st.DrawFn) -> dict[str, Any]:
    keys = draw(st.sets(SERVER_KEYS, max_size=4))
    needed = draw(st.sampled_from(["command", "url", "command", "url", None]))
    keys |= {needed} if needed is not None else set()
    is_right = st.sampled_from([True] * 9 + [False])
    return {key: RIGHT_VALUES.get(key, "x") if draw(is_right) else draw(ODD_VALUES) for key in sorted(keys)}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    form = draw(st.sampled_from(["mcpServers", "servers"]))
    names = st.sampled_from(["one", "two", "Three", "a.b", "mcp", "a__b"])
    more = draw(st.dictionaries(st.sampled_from([*TOP_LEVEL_KEYS, "other"]), ODD_VALUES, max_size=1))
    return {form: draw(st.dictionaries(names, servers(), max_size=2)), **more}


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents())
def test_schema_and_parser_give_one_verdict_on_random_documents(tmp_path: Path, document: dict[str, Any]) -> None:
    problems = problems_of_parser(tmp_path, document)
    if all(any(text in problem for text in BEYOND_MESSAGES) for problem in problems) and problems:
        return  # it is rejected for reasons that a schema can't express
    assert fits(document) == (problems == []), problems


# ---- keys and numbers


def test_the_schema_knows_the_keys_of_the_parser_and_no_others() -> None:
    definitions = schema()["$defs"]
    assert set(definitions["file"]["properties"]) == set(TOP_LEVEL_KEYS)
    assert set(definitions["permissions"]["properties"]) == set(PERMISSION_KEYS)
    assert tuple(definitions["flows"]["properties"]) == FLOW_RULES
    assert tuple(definitions["level"]["enum"]) == LEVELS
    assert set(definitions["server"]["properties"]) == {*ATTRIBUTE_OF_KEY, *WITHOUT_EFFECT}
    assert set(definitions["server"]["properties"]["oauth"]["properties"]) == set(OAUTH_KEYS)
    assert set(definitions["server"]["properties"]["transport"]["enum"]) == set(TRANSPORT_OF_SPELLING)
    assert (
        definitions["server"]["properties"]["type"]["enum"] == definitions["server"]["properties"]["transport"]["enum"]
    )
    assert set(definitions["limits"]["properties"]) == set(LIMIT_OF_KEY)


def test_the_schema_has_the_ranges_and_defaults_of_the_limits() -> None:
    defaults = {field.name: field.default for field in fields(ServerLimits)}
    for key, written in schema()["$defs"]["limits"]["properties"].items():
        name = LIMIT_OF_KEY[key]
        assert (written["minimum"], written["maximum"]) == RANGES[name], key
        assert written["default"] == defaults[name], key
        assert written["type"] == ("number" if key.endswith("Seconds") else "integer"), key


def test_the_schema_has_the_defaults_of_the_policy() -> None:
    definitions = schema()["$defs"]
    defaults = {rule: written["default"] for rule, written in definitions["flows"]["properties"].items()}
    assert {rule: level for rule, level in defaults.items() if level != "allow"} == DEFAULT_FLOWS
    assert definitions["permissions"]["properties"]["default"]["default"] == Permissions().default
    for key, attribute in (
        ("gateway", "gateway"),
        ("errors", "errors"),
        ("strictResults", "strict_results"),
        ("unattended",) * 2,
    ):
        assert definitions["file"]["properties"][key]["default"] == getattr(Config(), attribute)
