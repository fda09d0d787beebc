"""The frozen configuration that everything else starts from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType, NoneType
from typing import Any, cast

from toolbridge.config.policy import (
    DEFAULT_FLOWS,
    Errors,
    Level,
    Permissions,
    PluginPolicy,
    Unattended,
    check_errors,
    check_unattended,
    parse_flows,
)
from toolbridge.config.profiles import Profile
from toolbridge.config.server_config import ServerConfig, ServerLimits
from toolbridge.config.values import quoted
from toolbridge.errors import ConfigError, MisuseError, reports_misuse

# SECURITY: what an approval is bound to: everything that affects what runs, or is reached (T1, T24, T25).
#
# References are hashed as they are written: a new value of a token asks nobody again, another variable does. Tool
# filters, labels, timeouts and descriptions are left out: they change neither the process nor the place that is
# reached.


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


@reports_misuse
@dataclass(frozen=True, slots=True)
class Config:
    """Every configured server by name, and where they were read from."""

    servers: Mapping[str, ServerConfig] = field(default_factory=lambda: MappingProxyType({}))
    limits: ServerLimits = field(default_factory=ServerLimits)
    files: tuple[str, ...] = ()
    """The files that were read, in the order of their precedence."""
    warnings: tuple[str, ...] = ()
    permissions: Permissions = field(default_factory=Permissions)
    """The user's, or the host's."""
    project_permissions: Permissions = field(default_factory=Permissions)
    """A repository's: they only ever make a decision stricter."""
    flows: Mapping[str, Level] = field(default_factory=lambda: DEFAULT_FLOWS)
    """Levels by rule (T22): see `config.flow_rules`. A rule that is missing allows."""
    gateway: bool = True
    """False: all of MCP is switched off, there are no servers, and `files` is the one that says so."""
    errors: Errors = "raise"
    """How a tool's error reaches guest code: as an exception, or as `{ error }`."""
    strict_results: bool = False
    """Whether a result that breaks the tool's own output schema is an error."""
    unattended: Unattended = "allow"
    """Which calls are made where nobody can be asked: all that the rules allow, those of tools that only read, or none.
    What `permissions.allow` names is allowed there, too."""
    plugins: PluginPolicy = field(default_factory=PluginPolicy)
    """Which plugins may offer servers."""
    profiles: tuple[Profile, ...] = ()
    """Every profile of every file."""
    optional: Mapping[str, ServerConfig] = field(default_factory=lambda: MappingProxyType({}))
    """Servers that profiles name, as they are without one, and those that a command left out: there only if chosen.

    Those of `active_profiles` are among `servers`.
    """
    active_profiles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """See that the servers can be told apart and are not too many; each was checked when it was made.

        Raises:
            ConfigError: two could be mistaken for each other, one stands under another name, or there are too many.
            MisuseError: an argument is of the wrong type.
        """
        for name, kind in _KINDS.items():
            _check_type(name, getattr(self, name), kind, f"{kind.__name__}(…)")
        for name, kind in _ITEMS.items():
            _check_type(name, getattr(self, name), tuple, f"a tuple, each item a {kind.__name__}")
            for number, item in enumerate(getattr(self, name)):
                _check_type(f"{name}[{number}]", item, kind, f"a {kind.__name__}")
        servers: Mapping[str, ServerConfig] = self.servers if self.gateway else {}
        for field_name, given in (("servers", servers), ("optional", self.optional)):
            _check_servers(field_name, given)
            object.__setattr__(self, field_name, MappingProxyType(dict(given)))
        from toolbridge.config.fields import check_count, check_together

        check_together(servers.values())
        check_count(len(servers), self.limits.servers)
        object.__setattr__(self, "flows", MappingProxyType(parse_flows(self.flows)))
        check_errors(self.errors)
        check_unattended(self.unattended)

    def __deepcopy__(self, memo: dict[int, Any]) -> Config:
        """A copy with its own servers; the rest is immutable."""
        servers, optional = deepcopy((dict(self.servers), dict(self.optional)), memo)
        return replace(self, servers=servers, optional=optional)

    @staticmethod
    @reports_misuse
    def of(
        *servers: ServerConfig,
        limits: ServerLimits | None = None,
        permissions: Permissions | None = None,
        flows: Mapping[str, Level] | None = None,
        errors: Errors = "raise",
        strict_results: bool = False,
        unattended: Unattended = "allow",
        plugins: PluginPolicy | None = None,
    ) -> Config:
        """A configuration made in code, checked like one from a file.

        Raises:
            ConfigError: a server can't be used as it is, two could be mistaken for each other, or there are too many.
            MisuseError: an argument is of the wrong type.
        """
        from toolbridge.config.fields import check_together

        for number, server in enumerate(servers):
            _check_type(f"servers[{number}]", server, ServerConfig, "a ServerConfig")
        _check_type("limits", limits, (ServerLimits, NoneType), "ServerLimits(…)")
        _check_type("permissions", permissions, (Permissions, NoneType), "Permissions(…)")
        _check_type("plugins", plugins, (PluginPolicy, NoneType), "PluginPolicy(…)")
        check_together(servers)  # two of one name would be one below
        return Config(
            {server.name: server for server in servers},
            limits if limits is not None else ServerLimits(),
            permissions=permissions if permissions is not None else Permissions(),
            flows={**DEFAULT_FLOWS, **parse_flows(flows or {})},
            errors=errors,
            strict_results=strict_results,
            unattended=unattended,
            plugins=plugins if plugins is not None else PluginPolicy(),
        )


_KINDS = {
    "limits": ServerLimits,
    "permissions": Permissions,
    "project_permissions": Permissions,
    "plugins": PluginPolicy,
}


_ITEMS = {"files": str, "warnings": str, "profiles": Profile, "active_profiles": str}


def _check_servers(field_name: str, given: object) -> None:
    _check_type(field_name, given, Mapping, "servers by name")
    for name, server in cast("Mapping[object, object]", given).items():
        _check_type(f"{field_name}[{name!r}]", server, ServerConfig, "a ServerConfig")
        if isinstance(server, ServerConfig) and name != server.name:
            raise ConfigError(f"stands under another name, {quoted(str(name))}.", server=server.name, field=field_name)


def _check_type(name: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    if not isinstance(value, kinds):
        raise MisuseError(name, value, expected)
