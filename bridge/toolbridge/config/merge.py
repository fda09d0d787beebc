"""Several files into one configuration: by server name, the first file that has it wins.

Rules (permissions, flows, labels) and limits are not won: the stricter holds, see `config.policy`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from toolbridge.config.config import Config
from toolbridge.config.parse import ParsedFile
from toolbridge.config.permissions import Permissions
from toolbridge.config.plugin_policy import merged_plugins
from toolbridge.config.policy import Errors, merged_flows, strictest_unattended, without_effect
from toolbridge.config.profiles import optional_servers
from toolbridge.config.server_config import ServerConfig
from toolbridge.config.server_limits import ServerLimits
from toolbridge.config.validate import check_count, check_together
from toolbridge.config.wording import shown_path
from toolbridge.errors import ConfigError


def merge_files(files: Sequence[ParsedFile]) -> Config:
    """One configuration of all files, which are in the order of their precedence.

    Raises:
        ConfigError: two servers could be mistaken for each other, or there are too many.
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
                # A repository must not take the labels off a server by writing it again.
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
        # What the user allows was said of the user's own servers: not of a project's that took the name of one.
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
    """Add a file's limits to those of the files before it; yields what of those has no effect.

    All are caps, so the lower one is the stricter: a repository does not lift what the user has set.
    """
    for name, value in file.limits.items():
        before = limits.setdefault(name, value)
        if value < before:
            limits[name] = value
            yield f"{shown_path(file.path)}: its lower limit for {name!r} holds, not that of a file before it."
