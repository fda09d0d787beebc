"""The frozen configuration that everything else starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, NoneType
from typing import cast

from toolbridge.config.flow_rules import DEFAULT_FLOWS, parse_flows
from toolbridge.config.permissions import Level, Permissions
from toolbridge.config.plugin_policy import PluginPolicy
from toolbridge.config.policy import Errors, Unattended, check_errors, check_unattended
from toolbridge.config.profiles import Profile
from toolbridge.config.server_config import ServerConfig
from toolbridge.config.server_limits import ServerLimits
from toolbridge.config.wording import quoted
from toolbridge.errors import ConfigError, MisuseError


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
        servers: Mapping[str, ServerConfig] = self.servers if self.gateway else {}
        for field_name, given in (("servers", servers), ("optional", self.optional)):
            _check_servers(field_name, given)
            object.__setattr__(self, field_name, MappingProxyType(dict(given)))
        from toolbridge.config.validate import check_count, check_together

        check_together(servers.values())
        check_count(len(servers), self.limits.servers)
        object.__setattr__(self, "flows", MappingProxyType(parse_flows(self.flows)))
        check_errors(self.errors)
        check_unattended(self.unattended)

    @staticmethod
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
        from toolbridge.config.validate import check_together

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
            flows={**DEFAULT_FLOWS, **(flows or {})},
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


def _check_servers(field_name: str, given: object) -> None:
    _check_type(field_name, given, Mapping, "servers by name")
    for name, server in cast("Mapping[object, object]", given).items():
        _check_type(f"{field_name}[{name!r}]", server, ServerConfig, "a ServerConfig")
        if isinstance(server, ServerConfig) and name != server.name:
            raise ConfigError(f"stands under another name, {quoted(str(name))}.", server=server.name, field=field_name)


def _check_type(name: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    if not isinstance(value, kinds):
        raise MisuseError(name, value, expected)
