"""SECURITY: what a plugin provides, one dict per server, checked field by field: a bad one costs itself only (T25).

A plugin's server is called `<plugin>__<name>` and has the plugin as its origin: it needs an approval of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolbridge.config.names import SEPARATOR, twin_key
from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.config.validate import check_fields
from toolbridge.config.values import texts
from toolbridge.config.wording import all_of, kind_of, unknown_keys
from toolbridge.errors import ConfigError

FIELDS = ("name", "package", "command", "args", "env_required", "capabilities", "keywords")
MOST_SERVERS = 50
"""Of one plugin."""
MOST_WORDS = 100
"""Keywords, and capabilities, of one server."""
MOST_CHARACTERS = 200
"""Of a keyword or capability."""


@dataclass(frozen=True, slots=True)
class ProvidedServer:
    """A server of a plugin, and what attaches it to a task."""

    config: ServerConfig
    plugin: str
    name: str
    """What the plugin calls it; its configuration's name is `<plugin>__<name>`."""
    capabilities: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Provided:
    """What became of all that a plugin returned."""

    servers: tuple[ProvidedServer, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    """The name of a server, or of the plugin, and why it is not used."""


def read_provided(plugin: str, returned: object) -> Provided:
    """The servers in what a plugin's hook returned, and what is wrong with the others."""
    if returned is None:
        return Provided()
    if not isinstance(returned, (list, tuple)):
        return Provided(problems=((plugin, f"it returned {kind_of(returned)}, not a list of servers"),))
    entries = cast("list[object] | tuple[object, ...]", returned)
    servers: dict[str, ProvidedServer] = {}
    problems: list[tuple[str, str]] = []
    for number, entry in enumerate(entries[:MOST_SERVERS], 1):
        try:
            server = _server(plugin, entry)
            other = servers.setdefault(twin_key(server.name), server)
            if other is not server:
                differs = "" if other.name == server.name else ", which differs only by '-' and '_'"
                raise ConfigError(f"the plugin has another server {other.name!r}{differs}.")
        except ConfigError as problem:
            problems.append((_name_of(entry) or f"{plugin} #{number}", str(problem)))
    if len(entries) > MOST_SERVERS:
        first, left = entries[MOST_SERVERS], len(entries) - MOST_SERVERS
        text = (
            f"its plugin provides {len(entries):,} servers, and {MOST_SERVERS} may be: this and what follows, {left:,}"
        )
        problems.append((_name_of(first) or f"{plugin} #{MOST_SERVERS + 1}", f"{text} in all, are left out"))
    return Provided(tuple(servers.values()), tuple(problems))


def _server(plugin: str, entry: object) -> ProvidedServer:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"expected a dict, found {kind_of(entry)}.")
    given = cast("Mapping[Any, Any]", entry)
    problems = unknown_keys((str(key) for key in given), FIELDS)
    name = given.get("name")
    if not isinstance(name, str) or not name:
        problems.append(ConfigError("is missing: a server needs a name.", field="name"))
    elif SEPARATOR in name:
        problems.append(ConfigError(f"contains {SEPARATOR!r}, which separates a plugin from its server.", field="name"))
    words = {key: list(_words(given.get(key, ()), key, problems)) for key in ("capabilities", "keywords")}
    fields = check_fields(dict(_process(given, problems)), "stdio", lambda attribute: attribute, problems)
    if problems:
        raise all_of(problems)
    whole = f"{plugin}{SEPARATOR}{name}"
    config = ServerConfig(whole, "stdio", origin=Origin("plugin", plugin), **fields)
    return ProvidedServer(config, plugin, str(name), tuple(words["capabilities"]), tuple(words["keywords"]))


def _process(given: Mapping[Any, Any], problems: list[ConfigError]) -> Iterator[tuple[str, object]]:
    """What is started: `npx -y <package>`, unless the plugin says otherwise."""
    package = given.get("package", "")
    if not isinstance(package, str) or package.startswith("-") or any(map(str.isspace, package)):
        problems.append(ConfigError("expected the name of a package.", field="package"))
        package = ""
    if not package and "command" not in given and "args" not in given:
        problems.append(ConfigError("has neither 'package' nor 'command'.", fix='Write {"package": …}.'))
    yield "command", given.get("command", "npx")
    yield "args", given.get("args", ["-y", package] if package else [])
    if "env_required" in given:
        yield "env_required", given["env_required"]


def _words(value: object, field: str, problems: list[ConfigError]) -> Iterator[str]:
    try:
        found: tuple[str, ...] = texts(value, field)
    except ConfigError as problem:
        problems.append(problem)
        return
    if len(found) > MOST_WORDS or any(not word.strip() or len(word) > MOST_CHARACTERS for word in found):
        most = f"at most {MOST_WORDS}, each of 1 to {MOST_CHARACTERS} characters"
        problems.append(ConfigError(f"has empty, long, or too many entries: {most}.", field=field))
        return
    yield from dict.fromkeys(found)


def _name_of(entry: object) -> str:
    name = cast("Mapping[Any, Any]", entry).get("name") if isinstance(entry, Mapping) else None
    return name[:100] if isinstance(name, str) else ""
