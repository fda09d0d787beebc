"""SECURITY: what an approval is bound to: everything that affects what runs, or is reached (T1, T24, T25).

References are hashed as they are written: a new value of a token asks nobody again, another variable does.
Tool filters, labels, timeouts and descriptions are left out: they change neither the process nor the place that is
reached.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields

from toolbridge.config.server_config import ServerConfig


def configuration_digest(
    server: ServerConfig, executable: str | None, directory: str | None = None, target: str | None = None
) -> str:
    """`sha256:…` over what would be started or reached; `executable` is the absolute path of the command.

    The origin is part of it, kind and place: the same entry in another repository is another server. So is the
    `directory` that it would be started in, which is this program's where its configuration names none: `npx`,
    `python -m` and a relative argument all run what they find there. `target` is the file that a link leads to, where
    the command lies in the project: whoever changes the project could point it elsewhere.
    """
    facts = {**_facts(server), "cwd": directory or server.cwd, **({} if target is None else {"target": target})}
    return _digest({"purpose": "approval", "executable": executable, **facts})


def listing_key(server: ServerConfig) -> str:
    """`sha256:…` that a kept listing is found by, without looking for the command on this machine."""
    return _digest({"purpose": "listing", **_facts(server)})


def _facts(server: ServerConfig) -> dict[str, object]:
    oauth = server.oauth
    return {
        "version": 1,
        "name": server.name,
        "origin": [server.origin.kind, server.origin.detail],
        "transport": server.transport,
        "command": server.command,
        "args": list(server.args),
        "cwd": server.cwd,
        "env": dict(server.env),
        "envRequired": sorted(server.env_required),
        "inheritEnv": server.inherit_env,
        "unsetEnv": server.unset_env,
        "url": server.url,
        "headers": dict(server.headers),
        "oauth": oauth and [oauth.client_id, oauth.client_secret, sorted(oauth.scopes), oauth.redirect_port],
        "server": _kind_of_object(server.server),
    }


_WITHOUT_EFFECT = frozenset(
    {"allow_tools", "deny_tools", "labels", "output_schemas", "reading", "connect_timeout", "call_timeout"}
    | {"display_name", "description"}
)
"""Fields of what is shown, exposed or waited for: a connection that is open stays as it is."""


def same_connection(one: ServerConfig, other: ServerConfig) -> bool:
    """Whether a server that is connected by one configuration is so by the other as well."""
    compared = (each.name for each in fields(ServerConfig) if each.name not in _WITHOUT_EFFECT)
    return all(getattr(one, name) == getattr(other, name) for name in compared)


def _kind_of_object(server: object) -> str | None:
    """An object's code can't be hashed, and this program runs it anyway; its class at least is named."""
    if server is None:
        return None
    kind = type(server)
    return f"{kind.__module__}.{kind.__qualname__}"


def _digest(facts: dict[str, object]) -> str:
    # ASCII only: a path that is no UTF-8 has lone surrogates, which have no other encoding.
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return f"sha256:{hashlib.sha256(canonical.encode('ascii')).hexdigest()}"
