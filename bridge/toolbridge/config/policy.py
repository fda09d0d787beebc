"""SECURITY: permissions, flow rules and plugin rules, from the user's file and a repository's (T25, T26).

A repository's file comes with a clone, unread. It may make rules stricter, never looser: of the two files the stricter
rule holds, and its `allow` makes exceptions to its own `default` only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast

from toolbridge.config.values import (
    any_text,
    check_wildcards,
    checked_members,
    flag,
    listed,
    names,
    one_of,
    quoted,
    wrong,
)
from toolbridge.errors import ConfigError, reports_misuse

# Permissions: patterns of tools for allow, ask and deny. `trust.gate` decides by them.


Level: TypeAlias = Literal["allow", "ask", "deny"]
LEVELS: tuple[Level, ...] = ("allow", "ask", "deny")
"""From the least strict to the strictest."""

PERMISSION_KEYS = ("allow", "ask", "deny", "default")
MOST_CHARACTERS = 1_000
"""Of a pattern."""
# Names in a catalog are ASCII: a rule with a homoglyph would match nothing.
_VISIBLE_ASCII = re.compile(r"[!-~]+")
_SHORT_NAME = re.compile(r"[a-z0-9][A-Za-z0-9-]*_[A-Za-z0-9_-]+")
_FORMS = "Write mcp__<server>__<tool>, mcp:<server>_<tool>, mcp__<server>__* for all tools of a server, or * for all."


@reports_misuse
@dataclass(frozen=True, slots=True)
class Permissions:
    """Patterns of tools by level: deny wins over ask, ask over allow, and a pattern over the default.

    Raises:
        ConfigError: a pattern is malformed.
    """

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    default: Level = "allow"
    """For tools that no pattern matches."""
    allow_except: frozenset[str] = frozenset()
    """Servers that `allow` does not apply to: a project's that took the name of one of the user's own."""

    def __post_init__(self) -> None:
        """Check patterns and default, drop duplicates, and copy collections; ConfigError at the first mistake."""
        for name in LEVELS:
            object.__setattr__(self, name, patterns(getattr(self, name), name))
        object.__setattr__(self, "default", level(self.default, "default"))
        object.__setattr__(self, "allow_except", frozenset(self.allow_except))

    def with_allowed(self, *more: str) -> Permissions:
        """A copy that allows these patterns, too; `ask` and `deny` still win over them.

        Raises:
            ConfigError: a pattern is malformed.
        """
        return replace(self, allow=(*self.allow, *more))


def strictest(*levels: Level) -> Level:
    """The strictest of the levels, of which there is at least one."""
    return max(levels, key=LEVELS.index)


def parse_permissions(value: object) -> Permissions:
    """Parse the `permissions` of a file.

    Raises:
        ConfigError: lists everything that is wrong with them.
    """
    checks = {key: level if key == "default" else patterns for key in PERMISSION_KEYS}
    return Permissions(**checked_members(value, "permissions", checks))


def level(value: object, field: str) -> Level:
    """Check a level: `allow`, `ask` or `deny`; ConfigError otherwise."""
    return one_of(LEVELS, value, field)


def patterns(value: object, field: str) -> tuple[str, ...]:
    """Check a list of patterns of tools, and drop duplicates; ConfigError at the first malformed one.

    In a field whose name ends with `deny`, a wildcard within a name is refused as well.
    """
    if not isinstance(value, (list, tuple)):
        raise wrong(value, field, 'a list such as ["mcp__weather__*"]')
    items = cast("list[object] | tuple[object, ...]", value)
    denies = field.endswith("deny")
    found = [_pattern(item, f"{field}[{index}]", denies=denies) for index, item in enumerate(items)]
    return tuple(dict.fromkeys(found))


def _is_pattern(text: str) -> bool:
    """Whether a text has the form of a pattern of tools.

    Searches the separators: a regular expression would try every pair of them (ReDoS).
    """
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
    """Check a pattern; ConfigError for one that can match no tool: its author would rely on the rule."""
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
        # The bare name of a tool, `delete_all`, would be a rule about a tool `all` of a server `delete`.
        fix = f"It could be the name of a tool alone. Write {'mcp:' + text!r} if it begins with its server's."
        raise ConfigError(problem, field=field, fix=fix)
    raise ConfigError(problem, field=field, fix=_FORMS)


# Flow labels of servers, and the rules for data flows between them (T22).


LABELS = ("private", "untrusted", "external")
"""Returns private data; returns content that strangers wrote; sends data to others."""

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
"""Each rule sets the level of calls to a server with the label on the right, in a run tainted by all on the left."""

DEFAULT_FLOWS: Mapping[str, Level] = MappingProxyType({"private+untrusted->external": "deny"})
"""All three are needed for an exfiltration (the lethal trifecta); any two are everyday work."""


def sides_of(rule: str) -> tuple[frozenset[str], str]:
    """Split a flow rule: the labels on its left, and the one on its right."""
    left, _, right = rule.partition("->")
    return frozenset(left.split("+")), right


_REORDERED: Mapping[str, str] = MappingProxyType(
    {
        "+".join(reversed(rule.partition("->")[0].split("+"))) + "->" + rule.partition("->")[2]: f"Write {rule!r}."
        for rule in FLOW_RULES
        if "+" in rule
    }
)


def parse_flows(value: object, field: str = "flows") -> dict[str, Level]:
    """Parse levels by flow rule; rules that are missing stay so.

    Raises:
        ConfigError: lists everything that is wrong with them.
    """
    return checked_members(value, field, dict.fromkeys(FLOW_RULES, level), advice=_REORDERED)


def labels(value: object, field: str) -> tuple[str, ...]:
    """Check a list of flow labels, `external` or `external:<tool>` for one tool, and drop duplicates.

    Raises:
        ConfigError: it is no list, or the first unknown label.
    """
    if not isinstance(value, (list, tuple)):
        raise wrong(value, field, 'a list such as ["private", "external:send_mail"]')
    items = cast("list[object] | tuple[object, ...]", value)
    return tuple(dict.fromkeys(_label(item, f"{field}[{index}]") for index, item in enumerate(items)))


def _label(value: object, field: str) -> str:
    """Check one flow label, with or without a tool; ConfigError otherwise."""
    text = any_text(value, field)
    label, colon, tool = text.partition(":")
    if label in LABELS and bool(colon) == bool(tool.strip()):
        return text
    fix = f"For a single tool, write its name after a colon: {LABELS[-1] + ':send_mail'!r}."
    raise ConfigError(f"expected {listed(LABELS)}, found {quoted(text)}.", field=field, fix=fix)


# Plugins that may offer servers. A denied plugin is not even imported.


ALL = "*"


@reports_misuse
@dataclass(frozen=True, slots=True)
class PluginPolicy:
    """Names of plugins; `*` stands for all. Deny wins."""

    allow: tuple[str, ...] | None = None
    """Only these; None: all."""
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check both lists and copy them into tuples; ConfigError if one is no list of names."""
        for name in ("allow", "deny"):
            given = getattr(self, name)
            object.__setattr__(self, name, None if given is None else names(given, f"plugins.{name}"))

    def refusal(self, *spellings: str) -> str:
        """The reason why a plugin with any of these names is denied; empty if it is allowed. Deny wins."""
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
        """Names in either list, except `*`, that match none of these plugins."""
        known = {ALL, *map(_normal, plugins)}
        return tuple(dict.fromkeys(name for name in (*(self.allow or ()), *self.deny) if _normal(name) not in known))


