"""SECURITY: what of a server is kept and shown besides its digest: references and names, never values (T35).

Kept so that a later difference can be named. It decides nothing: the digest does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolbridge.config.secret_arguments import MASK, masked_arguments, masked_url
from toolbridge.config.server_config import ServerConfig
from toolbridge.trust.approver import ApprovalRequest

MOST_ARGUMENTS = 60
MOST_CHARACTERS = 300
"""Of one text that is kept: a file of approvals is no place for megabytes."""

_REFERENCE = re.compile(r"(?<!\$)\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")


def references(text: str) -> tuple[str, ...]:
    """The variables that a value refers to, in order."""
    return tuple(dict.fromkeys(_REFERENCE.findall(text)))


def masked_value(text: str) -> str:
    """A value of `env` or `headers`: its references where it is made of nothing else, else nothing of it."""
    names = references(text)
    bare = _REFERENCE.sub("", text) == ""
    return " ".join(f"${{{name}}}" for name in names) if names and bare else MASK


def approved_facts(request: ApprovalRequest) -> dict[str, object]:
    """What was approved, for people. Empty fields are left out."""
    server = request.server
    args = [_cut(argument) for argument in masked_arguments(server.args[:MOST_ARGUMENTS])]
    if len(server.args) > MOST_ARGUMENTS:
        args.append(f"… {len(server.args) - MOST_ARGUMENTS} more")
    facts: dict[str, object] = {
        "transport": server.transport,
        "command": _cut(server.command or ""),
        "program": _cut(request.executable or ""),
        "target": _cut(request.target or ""),
        "args": args,
        "directory": _cut(request.directory or ""),
        "env": _values(server.env),
        "envRequired": sorted(map(_cut, server.env_required))[:MOST_ARGUMENTS],
        "inheritEnv": server.inherit_env,
        "url": _cut(masked_url(server.url)) if server.url else "",
        "headers": _values(server.headers),
        "oauth": _sign_in(server),
    }
    return {name: value for name, value in facts.items() if value}


def differences(before: Mapping[str, object], now: Mapping[str, object]) -> tuple[str, ...]:
    """Which facts differ; a digest may differ where none does, by a value that is not kept."""
    changed = tuple(name for name in {**now, **before} if before.get(name) != now.get(name))
    return changed or ("a value that is not shown",)


def _values(values: Mapping[str, str]) -> dict[str, str]:
    return {_cut(name): _cut(masked_value(values[name])) for name in sorted(values)[:MOST_ARGUMENTS]}


def _sign_in(server: ServerConfig) -> dict[str, object]:
    if server.oauth is None:
        return {}
    scopes = [_cut(scope) for scope in sorted(server.oauth.scopes)[:MOST_ARGUMENTS]]
    return {"clientId": _cut(server.oauth.client_id or ""), "scopes": scopes}


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
