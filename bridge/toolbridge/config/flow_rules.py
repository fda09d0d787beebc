"""Labels of servers, and the rules for what may flow between them (T22), as they are written in a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from toolbridge.config.permissions import Level, level
from toolbridge.config.values import any_text, pairs, wrong
from toolbridge.config.wording import all_of, listed, quoted, unknown_keys
from toolbridge.errors import ConfigError

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
