"""SECURITY: what may be called and may flow, from one file or two (T25, T26).

A repository's file comes with a clone, unread. It may make rules stricter, never looser: of the two files the stricter
rule holds, and its `allow` makes exceptions to its own `default` only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar, cast

from toolbridge.config.values import (
    all_of,
    any_text,
    check_wildcards,
    flag,
    kind_of,
    listed,
    names,
    pairs,
    quoted,
    unknown_keys,
    wrong,
)
from toolbridge.errors import ConfigError, reports_misuse

# Which tools may be called: patterns for allow, ask and deny, as they are written. `trust.gate` decides by them.


Level: TypeAlias = Literal["allow", "ask", "deny"]
LEVELS: tuple[Level, ...] = ("allow", "ask", "deny")
"""From the least strict to the strictest."""

PERMISSION_KEYS = ("allow", "ask", "deny", "default")
MOST_CHARACTERS = 1_000
"""Of a pattern."""
# Every name in a catalog is ASCII; of what looks like a letter and is none, a rule could only seem to speak.
_VISIBLE_ASCII = re.compile(r"[!-~]+")
_SHORT_NAME = re.compile(r"[a-z0-9][A-Za-z0-9-]*_[A-Za-z0-9_-]+")
_FORMS = "Write mcp__<server>__<tool>, mcp:<server>_<tool>, mcp__<server>__* for all tools of a server, or * for all."


@reports_misuse
@dataclass(frozen=True, slots=True)
class Permissions:
    """Patterns of tools by level: deny wins over ask, ask over allow, and a pattern over the default.

    Raises:
        ConfigError: a pattern is none.
    """

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    default: Level = "allow"
    """For tools that no pattern matches."""
    allow_except: frozenset[str] = frozenset()
    """Servers that `allow` says nothing of: a project's that took the name of one of the user's own."""

    def __post_init__(self) -> None:
        for name in LEVELS:
            object.__setattr__(self, name, patterns(getattr(self, name), name))
        object.__setattr__(self, "default", level(self.default, "default"))
        object.__setattr__(self, "allow_except", frozenset(self.allow_except))

    def with_allowed(self, *more: str) -> Permissions:
        """The same, and these patterns allowed besides: they are added to what is there, and replace nothing.

        Raises:
            ConfigError: a pattern is none.
        """
        return replace(self, allow=(*self.allow, *more))


def strictest(*levels: Level) -> Level:
    """The one that wins."""
    return max(levels, key=LEVELS.index)


def parse_permissions(value: object) -> Permissions:
    """What a file has under `permissions`.

    Raises:
        ConfigError: for all that is wrong with it.
    """
    given = pairs(value, "permissions")
    problems = unknown_keys(given, PERMISSION_KEYS, within="permissions.")
    kept: dict[str, Any] = {}
    for key in (key for key in given if key in PERMISSION_KEYS):
        try:
            check = level if key == "default" else patterns
            kept[key] = check(given[key], f"permissions.{key}")
        except ConfigError as problem:
            problems.append(problem)
    if problems:
        raise all_of(problems)
    return Permissions(**kept)


def level(value: object, field: str) -> Level:
    """Allow, ask or deny."""
    for each in LEVELS:
        if isinstance(value, str) and value == each:
            return each
    found = quoted(value) if isinstance(value, str) else kind_of(value)
    raise ConfigError(f"expected {listed(LEVELS)}, found {found}.", field=field)


def patterns(value: object, field: str) -> tuple[str, ...]:
    """A list of patterns, each once."""
    if not isinstance(value, (list, tuple)):
        raise wrong(value, field, 'a list such as ["mcp__weather__*"]')
    items = cast("list[object] | tuple[object, ...]", value)
    denies = field.endswith("deny")
    found = [_pattern(item, f"{field}[{index}]", denies=denies) for index, item in enumerate(items)]
    return tuple(dict.fromkeys(found))


def _is_pattern(text: str) -> bool:
    """By looking for the separators: an expression for this would try every pair of them."""
    if text == "*":
        return True
    parts = text.removesuffix("*")
    if len(text) > MOST_CHARACTERS or not _VISIBLE_ASCII.fullmatch(text) or "*" in parts:
        return False
    before, between = ("mcp__", "__") if text.startswith("mcp__") else ("mcp:", "_")
    if not text.startswith(before):
        return False
    rest = parts.removeprefix(before)
    if text.endswith("*"):
        return rest.endswith(between) and rest != between
    at = rest.find(between, 1)
    return at > 0 and at + len(between) < len(rest)


def _pattern(value: object, field: str, *, denies: bool) -> str:
    """A pattern that can match something. One that can't would be a rule that its author believes in."""
    text = any_text(value, field)
    if _is_pattern(text):
        if denies:
            check_wildcards(text.removesuffix("*"), field, fix=_FORMS)
        return text
    problem = f"{quoted(text)} is not a pattern of tools."
    if "*" in text.removesuffix("*"):
        problem = f"{quoted(text)} is not a pattern of tools: '*' stands for all tools of a server, or for all."
    elif re.fullmatch(r"mcp__[a-z0-9_-]+", text):
        raise ConfigError(problem, field=field, fix=f"Write {text.rstrip('_') + '__*'!r} for all tools of that server.")
    elif _SHORT_NAME.fullmatch(text):
        # Taken as it is, the bare name of a tool, `delete_all`, would be a rule about a server `delete`: about none.
        fix = f"It could be the name of a tool alone. Write {'mcp:' + text!r} if it begins with its server's."
        raise ConfigError(problem, field=field, fix=fix)
    raise ConfigError(problem, field=field, fix=_FORMS)


