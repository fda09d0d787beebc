"""The table of all fields of a server (key, check, transports), from which the JSON Schema is generated; its checks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from itertools import pairwise
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import urlsplit

from toolbridge.config import policy as flow_rules
from toolbridge.config import values
from toolbridge.config.read_file import read_object
from toolbridge.config.server_config import OAuth, Origin, ServerConfig, Transport
from toolbridge.config.values import (
    Check,
    all_of,
    any_text,
    check_name,
    checked_members,
    kind_of,
    listed,
    names,
    pairs,
    quoted,
    shown_path,
    some_text,
    twin_key,
    unknown_keys,
    wrong,
)
from toolbridge.errors import ConfigError

# Output schemas for tools that have none: inline, or in a file beside the configuration.


_FORM = 'an object such as {"get_forecast": {"type": "object", "properties": {…}}}, or the path of a file that has one'


def from_file(value: object, field: str, absolute: Callable[[str], str]) -> object:
    """Read the JSON object in the file if the value is a text that is not blank; else return the value unchecked.

    `absolute` resolves the path.

    Raises:
        ConfigError: the file can't be read, or is not a JSON object.
    """
    if not isinstance(value, str) or not value.strip():
        return value
    path = absolute(value)
    try:
        return read_object(path, form='{"get_forecast": {"type": "object"}}')
    except ConfigError as error:  # the mistake is in the file that the field names
        problem, fix = f"{shown_path(path)}: {error.problem}", error.fix
    raise ConfigError(problem, field=field, fix=fix)


def output_schemas(value: object, field: str) -> Mapping[str, Mapping[str, Any]]:
    """Check an object of JSON Schemas by tool, and copy it; the schemas themselves are not validated.

    Raises:
        ConfigError: it or a schema is no object, or a tool's name is empty.
    """
    if not isinstance(value, Mapping):
        raise wrong(value, field, _FORM)
    schemas: dict[str, Mapping[str, Any]] = {}
    for tool, schema in pairs(cast("object", value), field).items():
        if not tool:
            raise ConfigError("a tool's name is empty.", field=field)
        schemas[tool] = pairs(schema, f"{field}.{tool[:60]}")
    return schemas


# Checks of HTTP fields: the URL, headers, OAuth.


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_BAD_URL_CHARACTER = re.compile(r"[\x00-\x20\x7f\\]")
SENT_ANYWAY = frozenset({"accept", "accept-encoding", "content-type"})
"""Headers that the transport sets and that files for other clients repeat."""
_TRANSPORT_HEADERS = SENT_ANYWAY | frozenset(
    {
        *("connection", "content-encoding", "content-length", "expect", "host", "http2-settings", "keep-alive"),
        *("last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id", "proxy-authenticate"),
        *("proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
OAUTH_KEYS: Mapping[str, str] = {
    "clientId": "client_id",
    "clientSecret": "client_secret",
    "scopes": "scopes",
    "redirectPort": "redirect_port",
}
_OAUTH_ADVICE: Mapping[str, str] = {"callbackPort": 'Write "redirectPort".', "scope": 'Write "scopes", a list.'}


def url(value: object, field: str) -> str:
    """Check an http or https URL and return it unchanged; reaches nothing.

    Raises:
        ConfigError: another scheme, no host, a user, password or fragment, or a space or control character.
    """
    text = some_text(value, field)
    example = "Write it as https://host/path."
    if _BAD_URL_CHARACTER.search(text):
        raise ConfigError("has a space, backslash or control character.", field=field, fix=example)
    try:
        parts = urlsplit(text)
        host, has_user, _ = parts.hostname, "@" in parts.netloc, parts.port
    except ValueError:
        parts, host, has_user = None, None, False
    if parts is None or parts.scheme.lower() not in ("http", "https") or not host:
        raise ConfigError("is no http or https URL.", field=field, fix=example)
    if has_user:
        fix = 'Put them into "headers", such as {"Authorization": "Bearer ${TOKEN}"}.'
        raise ConfigError("has a user or password in it.", field=field, fix=fix)
    if "#" in text:
        raise ConfigError("has a '#', which is never sent.", field=field, fix=example)
    return text


def headers(value: object, field: str) -> dict[str, str]:
    """Check headers and copy them; values may hold references.

    Raises:
        ConfigError: at the first malformed, repeated or transport-owned header.
    """
    found: dict[str, str] = {}
    seen: set[str] = set()
    for name, text in pairs(value, field).items():
        where = f"{field}.{name[:60]}"
        if not _HEADER_NAME.fullmatch(name):
            raise ConfigError(f"{quoted(name, 12)} is not the name of a header.", field=field)
        if is_transports(name):
            raise ConfigError("is set by the transport.", field=where, fix="Remove it.")
        if name.lower() in seen:
            problem = "is there twice: headers that differ only by capital letters are the same."
            raise ConfigError(problem, field=where, fix="Remove one.")
        seen.add(name.lower())
        found[name] = any_text(text, where)
        fault = header_fault(found[name])
        if fault:
            raise ConfigError(fault, field=where, fix="Remove it.")
    return found


def is_transports(name: str) -> bool:
    """Whether the transport owns a header: it is hop-by-hop, sets the framing (request smuggling), or is MCP's."""
    return name.lower() in _TRANSPORT_HEADERS or name.lower().startswith("mcp-param-")


