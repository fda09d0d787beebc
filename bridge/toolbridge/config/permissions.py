"""Which tools may be called: patterns for allow, ask and deny, as they are written. `trust.gate` decides by them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from toolbridge.config.values import any_text, check_wildcards, pairs, wrong
from toolbridge.config.wording import all_of, kind_of, listed, quoted, unknown_keys
from toolbridge.errors import ConfigError

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
