"""SECURITY: merges the servers of all sources, in order of precedence: task, configuration, sections, plugins (T25).

Of two servers of one name, the one of the higher source is kept. Each server has a reason, and each that is left out
an event with the reason.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from toolbridge.config.config import Config
from toolbridge.config.fields import check_count
from toolbridge.config.references import without_literals
from toolbridge.config.secret_values import masked_arguments
from toolbridge.config.server_config import ServerConfig
from toolbridge.config.values import twin_key
from toolbridge.errors import ConfigError, MisuseError, UnknownServerError
from toolbridge.events import ServerCollided, ServerIgnored, ServerRegistered, SourceEvent
from toolbridge.sources.plugins import Plugin, ProvidedServer, checked_items, provided_servers
from toolbridge.sources.sections import RenderedPrompt

# ── tasks: select servers by name, capability, or keywords of a description (whole words, linear time) ───────────────

MOST_CHARACTERS = 100_000
"""Of a description that keywords are searched in."""
_WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Task:
    """A description of work to do, and the servers and capabilities for it.

    Raises:
        MisuseError: a field is of the wrong type.
    """

    description: str = ""
    servers: Iterable[ServerConfig | str] = ()
    """Servers that the task brings, and names of other ones."""
    capabilities: Iterable[str] = ()
    outer: Task | None = None
    """The enclosing task, whose servers are there, too."""

    def __post_init__(self) -> None:
        """Check all fields and copy iterables into tuples; MisuseError at the first of the wrong type."""
        if not isinstance(self.description, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise MisuseError("description", self.description, "text")
        servers = checked_items("servers", self.servers, (str, ServerConfig), "a ServerConfig or a name")
        object.__setattr__(self, "servers", servers)
        object.__setattr__(self, "capabilities", checked_items("capabilities", self.capabilities, (str,), "a text"))

    @property
    def may_want_plugins(self) -> bool:
        """Whether it or an enclosing task has anything that could select a server of a plugin."""
        return any(
            part.description or part.capabilities or any(isinstance(each, str) for each in part.servers)
            for part in self.chain()
        )

    def chain(self) -> Iterator[Task]:
        """Yield the task and its enclosing tasks, innermost first."""
        task: Task | None = self
        while task is not None:
            yield task
            task = task.outer


def reason_for(task: Task, server: ProvidedServer, configured: Collection[str] = ()) -> str:
    """The reason why a task or one around it selects a plugin's server; empty if none does.

    A short name that is `configured` means that server, not the plugin's.
    """
    names = {server.config.name, server.name} - ({server.name} & set(configured))
    return next(filter(None, (_reason(each, server, names) for each in task.chain())), "")


def _reason(task: Task, server: ProvidedServer, names: Collection[str]) -> str:
    """The reason why this task alone selects the server, by name, capability or keyword; empty if it does not."""
    if named := next((each for each in task.servers if isinstance(each, str) and each in names), None):
        return f"the task asks for {named!r}"
    wanted = {_folded(each) for each in task.capabilities}
    if capability := next((each for each in server.capabilities if _folded(each) in wanted), None):
        return f"the task asks for the capability {capability!r}"
    text = task.description[:MOST_CHARACTERS]
    if keyword := next((each for each in server.keywords if has_words(text, each)), None):
        return f"the task mentions {keyword!r}"
    return ""


def unmet(task: Task, servers: Iterable[ProvidedServer]) -> tuple[str, ...]:
    """Capabilities of the task and those around it that no server has, without regard to case."""
    known = {_folded(capability) for server in servers for capability in server.capabilities}
    wanted = dict.fromkeys(each for part in task.chain() for each in part.capabilities)
    return tuple(each for each in wanted if _folded(each) not in known)


def missing_names(task: Task, configured: Iterable[str], provided: Iterable[ProvidedServer]) -> tuple[str, ...]:
    """Names in the task and those around it that no server has, neither in full nor short."""
    known = known_names(configured, provided)
    named = (each for part in task.chain() for each in part.servers if isinstance(each, str))
    return tuple(each for each in dict.fromkeys(named) if each not in known)


def ambiguous_names(
    task: Task, configured: Iterable[str], provided: Iterable[ProvidedServer]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each short name in the task that several plugins have a server of, and those servers' full names."""
    provided = tuple(provided)
    whole = {*configured, *(each.config.name for each in provided)}
    for name in dict.fromkeys(each for part in task.chain() for each in part.servers if isinstance(each, str)):
        meant = tuple(sorted(each.config.name for each in provided if each.name == name))
        if name not in whole and len(meant) > 1:
            yield name, meant


