"""SECURITY: profiles: named sets of servers, active only while the profile is chosen, with overrides (T25).

A file's profiles apply to servers of the same file only: a repository can't activate or change the user's servers.
Overrides can add labels but not remove them, and are part of the approved digest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from toolbridge.config.fields import FIELDS, check_fields, fields_of_entry
from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.config.values import name_for, names, pairs, quoted, shown_path, unknown_keys, wrong
from toolbridge.errors import ConfigError, MisuseError

if TYPE_CHECKING:
    from toolbridge.config.config import Config

MOST_PROFILES = 100
NO_PROFILE = "default"
_KEYS = ("servers", "mcpServers", "overrides", "description")
PROFILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_KEY = {each.attribute: each.key for each in FIELDS}
_MERGED = ("env", "headers")
"""Overridden member by member; other fields as a whole."""


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """One profile of one file."""

    name: str
    servers: tuple[str, ...]
    """In the order of the file."""
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))
    """By server: the overridden fields, by attribute."""
    origin: Origin = field(default_factory=Origin)
    description: str = ""

    def __repr__(self) -> str:
        """Without overrides: a value may be a secret."""
        return f"Profile({self.name!r}, {list(self.servers)!r}, overrides={sorted(self.overrides)!r})"


def parse_profiles(
    value: object,
    servers: Sequence[ServerConfig],
    origin: Origin,
    problems: list[ConfigError],
    warnings: list[str],
    *,
    absolute: Callable[[str], str],
) -> tuple[Profile, ...]:
    """Parse a file's `profiles`; adds to `problems` and `warnings`, raises nothing. `absolute` resolves its paths."""
    try:
        given = pairs(value, "profiles")
        if len(given) > MOST_PROFILES:
            raise ConfigError(f"{len(given)} profiles are more than {MOST_PROFILES}.", field="profiles")
    except ConfigError as problem:
        problems.append(problem)
        return ()
    file = _File({server.name: server for server in servers}, origin, problems, warnings, absolute)
    return tuple(_profile(name, entry, file) for name, entry in given.items())


@dataclass(frozen=True, slots=True)
class _File:
    """The file around a profile: its servers, and the lists that collect problems and warnings."""

    own: Mapping[str, ServerConfig]
    origin: Origin
    problems: list[ConfigError]
    warnings: list[str]
    absolute: Callable[[str], str]


def _profile(name: str, entry: object, file: _File) -> Profile:
    """Parse one profile; adds to the file's problems and warnings, and keeps only servers of the same file."""
    problems, warnings = file.problems, file.warnings
    where = f"profiles.{name[:60]}"
    if not PROFILE_NAME.fullmatch(name) or name == NO_PROFILE:
        fix = 'A name is 1 to 64 letters, digits, "-", "_" and ".", and not "default", which stands for no profile.'
        problems.append(ConfigError(f"{quoted(name)} can't be the name of a profile.", field="profiles", fix=fix))
    try:
        given = pairs(entry, where)
    except ConfigError as problem:
        problems.append(problem)
        return Profile(name, (), origin=file.origin)
    problems += unknown_keys(given, _KEYS, within=f"{where}.")
    if "servers" in given and "mcpServers" in given:
        both = ConfigError("means the same as 'servers'.", field=f"{where}.mcpServers", fix="Write just one of them.")
        problems.append(both)
    key = "mcpServers" if "mcpServers" in given else "servers"
    overrides: dict[str, Mapping[str, Any]] = {}
    listed: tuple[str, ...] = ()
    try:
        listed = tuple(dict.fromkeys(map(_mapped, names(given.get(key, []), f"{where}.{key}"))))
        changes = pairs(given.get("overrides", {}), f"{where}.overrides")
        for written, change in changes.items():
            server = file.own.get(_mapped(written))
            if server is not None:
                overrides[server.name] = _override(change, server, f"{where}.overrides.{written[:60]}", file)
            else:
                warnings.append(f"profile {name!r} overrides {quoted(written)}, which is no server of this file.")
    except ConfigError as problem:
        problems += problem.problems
    unknown = [each for each in listed if each not in file.own]
    warnings += [f"profile {name!r} names {quoted(each)}, which is no server of this file." for each in unknown]
    kept = tuple(dict.fromkeys([*(each for each in listed if each in file.own), *overrides]))
    if not kept:
        warnings.append(f"profile {name!r} names no server.")
    description = given.get("description", "")
    if not isinstance(description, str):
        problems.append(wrong(description, f"{where}.description", "text"))
    return Profile(name, kept, MappingProxyType(overrides), file.origin, str(description))


