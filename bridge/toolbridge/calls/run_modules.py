"""The modules of one run or session: a server's tools as functions, made when guest code first asks for them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio

from toolbridge.advice import advised
from toolbridge.boundary.host_call import BRIDGE, CallFailed, HostFunction, HostSide, Reply, no_such_module
from toolbridge.boundary.python_names import known_specifier
from toolbridge.boundary.run_clock import RunClock
from toolbridge.boundary.wire import ErrorFrame
from toolbridge.calls.call_errors import import_failed
from toolbridge.calls.handles import HandleStore
from toolbridge.calls.tool_call import ToolCalls
from toolbridge.errors import ServerError
from toolbridge_codegen.catalog import ModuleSpec, module_specifier
from toolbridge_codegen.names import identifier

if TYPE_CHECKING:
    from toolbridge.servers.attempt import Place
    from toolbridge.servers.manager import ServerManager

# A specifier as a program writes it: within quotes of any kind.
_MENTIONED = re.compile(r"""["'`]host:mcp-([a-z0-9_-]{1,64})(?:/async)?["'`]""")
# The same in Python, where a dash is an underscore.
_MENTIONED_IN_PYTHON = re.compile(r"\bhost\.mcp_([a-z0-9_]{1,64})\b")
_IMPORTED_IN_PYTHON = re.compile(r"^[ \t]*from[ \t]+host[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_PYTHON_NAME = re.compile(r"\bmcp_([a-z0-9_]{1,64})\b")
_MOST_MENTIONED = 50


class RunModules:
    """Which modules guest code has imported, and which tools their functions call."""

    def __init__(self, manager: ServerManager, handles: HandleStore, clock: RunClock) -> None:
        self._manager = manager
        self._clock = clock
        self._modules: dict[str, dict[str, HostFunction]] = {BRIDGE: handles.functions()}
        self._source = ""
        self._calls: ToolCalls | None = None
        self._problems: dict[str, ServerError] = {}
        """Of servers that could not be connected before the run: it does not try again."""

    @property
    def host(self) -> HostSide:
        """For the sandbox."""
        return HostSide(self._modules, self._import, self._clock)

    def begin(self, source: str, calls: ToolCalls) -> None:
        """A run begins: its calls go through these."""
        self._source = source
        self._calls = calls
        self._problems = {}

    async def wait_for_approvals(self, source: str) -> None:
        """Until everybody who is asked about the servers whose modules a program names has answered."""

        async def wait(name: str) -> None:
            with suppress(ServerError):  # connecting it says so
                await self._manager.wait_for_approval(name)

        async with anyio.create_task_group() as tasks:
            for name in mentioned_servers(source, self._manager.enabled_servers())[:_MOST_MENTIONED]:
                tasks.start_soon(wait, name)

    async def connect_named(self, source: str) -> tuple[str, ...]:
        """Connects the servers whose modules a program names, as importing them would; those that are connected now."""
        named = mentioned_servers(source, self._manager.enabled_servers())[:_MOST_MENTIONED]

        async def connect(name: str) -> None:
            try:
                if name not in self._problems:
                    await self._manager.connect(name, place="in_turn")
            except ServerError as error:  # the program hears of it when it imports the module
                self._problems[name] = error

        async with anyio.create_task_group() as tasks:
            for name in named:
                tasks.start_soon(connect, name)
        return tuple(name for name in named if name not in self._problems)

    async def _import(self, specifier: str) -> None:
        """Connects the server of a module, if there is one, and offers its tools.

        Raises:
            CallFailed: there is no such module, or its server can't be connected.
        """
        servers = {module_specifier(name): name for name in self._manager.enabled_servers()}
        specifier = known_specifier(specifier, servers)
        server = servers.get(specifier)
        if server is None:
            raise CallFailed(self._disabled(specifier) or no_such_module(servers, specifier))
        await self._connect_mentioned(set(servers.values()) - {server}, server)
        module = self._manager.catalog.module(specifier)
        self._modules[specifier] = self._functions(server, module)

    def _disabled(self, specifier: str) -> ErrorFrame | None:
        """The error for a module whose server is switched off; None for one that is not configured at all."""
        servers = {module_specifier(status.name): status.name for status in self._manager.statuses()}
        server = servers.get(known_specifier(specifier, servers))
        if server is None:
            return None
        words = f"Server {server!r} is disabled: it has no module. A person can run {advised(f'enable {server}')}."
        return ErrorFrame("unknown", words, name="ModuleError", server=server)

    async def _connect_mentioned(self, others: set[str], server: str) -> None:
        """Connects this server, and in the same time those that the program names elsewhere: it will want them next."""
        mentioned = _mentioned(self._source, others)
        problem: ServerError | None = None

        async def connect(name: str) -> None:
            nonlocal problem
            try:
                if name in self._problems:
                    raise self._problems[name]
                place: Place = "in_turn" if name == server else "if_free"
                with self._clock.stopped():  # a person may have to read what it would be
                    await self._manager.wait_for_approval(name, place=place)
                await self._manager.connect(name, place=place)
            except ServerError as error:  # of the others, the program hears when it imports them
                problem = error if name == server else problem

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connect, server)
            for name in sorted(mentioned)[:_MOST_MENTIONED]:
                tasks.start_soon(connect, name)
        if problem is not None:
            assert self._calls is not None
            self._calls.heard(problem, server)
            raise import_failed(problem, server, self._manager)

    def _functions(self, server: str, module: ModuleSpec | None) -> dict[str, HostFunction]:
        functions = {tool.identifier: self._tool(server, tool.name) for tool in module.tools} if module else {}
        # A program that was written before a tool changed is told so when it calls it, and not that there is none.
        # A name that had to be changed could be another tool's: that one is missing.
        for name in self._manager.changed_tools(server):
            if identifier(name) == name:
                functions.setdefault(name, self._tool(server, name))
        return functions

    def _tool(self, server: str, tool: str) -> HostFunction:
        def call(*given: Any) -> Reply | Awaitable[Reply]:
            assert self._calls is not None
            return self._calls.call(server, tool, given)

        return HostFunction(call, is_async=True, keeps_time=True, server=server, tool=tool, may_answer=True)


def mentioned_servers(source: str, known: Sequence[str]) -> tuple[str, ...]:
    """Servers whose modules a program names."""
    return tuple(sorted(_mentioned(source, known)))


def _mentioned(source: str, known: Iterable[str]) -> set[str]:
    named = set(_MENTIONED.findall(source))
    in_python = set(_MENTIONED_IN_PYTHON.findall(source))
    for names in _IMPORTED_IN_PYTHON.findall(source):
        in_python.update(_PYTHON_NAME.findall(names))
    return {server for server in known if server in named or server.replace("-", "_") in in_python}
