"""search_tools and describe: finding functions, and their types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

import anyio
import anyio.to_thread
from mcp_types import CallToolResult

from toolbridge import Runtime, ServerError
from toolbridge.describe.modules import GuestLanguage, stub_language
from toolbridge.describe.search import folded
from toolbridge.serve.definitions import LANGUAGES, MOST_HITS, MOST_NAMES, ArgumentReader, answer
from toolbridge.serve.management import ServerConnector, problem_text
from toolbridge_codegen.stubs import generate

if TYPE_CHECKING:
    from toolbridge_codegen.catalog import Catalog, ModuleSpec, ToolSpec

_MOST_TEXT = 100_000
"""Characters of declarations. Above, the compact form, then truncated."""
_SECONDS_BETWEEN = 60.0
"""Seconds before an unreachable server is retried for its listing."""


class Listings:
    """Connects servers without a listing before a search."""

    def __init__(self, runtime: Runtime, connector: ServerConnector, *, seconds: float) -> None:
        self._runtime = runtime
        self._connector = connector
        self._seconds = seconds
        """The longest wait for another client's person."""
        self._tried: dict[str, tuple[float, str]] = {}
        self._under_way: set[str] = set()

    async def complete(self) -> list[dict[str, str]]:
        """Connects enabled servers without a listing, and waits; returns those that failed, with reason and remedy.

        A server that another call is connecting, or that failed within the last minute, is not tried.
        """
        manager = self._runtime.servers
        enabled = set(manager.enabled_servers())
        unknown = [each.name for each in manager.statuses() if each.tools is None and each.name in enabled]
        problems: dict[str, str] = {}

        async def ask(name: str) -> None:
            """Connects a server, and keeps its problem if there is one."""
            problem = await self._problem_of(name)
            if problem:
                problems[name] = problem

        async with anyio.create_task_group() as tasks:
            for name in unknown:
                if name in self._under_way:  # another client's person may be deciding
                    problems[name] = "It is being connected for another call: try again later."
                else:
                    tasks.start_soon(ask, name)
        return [{"server": name, "reason": problems[name]} for name in unknown if name in problems]

    async def _problem_of(self, name: str) -> str:
        """Connects a server; returns why that failed, or "". Repeats a failure of the last minute without a new try."""
        when, before = self._tried.get(name, (float("-inf"), ""))
        if anyio.current_time() - when < _SECONDS_BETWEEN:
            return before
        self._under_way.add(name)
        try:
            await self._connector.connect(name, self._seconds, acquire="queue")
        except ServerError as error:
            problem = problem_text(self._runtime, name, error)
            if self._runtime.servers.status(name).state != "needs_approval":
                self._tried[name] = anyio.current_time(), problem
            return problem
        finally:
            self._under_way.discard(name)
        self._tried.pop(name, None)
        return ""


async def search_tools(runtime: Runtime, listings: Listings, arguments: ArgumentReader) -> CallToolResult:
    """Searches functions, best match first, after connecting servers without a listing.

    Raises:
        ArgumentError: the query is missing or too long, or the limit is out of range.
    """
    query = arguments.text("query", most=1_000)
    limit = int(arguments.number("limit", least=1, most=MOST_HITS, default=8))
    unavailable = await listings.complete()
    search = runtime.prepared_search(query, limit=limit)
    hits = await anyio.to_thread.run_sync(search, abandon_on_cancel=True)
    await runtime.servers.update_approval_states()
    waiting = {each.name for each in runtime.servers.statuses() if each.state == "needs_approval"}
    facts = [
        {
            "module": hit.module,
            "function": hit.identifier,
            "signature": hit.signature,
            "summary": hit.summary,
            **({"deprecated": True} if hit.deprecated else {}),
            **({"needsApproval": True} if hit.server in waiting else {}),
        }
        for hit in hits
    ]
    lines = [
        f"{hit.module}  {hit.signature}"
        + (f"\n    {hit.summary}" if hit.summary else "")
        + ("\n    [its server is not approved: a call asks the person, or is refused]" if hit.server in waiting else "")
        for hit in hits
    ]
    text = "\n".join(lines) or "No function matches."
    return answer(text + _words(unavailable), {"hits": facts, "unavailable": unavailable})