def header_fault(value: str) -> str:
    """The reason why a text can't be a header's value, without showing it; empty if it can."""
    if "\r" in value or "\n" in value:
        return "has a line break, which would begin another header."
    if not _HEADER_VALUE.fullmatch(value):
        return "has a character that a header can't hold: only printable ASCII can be sent."
    return ""


def oauth(value: object, field: str) -> OAuth:
    """Check how to sign in: an object of a file, or an `OAuth`, which is checked and made anew.

    Raises:
        ConfigError: lists everything that is wrong with it.
    """
    if isinstance(value, OAuth):
        given = {key: getattr(value, attribute) for key, attribute in OAUTH_KEYS.items()}
        value = {key: each for key, each in given.items() if each is not None}
    checks = {"clientId": some_text, "clientSecret": some_text, "scopes": names, "redirectPort": _port}
    found = checked_members(value, field, checks, advice=_OAUTH_ADVICE)
    return OAuth(**{OAUTH_KEYS[key]: each for key, each in found.items()})


def _port(value: object, field: str) -> int:
    """Check a port, 1 to 65535; ConfigError otherwise. `8080.0` is accepted."""
    # 8080.0 is the same number in JSON.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        raise wrong(value, field, "a whole number from 1 to 65535")
    if not 1 <= value <= 65535:
        raise ConfigError("expected 1 to 65535.", field=field)
    return int(value)


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
    description: str
    """Shown by editors that read the JSON Schema."""
    transports: frozenset[str] = ANY


def _anything(value: object, _field: str) -> object:
    return value


FIELDS: tuple[Field, ...] = (
    Field("command", "command", values.some_text, "The program to start. Never expanded.", STDIO),
    Field("args", "args", values.texts, "Its arguments. Never expanded.", STDIO),
    Field("cwd", "cwd", values.working_directory, "Its working directory, relative to the file's or project's.", STDIO),
    Field("env", "env", values.environment, "Its variables; ${VAR} and ${env:VAR} are resolved at its start.", STDIO),
    Field("env_required", "envRequired", values.variables, "Variables that it gets from our environment.", STDIO),
    Field("inherit_env", "inheritEnv", values.flag, "Give it our whole environment.", STDIO),
    Field("unset_env", "unsetEnv", values.unset_env, "How a reference to an unset variable is resolved."),
    Field("url", "url", url, "Where the server is reached. Never expanded.", REMOTE),
    Field("headers", "headers", headers, "Sent with every request; ${VAR} and ${env:VAR} are resolved.", REMOTE),
    Field("oauth", "oauth", oauth, "How to sign in; fields left out are discovered.", REMOTE),
    Field("server", "", _anything, "", IN_PROCESS),
    Field("allow_tools", "allowTools", values.names, "Only these tools are exposed."),
    Field("deny_tools", "denyTools", values.denied_names, "These tools are not exposed."),
    Field("reading", "reading", values.reading, "How its schemas are read: as most likely intended, or to the letter."),
    Field("output_schemas", "outputSchemas", output_schemas, "Schemas of results by tool, or a file of them."),
    Field("labels", "labels", flow_rules.labels, 'What its tools touch, for "flows"; external:<tool> for one tool.'),
    Field("connect_timeout", "connectTimeout", values.seconds, "Seconds to connect and list its tools."),
    Field("call_timeout", "callTimeout", values.seconds, "Seconds for one call of a tool."),
    Field("display_name", "", values.any_text, ""),
    Field("description", "description", values.any_text, "For people."),
    Field("enabled", "enabled", values.flag, "Whether the server may be started."),
)

