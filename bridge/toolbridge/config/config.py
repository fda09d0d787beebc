"""The configuration: a frozen `Config`, loaded from files (`load_config`) or made in code; its digests."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import MappingProxyType, NoneType
from typing import Any, TypeAlias, cast

from toolbridge.config.fields import check_count, check_together
from toolbridge.config.parse import ParsedFile, parse_file
from toolbridge.config.policy import (
    DEFAULT_FLOWS,
    Errors,
    Level,
    Permissions,
    PluginPolicy,
    Unattended,
    check_errors,
    check_unattended,
    merged_flows,
    merged_plugins,
    parse_flows,
    strictest_unattended,
    without_effect,
)
from toolbridge.config.profiles import Profile, optional_servers
from toolbridge.config.read_file import Candidate, home_directory, locate, read_object
from toolbridge.config.server_config import ServerConfig, ServerLimits
from toolbridge.config.values import quoted, shown_path
from toolbridge.errors import ConfigError, MisuseError, reports_misuse

# SECURITY: the digest that an approval is bound to: everything that affects what runs, or is reached (T1, T24, T25).
#
# References are hashed as written: a new token needs no new approval, another variable does. Tool filters, labels,
# timeouts and descriptions are left out: they change neither the process nor the place that is reached.


def configuration_digest(
    server: ServerConfig, executable: str | None, directory: str | None = None, target: str | None = None
) -> str:
    """The digest (`sha256:…`) of a server as it would be started or reached.

    Args:
        server: its origin counts: the same entry in another repository is another server.
        executable: the absolute path of its command.
        directory: the working directory, where the server names none: `npx`, `python -m` and relative arguments run
            files of that directory.
        target: the file that a command within the project links to: a commit could point the link elsewhere.
    """
    facts = {**_facts(server), "cwd": directory or server.cwd, **({} if target is None else {"target": target})}
    return _digest({"purpose": "approval", "executable": executable, **facts})


def listing_key(server: ServerConfig) -> str:
    """The digest (`sha256:…`) by which a server's listing is cached; needs no look-up of the command."""
    return _digest({"purpose": "listing", **_facts(server)})


def _facts(server: ServerConfig) -> dict[str, object]:
    """The hashed facts of a server: what runs or is reached, references as written; no tool filters, no labels."""
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
"""Fields that an open connection does not depend on."""


def same_connection(one: ServerConfig, other: ServerConfig) -> bool:
    """Whether a connection opened under one configuration stays valid under the other; starts and closes nothing."""
    compared = (each.name for each in fields(ServerConfig) if each.name not in _WITHOUT_EFFECT)
    return all(getattr(one, name) == getattr(other, name) for name in compared)


def _kind_of_object(server: object) -> str | None:
    """The qualified name of the class of an in-process server, None without one: code can't be hashed."""
    if server is None:
        return None
    kind = type(server)
    return f"{kind.__module__}.{kind.__qualname__}"


def _digest(facts: dict[str, object]) -> str:
    """`sha256:` and the hash of the facts as canonical JSON: sorted keys, ASCII, no spaces."""
    # ASCII: a path that is not UTF-8 has lone surrogates, which can't be encoded otherwise.
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return f"sha256:{hashlib.sha256(canonical.encode('ascii')).hexdigest()}"