def _override(change: object, server: ServerConfig, where: str, file: _File) -> Mapping[str, Any]:
    """Check the overridden fields of a server like those of its entry, and return them by attribute.

    Adds mistakes to the problems of the file.

    Raises:
        ConfigError: it is no object.
    """
    given = pairs(change, where)
    mistakes: list[ConfigError] = []
    fields, keys = fields_of_entry(given, file.absolute, mistakes)
    if "transport" in fields:
        fix = "Write a second server, and name that."
        mistakes.append(ConfigError("can't be overridden.", field=keys["transport"], fix=fix))
        del fields["transport"]
    needed = {"command": server.command, "url": server.url}
    whole = {**{each: value for each, value in needed.items() if value is not None}, **fields}
    checked = check_fields(whole, server.transport, lambda name: keys.get(name, _KEY.get(name, name)), mistakes)
    for each in mistakes:
        place = where if each.field is None else f"{where}.{each.field}"
        file.problems.append(ConfigError(each.problem, field=place, fix=each.fix))
    return MappingProxyType({attribute: checked[attribute] for attribute in fields if attribute in checked})


def _mapped(written: str) -> str:
    """The mapped name of a server; an invalid name is returned unchanged and matches none."""
    try:
        return name_for(written)
    except ConfigError:
        return written


def profile_names(given: object) -> tuple[str, ...]:
    """Check an iterable of names of profiles; removes duplicates, and `default`, which stands for no profile.

    Whether they exist is not checked.

    Raises:
        MisuseError: it is a text, no iterable, or an item is no text.
    """
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise MisuseError("profiles", given, "a list of names")
    names = tuple(cast("Iterable[object]", given))
    for number, name in enumerate(names):
        if not isinstance(name, str):
            raise MisuseError(f"profiles[{number}]", name, "the name of a profile")
    return tuple(dict.fromkeys(name for name in cast("tuple[str, ...]", names) if name != NO_PROFILE))


def with_profiles(config: Config, chosen: Iterable[str]) -> Config:
    """A copy of the configuration in which just these profiles are active: their servers are added, overrides applied.

    Servers of other profiles are inactive, also if they were active before; later profiles override earlier ones.

    Raises:
        ConfigError: there is no such profile, a server is invalid with its overrides, or there are too many servers.
        MisuseError: it is no list of names.
    """
    wanted = profile_names(chosen)
    known = {profile.name for profile in config.profiles}
    for name in wanted:
        if name not in known:
            there = f"Known profiles: {', '.join(sorted(known))}." if known else "The configuration has no profiles."
            raise ConfigError(f"there is no profile {quoted(name)}.", fix=there)
    servers = {name: server for name, server in config.servers.items() if name not in config.optional}
    # A project's file comes first in `files`; of one name, each file's profile speaks of its own servers.
    for profile in (each for name in wanted for each in config.profiles if each.name == name):
        for name in profile.servers:
            base = servers.get(name) or config.optional.get(name)
            if base is None or base.origin != profile.origin:
                continue  # a project's file has another server of this name, with a warning
            servers[name] = _overridden(base, profile)
    return replace(config, servers=servers, active_profiles=wanted)


def _overridden(server: ServerConfig, profile: Profile) -> ServerConfig:
    """Apply a profile's overrides to a server: labels are added, `env` and `headers` merged, the rest replaced.

    Raises:
        ConfigError: the result is invalid; names the profile and its file.
    """
    changes = dict(profile.overrides.get(server.name, {}))
    for each in _MERGED:
        if each in changes:
            changes[each] = {**getattr(server, each), **changes[each]}
    if "labels" in changes:
        changes["labels"] = tuple(dict.fromkeys([*server.labels, *changes["labels"]]))
    if not changes:
        return server
    try:
        return replace(server, **cast("Any", changes))
    except ConfigError as problem:
        where = shown_path(profile.origin.detail)
        raise ConfigError(f"profile {profile.name!r} of {where}: {problem}") from None


def optional_servers(servers: Mapping[str, ServerConfig], profiles: Iterable[Profile]) -> dict[str, ServerConfig]:
    """The servers that a profile of their own file names: inactive unless it is chosen."""
    named = {(profile.origin, name) for profile in profiles for name in profile.servers}
    return {name: server for name, server in servers.items() if (server.origin, name) in named}
