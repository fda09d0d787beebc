"""`load_config`: from the files of a project and of a user to one frozen configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import NoneType
from typing import Any, TypeAlias

from toolbridge.config.config import Config
from toolbridge.config.fields import check_count, check_together
from toolbridge.config.parse import ParsedFile, parse_file
from toolbridge.config.policy import (
    Errors,
    Permissions,
    merged_flows,
    merged_plugins,
    strictest_unattended,
    without_effect,
)
from toolbridge.config.profiles import optional_servers
from toolbridge.config.read_file import Candidate, home_directory, locate, read_object
from toolbridge.config.server_config import ServerConfig, ServerLimits
from toolbridge.config.values import shown_path
from toolbridge.errors import ConfigError, MisuseError

# Several files into one configuration: by server name, the first file that has it wins.
#
# Rules (permissions, flows, labels) and limits are not won: the stricter holds, see `config.policy`.


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


ConfigSource: TypeAlias = Config | str | os.PathLike[str] | None
"""A configuration made in code, the path of its file, or None to look for one."""


def load_config(
    file: str | os.PathLike[str] | None = None,
    *,
    directory: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read the configuration: of `file` alone, or of the project in `directory` and of the user.

    Nothing is started, reached or looked up: references stay references. Without any file, there are no servers.
    If any of the files has `"gateway": false`, that is all that is read of them.

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
    """Gives the same configuration at every call, as it is then: of a file, what it says then.

    The current directory may change in between. A Config is taken as it is.

    Raises:
        ConfigError: the current directory is gone.
        MisuseError: it is something else.
    """
    if isinstance(source, Config):
        return lambda: source
    if not isinstance(source, (str, os.PathLike, NoneType)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise MisuseError("config", source, "a Config, the path of a file, or None to look for one")
    return partial(load_config, source, directory=_current())


def _documents(used: list[Candidate]) -> list[tuple[Candidate, dict[str, object] | ConfigError]]:
    """Every file as JSON, or what is wrong with it: one that is broken must not keep another's switch from working."""
    documents: list[tuple[Candidate, dict[str, object] | ConfigError]] = []
    for candidate in used:
        try:
            documents.append((candidate, read_object(candidate.path)))
        except ConfigError as problem:
            documents.append((candidate, problem))
    return documents


def _current() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise ConfigError("the current directory is gone.", fix="Change to one that exists.") from None
