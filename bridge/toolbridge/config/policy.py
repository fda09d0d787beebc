"""SECURITY: what may be called and may flow, from one file or two (T25, T26).

A repository's file comes with a clone, unread. It may make rules stricter, never looser: of the two files the stricter
rule holds, and its `allow` makes exceptions to its own `default` only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar

from toolbridge.config.flow_rules import DEFAULT_FLOWS, parse_flows
from toolbridge.config.permissions import LEVELS, Level, Permissions, parse_permissions, strictest
from toolbridge.config.plugin_policy import PluginPolicy, parse_plugins
from toolbridge.config.values import flag
from toolbridge.config.wording import kind_of, listed, quoted
from toolbridge.errors import ConfigError

Errors: TypeAlias = Literal["raise", "return"]
ERRORS: tuple[Errors, ...] = ("raise", "return")
Unattended: TypeAlias = Literal["allow", "reads", "deny"]
UNATTENDED: tuple[Unattended, ...] = ("allow", "reads", "deny")
"""From the least strict to the strictest."""

_Word = TypeVar("_Word", bound=str)


@dataclass(frozen=True, slots=True)
class Policy:
    """What one file says besides servers and limits; None, or nothing, where it is silent."""

    permissions: Permissions = field(default_factory=Permissions)
    flows: Mapping[str, Level] = field(default_factory=lambda: MappingProxyType({}))
    errors: Errors | None = None
    strict_results: bool = False
    plugins: PluginPolicy = field(default_factory=PluginPolicy)
    unattended: Unattended = "allow"


def parse_policy(document: Mapping[str, object], problems: list[ConfigError]) -> Policy:
    """The policy in a file's JSON object. What is wrong is added to `problems`."""
    kept: dict[str, Any] = {}
    for key, (attribute, check) in _CHECKS.items():
        if key not in document:
            continue
        try:
            kept[attribute] = check(document[key])
        except ConfigError as problem:
            problems += problem.problems
    return Policy(**kept)


def check_errors(value: object) -> Errors:
    """How a tool's error reaches guest code.

    Raises:
        ConfigError: it is neither.
    """
    return _one_of(ERRORS, value, "errors")


def check_unattended(value: object) -> Unattended:
    """What becomes of calls that nobody can be asked about.

    Raises:
        ConfigError: it is none of the three.
    """
    return _one_of(UNATTENDED, value, "unattended")


def strictest_unattended(policies: Iterable[Policy]) -> Unattended:
    """That of all files: a repository can't loosen what the user has set."""
    return UNATTENDED[max((UNATTENDED.index(policy.unattended) for policy in policies), default=0)]


def _one_of(words: tuple[_Word, ...], value: object, field: str) -> _Word:
    for each in words:
        if isinstance(value, str) and value == each:
            return each
    found = quoted(value) if isinstance(value, str) else kind_of(value)
    raise ConfigError(f"expected {listed(words)}, found {found}.", field=field)


_CHECKS: Mapping[str, tuple[str, Callable[[object], object]]] = MappingProxyType(
    {
        "permissions": ("permissions", parse_permissions),
        "flows": ("flows", parse_flows),
        "errors": ("errors", check_errors),
        "plugins": ("plugins", parse_plugins),
        "unattended": ("unattended", check_unattended),
        "strictResults": ("strict_results", lambda value: flag(value, "strictResults")),
    }
)
POLICY_KEYS = tuple(_CHECKS)


def merged_flows(own: Sequence[Policy], projects: Sequence[Policy]) -> dict[str, Level]:
    """Every rule with its level: the user's in place of the default, a project's only where it is stricter."""
    flows: dict[str, Level] = dict(DEFAULT_FLOWS)
    for policy in own:
        flows.update(policy.flows)
    for policy in projects:
        for rule, level in policy.flows.items():
            flows[rule] = strictest(level, flows.get(rule, "allow"))
    return flows


def without_effect(policy: Policy, flows: Mapping[str, Level]) -> list[str]:
    """What a project's file says in vain; its author should know."""
    warnings: list[str] = []
    if policy.permissions.allow and policy.permissions.default == "allow":
        warnings.append(f"'permissions.allow' has no effect: {_ONLY_STRICTER}")
    for rule, level in policy.flows.items():
        if LEVELS.index(level) < LEVELS.index(flows.get(rule, "allow")):
            warnings.append(f"{f'flows.{rule}'!r} stays {flows[rule]!r}: {_ONLY_STRICTER}")
    return warnings


_ONLY_STRICTER = "a project's file can only make rules stricter. Write it into the user's file."
