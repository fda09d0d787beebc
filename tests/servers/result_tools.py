"""A tool with results, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbridge.calls.results import Unwrapped, unwrap
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, ToolSpec, build_catalog

WRAPPED = {"type": "object", "properties": {"result": {"type": "array"}}, "required": ["result"]}
INLINE = 1024


def tool_with(
    input_schema: Mapping[str, Any] | None = None, output_schema: Mapping[str, Any] | None = None
) -> ToolSpec:
    """A tool with these schemas."""
    definition = ToolDefinition("f", input_schema or {"type": "object"}, output_schema=output_schema)
    (tool,) = build_catalog([ServerListing("s", (definition,))]).tools
    return tool


PLAIN = tool_with()


def given(
    result: Any,
    tool: ToolSpec = PLAIN,
    *,
    inline: int = INLINE,
    secrets: tuple[str, ...] = (),
    exact: bool = False,
) -> Unwrapped:
    """What guest code gets."""
    return unwrap(result, tool, inline_bytes=inline, secrets=secrets, exact_integers=exact)


def content(*blocks: Any) -> dict[str, Any]:
    """A result of these blocks."""
    return {"content": list(blocks)}


def text(value: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": value}


def image(data: Any, mime: Any = "image/png") -> dict[str, Any]:
    """An image block."""
    return {"type": "image", "data": data, "mimeType": mime}