ATTRIBUTE_OF_KEY: Mapping[str, str] = MappingProxyType(
    {each.key: each.attribute for each in FIELDS if each.key}
    | {"transport": "transport", "type": "transport", "env_required": "env_required", "disabled": "enabled"}
)
"""Attribute of each key of a server in a file, aliases included."""

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
"""VS Code's own notes on a server."""

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
"""Keys of other tools, and what to write instead."""


def fields_of_entry(
    entry: Mapping[str, object],
    absolute: Callable[[str], str],
    problems: list[ConfigError],
    *,
    without_effect: Collection[str] = (),
) -> tuple[dict[str, object], dict[str, str]]:
    """Read a server's entry into values by attribute, and the key of each; the values are not checked yet.

    Resolves aliases, makes paths absolute, and reads a file of output schemas. Adds unknown keys, duplicates and the
    file's mistakes to `problems`; keys in `without_effect` are skipped.
    """
    values_given: dict[str, object] = {}
    keys: dict[str, str] = {}
    problems += unknown_keys((key for key in entry if key not in without_effect), ATTRIBUTE_OF_KEY, advice=ADVICE)
    for key, written in entry.items():
        attribute, value = ATTRIBUTE_OF_KEY.get(key, ""), written
        try:
            if attribute in keys:
                problem = f"means the same as {keys[attribute]!r}."
                raise ConfigError(problem, field=key, fix="Write just one of them.")
            if key == "disabled":
                value = not values.flag(value, key)
            elif attribute == "output_schemas":
                value = from_file(value, key, absolute)
            elif attribute == "cwd" and isinstance(value, str) and value.strip():
                value = absolute(value)
        except ConfigError as problem:
            problems.append(problem)
        else:
            if attribute:
                values_given[attribute], keys[attribute] = value, key
    return values_given, keys


# The checks of one server and of all servers together, the same for files and for code.


# A program, a package with extras or a version (`uvx toolbridge@1.2`), or a module (`python -m toolbridge.cli`).
_OURSELVES = re.compile(r"toolbridge(?i:\.exe|\.cmd)?(?:\[[^\]]*\])?(?:[=<>~!@].*|\.[\w.]+)?")
_LONGEST_COMMAND = 2_000
_FIELD = {each.attribute: each for each in FIELDS}
_DEFAULTS: dict[str, object] = {
    each.name: each.default if each.default_factory is MISSING else each.default_factory()
    for each in fields(ServerConfig)
}


def check_fields(
    given: Mapping[str, object], transport: str, label: Callable[[str], str], problems: list[ConfigError]
) -> dict[str, Any]:
    """Check the fields of a server, given by attribute, and return those that are valid.

    Adds everything that is wrong to `problems`, and raises nothing: a caller must look there. With both `command` and
    `url`, nothing is returned. `label` names a field in messages.
    """
    if "command" in given and "url" in given:
        fix = f"Remove {label('url')!r} for a process, or {label('command')!r} for a server that is reached by URL."
        both = f"has both {label('command')!r} and {label('url')!r}."
        problems.append(ConfigError(both, fix=fix))
        return {}  # which of the other fields belong to it is unknown
    if NEEDED_FIELD[transport] not in given:
        needed = label(NEEDED_FIELD[transport])
        problems.append(ConfigError(f"is missing; transport {transport!r} needs it.", field=needed))
    kept: dict[str, Any] = {}
    for attribute, value in given.items():
        each = _FIELD[attribute]
        if transport not in each.transports:
            problem = f"does not belong to transport {transport!r}, only to {listed(sorted(each.transports))}."
            problems.append(ConfigError(problem, field=label(attribute), fix="Remove it."))
            continue
        try:
            kept[attribute] = each.check(value, label(attribute))
        except ConfigError as problem:
            problems += problem.problems
    twice = set(kept.get("env", ())) & set(kept.get("env_required", ()))
    if twice:
        problem = f"{quoted(min(twice))} is also in {label('env')!r}."
        problems.append(ConfigError(problem, field=label("env_required"), fix="Write it in one of them."))
    return kept


