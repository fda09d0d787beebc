"""Plugins: installed packages that offer servers, by the entry-point group `toolbridge.plugins`.

Somebody else's code runs here, so each plugin has a thread and a time limit of its own: one that raises, exits, hangs
or returns nonsense costs nobody but itself, and one that hangs is waited for once. A denied one is never imported. What
a plugin offers is only known by this: it is started like any server, after an approval of its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from toolbridge.config.names import SEPARATOR, name_for, twin_key
from toolbridge.config.plugin_policy import PluginPolicy
from toolbridge.errors import ConfigError
from toolbridge.sources.provided import Provided, ProvidedServer, read_provided
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "toolbridge.plugins"
"""The group of entry points: `[project.entry-points."toolbridge.plugins"]`."""
LOAD_SECONDS = 10.0
"""For all plugins together: they are loaded at the same time."""
NOTICE_SECONDS = 1.0
"""After which a person who waits is told for whom."""
MOST_PLUGINS = 100
_log = logging.getLogger("toolbridge")
_on_their_way: dict[tuple[str, str, str], _Loading] = {}
"""The last asking of each plugin, by its entry point."""
_on_their_way_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Plugin:
    """One installed plugin, and what became of it."""

    name: str
    distribution: str = ""
    """The package that it came with, and its version."""
    servers: tuple[ProvidedServer, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    """The name of one of its servers, or its own, and why that is not used."""
    refusal: str = ""
    """Why the configuration does not let it offer anything; it was not imported then."""


def load_plugins(
    policy: PluginPolicy | None = None,
    *,
    only: Collection[str] | None = None,
    seconds: float = LOAD_SECONDS,
    entry_points: Sequence[EntryPoint] | None = None,
    on_wait: Callable[[Sequence[str]], object] | None = None,
    logs_problems: bool = True,
) -> tuple[Plugin, ...]:
    """Every installed plugin, or those of these names, with what it offers. Blocks for at most so many seconds.

    All are asked at the same time. One that did not answer before is not waited for again in this process. `on_wait` is
    told after a second which have yet to answer. Whoever shows problems himself wants none of them logged.
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
    """The plugins that servers of these names would be of: a name is `<plugin>__<server>`."""
    return frozenset(name.partition(SEPARATOR)[0] for name in servers if SEPARATOR in name)


def provided_servers(plugins: Iterable[Plugin]) -> tuple[ProvidedServer, ...]:
    """All servers of all plugins."""
    return tuple(server for plugin in plugins for server in plugin.servers)


def _not_answering(loading: Iterable[_Loading | Plugin], until: float) -> tuple[str, ...]:
    """Those that are waited for, and have not answered at that time."""
    return tuple(each.name for each in loading if isinstance(each, _Loading) and not each.has_answered(until))


def _loading_of(name: str, distribution: str, entry: EntryPoint) -> _Loading:
    """A plugin that is asked anew, unless it has yet to answer who asked before."""
    key = (entry.name, entry.value, entry.group)
    with _on_their_way_lock:
        loading = _on_their_way.pop(key, None)
        if loading is None or loading.was_used:
            loading = _Loading(name, distribution, entry)
        _on_their_way[key] = loading
    return loading


class _NotAPluginError(Exception):
    """There is nothing that could be asked: no hook, or no entry point that could be followed."""


class _Loading:
    """A plugin on its way, in a daemon thread: one that hangs is left behind."""

    def __init__(self, name: str, distribution: str, entry: EntryPoint) -> None:
        self.name = name
        self._distribution = distribution
        self._entry = entry
        self._provided: Provided | None = None
        self._is_late = False
        self.was_used = False
        """Whether somebody has had its answer: the next one wants it fresh."""
        self._thread = threading.Thread(target=self._load, name=f"toolbridge-plugin-{name}", daemon=True)
        self._thread.start()

    def has_answered(self, until: float) -> bool:
        """Whether it has by then, or is not waited for: it was late before."""
        self._thread.join(0.0 if self._is_late else max(0.0, until - monotonic()))
        return self._is_late or self._provided is not None

    def result(self, deadline: float, seconds: float) -> Plugin:
        self.has_answered(deadline)
        provided = self._provided
        if provided is None:
            self._is_late = True
            provided = _failed(self.name, f"it did not say within {seconds:g} s what it offers")
        else:
            self.was_used = True
        return Plugin(self.name, self._distribution, provided.servers, provided.problems)

    def _load(self) -> None:
        try:
            problems_read = read_provided(self.name, _offered(self._entry))
            shown = tuple((for_error(name, limit=100), for_error(text)) for name, text in problems_read.problems)
            self._provided = Provided(problems_read.servers, shown)
        except _NotAPluginError as error:
            self._provided = _failed(self.name, str(error))
        except BaseException as error:  # also SystemExit: a plugin does not end its host
            words = for_error(_words(error), limit=300)
            self._provided = _failed(self.name, f"it raised {type(error).__name__}" + (f": {words}" if words else ""))


def _offered(entry: EntryPoint) -> object:
    """What one plugin's hook returns. Each has a manager of its own: one that fails fails alone."""
    import pluggy

    from toolbridge.sources.hooks import PROJECT, PluginHooks

    if entry.pattern.match(entry.value) is None:
        raise _NotAPluginError(f"its entry point is {entry.value!r}: expected 'module:object'")
    plugin: Any = entry.load()
    if isinstance(plugin, type):
        plugin = plugin()
    manager = pluggy.PluginManager(PROJECT)
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
    from importlib.metadata import entry_points

    try:
        return tuple(entry_points(group=GROUP))
    except Exception:  # some package's list can't be read, which must not cost the others theirs
        return tuple(_of_each_package())


def _of_each_package() -> Iterator[EntryPoint]:
    """Package by package, without those that can't be read. Of one name, the first is the one that is imported."""
    from importlib.metadata import distributions

    seen: set[str] = set()
    for package in distributions():
        name = "?"
        try:
            name = str(package.name)
            entries = tuple(package.entry_points.select(group=GROUP))
        except Exception as error:
            shown = for_error(name, limit=100)
            _log.warning("What the package %r has for plugins can't be read: %s", shown, type(error).__name__)
            continue
        if name not in seen:
            seen.add(name)
            yield from entries


def _plugin_name(written: str, seen: dict[str, str]) -> tuple[str, str]:
    """A plugin's name as part of a server's, and what is wrong with it."""
    try:
        name = name_for(written)
    except ConfigError as problem:
        return for_error(written, limit=100), str(problem)
    if twin_key(name) in seen:
        return name, f"another plugin has the same name, or as good as: {for_error(seen[twin_key(name)], limit=100)!r}"
    seen[twin_key(name)] = written
    return name, ""


def _distribution(entry: EntryPoint) -> str:
    dist = entry.dist
    try:
        parts = () if dist is None else (dist.name, dist.version)
    except Exception:  # its metadata can't be read
        parts = ()
    return for_error(" ".join(filter(None, parts)), limit=100)


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return ""
