"""One server's entry: every field, every transport, and what is said of every mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from config.loader import HOME, Loader
from toolbridge.config.config import load_config
from toolbridge.config.server_config import OAuth, Origin, ServerConfig

# ---- transports


@pytest.mark.parametrize("key", ["type", "transport"])
@pytest.mark.parametrize(
    ("spelling", "transport"),
    [
        ("http", "http"),
        ("streamable-http", "http"),
        ("streamableHttp", "http"),
        ("streamable_http", "http"),
        ("sse", "sse"),
    ],
)
def test_transports_are_read_as_other_tools_spell_them(load: Loader, key: str, spelling: str, transport: str) -> None:
    assert load.server({key: spelling, "url": "https://example.com"}).transport == transport


def test_a_missing_transport_is_inferred(load: Loader) -> None:
    assert load.server({"command": "x"}).transport == "stdio"
    assert load.server({"url": "https://example.com"}).transport == "http"


@pytest.mark.parametrize(
    ("entry", "field", "text"),
    [
        ({"command": "x", "url": "https://e.com"}, None, "has both 'command' and 'url'. Remove 'url' for a process"),
        ({"type": "stdio", "command": "x", "url": "https://e.com"}, None, "has both"),
        ({}, None, "has neither 'command' nor 'url'."),
        ({"args": ["x"]}, None, "has neither 'command' nor 'url'."),
        ({"type": "stdio"}, "command", "is missing; transport 'stdio' needs it."),
        ({"type": "http"}, "url", "is missing; transport 'http' needs it."),
        ({"type": "sse"}, "url", "is missing; transport 'sse' needs it."),
        (
            {"type": "websocket", "url": "https://e.com"},
            "type",
            "expected 'stdio', 'http' or 'sse', found 'websocket'.",
        ),
        ({"transport": "HTTP", "url": "https://e.com"}, "transport", "found 'HTTP'."),
        ({"type": 3, "command": "x"}, "type", "found a number."),
        ({"type": {"type": "http"}, "url": "https://e.com"}, "type", "found an object."),
        ({"transport": "in_process", "command": "x"}, "transport", "is made in code: ServerConfig.in_process()."),
        ({"type": "stdio", "transport": "stdio", "command": "x"}, "transport", "means the same as 'type'."),
        ({"command": "x", "headers": {"A": "b"}}, "headers", "does not belong to transport 'stdio', only to 'http' or"),
        ({"command": "x", "oauth": {}}, "oauth", "does not belong to transport 'stdio'"),
        ({"url": "https://e.com", "args": []}, "args", "does not belong to transport 'http', only to 'stdio'."),
        ({"url": "https://e.com", "env": {}}, "env", "does not belong to transport 'http'"),
        ({"url": "https://e.com", "type": "sse", "cwd": "/"}, "cwd", "does not belong to transport 'sse'"),
        ({"url": "https://e.com", "inheritEnv": True}, "inheritEnv", "does not belong to"),
        ({"url": "https://e.com", "env_required": ["A"]}, "env_required", "does not belong to"),
        ("npx", None, "expected an object, found text."),
        (None, None, "expected an object, found null."),
        (["npx"], None, "expected an object, found a list."),
    ],
)
def test_a_server_of_mixed_missing_or_unknown_transport_is_rejected(
    load: Loader, entry: object, field: str | None, text: str
) -> None:
    problem = load.problem(entry)
    assert problem.field == field
    assert text in str(problem)


# ---- fields


def test_every_field_of_a_process_is_kept(load: Loader) -> None:
    entry: dict[str, Any] = {
        "type": "stdio",
        "command": "x",
        "args": ["a", ""],
        "cwd": "/srv",
        "env": {"A": "${B}", "C": ""},
        "envRequired": ["D"],
        "inheritEnv": True,
        "unsetEnv": "empty",
        "allowTools": [],
        "denyTools": ["t"],
        "outputSchemas": {"t": {"type": "object"}},
        "reading": "literal",
        "connectTimeout": 2,
        "callTimeout": 1.5,
        "description": "What it is",
        "enabled": False,
    }
    assert load.server(entry) == ServerConfig(
        name="one",
        transport="stdio",
        command="x",
        args=("a", ""),
        cwd="/srv",
        env={"A": "${B}", "C": ""},
        env_required=("D",),
        inherit_env=True,
        unset_env="empty",
        allow_tools=(),
        deny_tools=("t",),
        output_schemas={"t": {"type": "object"}},
        reading="literal",
        connect_timeout=2.0,
        call_timeout=1.5,
        description="What it is",
        enabled=False,
        origin=Origin("project", str(load.path)),
    )


def test_every_field_of_a_remote_server_is_kept(load: Loader) -> None:
    oauth = {"clientId": "me", "clientSecret": "${S}", "scopes": ["read"], "redirectPort": 8080}
    entry = {"url": "https://example.com/mcp?x=1", "headers": {"X-Key": "${K}"}, "oauth": oauth, "disabled": True}
    assert load.server(entry) == ServerConfig(
        name="one",
        transport="http",
        url="https://example.com/mcp?x=1",
        headers={"X-Key": "${K}"},
        oauth=OAuth("me", "${S}", ("read",), 8080),
        enabled=False,
        origin=Origin("project", str(load.path)),
    )
    assert load.server({"url": "https://example.com", "oauth": {}}).oauth == OAuth()


@pytest.mark.parametrize("key", ["env_required", "envRequired"])
def test_required_variables_have_two_spellings(load: Loader, key: str) -> None:
    assert load.server({"command": "x", key: ["A", "B"]}).env_required == ("A", "B")


@pytest.mark.parametrize(("key", "value", "enabled"), [("enabled", True, True), ("disabled", False, True)])
def test_enabled_and_disabled_are_opposites(load: Loader, key: str, value: bool, enabled: bool) -> None:
    assert load.server({"command": "x", key: value}).enabled is enabled
    assert load.server({"command": "x", key: not value}).enabled is not enabled


@pytest.mark.parametrize(
    ("changes", "field", "text"),
    [
        ({"command": 3}, "command", "expected text, found a number."),
        ({"command": ""}, "command", "is empty."),
        ({"command": " "}, "command", "is empty."),
        ({"command": None}, "command", "found null."),
        ({"command": "a\0b"}, "command", "contains a NUL character."),
        ({"command": "a\ud800"}, "command", "half a surrogate pair"),
        ({"args": "-y pkg"}, "args", 'expected a list such as ["one", "two"], found text.'),
        ({"args": ["--port", 8080]}, "args[1]", "expected text, found a number. Write it in quotes."),
        ({"args": ["a\0"]}, "args[0]", "NUL"),
        ({"cwd": ""}, "cwd", "is empty."),
        ({"cwd": 3}, "cwd", "expected text"),
        ({"cwd": "a\0"}, "cwd", "NUL"),
        ({"env": []}, "env", "expected an object"),
        ({"env": {"PORT": 8080}}, "env.PORT", "expected text, found a number. Write it in quotes."),
        ({"env": {"A": None}}, "env.A", "found null."),
        ({"env": {"A": "x\0"}}, "env.A", "NUL"),
        ({"env": {"A=B": "x"}}, "env.A=B", "is not the name of a variable."),
        ({"env": {"": "x"}}, "env.", "is not the name of a variable."),
        ({"env": {"A B": "x"}}, "env.A B", "is not the name of a variable."),
        ({"envRequired": "A"}, "envRequired", "expected a list"),
        ({"envRequired": ["A=1"]}, "envRequired[0]", "is not the name of a variable."),
        ({"env": {"A": "x"}, "envRequired": ["A"]}, "envRequired", "'A' is also in 'env'."),
        ({"inheritEnv": "true"}, "inheritEnv", "expected true or false, found text. Write it without quotes."),
        ({"inheritEnv": 1}, "inheritEnv", "expected true or false, found a number."),
        ({"unsetEnv": "ignore"}, "unsetEnv", "expected 'error' or 'empty', found 'ignore'."),
        ({"unsetEnv": ["error"]}, "unsetEnv", "found a list."),
        ({"outputSchemas": ["t"]}, "outputSchemas", "expected an object such as"),
        ({"outputSchemas": {"t": "string"}}, "outputSchemas.t", "expected an object"),
        ({"outputSchemas": {"": {}}}, "outputSchemas", "a tool's name is empty."),
        ({"reading": "strict"}, "reading", "expected 'intended' or 'literal', found 'strict'."),
        ({"allowTools": "a"}, "allowTools", "expected a list"),
        ({"allowTools": [""]}, "allowTools[0]", "is empty."),
        ({"denyTools": [3]}, "denyTools[0]", "expected text"),
        ({"callTimeout": 0}, "callTimeout", "expected 0.001 to 3600. Times are in seconds."),
        ({"callTimeout": 30000}, "callTimeout", "expected 0.001 to 3600. Times are in seconds."),
        ({"connectTimeout": "10"}, "connectTimeout", "expected a number"),
        ({"connectTimeout": True}, "connectTimeout", "expected a number"),
        ({"connectTimeout": 10**300}, "connectTimeout", "expected 0.001 to 3600."),
        ({"enabled": "no"}, "enabled", "expected true or false"),
        ({"disabled": "no"}, "disabled", "expected true or false"),
        ({"enabled": True, "disabled": False}, "disabled", "means the same as 'enabled'."),
        ({"envRequired": [], "env_required": []}, "env_required", "means the same as 'envRequired'."),
        ({"description": []}, "description", "expected text, found a list."),
    ],
)
def test_a_bad_field_of_a_process_is_named_with_what_to_write(
    load: Loader, changes: dict[str, Any], field: str, text: str
) -> None:
    problem = load.problem({"command": "x", **changes})
    assert problem.field == field
    assert text in str(problem)


@pytest.mark.parametrize(
    ("changes", "field", "text"),
    [
        ({"url": ""}, "url", "is empty."),
        ({"url": "example.com/mcp"}, "url", "is no http or https URL. Write it as https://host/path."),
        ({"url": "ftp://example.com"}, "url", "is no http or https URL."),
        ({"url": "file:///etc/passwd"}, "url", "is no http or https URL."),
        ({"url": "https://"}, "url", "is no http or https URL."),
        ({"url": "https://[::1"}, "url", "is no http or https URL."),
        ({"url": "https://e.com:99999"}, "url", "is no http or https URL."),
        ({"url": "https://user:pass@e.com"}, "url", 'has a user or password in it. Put them into "headers"'),
        ({"url": "https://e.com/ x"}, "url", "has a space, backslash or control character."),
        ({"url": "https://e.com\\@evil.com"}, "url", "has a space, backslash or control character."),
        ({"url": "https://e.com/\r\nHost: x"}, "url", "has a space, backslash or control character."),
        ({"url": "https://e.com/#x"}, "url", "has a '#'"),
        ({"headers": {"A": "b\r\nC: d"}}, "headers.A", "has a line break"),
        ({"headers": {"A": "b\n"}}, "headers.A", "has a line break"),
        ({"headers": {"A": "b\0"}}, "headers.A", "NUL"),
        ({"headers": {"A": "é"}}, "headers.A", "only printable ASCII can be sent."),
        ({"headers": {"A": "\x7f"}}, "headers.A", "only printable ASCII can be sent."),
        ({"headers": {"A": 3}}, "headers.A", "expected text, found a number."),
        ({"headers": {"A b": "c"}}, "headers", "'A b' is not the name of a header."),
        ({"headers": {"A\r\nB": "c"}}, "headers", "is not the name of a header."),
        ({"headers": {"": "c"}}, "headers", "'' is not the name of a header."),
        ({"headers": {"Host": "c"}}, "headers.Host", "is set by the transport."),
        ({"headers": {"transfer-Encoding": "c"}}, "headers.transfer-Encoding", "is set by the transport."),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "headers.x-a", "is there twice"),
        ({"headers": ["A: b"]}, "headers", "expected an object"),
        ({"oauth": True}, "oauth", "expected an object"),
        ({"oauth": {"clientid": "x"}}, "oauth.clientid", "unknown key. Did you mean 'clientId'?"),
        ({"oauth": {"callbackPort": 1}}, "oauth.callbackPort", 'unknown key. Write "redirectPort".'),
        ({"oauth": {"clientId": ""}}, "oauth.clientId", "is empty."),
        ({"oauth": {"scopes": "a b"}}, "oauth.scopes", "expected a list"),
        ({"oauth": {"redirectPort": 0}}, "oauth.redirectPort", "expected 1 to 65535."),
        ({"oauth": {"redirectPort": 80.5}}, "oauth.redirectPort", "expected a whole number"),
        ({"oauth": {"redirectPort": 1e308}}, "oauth.redirectPort", "expected 1 to 65535."),
    ],
)
def test_a_bad_field_of_a_remote_server_is_named_with_what_to_write(
    load: Loader, changes: dict[str, Any], field: str, text: str
) -> None:
    problem = load.problem({"url": "https://example.com", **changes})
    assert problem.field == field
    assert text in str(problem)


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("comand", "Did you mean 'command'?"),
        ("Args", "Did you mean 'args'?"),
        ("allow_tools", "Did you mean 'allowTools'?"),
        ("inheritenv", "Did you mean 'inheritEnv'?"),
        ("httpUrl", 'Write "url".'),
        ("serverUrl", 'Write "url".'),
        ("timeout", 'Write "callTimeout" or "connectTimeout", in seconds'),
        ("autoApprove", "Nothing in a file approves a server or a tool: remove it."),
        ("autoapprove", "Nothing in a file approves a server or a tool: remove it."),
        ("sandboxEnabled", "Remove it if the server may run without a sandbox"),
        ("envFile", "Files of variables are not read."),
        ("zzzzzz", "Known are 'command', 'args',"),
        ("\x1b[2J", "Known are 'command', 'args',"),
    ],
)
def test_an_unknown_key_is_rejected_with_what_was_probably_meant(load: Loader, key: str, fix: str) -> None:
    problem = load.problem({"command": "x", key: True})
    assert (problem.problem, problem.field) == ("unknown key.", key)
    assert problem.fix.startswith(fix)
    assert "\x1b" not in str(problem)


def test_vs_codes_own_notes_are_ignored_with_a_warning(load: Loader) -> None:
    config = load({"servers": {"one": {"command": "x", "gallery": True, "version": "1.0", "dev": {"watch": "*"}}}})
    assert config.warnings == (f"{load.path}: server 'one': without effect: 'dev', 'gallery' and 'version'.",)


# ---- directories


@pytest.mark.parametrize(
    ("written", "cwd"),
    [
        (None, "."),
        ("sub", "sub"),
        ("./sub/../other", "other"),
        ("/srv/x", "/srv/x"),
        ("~", HOME),
        ("~/x", f"{HOME}/x"),
        ("~other", "~other"),
        ("..", ".."),
    ],
)
def test_a_working_directory_is_fixed_when_the_file_is_read(load: Loader, written: str | None, cwd: str) -> None:
    entry = {"command": "x"} | ({"cwd": written} if written else {})
    assert load.server(entry).cwd == str((load.path.parent / cwd).resolve())


def test_a_users_server_runs_where_toolbridge_was_started(load: Loader, tmp_path: Path) -> None:
    load({"mcpServers": {"one": {"command": "x"}, "two": {"command": "x", "cwd": "sub"}}})
    config = load_config(load.path, environ={"TOOLBRIDGE_CONFIG_DIR": str(tmp_path)})
    assert [config.servers[name].cwd for name in ("one", "two")] == [None, str(tmp_path / "sub")]


# ---- references where they don't work


def test_a_reference_outside_of_env_and_headers_stays_and_is_warned_of(load: Loader) -> None:
    entry = {"command": "${BIN}/x", "args": ["${env:A}", "$${B}", "$C", "plain", "${workspaceFolder}/d"]}
    config = load({"mcpServers": {"one": entry, "two": {"url": "https://${HOST}/mcp"}}})
    assert (config.servers["one"].command, config.servers["one"].args[0]) == ("${BIN}/x", "${env:A}")
    assert config.servers["two"].url == "https://${HOST}/mcp"
    left = "is not expanded: references work in 'env' and 'headers' only."
    assert config.warnings == (
        f"{load.path}: server 'one': a '${{' in 'command', 'args[0]' and 'args[4]' {left}",
        f"{load.path}: server 'two': a '${{' in 'url' {left}",
    )


def test_a_servers_own_variable_in_its_arguments_is_meant_for_the_server(load: Loader) -> None:
    entry = {"command": "npx", "args": ["mcp-remote", "--header", "Authorization:${AUTH}"], "env": {"AUTH": "${TOKEN}"}}
    assert load({"mcpServers": {"one": entry}}).warnings == ()


def test_a_command_line_in_the_command_is_warned_of(load: Loader) -> None:
    (warning,) = load({"mcpServers": {"one": {"command": "npx -y pkg"}}}).warnings
    assert "arguments belong into 'args'" in warning
    assert load({"mcpServers": {"one": {"command": "/opt/my app/run"}}}).warnings == ()
