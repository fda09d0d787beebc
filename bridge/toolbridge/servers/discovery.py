"""Discovery: all pages of `tools/list`, within caps.

The answer is read as plain JSON and not by the SDK's models: one tool that these reject would cost the whole listing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import anyio.to_thread
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp_types import METHOD_NOT_FOUND

from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import ServerProtocolError
from toolbridge.json_codec import is_marked_not_utf8
from toolbridge.servers.failures import BadAnswerError, ChannelClosedError, RequestTimedOutError
from toolbridge.servers.jsonrpc import TOO_DEEP, outcome_of, parse_pruned
from toolbridge.servers.listing import Listing, ToolProblem, parse_tool
from toolbridge.trust.text.sanitise import masked
from toolbridge_codegen.catalog import ToolDefinition, one_per_name

Request = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends one request of a method with parameters, and gives its result."""


class _CutError(Exception):
    """The listing is cut here; what came before is kept."""


async def list_tools(
    about: Listing,
    request: Request,
    limits: ServerLimits,
    secrets: Collection[str] = (),
    *,
    mirrors_headers: bool = False,
) -> Listing:
    """Reads all pages; `about` has the server's handshake. A cap or a bad page cuts the listing, and a problem says so.

    With `mirrors_headers`, tools with an invalid `x-mcp-header` are left out, as the protocol demands of HTTP clients.

    Raises:
        ServerProtocolError: the first page is no listing.
        MCPError: the server refused the first page, or ended, or did not answer in time.
    """
    about = await _in_thread(_without_secrets, about, secrets)
    found = _Found(about, limits, frozenset(secrets), mirrors_headers=mirrors_headers)
    parameters: dict[str, Any] = {}
    try:
        for _ in range(limits.pages):
            page = await _page(about, request, parameters)
            await _in_thread(found.add_page, page)
            if not (cursor := found.next_cursor(page)):
                break
            parameters = {"cursor": cursor}
        else:
            raise _CutError(f"has more than {limits.pages} pages")
    except _CutError as cut:
        found.note(f"{cut}; it is cut after {len(found.tools)} tools")
    return found.listing()


# What a server lists may be megabytes: it is masked in a worker thread, which a timeout doesn't wait for.
_in_thread = partial(anyio.to_thread.run_sync, abandon_on_cancel=True)


def _without_secrets(about: Listing, secrets: Collection[str]) -> Listing:
    return replace(
        about,
        instructions=masked(about.instructions, secrets),
        server_name=masked(about.server_name, secrets),
        server_version=masked(about.server_version, secrets),
        server_title=masked(about.server_title, secrets),
        server_description=masked(about.server_description, secrets),
    )


class _Found:
    """What was listed so far, within caps."""

    def __init__(self, about: Listing, limits: ServerLimits, secrets: frozenset[str], *, mirrors_headers: bool) -> None:
        self.tools: list[ToolDefinition] = []
        self._about = about
        self._problems: list[ToolProblem] = []
        self._limits = limits
        self._secrets = secrets
        self._mirrors_headers = mirrors_headers
        self._cursors: set[str] = set()
        self._listed = 0
        self._left = limits.listing_bytes - _size(about.instructions) - sum(map(_size, about.about.values()))
        if self._left < 0:
            self.note(f"begins with more than {limits.listing_bytes} bytes about the server, which are left out")
            self._about = Listing(about.server, (), protocol_version=about.protocol_version)
            self._left = limits.listing_bytes

    def note(self, problem: str) -> None:
        """Adds a problem of the listing as a whole."""
        self._problems.append(ToolProblem("", problem))

    def add_page(self, page: Mapping[str, Any]) -> None:
        """Adds the tools of a page; one that can't be used costs itself.

        Raises:
            _CutError: a cap is reached.
        """
        if is_marked_not_utf8(page):
            self.note("has bytes that are not UTF-8, which are read as U+FFFD")
        for entry in cast("list[object]", page["tools"]):
            if self._listed == self._limits.tools:
                raise _CutError(f"has more than {self._limits.tools} tools")
            self._listed += 1
            text = _text(entry)
            self._left -= _size(text)
            if self._left < 0:
                raise _CutError(f"has more than {self._limits.listing_bytes} bytes")
            # A server that repeats its own token would have it kept on disk and shown to a model.
            hidden = masked(text, self._secrets)
            tool, problem = parse_tool(entry if hidden == text else _unmarked(hidden), self._listed)
            if tool is not None and (reason := self._unusable(tool, text)):
                tool, problem = None, ToolProblem(tool.name, reason)
            if tool is not None:
                self.tools.append(tool)
            if problem is not None:
                self._problems.append(problem)

    def _unusable(self, tool: ToolDefinition, text: str) -> str:
        if not text or TOO_DEEP in text:
            return "is nested too deeply"
        reason = find_invalid_x_mcp_header(tool.input_schema) if self._mirrors_headers else None
        return f"has an invalid x-mcp-header: {reason[:200]}" if reason else ""

    def next_cursor(self, page: Mapping[str, Any]) -> str:
        """The cursor of the next page; empty after the last.

        Raises:
            _CutError: it can't be followed.
        """
        cursor = page.get("nextCursor")
        if cursor is None:
            return ""
        if not isinstance(cursor, str):
            raise _CutError("goes on with a cursor that is not text")
        if cursor in self._cursors:
            raise _CutError("has no end: the server sent the same cursor twice")
        self._cursors.add(cursor)
        return cursor

    def listing(self) -> Listing:
        """The listing; a name that is listed twice is one tool."""
        counts = Counter(tool.name for tool in self.tools)
        twice = [_twice(name) for name, count in sorted(counts.items()) if count > 1]
        kept = one_per_name(self.tools)
        return replace(self._about, tools=tuple(kept), problems=(*self._problems, *twice), live=True)


async def _page(about: Listing, request: Request, parameters: dict[str, Any]) -> dict[str, Any]:
    """Asks for one page, whose `tools` is a list; an empty one when the server has no tools at all.

    Raises:
        _CutError: a later page can't be had.
    """
    try:
        try:
            page = await request("tools/list", parameters)
        except BadAnswerError as error:
            if not error.too_deep:
                raise
            page = await _in_thread(_pruned_page, error)
        if not isinstance(page.get("tools"), list):
            raise BadAnswerError("answered tools/list without a list of tools")
        return page
    except (ChannelClosedError, RequestTimedOutError):
        raise
    except MCPError as error:
        if parameters:
            raise _CutError("breaks off: a further page was refused or can't be read") from None
        if isinstance(error, BadAnswerError) and not error.too_deep:
            raise ServerProtocolError(about.server, f"{error.error.message}; none of its tools can be used") from None
        if error.error.code != METHOD_NOT_FOUND:
            raise
        return {"tools": []}  # a server of prompts or resources only


def _pruned_page(error: BadAnswerError) -> dict[str, Any]:
    """Parses a page without the parts that are nested too deeply: they cost the tools that they are in."""
    try:
        message = parse_pruned(error.too_deep)
    except ValueError:
        raise error from None
    outcome = outcome_of(cast("dict[str, Any]", message)) if isinstance(message, dict) else error
    if isinstance(outcome, MCPError):
        raise outcome
    return outcome


def _twice(name: str) -> ToolProblem:
    return ToolProblem(name, "is listed twice or more; its server can't tell the calls apart", usable=True)


def _text(entry: object) -> str:
    """An entry as JSON; empty when it is nested too deeply."""
    try:
        return json.dumps(entry, ensure_ascii=False)
    except RecursionError:
        return ""


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
