"""What our tools answer: the same facts as text for a model and as structured content for a program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from mcp_types import CallToolResult, TextContent

MOST_VALUE = 200_000
"""Characters of a run's value as JSON. A model that wants more should want less."""
_DEEPEST = 64
_PREVIEW = 2_000


def answer(text: str, facts: Mapping[str, Any], *, failed: bool = False) -> CallToolResult:
    """A result. What has no form in UTF-8 is replaced: a guest may return half a character."""
    return CallToolResult(
        content=[TextContent(type="text", text=plain_text(text))],
        structured_content=cast("dict[str, Any]", plain(dict(facts))),
        is_error=failed,
    )


def refusal(text: str) -> CallToolResult:
    """A call that did nothing. The text says what to do instead."""
    return CallToolResult(content=[TextContent(type="text", text=plain_text(text))], is_error=True)


def plain_text(text: str) -> str:
    """Text without halves of characters."""
    return text.encode("utf-8", "replace").decode()


def plain(value: Any) -> Any:
    """A JSON value without halves of characters."""
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, list):
        return [plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {plain_text(key): plain(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


def fitting(value: Any) -> tuple[Any, str, str]:
    """A value as far as it can be given, its text, and what is to be said if it can't.

    Too long or too deep is not half a value but none, with the beginning of its text.
    """
    if value is None:
        return None, "", ""
    if _is_too_deep(value):
        return None, "", f"The value is nested more than {_DEEPEST} deep: return something flatter."
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= MOST_VALUE:
        return value, text, ""
    note = f"The value has {len(text):,} characters, more than {MOST_VALUE:,}: filter it in code. It begins:"
    return None, "", f"{note} {text[:_PREVIEW]}"


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        following: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                following.extend(cast("dict[str, Any]", each).values())
            elif isinstance(each, list):
                following.extend(cast("list[Any]", each))
        if not following:
            return False
        level = following
    return True