# Labels of servers, and the rules for what may flow between them (T22), as they are written in a configuration.


LABELS = ("private", "untrusted", "external")
"""Gives private data; gives content that strangers wrote; takes data to where others see it."""

FLOW_RULES = (
    "private+untrusted->external",
    "private->external",
    "untrusted->external",
    "private->untrusted",
    "external->untrusted",
    "private+external->untrusted",
    "untrusted->private",
    "external->private",
    "untrusted+external->private",
)
"""Every rule: what of calls of a server with the label on the right, once a run has called all labels on the left."""

DEFAULT_FLOWS: Mapping[str, Level] = MappingProxyType({"private+untrusted->external": "deny"})
"""The three together are what an exfiltration needs; any two are everyday work."""


def sides_of(rule: str) -> tuple[frozenset[str], str]:
    """The labels on the left of a rule, and the one on its right."""
    left, _, right = rule.partition("->")
    return frozenset(left.split("+")), right


def parse_flows(value: object, field: str = "flows") -> dict[str, Level]:
    """Levels by rule.

    Raises:
        ConfigError: for all that is wrong with it.
    """
    given = pairs(value, field)
    problems = unknown_keys(given, FLOW_RULES, within=f"{field}.", advice=_OTHER_ORDER)
    kept: dict[str, Level] = {}
    for rule in (rule for rule in given if rule in FLOW_RULES):
        try:
            kept[rule] = level(given[rule], f"{field}.{rule}")
        except ConfigError as problem:
            problems.append(problem)
    if problems:
        raise all_of(problems)
    return kept


def _other_order() -> Mapping[str, str]:
    swapped: dict[str, str] = {}
    for rule in FLOW_RULES:
        left, arrow, right = rule.partition("->")
        if "+" in left:
            swapped["+".join(reversed(left.split("+"))) + arrow + right] = f"Write {rule!r}."
    return MappingProxyType(swapped)


_OTHER_ORDER = _other_order()


def labels(value: object, field: str) -> tuple[str, ...]:
    """The labels of a server: `external`, or `external:<tool>` for one tool of it."""
    if not isinstance(value, (list, tuple)):
        raise wrong(value, field, 'a list such as ["private", "external:send_mail"]')
    items = cast("list[object] | tuple[object, ...]", value)
    return tuple(dict.fromkeys(_label(item, f"{field}[{index}]") for index, item in enumerate(items)))


def _label(value: object, field: str) -> str:
    text = any_text(value, field)
    label, colon, tool = text.partition(":")
    if label in LABELS and bool(colon) == bool(tool.strip()):
        return text
    fix = f"For a single tool, write its name after a colon: {LABELS[-1] + ':send_mail'!r}."
    raise ConfigError(f"expected {listed(LABELS)}, found {quoted(text)}.", field=field, fix=fix)


# Which plugins may offer servers, as it is written in a configuration. A plugin that may not is not even imported.


ALL = "*"
_KEYS = ("allow", "deny")


@reports_misuse
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
