"""Discovery: all pages of `tools/list`, within caps.

Pages are read as plain JSON and not by the SDK's models, which would reject a whole listing for one odd tool.
"""

from __future__ import annotations

import json
import re
import secrets as random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp_types import METHOD_NOT_FOUND

from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import ServerProtocolError
from toolbridge.json_codec import is_marked_not_utf8
from toolbridge.servers.failures import BadAnswerError, ChannelClosedError, RequestTimedOutError
from toolbridge.servers.jsonrpc import outcome_of, parse_line
from toolbridge.servers.listing import Listing, ToolProblem, parse_tool
from toolbridge.trust.sanitise import masked
from toolbridge_codegen.catalog import ToolDefinition, one_per_name

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

Request = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends one request of a method with parameters, and returns its result."""

TOO_DEEP = f"nested too deeply ({random.token_hex(8)})"
"""Replaces each part of a pruned message that is nested too deeply. No server can foresee it."""

_MAX_DEPTH = 200
_STRING_OR_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


class _CutError(Exception):
    """The listing is cut here; the tools before are kept."""


def handshake_of(session: ClientSession, server: str) -> Listing:
    """Return the server's information from the handshake, unmasked, as a listing without tools."""
    info = session.server_info
    return Listing(
        server=server,
        tools=(),
        protocol_version=session.protocol_version or "",
        server_name=info.name if info else "",
        server_version=info.version if info else "",
        server_title=(info.title or "") if info else "",
        server_description=(info.description or "") if info else "",
        instructions=session.instructions or "",
    )


def announces_changes(session: ClientSession) -> bool:
    """Return whether the server promises notifications of changes to its tools."""
    capabilities = session.server_capabilities
    return bool(capabilities and capabilities.tools and capabilities.tools.list_changed)


async def follow_changes(session: ClientSession, notify: Callable[[], None]) -> None:
    """Subscribe to changes by the newer protocol and call `notify` for each; returns when the subscription is lost."""
    try:
        async with listen(session, tools_list_changed=True) as subscription:
            async for _ in subscription:
                notify()
    except (MCPError, SubscriptionLost, TimeoutError, ValueError):
        return


async def list_tools(
    handshake: Listing,
    request: Request,
    limits: ServerLimits,
    secrets: Collection[str] = (),
    *,
    mirrors_headers: bool = False,
) -> Listing:
    """Read all pages of a server's tools. A cap or a bad page cuts the listing, and a problem says so.

    With `mirrors_headers`, tools with an invalid `x-mcp-header` are left out, as the protocol demands of HTTP clients.

    Raises:
        ServerProtocolError: the first page is no listing.
        MCPError: the server refused the first page, or ended, or did not answer in time.
    """
    handshake = await _in_thread(_without_secrets, handshake, secrets)
    found = _Found(handshake, limits, frozenset(secrets), mirrors_headers=mirrors_headers)
    parameters: dict[str, Any] = {}
    try:
        for _ in range(limits.pages):
            page = await _page(handshake.server, request, parameters)
            await _in_thread(found.add_page, page)
            if not (cursor := found.next_cursor(page)):
                break
            parameters = {"cursor": cursor}
        else:
            raise _CutError(f"has more than {limits.pages} pages")
    except _CutError as cut:
        found.add_problem(f"{cut}; it is cut after {len(found.tools)} tools")
    return found.listing()


# A listing may be megabytes: its secrets are masked in a worker thread, which a timeout doesn't wait for.
_in_thread = partial(anyio.to_thread.run_sync, abandon_on_cancel=True)


def _without_secrets(handshake: Listing, secrets: Collection[str]) -> Listing:
    """Return a copy of a handshake with secrets masked in its texts."""
    fields = ("instructions", "server_name", "server_version", "server_title", "server_description")
    return replace(handshake, **{field: masked(getattr(handshake, field), secrets) for field in fields})