@reports_misuse
@dataclass(frozen=True, slots=True)
class Config:
    """All configured servers by name, limits and rules; immutable."""

    servers: Mapping[str, ServerConfig] = field(default_factory=lambda: MappingProxyType({}))
    limits: ServerLimits = field(default_factory=ServerLimits)
    files: tuple[str, ...] = ()
    """The files that were read, in order of precedence."""
    warnings: tuple[str, ...] = ()
    permissions: Permissions = field(default_factory=Permissions)
    """The user's, or the host's."""
    project_permissions: Permissions = field(default_factory=Permissions)
    """A repository's: they can only make a decision stricter."""
    flows: Mapping[str, Level] = field(default_factory=lambda: DEFAULT_FLOWS)
    """Levels by flow rule (T22): see `config.policy`. A missing rule allows."""
    gateway: bool = True
    """False: all of MCP is switched off, by the only file in `files`; there are no servers."""
    errors: Errors = "raise"
    """How a tool's error reaches guest code: as an exception, or as `{ error }`."""
    strict_results: bool = False
    """Whether a result that breaks the tool's output schema is an error."""
    unattended: Unattended = "allow"
    """Which calls are made without a person to ask: all that the rules allow, those of read-only tools, or none.
    Tools in `permissions.allow` are called in any case."""
    plugins: PluginPolicy = field(default_factory=PluginPolicy)
    """Which plugins may offer servers."""
    profiles: tuple[Profile, ...] = ()
    """Every profile of every file."""
    optional: Mapping[str, ServerConfig] = field(default_factory=lambda: MappingProxyType({}))
    """Servers of profiles, without overrides, and those that a command left out; active ones are in `servers`, too."""
    active_profiles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the servers together (each was checked at its own construction); empty `servers` if the gateway is off.

        Raises:
            ConfigError: names collide, a key differs from its server's name, too many servers, or an invalid rule.
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
        """A configuration made in code, checked like one from a file. `flows` are merged over the default rules.

        Raises:
            ConfigError: names of servers collide, there are too many, or a rule is invalid.
            MisuseError: an argument is of the wrong type.
        """
        for number, server in enumerate(servers):
            _check_type(f"servers[{number}]", server, ServerConfig, "a ServerConfig")
        _check_type("limits", limits, (ServerLimits, NoneType), "ServerLimits(…)")
        _check_type("permissions", permissions, (Permissions, NoneType), "Permissions(…)")
        _check_type("plugins", plugins, (PluginPolicy, NoneType), "PluginPolicy(…)")
        check_together(servers)  # two of one name would be one in the dict below
        return Config(
            {server.name: server for server in servers},
            limits or ServerLimits(),
            permissions=permissions or Permissions(),
            flows={**DEFAULT_FLOWS, **parse_flows(flows or {})},
            errors=errors,
            strict_results=strict_results,
            unattended=unattended,
            plugins=plugins or PluginPolicy(),
        )


_KINDS = {
    "limits": ServerLimits,
    "permissions": Permissions,
    "project_permissions": Permissions,
    "plugins": PluginPolicy,
}


_ITEMS = {"files": str, "warnings": str, "profiles": Profile, "active_profiles": str}


def _check_servers(field_name: str, given: object) -> None:
    """Check the type of a mapping of servers by name.

    Raises:
        ConfigError: a key differs from its server's name.
        MisuseError: it is no mapping, or a value is no ServerConfig.
    """
    _check_type(field_name, given, Mapping, "servers by name")
    for name, server in cast("Mapping[object, object]", given).items():
        _check_type(f"{field_name}[{name!r}]", server, ServerConfig, "a ServerConfig")
        if isinstance(server, ServerConfig) and name != server.name:
            raise ConfigError(
                f"has another name as its key, {quoted(str(name))}.", server=server.name, field=field_name
            )