def check_server(server: ServerConfig) -> None:
    """Check all fields of a server under construction, without its peers: the same rules for files and for code.

    Raises:
        ConfigError: lists everything that is wrong with it.
    """
    problems: list[ConfigError] = []
    try:
        if not isinstance(server.origin, Origin):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError("expected Origin(…).", field="origin")
        check_name(server.name, plugin=server.origin.kind == "plugin")
    except ConfigError as problem:
        problems.append(problem)
    try:
        transport = _transport(server.transport)
        check_fields(_given(server), transport, lambda attribute: attribute, problems)
        if server.oauth is not None and not isinstance(server.oauth, OAuth):  # pyright: ignore[reportUnnecessaryIsInstance]
            problems.append(ConfigError("expected OAuth(…).", field="oauth"))
    except ConfigError as problem:
        problems.append(problem)
    if problems:
        raise all_of(problems, server=server.name if isinstance(server.name, str) else None)  # pyright: ignore[reportUnnecessaryIsInstance]


def _transport(value: object) -> str:
    """Return a known transport; ConfigError for anything else."""
    if isinstance(value, str) and value in NEEDED_FIELD:
        return value
    found = quoted(value) if isinstance(value, str) else kind_of(value)
    raise ConfigError(f"expected {listed(NEEDED_FIELD)}, found {found}.", field="transport")


def _given(server: ServerConfig) -> dict[str, object]:
    """The fields of a server that differ from their defaults, by attribute."""
    given = {each.attribute: getattr(server, each.attribute) for each in FIELDS if each.attribute != "server"}
    given = {attribute: value for attribute, value in given.items() if value != _DEFAULTS[attribute]}
    return given if server.server is None else given | {"server": server.server}


def check_together(servers: Iterable[ServerConfig]) -> None:
    """Check that no two servers have the same Python module.

    Raises:
        ConfigError: at the first two of one name, or of names that differ only by `-` and `_`.
    """
    seen: dict[str, ServerConfig] = {}
    for server in servers:
        other = seen.get(twin_key(server.name))
        seen[twin_key(server.name)] = server
        if other is not None:
            file = server.origin.detail if server.origin.kind in ("project", "user") else None
            name = server.display_name or server.name
            raise ConfigError(_collision(other, server), file=file, server=name, fix="Rename one of them.")


def _collision(one: ServerConfig, other: ServerConfig) -> str:
    """Say how two servers collide: one name, names that map to one, or a difference by `-` and `_` only."""
    elsewhere = "" if one.origin == other.origin else f" of {shown_path(str(one.origin))}"
    first = quoted(one.display_name or one.name) + elsewhere
    if one.name != other.name:
        return f"differs from {first} only by '-' and '_'."
    if one.display_name != other.display_name:
        return f"becomes {other.name!r}, as does {first}."
    return f"has the name of another server{elsewhere}."


def starts_toolbridge(command: str, args: Iterable[str]) -> bool:
    """Whether the words of a command run `toolbridge serve`: by path, runner, interpreter or shell (T22)."""
    words: list[str] = []
    for word in (command, *args):
        try:
            # As in `sh -c "exec toolbridge serve"`.
            words += shlex.split(word) if " " in word and len(word) <= _LONGEST_COMMAND else [word]
        except ValueError:
            words.append(word)
    plain = [re.split(r"[/\\]", each)[-1][:_LONGEST_COMMAND] for each in words if not each.startswith("-")]
    return any(_OURSELVES.fullmatch(one) and other == "serve" for one, other in pairwise(plain))


def check_count(count: int, most: int) -> None:
    """Check the number of servers.

    Raises:
        ConfigError: there are more than `most`.
    """
    if count > most:
        fix = f'Remove some, or raise the limit: "limits": {{"servers": {count}}}.'
        raise ConfigError(f"{count} servers are configured; at most {most} may be.", field="limits.servers", fix=fix)
