"""What a host is asked about a call, and what it answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, runtime_checkable

from toolbridge.trust.sanitise import for_terminal

MOST_DETAIL = 200
MOST_NAME = 100
"""A tool's name is its server's text: it must not fill all of the detail."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call that somebody has to decide about."""

    server: str
    tool: str
    """Its original name."""
    arguments: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """All of them, as guest code gave them."""
    detail: str = ""
    """`<tool> <json args>`, safe to print, cut at 200 characters."""
    reason: str = ""
    """Why it is asked about."""
    only_if_asked: bool = False
    """Whether it would be allowed where nobody can be asked: its server itself says that it may destroy something."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a call may be sent."""

    allowed: bool
    reason: str = ""
    """For a refusal: what guest code and the model are told."""
    rule: str = ""
    """The rule that decided: `deny mcp__mail__*`, `default`, `flow private+untrusted->external`."""
    remember: bool = False
    """Of a host's answer: the same holds for this tool of this server until the run, or session, is over."""


class CanUseToolObject(Protocol):
    """Decides about a call."""

    async def can_use_tool(self, use: ToolUse) -> Decision | bool:
        """Whether it may be sent."""
        ...


CanUseTool: TypeAlias = CanUseToolObject | Callable[[ToolUse], Decision | bool | Awaitable[Decision | bool]]
"""Decides about a call. What it raises counts as a refusal."""


@runtime_checkable
class AsksPeople(Protocol):
    """A `CanUseTool` that does not always have somebody to ask: for "unattended" in the configuration."""

    def can_ask(self) -> bool:
        """Whether there is somebody for the calls of this task."""
        ...


def detail_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """A call on one line that a terminal shows and never obeys."""
    name, given = _one_line(tool[: 2 * MOST_NAME]), _one_line(_json_beginning(arguments))
    return _cut(f"{_cut(name, MOST_NAME)} {given}", MOST_DETAIL)


def _json_beginning(arguments: Mapping[str, Any]) -> str:
    """As much of the JSON as is shown: arguments may have megabytes, and be nested without end."""
    encoder = json.JSONEncoder(ensure_ascii=False, default=_kind)
    text = ""
    try:
        for piece in encoder.iterencode(dict(arguments)):
            text += piece[: MOST_DETAIL + 1]
            if len(text) > MOST_DETAIL:
                break
    except (TypeError, ValueError, RecursionError):
        text += "…"
    return text


def _kind(value: object) -> str:
    return f"<{type(value).__name__}>"


def _one_line(text: str) -> str:
    return for_terminal(" ".join(text.encode("utf-8", "replace").decode().split()))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
