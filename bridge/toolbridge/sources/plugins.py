"""Plugins: installed packages that offer servers, by the entry-point group `toolbridge.plugins`.

Plugins are foreign code, so each is loaded on its own daemon thread with a timeout: one that raises, exits, hangs or
returns nonsense affects no other, and a hanging one is waited for once. A denied plugin is never imported. Loading a
plugin only lists its servers: each is started like any server, after its own approval.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pluggy

from toolbridge.config.fields import check_fields
from toolbridge.config.policy import PluginPolicy
from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.config.values import SEPARATOR, all_of, kind_of, name_for, texts, twin_key, unknown_keys
from toolbridge.errors import ConfigError, MisuseError
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


_Item = TypeVar("_Item")
_PROJECT = "toolbridge"
hookspec = pluggy.HookspecMarker(_PROJECT)
hookimpl = pluggy.HookimplMarker(_PROJECT)
"""Marks a plugin's method as its implementation of the hook `provide_mcp_servers`."""


class PluginHooks:
    """The hooks that a plugin can implement, each marked with `toolbridge.plugins.hookimpl`."""

    @hookspec
    def provide_mcp_servers(self) -> list[dict[str, Any]] | None:  # pyright: ignore[reportReturnType]
        """Servers to offer: dicts of name, package, command, args, env_required, capabilities, keywords.

        Called on a thread of its own; None offers none.
        """