async def describe(runtime: Runtime, listings: Listings, arguments: ArgumentReader) -> CallToolResult:
    """Writes the declarations of modules and functions in the program's language; an error result if none is known.

    Connects servers without a listing if a name is unknown.

    Raises:
        ArgumentError: an argument is missing or malformed.
    """
    names = arguments.texts("names", most=MOST_NAMES)
    language = cast("GuestLanguage", arguments.choice("language", LANGUAGES, default=LANGUAGES[0]))
    detail = cast('Literal["full", "compact"]', arguments.choice("detail", ("full", "compact"), default="full"))
    catalog = runtime.catalog
    unavailable: list[dict[str, str]] = []
    if any(not _found(catalog, name) for name in names):
        unavailable = await listings.complete()
        catalog = runtime.catalog
    chosen: dict[str, set[str]] = {}
    unknown: list[str] = []
    for name in names:
        found = _found(catalog, name)
        for module, tools in found:
            chosen.setdefault(module.server, set()).update(tool.identifier for tool in tools)
        if not found:
            unknown.append(name[:200])
    part = replace(catalog, modules=tuple(_part(catalog, chosen)))
    text = await anyio.to_thread.run_sync(_declarations, runtime, part, language, detail, abandon_on_cancel=True)
    if unknown:
        text += f"\nUnknown: {', '.join(unknown)}. search_tools finds names.\n"
    facts = {"text": text, "unknown": unknown, "unavailable": unavailable}
    return answer(text.strip() + _words(unavailable), facts, failed=not chosen)


def _found(catalog: Catalog, name: str) -> Sequence[tuple[ModuleSpec, Sequence[ToolSpec]]]:
    """Resolves a name, ignoring case and separators if need be: to a module with all its tools, or to single tools.

    Returns an empty list for an unknown name.
    """
    wanted = folded(name)
    for same in (str, folded):  # exact match first: `github` is not `git-hub` if both exist
        for module in catalog.modules:
            if same(name) in {same(each) for each in (module.server, module.specifier, module.python_module)}:
                return [(module, module.tools)]
    exact = [(module, [tool]) for module in catalog.modules for tool in module.tools if name in _names(module, tool)]
    if exact:
        return exact
    return [
        (module, [tool])
        for module in catalog.modules
        for tool in module.tools
        if wanted in {folded(each) for each in _names(module, tool)}
    ]


def _names(module: ModuleSpec, tool: ToolSpec) -> Iterable[str]:
    """Lists the names by which a tool may be asked for."""
    modules = (module.server, module.specifier, module.python_module)
    return (tool.identifier, tool.name, tool.qualified_name, *(f"{each}.{tool.identifier}" for each in modules))


def _part(catalog: Catalog, chosen: dict[str, set[str]]) -> Iterable[ModuleSpec]:
    """Yields the modules of `chosen` (server → identifiers), each with these tools only."""
    for module in catalog.modules:
        wanted = chosen.get(module.server)
        if wanted is not None:
            tools = tuple(tool for tool in module.tools if tool.identifier in wanted)
            yield module if len(tools) == len(module.tools) else replace(module, tools=tools, instructions="")


def _declarations(runtime: Runtime, part: Catalog, language: GuestLanguage, detail: Literal["full", "compact"]) -> str:
    """Writes the stubs of these modules; above 100,000 characters the compact form, then a truncated one."""
    written = stub_language(language)
    files = generate(part, language=written, detail=detail, errors=runtime.config.errors).files
    # The asynchronous twins add nothing, and the instructions cover host:bridge.
    kept = {
        name: text
        for name, text in files.items()
        if not name.endswith("/aio.pyi") and name not in ("bridge.d.ts", "host/__init__.pyi", "host/bridge.pyi")
    }
    comment = "#" if written == "python" else "//"
    text = "\n".join(f"{comment} {name}\n{_without_twin(body)}" for name, body in kept.items())
    if len(text) <= _MOST_TEXT:
        return text
    if detail == "full":
        shorter = _declarations(runtime, part, language, "compact")
        return f"{comment} Too long in full: one line for each function. Describe fewer for all types.\n{shorter}"
    return f"{text[:_MOST_TEXT]}\n{comment} … cut: describe fewer\n"


def _without_twin(text: str) -> str:
    """Removes the last module of a `.d.ts`: the asynchronous twin."""
    place = text.rfind("\ndeclare module ")
    return text[: place + 1] if place > 0 else text


def _words(unavailable: Sequence[dict[str, Any]]) -> str:
    """Writes the servers that are not available, for the end of a text; empty if there are none."""
    lines = [f"- {each['server']}: {each['reason']}" for each in unavailable]
    return "\n\nNot available:\n" + "\n".join(lines) if lines else ""
