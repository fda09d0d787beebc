"""Which plugins may offer servers, as it is written in a configuration. A plugin that may not is not even imported."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from toolbridge.config.values import names, pairs
from toolbridge.config.wording import all_of, unknown_keys
from toolbridge.errors import ConfigError

ALL = "*"
_KEYS = ("allow", "deny")


@dataclass(frozen=True, slots=True)
class PluginPolicy:
    """Names of plugins; `*` stands for all. Deny wins."""

    allow: tuple[str, ...] | None = None
    """Only these; None: all."""
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in _KEYS:
            given = getattr(self, name)
            object.__setattr__(self, name, None if given is None else names(given, f"plugins.{name}"))

    def refusal(self, *spellings: str) -> str:
        """Why a plugin, which is called by each of these, may offer nothing; empty if it may."""
        known = set(map(_normal, spellings))
        if self._has(self.deny, known):
            return "it is in 'plugins.deny' of the configuration"
        if self.allow is not None and not self._has(self.allow, known):
            return "it is not in 'plugins.allow' of the configuration"
        return ""

    @staticmethod
    def _has(listed: tuple[str, ...], known: set[str]) -> bool:
        return any(each == ALL or _normal(each) in known for each in listed)

    def unmatched(self, plugins: Iterable[str]) -> tuple[str, ...]:
        """Names in either list that are no plugin's: misspelt, perhaps."""
        known = {ALL, *map(_normal, plugins)}
        return tuple(dict.fromkeys(name for name in (*(self.allow or ()), *self.deny) if _normal(name) not in known))


def _normal(name: str) -> str:
    """Names of packages that differ by case, `-`, `_` and `.` only are the same: a denied one must not slip through."""
    return re.sub(r"[-_.]+", "-", name.casefold())


def parse_plugins(value: object) -> PluginPolicy:
    """What a file has under `plugins`.

    Raises:
        ConfigError: for all that is wrong with it.
    """
    given = pairs(value, "plugins")
    problems = unknown_keys(given, _KEYS, within="plugins.")
    kept: dict[str, Any] = {}
    for key in (key for key in given if key in _KEYS):
        try:
            kept[key] = names(given[key], f"plugins.{key}")
        except ConfigError as problem:
            problems.append(problem)
    if problems:
        raise all_of(problems)
    return PluginPolicy(**kept)


def merged_plugins(policies: Iterable[PluginPolicy]) -> PluginPolicy:
    """What all files leave: each can only take away (T25)."""
    allow: tuple[str, ...] | None = None
    deny: list[str] = []
    for policy in policies:
        deny += policy.deny
        if policy.allow is not None:
            allow = policy.allow if allow is None else tuple(_both(allow, policy.allow))
    return PluginPolicy(allow, tuple(dict.fromkeys(deny)))


def _both(one: tuple[str, ...], other: tuple[str, ...]) -> Iterable[str]:
    if ALL in one:
        return other
    if ALL in other:
        return one
    known = set(map(_normal, other))
    return (name for name in one if _normal(name) in known)