def checked_items(
    name: str, given: object, kind: type[_Item] | tuple[type[_Item], ...], expected: str
) -> tuple[_Item, ...]:
    """Collect the items of an iterable that a host passes as the argument `name`; a dict gives its keys.

    `expected` names their type for the error.

    Raises:
        MisuseError: it is a text or no iterable, or an item is of another type.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise MisuseError(name, given, f"a list, each item {expected}")
    items = tuple(cast("Iterable[object]", given))
    for number, item in enumerate(items):
        if not isinstance(item, kind):
            raise MisuseError(f"{name}[{number}]", item, expected)
    return cast("tuple[_Item, ...]", items)


# SECURITY: the servers that a plugin returns, one dict each, checked field by field: a malformed one is left out (T25).
#
# A plugin's server is called `<plugin>__<name>` and has the plugin as its origin, so no other approval applies to it.


FIELDS = ("name", "package", "command", "args", "env_required", "capabilities", "keywords")
MOST_SERVERS = 50
"""Of one plugin."""
MOST_WORDS = 100
"""Keywords, and capabilities, of one server."""
MOST_CHARACTERS = 200
"""Of a keyword or capability."""


@dataclass(frozen=True, slots=True)
class ProvidedServer:
    """A server of a plugin, and the capabilities and keywords by which a task selects it."""

    config: ServerConfig
    plugin: str
    name: str
    """The plugin's name for it; the name of its configuration is `<plugin>__<name>`."""
    capabilities: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Provided:
    """The servers of a plugin's answer, and the problems with the others."""

    servers: tuple[ProvidedServer, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    """The name of a server, or of the plugin, and why it is left out."""


def read_provided(plugin: str, returned: object) -> Provided:
    """Check the answer of a plugin's hook, server by server; a malformed one becomes a problem. Raises nothing.

    Servers after the first `MOST_SERVERS` are left out.
    """
    if returned is None:
        return Provided()
    if not isinstance(returned, (list, tuple)):
        return Provided(problems=((plugin, f"it returned {kind_of(returned)}, not a list of servers"),))
    entries = cast("list[object] | tuple[object, ...]", returned)
    servers: dict[str, ProvidedServer] = {}
    problems: list[tuple[str, str]] = []
    for number, entry in enumerate(entries[:MOST_SERVERS], 1):
        try:
            server = _checked_server(plugin, entry)
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


def _checked_server(plugin: str, entry: object) -> ProvidedServer:
    """Check one server of a plugin, named `<plugin>__<name>`; ConfigError lists everything that is wrong."""
    if not isinstance(entry, Mapping):
        raise ConfigError(f"expected a dict, found {kind_of(entry)}.")
    given = cast("Mapping[Any, Any]", entry)
    problems = unknown_keys((str(key) for key in given), FIELDS)
    name = given.get("name")
    if not isinstance(name, str) or not name:
        problems.append(ConfigError("is missing: a server needs a name.", field="name"))
    elif SEPARATOR in name:
        problems.append(ConfigError(f"contains {SEPARATOR!r}, which separates a plugin from its server.", field="name"))
    words = {key: list(_word_list(given.get(key, ()), key, problems)) for key in ("capabilities", "keywords")}
    fields = check_fields(dict(_process(given, problems)), "stdio", lambda attribute: attribute, problems)
    if problems:
        raise all_of(problems)
    whole = f"{plugin}{SEPARATOR}{name}"
    config = ServerConfig(whole, "stdio", origin=Origin("plugin", plugin), **fields)
    return ProvidedServer(config, plugin, str(name), tuple(words["capabilities"]), tuple(words["keywords"]))


def _process(given: Mapping[Any, Any], problems: list[ConfigError]) -> Iterator[tuple[str, object]]:
    """Yield the fields of the process, unchecked: `npx -y <package>` by default. Adds to `problems`."""
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


def _word_list(value: object, field: str, problems: list[ConfigError]) -> Iterator[str]:
    """Yield the keywords or capabilities without duplicates; none after adding a problem."""
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
    """The name in a server's dict, truncated to 100 characters; empty if it has none."""
    name = cast("Mapping[Any, Any]", entry).get("name") if isinstance(entry, Mapping) else None
    return name[:100] if isinstance(name, str) else ""


GROUP = "toolbridge.plugins"
"""The group of entry points: `[project.entry-points."toolbridge.plugins"]`."""
LOAD_SECONDS = 10.0
"""For all plugins together: they are loaded at the same time."""
NOTICE_SECONDS = 1.0
"""After which `on_wait` is called."""
MOST_PLUGINS = 100
_log = logging.getLogger("toolbridge")
_loads: dict[tuple[str, str, str], _Loading] = {}
"""The last load of each plugin, by its entry point."""
_loads_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Plugin:
    """One installed plugin: its servers, its problems, or why it was refused."""

    name: str
    distribution: str = ""
    """Its package and version."""
    servers: tuple[ProvidedServer, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    """The name of one of its servers, or its own, and why that is left out."""
    refusal: str = ""
    """Why the configuration denies it; it was not imported then."""


def load_plugins(
    policy: PluginPolicy | None = None,
    *,
    only: Collection[str] | None = None,
    seconds: float = LOAD_SECONDS,
    entry_points: Sequence[EntryPoint] | None = None,
    on_wait: Callable[[Sequence[str]], object] | None = None,
    logs_problems: bool = True,
) -> tuple[Plugin, ...]:
    """Load all installed plugins, or those named in `only`, concurrently. Blocks for at most `seconds`.

    Imports their code, and raises nothing for what it does. A plugin that timed out before is not waited for again in
    this process. `on_wait` is called after a second with the names of those that have yet to answer.
    `logs_problems=False` is for callers that show the problems themselves. At most 100 plugins are used.
    """
    found = _installed() if entry_points is None else entry_points
    policy = policy or PluginPolicy()
    loading: list[_Loading | Plugin] = []
    seen: dict[str, str] = {}
    for entry in sorted(found, key=lambda each: (each.name, each.value))[:MOST_PLUGINS]:
        distribution = _distribution(entry)
        name, problem = _plugin_name(entry.name, seen)
        if only is not None and name not in only:
            continue
        refusal = policy.refusal(name, entry.name)
        if problem:
            loading.append(Plugin(name, distribution, problems=((name, problem),)))
        elif refusal:
            loading.append(Plugin(name, distribution, refusal=refusal))
        else:
            loading.append(_loading_of(name, distribution, entry))
    deadline = monotonic() + seconds
    if on_wait is not None and (slow := _not_answering(loading, monotonic() + min(seconds, NOTICE_SECONDS))):
        on_wait(slow)
    plugins = tuple(each if isinstance(each, Plugin) else each.result(deadline, seconds) for each in loading)
    for name in policy.unmatched([*(plugin.name for plugin in plugins), *(entry.name for entry in found)]):
        _log.warning("'plugins' of the configuration names %r, which is not installed.", for_error(name, limit=100))
    if len(found) > MOST_PLUGINS:
        _log.warning("%d plugins are installed; only the first %d are used.", len(found), MOST_PLUGINS)
    for plugin in plugins if logs_problems else ():
        for name, problem in plugin.problems:
            _log.warning("Plugin %r: %s is not used: %s", plugin.name, name, problem)
    return plugins


def plugins_of(servers: Iterable[str]) -> frozenset[str]:
    """The plugins in names of the form `<plugin>__<server>`."""
    return frozenset(name.partition(SEPARATOR)[0] for name in servers if SEPARATOR in name)


def provided_servers(plugins: Iterable[Plugin]) -> tuple[ProvidedServer, ...]:
    """The servers of all plugins."""
    return tuple(server for plugin in plugins for server in plugin.servers)


def _not_answering(loading: Iterable[_Loading | Plugin], until: float) -> tuple[str, ...]:
    """Block until all have answered or the time `until`; the names of those that have not."""
    return tuple(each.name for each in loading if isinstance(each, _Loading) and not each.has_answered(until))


def _loading_of(name: str, distribution: str, entry: EntryPoint) -> _Loading:
    """Join a load in progress, else start one on a daemon thread. Thread-safe."""
    key = (entry.name, entry.value, entry.group)
    with _loads_lock:
        loading = _loads.pop(key, None)
        if loading is None or loading.was_used:
            loading = _Loading(name, distribution, entry)
        _loads[key] = loading
    return loading


class _NotAPluginError(Exception):
    """The package has no hook, or a malformed entry point."""


class _Loading:
    """A load in progress on a daemon thread: one that hangs is abandoned."""

    def __init__(self, name: str, distribution: str, entry: EntryPoint) -> None:
        """Start the load on a daemon thread; returns at once."""
        self.name = name
        self._distribution = distribution
        self._entry = entry
        self._provided: Provided | None = None
        self._is_late = False
        self.was_used = False
        """Whether the answer was returned once: the next caller starts a new load."""
        self._thread = threading.Thread(target=self._load, name=f"toolbridge-plugin-{name}", daemon=True)
        self._thread.start()

    def has_answered(self, until: float) -> bool:
        """Whether the plugin has answered; blocks until the time `until`, unless it timed out before."""
        self._thread.join(0.0 if self._is_late else max(0.0, until - monotonic()))
        return self._is_late or self._provided is not None

    def result(self, deadline: float, seconds: float) -> Plugin:
        """The loaded plugin, or one with a timeout as its problem; blocks until it has answered or the deadline.

        Marks itself as used, or as late: a late one is never waited for again.
        """
        self.has_answered(deadline)
        provided = self._provided
        if provided is None:
            self._is_late = True
            provided = _failed(self.name, f"it did not answer within {seconds:g} s")
        else:
            self.was_used = True
        return Plugin(self.name, self._distribution, provided.servers, provided.problems)

    def _load(self) -> None:
        """Import the plugin, call its hook and store the answer, or any exception, SystemExit too, as its problem."""
        try:
            provided = read_provided(self.name, _call_hook(self._entry))
            shown = tuple((for_error(name, limit=100), for_error(text)) for name, text in provided.problems)
            self._provided = Provided(provided.servers, shown)
        except _NotAPluginError as error:
            self._provided = _failed(self.name, str(error))
        except BaseException as error:  # also SystemExit: a plugin does not end its host
            words = for_error(_words(error), limit=300)
            self._provided = _failed(self.name, f"it raised {type(error).__name__}" + (f": {words}" if words else ""))


def _call_hook(entry: EntryPoint) -> object:
    """Import a plugin, construct it if it is a class, and return what its hook returns.

    Exceptions of the plugin are passed on. Each has its own manager, so that failures are isolated.

    Raises:
        _NotAPluginError: the entry point is malformed, or there is no hook.
    """
    if entry.pattern.match(entry.value) is None:
        raise _NotAPluginError(f"its entry point is {entry.value!r}: expected 'module:object'")
    plugin: Any = entry.load()
    if isinstance(plugin, type):
        plugin = plugin()
    manager = pluggy.PluginManager(_PROJECT)
    manager.add_hookspecs(PluginHooks)
    manager.register(plugin, name=entry.name)
    manager.check_pending()
    callers = manager.get_hookcallers(plugin) or []
    if not any(caller.name == "provide_mcp_servers" for caller in callers):
        raise _NotAPluginError("it has no hook provide_mcp_servers: mark it with toolbridge.hookimpl")
    (returned,) = manager.hook.provide_mcp_servers() or [None]
    return returned


def _failed(name: str, problem: str) -> Provided:
    return Provided(problems=((name, problem),))


def _installed() -> Sequence[EntryPoint]:
    """List the installed entry points of the group; packages with unreadable metadata are left out with a warning."""
    from importlib.metadata import entry_points

    try:
        return tuple(entry_points(group=GROUP))
    except Exception:  # some package's list can't be read, which must not cost the others theirs
        return tuple(_of_each_package())


def _of_each_package() -> Iterator[EntryPoint]:
    """Yield entry points package by package; logs and skips unreadable ones.

    Of two packages of one name, only the first, which is the one that is imported.
    """
    from importlib.metadata import distributions

    seen: set[str] = set()
    for package in distributions():
        name = "?"
        try:
            name = str(package.name)
            entries = tuple(package.entry_points.select(group=GROUP))
        except Exception as error:
            shown = for_error(name, limit=100)
            _log.warning("The entry points of the package %r can't be read: %s", shown, type(error).__name__)
            continue
        if name not in seen:
            seen.add(name)
            yield from entries


def _plugin_name(written: str, seen: dict[str, str]) -> tuple[str, str]:
    """Map an entry point's name to a plugin's, with the problem that prevents its use, or an empty text.

    Adds a usable name to `seen`.
    """
    try:
        name = name_for(written)
    except ConfigError as problem:
        return for_error(written, limit=100), str(problem)
    if other := seen.get(twin_key(name)):
        return name, f"another plugin has the same name up to '-' and '_': {for_error(other, limit=100)!r}"
    seen[twin_key(name)] = written
    return name, ""


def _distribution(entry: EntryPoint) -> str:
    """The name and version of an entry point's package; empty if unknown."""
    dist = entry.dist
    try:
        parts = () if dist is None else (dist.name, dist.version)
    except Exception:  # its metadata can't be read
        parts = ()
    return for_error(" ".join(filter(None, parts)), limit=100)


def _words(error: BaseException) -> str:
    """The text of a plugin's exception; empty if its `__str__` raises."""
    try:
        return str(error)
    except BaseException:
        return ""