def known_names(configured: Iterable[str], provided: Iterable[ProvidedServer]) -> tuple[str, ...]:
    """Names that a task may use: configured servers, and servers of plugins by full or short name."""
    return tuple(sorted({*configured, *(name for each in provided for name in (each.config.name, each.name))}))


def has_words(text: str, words: str) -> bool:
    """Whether a text has these words and punctuation marks in a row; never matches within a longer word.

    Case, white space and Unicode form don't count; no words match nothing.
    """
    wanted = _apart(words)
    return wanted != " " and wanted in _apart(text)


@lru_cache(maxsize=128)
def _apart(text: str) -> str:
    """The text with spaces around every word and punctuation mark, so that a plain search finds whole words only."""
    return f" {' '.join(_WORD_OR_SIGN.findall(_folded(text)))} ".replace("  ", " ")


def _folded(text: str) -> str:
    """The text normalised: NFKC, case folded, white space collapsed."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


# ── merging ───────────────────────────────────────────────────────────────────────────────────────────────────────

# SECURITY: a merged configuration to print: references are kept, literal values redacted (T35).


MASK = "***"


def shown_config(config: Config) -> dict[str, Any]:
    """The configuration as a file would have it, `{"mcpServers": …}`, with literal values redacted.

    Servers only, without limits and rules.
    """
    return {"mcpServers": {name: _shown(server) for name, server in sorted(config.servers.items())}}


def _shown(server: ServerConfig) -> dict[str, Any]:
    """One server as its entry in a file, with secrets redacted; fields at their defaults are left out."""
    shown: dict[str, Any] = {"transport": server.transport}
    if server.command is not None:
        shown |= {"command": server.command, "args": list(masked_arguments(server.args))}
    if server.cwd is not None:
        shown["cwd"] = server.cwd
    if server.url is not None:
        shown["url"] = re.sub(r"(?<=\?).*", MASK, server.url)  # a query may hold a key
    for key, values in (("env", server.env), ("headers", server.headers)):
        if values:
            # Text around a reference may be a secret: `Bearer ${TOKEN}` becomes `***${TOKEN}`.
            shown[key] = {name: without_literals(value, MASK) for name, value in values.items()}
    optional: dict[str, Any] = {
        "envRequired": list(server.env_required),
        "inheritEnv": server.inherit_env,
        "allowTools": None if server.allow_tools is None else list(server.allow_tools),
        "denyTools": list(server.deny_tools),
        "outputSchemas": dict(server.output_schemas),
        "reading": "" if server.reading == "intended" else server.reading,
        "labels": list(server.labels),
        "callTimeout": server.call_timeout,
        "connectTimeout": server.connect_timeout,
        "description": server.description,
    }
    shown |= {key: value for key, value in optional.items() if value not in (None, [], {}, False, "")}
    if server.allow_tools == ():
        shown["allowTools"] = []
    if not server.enabled:
        shown["enabled"] = False
    return shown


@dataclass(frozen=True, slots=True)
class Merged:
    """The servers of all sources."""

    config: Config
    reasons: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """By server: the reason why it is there."""
    sources: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """By server: its origin as in events: `user (…)`, `task`, `section (…)`, `plugin (…)`."""
    events: tuple[SourceEvent, ...] = ()
    """One for each server that was left out."""

    def registered(self, server: str) -> ServerRegistered:
        """The event for a server in the configuration; KeyError for another one."""
        return ServerRegistered(server, self.sources[server], self.reasons[server])


def merge_sources(
    config: Config,
    *,
    prompt: RenderedPrompt | None = None,
    task: Task | None = None,
    plugins: Iterable[Plugin] = (),
    revoked: Collection[str] = (),
    must_have_names: bool = True,
) -> Merged:
    """Merge the servers of a configuration, a prompt, a task and plugins into one configuration.

    Starts nothing. Of one name, a task's own server wins, then a configured one, a prompt's, a plugin's. Revoked
    servers are left out, whatever their source. `must_have_names=False` tolerates a name in the task that no server
    has any more, because the configuration changed meanwhile. With the gateway off, nothing is merged.

    Raises:
        ConfigError: there are too many servers, not counting those of plugins, or a name in the task is ambiguous.
        UnknownServerError: the task names a server that no source has.
    """
    if not config.gateway:
        return Merged(config)
    plugins = tuple(plugins)
    merging = _Merge(config, revoked)
    if task is not None:
        provided = provided_servers(plugins)
        for name in missing_names(task, config.servers, provided):
            if must_have_names:
                raise UnknownServerError(name, known_names(config.servers, provided))
            merging.ignore(name, "task", "no server has this name any more")
        for name, meant in ambiguous_names(task, config.servers, provided):
            could = f"{name!r} could mean {' or '.join(meant)}"
            raise ConfigError(f"the task asks for a server that is not the only one: {could}.", fix="Name one in full.")
        merging.add_brought(task)
    for server in config.servers.values():
        merging.add(server, _configured(config, server, task), str(server.origin))
    if prompt is not None:
        merging.events += prompt.collisions
        for server in prompt.mcps:
            section = prompt.sections[server.name]
            merging.add(server, f"the section {section!r} declares it", f"section ({section})")
    if len(merging.servers) > len(config.servers):
        check_count(len(merging.servers), config.limits.servers)
    for plugin in plugins:
        merging.add_plugin(plugin, task or Task())
    if task is not None:
        for capability in unmet(task, provided_servers(plugins)):
            merging.ignore(capability, "task", "no plugin's server has this capability")
    return merging.merged()


class _Merge:
    """A merge in progress; sources are added in order of precedence."""

    def __init__(self, config: Config, revoked: Collection[str]) -> None:
        self._config = config
        self._revoked = frozenset(map(twin_key, revoked))
        self.servers: dict[str, ServerConfig] = {}
        self._reasons: dict[str, str] = {}
        self._sources: dict[str, str] = {}
        self._twins: dict[str, str] = {}
        self._replaced: set[str] = set()
        self.events: list[SourceEvent] = []

    def add(self, server: ServerConfig, reason: str, source: str) -> None:
        """Add a server; a revoked one, and another one of the same name, become events instead.

        Of one name, the first stays, with the labels of both; an identical one is ignored. Never raises for a
        collision.
        """
        if twin_key(server.name) in self._revoked:
            self.ignore(server.name, source, "it was revoked")
            return
        name = self._twins.setdefault(twin_key(server.name), server.name)
        kept = self.servers.get(name)
        if kept is None:
            self.servers[name], self._reasons[name], self._sources[name] = server, reason, source
            return
        if kept == server:
            return
        if server.name == name:
            # As between two files: a name that is taken over keeps its labels, and loses its `allow` rules.
            labels = tuple(dict.fromkeys([*kept.labels, *server.labels]))
            self.servers[name] = replace(kept, labels=labels)
            if kept.origin != server.origin:
                self._replaced.add(name)
        self.events.append(ServerCollided(server.name, source, self._sources[name]))

    def add_brought(self, task: Task) -> None:
        """Add the servers that a task and its enclosing tasks bring, innermost first; collisions become events."""
        for part in task.chain():
            whose = "task" if part is task else "outer task"
            for server in part.servers:
                if isinstance(server, ServerConfig):
                    self.add(server, f"the {whose} brings it", whose)

    def add_plugin(self, plugin: Plugin, task: Task) -> None:
        """Add the servers of a plugin that the task selects; refusals, problems and a full house become events."""
        origin = f"plugin ({plugin.name})"
        if plugin.refusal:
            self.ignore(plugin.name, origin, plugin.refusal)
        for name, problem in plugin.problems:
            self.ignore(name, origin, problem)
        for server in plugin.servers:
            reason = reason_for(task, server, self._config.servers)
            if not reason:
                continue
            if len(self.servers) >= self._config.limits.servers:
                most = f"there are {self._config.limits.servers} servers already ('limits.servers')"
                self.ignore(server.config.name, origin, most)
            else:
                self.add(server.config, reason, origin)

    def ignore(self, name: str, origin: str, reason: str) -> None:
        """Record an event for a name that is left out."""
        self.events.append(ServerIgnored(name, origin, reason))

    def merged(self) -> Merged:
        """The result, without repeated events; its configuration is the given one if nothing was added or changed."""
        config = self._config
        if self.servers != config.servers or self._replaced:
            excepted = config.permissions.allow_except | self._replaced
            permissions = replace(config.permissions, allow_except=frozenset(excepted))
            config = replace(config, servers=self.servers, permissions=permissions)
        reasons, sources = MappingProxyType(self._reasons), MappingProxyType(self._sources)
        return Merged(config, reasons, sources, tuple(dict.fromkeys(self.events)))


def _configured(config: Config, server: ServerConfig, task: Task | None) -> str:
    """The reason why a configured server is there: the task names it, a profile has it, or it is configured."""
    if task is not None and any(server.name in part.servers for part in task.chain()):
        return f"it is configured, and the task asks for {server.name!r}"
    if server.name in config.optional:
        profiles = [each.name for each in config.profiles if server.name in each.servers]
        chosen = [name for name in config.active_profiles if name in profiles]
        return f"the profile {chosen[-1]!r} has it" if chosen else "it is configured"
    return "it is configured"