def _normal(name: str) -> str:
    """The normalised name of a package: case, `-`, `_` and `.` don't tell packages apart."""
    return re.sub(r"[-_.]+", "-", name.casefold())


def parse_plugins(value: object) -> PluginPolicy:
    """Parse the `plugins` of a file.

    Raises:
        ConfigError: lists everything that is wrong with them.
    """
    return PluginPolicy(**checked_members(value, "plugins", {"allow": names, "deny": names}))


def merged_plugins(policies: Iterable[PluginPolicy]) -> PluginPolicy:
    """Merge policies: allowed is what all allow that have a list, denied what any denies (T25)."""
    allow: tuple[str, ...] | None = None
    deny: list[str] = []
    for policy in policies:
        deny += policy.deny
        if policy.allow is not None:
            allow = policy.allow if allow is None else tuple(_in_both(allow, policy.allow))
    return PluginPolicy(allow, tuple(dict.fromkeys(deny)))


def _in_both(one: tuple[str, ...], other: tuple[str, ...]) -> Iterable[str]:
    """The names that both lists of allowed plugins have, in the spelling of one; `*` matches every name."""
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


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one file; None, or the default, for those that it doesn't set."""

    permissions: Permissions = field(default_factory=Permissions)
    flows: Mapping[str, Level] = field(default_factory=lambda: MappingProxyType({}))
    errors: Errors | None = None
    strict_results: bool = False
    plugins: PluginPolicy = field(default_factory=PluginPolicy)
    unattended: Unattended = "allow"


def parse_policy(document: Mapping[str, object], problems: list[ConfigError]) -> Policy:
    """Parse the rules in a file's JSON object; adds everything that is wrong to `problems`, and raises nothing.

    A missing or malformed rule gets its default. Other keys are ignored.
    """
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
    """Check how a tool's error reaches guest code, `raise` or `return`, and return it.

    Raises:
        ConfigError: it is no known word.
    """
    return one_of(ERRORS, value, "errors")


def check_unattended(value: object) -> Unattended:
    """Check which calls are made without a person to ask, `allow`, `reads` or `deny`, and return it.

    Raises:
        ConfigError: it is no known word.
    """
    return one_of(UNATTENDED, value, "unattended")


def strictest_unattended(policies: Iterable[Policy]) -> Unattended:
    """The strictest `unattended` of all files, `allow` without any: a repository can't loosen the user's."""
    return UNATTENDED[max((UNATTENDED.index(policy.unattended) for policy in policies), default=0)]


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
    """Merge levels by flow rule: the user's replace the defaults, a project's count only where they are stricter."""
    flows: dict[str, Level] = dict(DEFAULT_FLOWS)
    for policy in own:
        flows.update(policy.flows)
    for policy in projects:
        for rule, level in policy.flows.items():
            flows[rule] = strictest(level, flows.get(rule, "allow"))
    return flows


def without_effect(policy: Policy, flows: Mapping[str, Level]) -> list[str]:
    """Warnings for rules of a project's file that have no effect: those looser than the merged `flows`, and `allow`."""
    warnings: list[str] = []
    if policy.permissions.allow and policy.permissions.default == "allow":
        warnings.append(f"'permissions.allow' has no effect: {_ONLY_STRICTER}")
    for rule, level in policy.flows.items():
        if LEVELS.index(level) < LEVELS.index(flows.get(rule, "allow")):
            warnings.append(f"{f'flows.{rule}'!r} stays {flows[rule]!r}: {_ONLY_STRICTER}")
    return warnings


_ONLY_STRICTER = "a project's file can only make rules stricter. Write it into the user's file."
