"""The current servers of one runtime, merged from all sources; notifies observers once of each change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from toolbridge.config.config import Config
from toolbridge.config.profiles import with_profiles
from toolbridge.errors import ConfigError, UnknownServerError
from toolbridge.events import SourceEvent
from toolbridge.servers.registry import notify
from toolbridge.sources.merge import Merged, Task, merge_sources
from toolbridge.sources.plugins import Plugin, load_plugins
from toolbridge.sources.sections import RenderedPrompt, check_prompt

Observers: TypeAlias = Sequence[Callable[[Any], object]]
_log = logging.getLogger("toolbridge")


class CurrentServers:
    """The merged servers of a runtime's configuration, prompt and task. Each change is atomic."""

    def __init__(
        self,
        config: Config,
        prompt: RenderedPrompt | None,
        observers: Observers,
        *,
        task: Task | None = None,
        above: CurrentServers | None = None,
    ) -> None:
        check_prompt(prompt)
        self.own = config
        """The configuration of the files or of code, without the other sources."""
        self.prompt = prompt
        self.task = task
        self._above = above
        """Those of the runtime that this task's was made from: servers removed there are removed here."""
        self._is_switched_on = True
        self._observers = observers
        self._chosen = config.active_profiles or (above._chosen if above is not None else ())
        """Chosen profiles; kept while the gateway is off, when there are no servers."""
        self._has_own_config = above is None
        """Whether the configuration was set here: a task's runtime follows the one above until then."""
        self._has_own_profiles = False
        self._plugins: tuple[Plugin, ...] | None = None
        self._revoked: frozenset[str] = frozenset()
        # Observers are shared with the runtime above: its events are not repeated for each task.
        self._notified: set[SourceEvent] = set() if above is None else set(above._notified)
        self._registered: frozenset[str] = frozenset()
        # A task's servers are merged once plugins are loaded, when the runtime is entered.
        self._merged = self._merge(config, prompt, self._revoked)

    @property
    def config(self) -> Config:
        """Returns the merged configuration of all sources."""
        return self._merged.config

    @property
    def reasons(self) -> Mapping[str, str]:
        """Returns the reason for each server's presence, by name."""
        return self._merged.reasons

    @property
    def is_on(self) -> bool:
        """Returns whether all of MCP is switched on, here and in the runtime above."""
        return self._is_switched_on and self.own.gateway and (self._above is None or self._above.is_on)

    @property
    def revoked(self) -> frozenset[str]:
        """Returns the servers that were revoked here or in the runtime above."""
        return self._revoked if self._above is None else self._revoked | self._above.revoked

    def is_below(self, other: CurrentServers) -> bool:
        """Returns whether this runtime was made from the other one, directly or not; False for itself."""
        return self._above is not None and (self._above is other or self._above.is_below(other))

    async def begin(self) -> bool:
        """Merges the task's servers, loading plugins on a thread if it may select theirs, and notifies observers.

        Returns whether there is a task, so that servers may have changed.

        Raises:
            UnknownServerError: the task names a server that no source has, or that was revoked.
            ConfigError: there are too many servers.
        """
        if self.task is not None:
            import anyio.to_thread

            self._plugins = ()
            if self.task.may_want_plugins and self.own.gateway:
                self._plugins = await anyio.to_thread.run_sync(
                    partial(load_plugins, self.own.plugins), abandon_on_cancel=True
                )
            self._check_revoked(self.task)
            self._merged = self._merge(self.own, self.prompt, self._revoked, is_new=True)
        self._notify()
        return self.task is not None

    def use(self, config: Config) -> None:
        """Replaces the configuration, clears revocations and notifies observers; chosen profiles stay active.

        Raises:
            ConfigError: it is invalid; nothing is changed.
        """
        chosen = config.active_profiles or self._chosen
        own = with_profiles(config, chosen) if chosen and config.gateway else config
        self._change(own, self.prompt, frozenset())
        self._chosen, self._has_own_config = chosen, True

    def choose_profiles(self, names: Iterable[str]) -> None:
        """Activates these profiles and no others, and notifies observers.

        Raises:
            ConfigError: there is no such profile; nothing is changed.
        """
        own = with_profiles(self.own, names)
        self._change(own, self.prompt, self._revoked)
        self._chosen, self._has_own_profiles = own.active_profiles, True

    def use_prompt(self, prompt: RenderedPrompt) -> None:
        """Replaces the prompt and with it the servers of its sections, and notifies observers.

        Raises:
            MisuseError: it is no rendered prompt.
            ConfigError: there are too many servers now; nothing is changed.
        """
        check_prompt(prompt)
        self._change(self.own, prompt, self._revoked)

    def revoke(self, server: str) -> None:
        """Removes this server, whatever its source, until another configuration is used; ignores unknown names."""
        self._change(self.own, self.prompt, self._revoked | {server})

    def switch(self, *, on: bool) -> None:
        """Switches all of MCP on or off; observers are told of servers that are new when it is on."""
        self._is_switched_on = on
        self._notify()

    def refresh(self) -> None:
        """Merges again after a change of the runtime above, and notifies observers.

        If there are too many servers in a changed configuration, only the configured ones are kept, with a warning.

        Raises:
            ConfigError: there are too many servers, and the configuration is the same; nothing is changed.
        """
        own = self._own_or_from_above()
        try:
            self._change(own, self.prompt, self._revoked)
        except ConfigError as error:
            if own == self.own:
                raise
            # Keeping the old servers could keep a removed one: the task gets fewer servers, not more.
            _log.warning("A task has only the servers that are configured: %s", error)
            self.own, self._merged = own, merge_sources(own, revoked=self.revoked)
            self._notify()

    def _own_or_from_above(self) -> Config:
        """Returns its own configuration, or the current one of the runtime above with the profiles chosen here.

        Logs a warning and leaves the profiles out if one is gone.
        """
        if self._above is None or self._has_own_config:
            return self.own
        config = self._above._own_or_from_above()
        if not self._has_own_profiles or not config.gateway:
            return config
        try:
            return with_profiles(config, self._chosen)
        except ConfigError as error:
            _log.warning("A task has the profiles of the runtime that it was made of: %s", error)
            return config

    def _check_revoked(self, task: Task) -> None:
        """Checks the names of a task and of the tasks around it.

        Raises:
            UnknownServerError: one of them was revoked.
        """
        for name in (each for part in task.chain() for each in part.servers if isinstance(each, str)):
            if name in self.revoked:
                raise UnknownServerError(name, tuple(sorted(self._merged.config.servers)))

    def _change(self, own: Config, prompt: RenderedPrompt | None, revoked: frozenset[str]) -> None:
        """Merges these sources, replaces the current ones by them, and notifies observers.

        Raises:
            ConfigError: there are too many servers; nothing is changed.
        """
        merged = self._merge(own, prompt, revoked)
        self.own, self.prompt, self._revoked, self._merged = own, prompt, revoked, merged
        self._notify()

    def _merge(
        self, own: Config, prompt: RenderedPrompt | None, revoked: frozenset[str], *, is_new: bool = False
    ) -> Merged:
        """Merges all sources without changing anything; the task only once `begin` was called.

        Raises:
            ConfigError: there are too many servers.
            UnknownServerError: with `is_new`, the task names a server that no source has.
        """
        task = self.task if self._plugins is not None else None
        if self._above is not None:
            revoked |= self._above.revoked
        plugins = self._plugins or ()
        return merge_sources(own, prompt=prompt, task=task, plugins=plugins, revoked=revoked, must_have_names=is_new)

    def _notify(self) -> None:
        """Notifies observers of each new server and each new loss, once; of none while MCP is switched off."""
        if not self.is_on:
            return
        for event in self._merged.events:
            if event not in self._notified:
                self._notified.add(event)
                notify(self._observers, event)
        for name in self._merged.config.servers:
            if name not in self._registered:
                notify(self._observers, self._merged.registered(name))
        self._registered = frozenset(self._merged.config.servers)
