"""Discovery: all pages of `tools/list`, within caps.

The answer is read as plain JSON and not by the SDK's models: one tool that these reject would cost the whole listing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from typing import Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND

from toolbridge.config.server_limits import ServerLimits
from toolbridge.errors import ServerProtocolError
from toolbridge.servers.listing import Listing, ToolProblem, parse_tool
from toolbridge.trust.sanitise import masked
from toolbridge_codegen.catalog import ToolDefinition, one_per_name

Request = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends one request of a method with parameters, and gives its result."""


async def list_tools(about: Listing, request: Request, limits: ServerLimits, secrets: Collection[str] = ()) -> Listing:
    """The complete listing of a server; `about` has what is known of it already.

    Raises:
        ServerProtocolError: the listing has no end, is too long, or is no listing.
    """
    tools: list[ToolDefinition] = []
    problems: list[ToolProblem] = []
    cursors: set[str] = set()
    parameters: dict[str, Any] = {}
    left = _left_for_tools(about, limits)
    listed = 0
    about = replace(
        about,
        instructions=masked(about.instructions, secrets),
        server_name=masked(about.server_name, secrets),
        server_version=masked(about.server_version, secrets),
        server_title=masked(about.server_title, secrets),
        server_description=masked(about.server_description, secrets),
    )
    for _ in range(limits.pages):
        try:
            page = await request("tools/list", parameters)
        except MCPError as error:
            if error.error.code != METHOD_NOT_FOUND or parameters:
                raise
            return replace(about, live=True)  # a server of prompts or resources only
        raw = page.get("tools")
        if not isinstance(raw, list):
            raise _refused(about, "answered tools/list without a list of tools")
        for entry in cast("list[object]", raw):
            listed += 1
            text = _text(about, entry)
            left -= _size(text)
            if left < 0:
                raise _refused(about, f"lists more than {limits.listing_bytes} bytes of tools")
            # A server that repeats its own token would have it kept on disk and shown to a model.
            hidden = masked(text, secrets)
            tool, problem = parse_tool(entry if hidden == text else _unmarked(hidden), listed)
            if tool is not None:
                tools.append(tool)
            if problem is not None:
                problems.append(problem)
            if listed > limits.tools:
                raise _refused(about, f"lists more than {limits.tools} tools")
        cursor = page.get("nextCursor")
        if cursor is None or cursor == "":
            kept = one_per_name(tools)
            counts = Counter(tool.name for tool in tools)
            problems += [_twice(name) for name, count in sorted(counts.items()) if count > 1]
            return replace(about, tools=tuple(kept), problems=tuple(problems), live=True)
        if not isinstance(cursor, str):
            raise _refused(about, "sent a cursor that is not text")
        if cursor in cursors:
            raise _refused(about, "sent the same cursor twice: its listing has no end")
        cursors.add(cursor)
        parameters = {"cursor": cursor}
    raise _refused(about, f"lists more than {limits.pages} pages of tools")


def _left_for_tools(about: Listing, limits: ServerLimits) -> int:
    left = limits.listing_bytes - _size(about.instructions) - sum(map(_size, about.about.values()))
    if left < 0:
        raise _refused(about, f"sends more than {limits.listing_bytes} bytes about itself")
    return left


def _twice(name: str) -> ToolProblem:
    return ToolProblem(name, "is listed twice or more; its server can't tell the calls apart", usable=True)


def _text(about: Listing, entry: object) -> str:
    try:
        return json.dumps(entry, ensure_ascii=False)
    except RecursionError:
        raise _refused(about, "lists a tool that is nested too deeply") from None


def _size(text: str) -> int:
    """In bytes. What is half a surrogate pair takes as much as any other character of its range."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _unmarked(hidden: str) -> object:
    """An entry in which secrets were masked. A name that held one can't be called by, so there is none."""
    try:
        entry: Any = json.loads(hidden)
    except ValueError:
        return None
    if isinstance(entry, dict) and "***" in str(cast("dict[str, Any]", entry).get("name")):
        entry["name"] = ""
    return cast("object", entry)


def _refused(about: Listing, problem: str) -> ServerProtocolError:
    return ServerProtocolError(about.server, f"{problem}; none of its tools can be used")
