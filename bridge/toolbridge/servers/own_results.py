"""What a handler returns becomes a result as a server would send it, so that one path unwraps both."""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_SCALARS = frozenset({str, int, bool})
_RESULT_FIELDS = frozenset({"content", "structuredContent", "isError", "_meta"})


def result_of(value: Any, adapter: TypeAdapter[Any] | None) -> dict[str, Any]:
    """The raw result for what a handler returned; what has no JSON form is an error of the tool."""
    if value is None:
        return {"content": []}
    if isinstance(value, (bytes, bytearray)):
        return {"content": [_data_block(bytes(value))]}
    if (given := _given_result(value)) is not None:
        return given
    try:
        return {"structuredContent": _as_json(value, adapter)}
    except (ValueError, TypeError, RecursionError) as error:
        return error_of(f"its result has no JSON form: {(str(error) or type(error).__name__).splitlines()[0]}")


def error_of(text: str) -> dict[str, Any]:
    """The raw result of a tool that failed."""
    return {"isError": True, "content": [{"type": "text", "text": text}]}


def _as_json(value: Any, adapter: TypeAdapter[Any] | None) -> Any:
    if type(value) in _SCALARS or (type(value) is float and math.isfinite(value)):
        return value
    if adapter is not None:
        return adapter.serializer.to_python(value, mode="json", by_alias=True, warnings=False)
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, by_alias=True)


def _given_result(value: Any) -> dict[str, Any] | None:
    """A value that is a result already: an object of the SDK, or `{"content": [{"type": …}]}`."""
    if type(value) is not dict:
        types = sys.modules.get("mcp_types")  # nobody can return what was never imported
        if types is not None and isinstance(value, types.CallToolResult):
            return cast("dict[str, Any]", value.model_dump(mode="json", by_alias=True, exclude_none=True))
        return None
    members = cast("dict[str, Any]", value)
    content = members.get("content")
    if not isinstance(content, list) or not _RESULT_FIELDS.issuperset(members):
        return None
    blocks = cast("list[Any]", content)
    is_result = all(map(_is_block, blocks)) and (blocks or "isError" in members)
    return members if is_result else None


def _is_block(block: object) -> bool:
    return isinstance(block, Mapping) and isinstance(cast("Mapping[str, Any]", block).get("type"), str)


def _data_block(data: bytes) -> dict[str, Any]:
    encoded = base64.b64encode(data).decode("ascii")
    return {"type": "resource", "resource": {"mimeType": "application/octet-stream", "blob": encoded}}
