"""The servers of one runtime, from all of its sources, as they are now; and its observers told of each change once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from toolbridge.config.config import Config
from toolbridge.config.profiles import with_profiles
from toolbridge.servers.events import SourceEvent, tell
from toolbridge.sources.merge import Merged, merge_sources
from toolbridge.sources.plugins import Plugin, load_plugins
from toolbridge.sources.sections import RenderedPrompt
from toolbridge.sources.task import Task

Observers: TypeAlias = Sequence[Callable[[Any], object]]


class CurrentServers:
    """What a runtime's configuration, prompt and task come to. Each change is whole, or does not happen."""

    def __init__(self, config: Config, prompt: RenderedPrompt | None, task: Task | None, observers: Observers) -> None:
        self.own = config
        """Of a file, or made in code: without what the other sources have."""
        self.prompt = prompt
        self.task = task
        self._observers = observers
        self._chosen = config.active_profiles
        """Kept also while the gateway is off, when there are none."""
        self._plugins: tuple[Plugin, ...] | None = None
        self._revoked: frozenset[str] = frozenset()
        self._told: set[SourceEvent] = set()
        self._registered: frozenset[str] = frozenset()
        # What a task wants is known once plugins were asked, when the runtime is entered.
        self._merged = merge_sources(config, prompt=prompt)

    @property
    def config(self) -> Config:
        """The configuration of all sources."""
        return self._merged.config

    @property
    def reasons(self) -> Mapping[str, str]:
        """By server: why it is there."""
        return self._merged.reasons

    async def begin(self) -> bool:
        """Ask the plugins, if there is a task that might want their servers; whether there may be others since.

        Raises:
            UnknownServerError: the task names a server that is nowhere.
            ConfigError: there are too many servers.
        """
        if self.task is not None:
            import anyio.to_thread

            self._plugins = await anyio.to_thread.run_sync(
                partial(load_plugins, self.own.plugins), abandon_on_cancel=True
            )
            self._merged = self._merge(self.own, self.prompt, self._revoked)
        self._tell()
        return self.task is not None

    def use(self, config: Config) -> None:
        """Another configuration, in which what was revoked may be again, with the profiles that were chosen.

        Raises:
            ConfigError: it can't be used; everything stays as it was.
        """
        chosen = config.active_profiles or self._chosen
        own = with_profiles(config, chosen) if chosen and config.gateway else config
        self._change(own, self.prompt, frozenset())
        self._chosen = chosen

    def choose_profiles(self, names: Iterable[str]) -> None:
        """The servers of these profiles, and of no others.

        Raises:
            ConfigError: there is no such profile; everything stays as it was.
        """
        own = with_profiles(self.own, names)
        self._change(own, self.prompt, self._revoked)
        self._chosen = own.active_profiles

    def follow(self, prompt: RenderedPrompt) -> None:
        """The servers of this prompt's sections instead of those before."""
        self._change(self.own, prompt, self._revoked)

    def revoke(self, server: str) -> None:
        """Without this server, whatever its source, until another configuration is used."""
        self._change(self.own, self.prompt, self._revoked | {server})

    def _change(self, own: Config, prompt: RenderedPrompt | None, revoked: frozenset[str]) -> None:
        merged = self._merge(own, prompt, revoked)
        self.own, self.prompt, self._revoked, self._merged = own, prompt, revoked, merged
        self._tell()

    def _merge(self, own: Config, prompt: RenderedPrompt | None, revoked: frozenset[str]) -> Merged:
        task = self.task if self._plugins is not None else None
        merged = merge_sources(own, prompt=prompt, task=task, plugins=self._plugins or ())
        if revoked.isdisjoint(merged.config.servers):
            return merged
        rest = {name: server for name, server in merged.config.servers.items() if name not in revoked}
        return replace(merged, config=replace(merged.config, servers=rest))

    def _tell(self) -> None:
        """Every server that is new, and every loss that was not told yet."""
        for event in self._merged.events:
            if event not in self._told:
                self._told.add(event)
                tell(self._observers, event)
        for name in self._merged.config.servers:
            if name not in self._registered:
                tell(self._observers, self._merged.registered(name))
        self._registered = frozenset(self._merged.config.servers)
