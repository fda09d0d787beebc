"""SECURITY: entries of other clients' files, as entries of ours (T35).

Values of variables and headers stay behind: in their place comes a reference, and the person is told which variables
to set. A file that may land in a repository is no place for a key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolbridge.cli.known_clients import ClientFile

_REFERENCE = re.compile(r"\$\{(?:env:)?[A-Za-z_][A-Za-z0-9_]*\}")
_BARE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_INPUT = re.compile(r"\$\{input:([^}]+)\}")
_UNFIT = re.compile(r"[^A-Za-z0-9]+")
# What is no secret whatever it is called: switches, small numbers, levels of logs.
_PLAIN_VALUE = re.compile(r"(?i)true|false|yes|no|on|off|\d{1,5}|debug|info|warn|warning|error|production|development")
_TELLING_NAME = re.compile(r"(?i)key|token|secret|pass|auth|cred|pin|pwd")
_SCHEMES = re.compile(r"(?i)(bearer|basic|token) ")


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server that another client knows, in our words."""

    written: str
    """What it is called there."""
    source: ClientFile
    entry: Mapping[str, Any]
    variables: tuple[str, ...] = ()
    """Variables that stand for values which were left behind."""
    left_out: tuple[str, ...] = ()
    """Settings that mean nothing here."""
    problem: str = ""
    """Why it can't be taken over."""


@dataclass(slots=True)
class _Notes:
    variables: list[str] = field(default_factory=list[str])
    left_out: list[str] = field(default_factory=list[str])


_DIRECT = ("command", "args", "cwd", "url", "description", "allowTools", "denyTools", "enabled", "disabled")
_RENAMED = {
    "serverUrl": "url",
    "httpUrl": "url",
    "includeTools": "allowTools",
    "excludeTools": "denyTools",
    "enabled_tools": "allowTools",
    "disabled_tools": "denyTools",
}
_VALUES = ("env", "environment", "env_vars", "headers", "http_headers", "env_http_headers", "bearer_token_env_var")
_OTHERWISE_TAKEN = (*_VALUES, "type", "transport", "source")


def converted(written: str, given: object, source: ClientFile, *, copy_values: bool = False) -> FoundServer:
    """One entry of another client's file."""
    if not isinstance(given, Mapping):
        return FoundServer(written, source, {}, problem="it is no object")
    theirs = dict(cast("Mapping[str, Any]", given))
    nested = _mapping(theirs.get("command"))
    if nested:  # as Zed used to write it
        theirs |= {**nested, "command": nested.get("path")}
        theirs.pop("path", None)
    words = _list(theirs.get("command"))
    if words:  # as some write it: all in one
        theirs["command"], theirs["args"] = words[0], [*words[1:], *_list(theirs.get("args"))]
    notes = _Notes()
    entry: dict[str, Any] = {}
    for key, value in theirs.items():
        name = _RENAMED.get(key, key)
        if name in _DIRECT:
            entry[name] = _placed(value, source)
        elif key not in _OTHERWISE_TAKEN:
            notes.left_out.append(key)
    _take_transport(entry, theirs)
    _take_values(entry, theirs, written, notes, copy_values=copy_values)
    if not entry.get("command") and not entry.get("url"):
        return FoundServer(written, source, entry, problem="it has neither a command nor a URL")
    return FoundServer(written, source, entry, tuple(dict.fromkeys(notes.variables)), tuple(notes.left_out))


def _take_transport(entry: dict[str, Any], theirs: Mapping[str, Any]) -> None:
    """Said only where it can't be guessed: a URL is HTTP unless its client says that it is the older SSE."""
    said = str(theirs.get("type") or theirs.get("transport") or "").lower()
    is_sse = said == "sse" or ("url" in theirs and "httpUrl" not in theirs and str(theirs["url"]).endswith("/sse"))
    if entry.get("url") and is_sse:
        entry["type"] = "sse"


def _take_values(
    entry: dict[str, Any], theirs: Mapping[str, Any], server: str, notes: _Notes, *, copy_values: bool
) -> None:
    env = {**_mapping(theirs.get("env")), **_mapping(theirs.get("environment"))}
    for name in _list(theirs.get("env_vars")):
        env[str(name)] = f"${{{name}}}"
    if env and entry.get("command"):
        entry["env"] = {name: _value(str(value), name, notes, copy_values=copy_values) for name, value in env.items()}
    headers = {**_mapping(theirs.get("headers")), **_mapping(theirs.get("http_headers"))}
    for name, variable in _mapping(theirs.get("env_http_headers")).items():
        headers[name] = f"${{{variable}}}"
    if theirs.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{theirs['bearer_token_env_var']}}}"
    if headers and entry.get("url"):
        entry["headers"] = {
            name: _header(str(value), f"{server}_{name}", notes, copy_values=copy_values)
            for name, value in headers.items()
        }


def _header(value: str, variable: str, notes: _Notes, *, copy_values: bool) -> str:
    scheme = _SCHEMES.match(value)
    if scheme is None:
        return _value(value, variable, notes, copy_values=copy_values)
    return scheme[0] + _value(value[scheme.end() :], variable, notes, copy_values=copy_values)


def _value(value: str, name: str, notes: _Notes, *, copy_values: bool) -> str:
    """A value as it may be written down: as it is if it is a reference or plainly no secret, else a reference."""
    value = _INPUT.sub(lambda match: f"${{{_variable(match[1])}}}", value)
    if _BARE.fullmatch(value):
        value = f"${{{value[1:]}}}"
    if _REFERENCE.fullmatch(value) or not value:
        notes.variables += [each.strip("${}").removeprefix("env:") for each in _REFERENCE.findall(value)]
        return value
    if copy_values or (_PLAIN_VALUE.fullmatch(value) and not _TELLING_NAME.search(name)):
        return value
    variable = _variable(name)
    notes.variables.append(variable)
    return f"${{{variable}}}"


def _variable(name: str) -> str:
    shaped = _UNFIT.sub("_", name).strip("_").upper()
    return shaped if shaped[:1].isalpha() else f"VALUE_{shaped}"


def _placed(value: Any, source: ClientFile) -> Any:
    """Without the variables of an editor that stand for directories."""
    if isinstance(value, str):
        place = source.project or os.path.expanduser("~")
        home = os.path.expanduser("~")
        return (
            value.replace("${workspaceFolder}", place).replace("${userHome}", home).replace("${pathSeparator}", os.sep)
        )
    return [_placed(each, source) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def _mapping(value: object) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return list(cast("list[Any]", value)) if isinstance(value, list) else []
