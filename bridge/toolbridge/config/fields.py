"""Every field of a server: its name in code and in a file, how it is checked, and which transports have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from toolbridge.config import flow_rules, output_schemas, remote_values, values
from toolbridge.config.server_config import Transport

Check: TypeAlias = Callable[[object, str], Any]

STDIO = frozenset({"stdio"})
REMOTE = frozenset({"http", "sse"})
IN_PROCESS = frozenset({"in_process"})
ANY = STDIO | REMOTE | IN_PROCESS


@dataclass(frozen=True, slots=True)
class Field:
    """One field."""

    attribute: str
    key: str
    """Its key in a file; empty if a file can't have it."""
    check: Check
    transports: frozenset[str] = ANY


def _anything(value: object, _field: str) -> object:
    return value


FIELDS: tuple[Field, ...] = (
    Field("command", "command", values.some_text, STDIO),
    Field("args", "args", values.texts, STDIO),
    Field("cwd", "cwd", values.working_directory, STDIO),
    Field("env", "env", values.environment, STDIO),
    Field("env_required", "envRequired", values.variables, STDIO),
    Field("inherit_env", "inheritEnv", values.flag, STDIO),
    Field("unset_env", "unsetEnv", values.unset_env),
    Field("url", "url", remote_values.url, REMOTE),
    Field("headers", "headers", remote_values.headers, REMOTE),
    Field("oauth", "oauth", remote_values.oauth, REMOTE),
    Field("server", "", _anything, IN_PROCESS),
    Field("allow_tools", "allowTools", values.names),
    Field("deny_tools", "denyTools", values.denied_names),
    Field("reading", "reading", values.reading),
    Field("output_schemas", "outputSchemas", output_schemas.output_schemas),
    Field("labels", "labels", flow_rules.labels),
    Field("connect_timeout", "connectTimeout", values.seconds),
    Field("call_timeout", "callTimeout", values.seconds),
    Field("display_name", "", values.any_text),
    Field("description", "description", values.any_text),
    Field("enabled", "enabled", values.flag),
)

ATTRIBUTE_OF_KEY: Mapping[str, str] = MappingProxyType(
    {each.key: each.attribute for each in FIELDS if each.key}
    | {"transport": "transport", "type": "transport", "env_required": "env_required", "disabled": "enabled"}
)
"""All spellings of all keys of a server in a file."""

TRANSPORT_OF_SPELLING: Mapping[str, Transport] = MappingProxyType(
    {
        "stdio": "stdio",
        "http": "http",
        "streamable-http": "http",
        "streamableHttp": "http",
        "streamable_http": "http",
        "sse": "sse",
    }
)

NEEDED_FIELD: Mapping[str, str] = MappingProxyType(
    {"stdio": "command", "http": "url", "sse": "url", "in_process": "server"}
)

WITHOUT_EFFECT = frozenset({"dev", "gallery", "version"})
"""VS Code's own notes on a server: nothing that runs depends on them."""

_TOOLS = 'Write "allowTools" or "denyTools".'
_APPROVE = "Nothing in a file approves a server or a tool: remove it."
_UNSANDBOXED = "Remove it if the server may run without a sandbox, or make a wrapper the command."
ADVICE: Mapping[str, str] = MappingProxyType(
    {
        "alwaysAllow": _APPROVE,
        "auth": 'Write "oauth".',
        "authorization": 'Write "oauth", or an Authorization header under "headers".',
        "autoApprove": _APPROVE,
        "baseUrl": 'Write "url".',
        "cmd": 'Write "command".',
        "disabledTools": 'Write "denyTools".',
        "enabledTools": 'Write "allowTools".',
        "envFile": 'Files of variables are not read. Name the variables in "env" or "envRequired".',
        "excludeTools": 'Write "denyTools".',
        "headersHelper": 'No command is run for headers. Write "headers" with references such as ${TOKEN}.',
        "httpUrl": 'Write "url".',
        "includeTools": 'Write "allowTools".',
        "sandbox": _UNSANDBOXED,
        "sandboxEnabled": _UNSANDBOXED,
        "serverUrl": 'Write "url".',
        "timeout": 'Write "callTimeout" or "connectTimeout", in seconds; elsewhere this is often in milliseconds.',
        "toolFilter": _TOOLS,
        "tools": _TOOLS,
        "transportType": 'Write "transport".',
        "trust": _APPROVE,
        "workingDirectory": 'Write "cwd".',
    }
)
"""Keys of other tools that mean something here under another name, or nothing at all."""