class _Found:
    """The tools listed so far, within caps."""

    def __init__(
        self, handshake: Listing, limits: ServerLimits, secrets: frozenset[str], *, mirrors_headers: bool
    ) -> None:
        self.tools: list[ToolDefinition] = []
        self._handshake = handshake
        self._problems: list[ToolProblem] = []
        self._limits = limits
        self._secrets = secrets
        self._mirrors_headers = mirrors_headers
        self._cursors: set[str] = set()
        self._listed = 0
        self._left = limits.listing_bytes - _size(handshake.instructions) - sum(map(_size, handshake.about.values()))
        if self._left < 0:
            self.add_problem(f"begins with more than {limits.listing_bytes} bytes about the server, which are left out")
            self._handshake = Listing(handshake.server, (), protocol_version=handshake.protocol_version)
            self._left = limits.listing_bytes

    def add_problem(self, problem: str) -> None:
        """Add a problem of the listing as a whole."""
        self._problems.append(ToolProblem("", problem))

    def add_page(self, page: Mapping[str, Any]) -> None:
        """Add the tools of a page, secrets masked; an unusable one becomes a problem. Blocks: run it in a thread.

        Raises:
            _CutError: a cap is reached.
        """
        if is_marked_not_utf8(page):
            self.add_problem("has bytes that are not UTF-8, which are read as U+FFFD")
        for entry in cast("list[object]", page["tools"]):
            if self._listed == self._limits.tools:
                raise _CutError(f"has more than {self._limits.tools} tools")
            self._listed += 1
            text = _json(entry)
            self._left -= _size(text)
            if self._left < 0:
                raise _CutError(f"has more than {self._limits.listing_bytes} bytes")
            # A server may repeat its own token, which must not be stored on disk or shown to a model.
            hidden = masked(text, self._secrets)
            tool, problem = parse_tool(entry if hidden == text else _parse_masked(hidden), self._listed)
            if tool is not None and (reason := self._why_unusable(tool, text)):
                tool, problem = None, ToolProblem(tool.name, reason)
            if tool is not None:
                self.tools.append(tool)
            if problem is not None:
                self._problems.append(problem)

    def _why_unusable(self, tool: ToolDefinition, text: str) -> str:
        """Say why a parsed tool can't be used, given its JSON: nested too deeply, an invalid header; "" if it can."""
        if not text or TOO_DEEP in text:
            return "is nested too deeply"
        reason = find_invalid_x_mcp_header(tool.input_schema) if self._mirrors_headers else None
        return f"has an invalid x-mcp-header: {reason[:200]}" if reason else ""

    def next_cursor(self, page: Mapping[str, Any]) -> str:
        """Return the cursor of the next page and remember it; empty after the last.

        Raises:
            _CutError: it is no text, or came before.
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
        """Return the listing so far with one tool per name; a name that is listed twice becomes a problem."""
        counts = Counter(tool.name for tool in self.tools)
        problem = "is listed twice or more; its server can't tell the calls apart"
        twice = [ToolProblem(name, problem, usable=True) for name, count in sorted(counts.items()) if count > 1]
        kept = one_per_name(self.tools)
        return replace(self._handshake, tools=tuple(kept), problems=(*self._problems, *twice), live=True)


async def _page(server: str, request: Request, parameters: dict[str, Any]) -> dict[str, Any]:
    """Request one page, whose `tools` is a list; an empty one when the server has no tools at all.

    Raises:
        _CutError: a later page was refused or is malformed.
        ServerProtocolError: the first page is malformed.
        MCPError: the first page was refused; on any page, the server ended or did not answer in time.
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
            raise ServerProtocolError(server, f"{error.error.message}; none of its tools can be used") from None
        if error.error.code != METHOD_NOT_FOUND:
            raise
        return {"tools": []}  # a server of prompts or resources only


def _pruned_page(error: BadAnswerError) -> dict[str, Any]:
    """Parse a page that is nested too deeply without the parts that are: only the tools around them are lost.

    Raises:
        MCPError: the answer is an error, or still unreadable.
    """
    try:
        message = parse_pruned(error.too_deep)
    except ValueError:
        raise error from None
    outcome = outcome_of(cast("dict[str, Any]", message)) if isinstance(message, dict) else error
    if isinstance(outcome, MCPError):
        raise outcome
    return outcome


def parse_pruned(line: bytes) -> Any:
    """Parse a message with `TOO_DEEP` in place of each part below a fixed depth. Slow for many brackets.

    Raises:
        ValueError: it is not JSON.
    """
    pieces: list[bytes] = []
    depth = kept = 0
    for token in _STRING_OR_BRACKET.finditer(line):
        if token[0] in b"[{":
            depth += 1
            if depth == _MAX_DEPTH:
                pieces += line[kept : token.start()], f'"{TOO_DEEP}"'.encode()
        elif token[0] in b"]}":
            if depth == _MAX_DEPTH:
                kept = token.end()
            depth -= 1
    if depth >= _MAX_DEPTH:
        raise ValueError("it is nested too deeply, and cut short")
    return parse_line(b"".join((*pieces, line[kept:])))


def _json(entry: object) -> str:
    """Return an entry as JSON; "" when it is nested too deeply."""
    try:
        return json.dumps(entry, ensure_ascii=False)
    except RecursionError:
        return ""


def _size(text: str) -> int:
    """The size in UTF-8; a lone surrogate counts as any other character of its range."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _parse_masked(hidden: str) -> object:
    """Parse an entry with masked secrets; a masked name becomes "", since no call could use it. None if not JSON."""
    try:
        entry: Any = json.loads(hidden)
    except ValueError:
        return None
    if isinstance(entry, dict) and "***" in str(cast("dict[str, Any]", entry).get("name")):
        entry["name"] = ""
    return cast("object", entry)