def _check_type(name: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    if not isinstance(value, kinds):
        raise MisuseError(name, value, expected)


# Merging files: of two servers of one name, the first file wins; of two rules or limits, the stricter one.


def merge_files(files: Sequence[ParsedFile]) -> Config:
    """Merge parsed files, given in order of precedence, into one configuration.

    Of two servers of one name the first wins, with the labels of both and a warning; of two limits, the lower.

    Raises:
        ConfigError: names of servers collide, or there are too many servers.
    """
    servers: dict[str, ServerConfig] = {}
    limits: dict[str, Any] = {}
    errors: Errors | None = None
    hidden: set[str] = set()
    warnings: list[str] = []
    for file in files:
        warnings += file.warnings
        warnings += _limit(limits, file)
        errors = errors or file.policy.errors
        for server in file.servers:
            winner = servers.setdefault(server.name, server)
            if winner is not server:
                # A repository must not remove the labels of a server by redefining it.
                labels = tuple(dict.fromkeys([*winner.labels, *server.labels]))
                servers[server.name] = replace(winner, labels=labels)
                hidden.add(server.name)
                here, there = shown_path(file.path), shown_path(winner.origin.detail)
                warnings.append(f"{here}: server {server.name!r} is hidden by that of {there}.")
    paths = tuple(file.path for file in files)
    check_together(servers.values())
    merged = ServerLimits(**limits)
    try:
        check_count(len(servers), merged.servers)
    except ConfigError as problem:
        where = " and ".join(paths)
        raise ConfigError(problem.problem, file=where, field=problem.field, fix=problem.fix) from None
    own = [file.policy for file in files if not file.is_project]
    projects = [file.policy for file in files if file.is_project]
    flows = merged_flows(own, projects)
    for file in files:
        if file.is_project:
            warnings += [f"{shown_path(file.path)}: {each}" for each in without_effect(file.policy, flows)]
    profiles = tuple(profile for file in files for profile in file.profiles)
    optional = optional_servers(servers, profiles)
    return Config(
        {name: server for name, server in servers.items() if name not in optional},
        merged,
        paths,
        tuple(warnings),
        # The user allowed tools of the user's own servers, not of a project's server of the same name.
        permissions=replace(own[0].permissions, allow_except=frozenset(hidden)) if own else Permissions(),
        project_permissions=projects[0].permissions if projects else Permissions(),
        flows=flows,
        errors=errors or "raise",
        unattended=strictest_unattended(file.policy for file in files),
        strict_results=any(file.policy.strict_results for file in files),
        plugins=merged_plugins(file.policy.plugins for file in files),
        profiles=profiles,
        optional=optional,
    )


def _limit(limits: dict[str, Any], file: ParsedFile) -> Iterator[str]:
    """Merge a file's limits into `limits`, in place: the lower cap holds, so a repository lifts none.

    A generator: merges as it is consumed, and yields a warning for each cap that it lowers.
    """
    for name, value in file.limits.items():
        before = limits.setdefault(name, value)
        if value < before:
            limits[name] = value
            yield f"{shown_path(file.path)}: its lower limit for {name!r} holds, not that of a file before it."


ConfigSource: TypeAlias = Config | str | os.PathLike[str] | None
"""A configuration made in code, the path of a file, or None to search the standard places."""


def load_config(
    file: str | os.PathLike[str] | None = None,
    *,
    directory: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Load the configuration of `file` alone, or of the project in `directory` and of the user.

    Reads the files; starts and reaches nothing, and resolves no references. Without any file, there are no servers. If
    any file has `"gateway": false`, the rest is not parsed.

    Raises:
        ConfigError: a file can't be read or used; names the file, the server and the field.
    """
    environ = os.environ if environ is None else environ
    home = home_directory(environ)
    found = locate(file, directory=_current() if directory is None else directory, environ=environ)
    used = [candidate for candidate in found if candidate.used]
    documents = _documents(used)
    for candidate, document in documents:
        if isinstance(document, dict) and document.get("gateway") is False:
            return Config(gateway=False, files=(candidate.path,))
    parsed: list[ParsedFile] = []
    for candidate, document in documents:
        if isinstance(document, ConfigError):
            raise document
        parsed.append(parse_file(document, candidate, home))
    return merge_files(parsed)


def config_reader(source: ConfigSource) -> Callable[[], Config]:
    """Return a function that reads the files anew at each call, from the directory that is current now.

    Each call can raise ConfigError. For a `Config`, it returns that one.

    Raises:
        ConfigError: the current directory is gone.
        MisuseError: the source is of the wrong type.
    """
    if isinstance(source, Config):
        return lambda: source
    if not isinstance(source, (str, os.PathLike, NoneType)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise MisuseError("config", source, "a Config, the path of a file, or None to look for one")
    return partial(load_config, source, directory=_current())


def _documents(used: list[Candidate]) -> list[tuple[Candidate, dict[str, object] | ConfigError]]:
    """Read each file; its JSON object, or its error: a broken file must not disable another's `gateway` switch."""
    documents: list[tuple[Candidate, dict[str, object] | ConfigError]] = []
    for candidate in used:
        try:
            documents.append((candidate, read_object(candidate.path)))
        except ConfigError as problem:
            documents.append((candidate, problem))
    return documents


def _current() -> str:
    """The current directory. Raises ConfigError if it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        raise ConfigError("the current directory is gone.", fix="Change to one that exists.") from None
