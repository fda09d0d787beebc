"""The service behind all transports: one runtime, its tools, and the MCP server that exposes them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import anyio
import anyio.abc
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    DiscoverResult,
    EmptyResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    RequestParams,
    SetLevelRequestParams,
    Tool,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolbridge import ApprovalStore, Config, Limits, Runtime, ToolbridgeError, __version__, open_runtime
from toolbridge.events import Observer
from toolbridge.pins import LockPins
from toolbridge.serve.channels import Context, RequestChannel, Rounds
from toolbridge.serve.clients import Caller, Client, ClientKey, Clients, Watch, gone_event, set_caller
from toolbridge.serve.definitions import ArgumentError, ArgumentReader, instructions, module_names, refusal, tools
from toolbridge.serve.elicitation import CallersPerson, ClientApprover, OpenQuestions, PassedOn, ToolAcceptance
from toolbridge.serve.lookup import Listings, describe, search_tools
from toolbridge.serve.management import Management, ServerConnector
from toolbridge.serve.run_code import GuestSessions, Runs, SessionLimits

_log = logging.getLogger("toolbridge")
_SECONDS_BETWEEN_SWEEPS = 2.0
_SECONDS_OF_CHANGES = 0.2
_MOST_ROUNDS = 256


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Options of a service."""

    limits: Limits = field(default_factory=Limits)
    """Of each program; `wall_seconds` is also the longest timeout a model can request."""
    sessions: SessionLimits = field(default_factory=SessionLimits)
    runs_at_once: int = 16
    asks: bool = True
    """Whether persons are asked through their clients."""
    management: bool = True
    config_file: str | None = None
    """The value of `--config`, for commands in error messages."""
    observers: tuple[Observer, ...] = ()


class Service:
    """The tools over one runtime. An asynchronous context manager."""

    def __init__(
        self,
        config: Config,
        options: ServeOptions | None = None,
        *,
        store: ApprovalStore | None = None,
        directory: str | None = None,
    ) -> None:
        self.options = options or ServeOptions()
        self._store = store or ApprovalStore()
        self._changed = anyio.Event()
        self.watch = Watch(self._note_change, self._secrets_of)
        asks = self.options.asks
        questions = OpenQuestions()
        self.runtime: Runtime = open_runtime(
            config,
            approver=ClientApprover(self._store, config_file=self.options.config_file, asks=asks),
            elicitor=PassedOn(self.watch.callers_of, self._secrets_of) if asks else None,
            can_use_tool=CallersPerson() if asks else None,
            limits=self.options.limits,
            observers=(self.watch, *self.options.observers),
            pins=LockPins(on_first_use="ask", accept=ToolAcceptance(questions, asks=asks)),
            directory=directory,
        )
        self.clients = Clients()
        limits = self.options.limits
        connector = ServerConnector(self.runtime, questions)
        self.sessions = GuestSessions(self.runtime, self.options.sessions, limits)
        self.listings = Listings(self.runtime, connector, seconds=limits.wall_seconds)
        self._runs = Runs(self.runtime, self.sessions, connector, limits, self.options.runs_at_once)
        self._management = Management(
            self.runtime, self._store, connector, self.watch.callers_of, seconds=limits.wall_seconds
        )
        self._rounds = Rounds(self.perform, ask_seconds=limits.ask_seconds, most=_MOST_ROUNDS)
        self._stack = AsyncExitStack()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._listeners: list[Callable[[], Awaitable[None]]] = []
        self._shown = ""

    async def __aenter__(self) -> Service:
        await self._stack.enter_async_context(self.runtime)
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._tasks.start_soon(self._sweep)
        self._tasks.start_soon(self._announce)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        del kind, error, traceback
        assert self._tasks is not None
        self.sessions.close()
        self._tasks.cancel_scope.cancel()
        await self._stack.__aexit__(None, None, None)

    # ── what a client is shown ───────────────────────────────────────────────────────────────────────────────────

    def tools(self) -> tuple[Tool, ...]:
        """Returns the definitions that tools/list answers; search_tools names the servers."""
        return self._definitions(module_names(self.runtime.list_modules()))

    def tool(self, name: str) -> Tool | None:
        """Returns the definition of one tool, without the servers' names; None if it isn't offered.

        Cheap enough for every call: it lists no modules.
        """
        return next((tool for tool in self._definitions("") if tool.name == name), None)

    def _definitions(self, modules: str) -> tuple[Tool, ...]:
        """Returns the definitions by these options; `modules` is the text that search_tools appends."""
        return tools(
            modules,
            most_seconds=self.options.limits.wall_seconds,
            sessions=self.options.sessions.total > 0,
            management=self.has_management,
        )

    @property
    def has_management(self) -> bool:
        """Returns whether the management tools are offered: only while MCP is enabled."""
        return self.options.management and self.runtime.config.gateway

    def instructions(self) -> str:
        """Writes the instructions for a client, with the modules that there are now."""
        return instructions(self.runtime.list_modules())

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def call(self, context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        """Performs a client's call and returns its result, or questions to answer first (2026-07-28).

        Raises:
            MCPError: there is no such tool, or no such call to continue.
        """
        if self.tool(params.name) is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        client = self.clients.of(context)
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            assert self._tasks is not None
            return await self._rounds.call(context, params, client, self._tasks)
        caller = Caller(client, RequestChannel(context), ask_seconds=self.options.limits.ask_seconds)
        return await self.perform(caller, params, gone=gone_event(context))

    async def perform(
        self, caller: Caller, params: CallToolRequestParams, gone: anyio.Event | None = None
    ) -> CallToolResult:
        """Performs a call while sending its notifications; errors are results. Closes the caller at the end.

        When `gone` is set, as the client disconnects, the call is cancelled.
        """
        set_caller(caller)
        result = refusal("The client is gone.")

        async def watch() -> None:
            """Cancels the call when the client disconnects."""
            assert gone is not None
            await gone.wait()
            tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                if gone is not None:
                    tasks.start_soon(watch)
                async with anyio.create_task_group() as delivery:
                    delivery.start_soon(caller.deliver)
                    result = await self._answer(caller, params)
                    caller.finish()
                tasks.cancel_scope.cancel()
        finally:
            caller.close()
        return result

    async def _answer(self, caller: Caller, params: CallToolRequestParams) -> CallToolResult:
        """Calls a tool; every error becomes an error result.

        Unexpected ones are logged, and their text is not shown.
        """
        name, definition = params.name, self.tool(params.name)
        known = () if definition is None else definition.input_schema["properties"]
        try:
            return await self._tool(name, caller, ArgumentReader(name, params.arguments or {}, known))
        except (ArgumentError, ToolbridgeError) as error:
            return refusal(str(error))
        except Exception:
            _log.exception("The tool %r failed inside toolbridge", name)
            return refusal("toolbridge failed in the middle of this; its log says why.")

    async def _tool(self, name: str, caller: Caller, arguments: ArgumentReader) -> CallToolResult:
        """Calls a tool by its name; any unknown name is `manage_mcp`."""
        if name == "search_tools":
            return await search_tools(self.runtime, self.listings, arguments)
        if name == "describe":
            return await describe(self.runtime, self.listings, arguments)
        if name == "run_code":
            return await self._runs.run_code(arguments, caller)
        if name == "list_mcp_servers":
            return await self._management.list_servers(caller, asks=self.options.asks)
        if name == "mcp_server_info":
            return await self._management.server_info(arguments)
        return await self._management.manage(arguments, caller)

    def forget(self, client: ClientKey) -> None:
        """Removes a disconnected client and closes its sessions."""
        self.clients.forget(client)
        self.sessions.close_of(client)

    # ── in the background ────────────────────────────────────────────────────────────────────────────────────────

    def on_change(self, listener: Callable[[], Awaitable[None]]) -> None:
        """Registers a listener for changes of the tools that clients see; it is never removed."""
        self._listeners.append(listener)

    def facts(self) -> Mapping[str, Any]:
        """Returns counters and gauges for /metrics."""
        watch = self.watch
        return {
            "runs_total": watch.runs,
            "runs_failed_total": watch.failed_runs,
            "calls_total": watch.calls,
            "calls_failed_total": watch.failed_calls,
            "runs_active": watch.running,
            "sessions": len(self.sessions),
            "rounds_waiting": len(self._rounds),
            "servers_connected": sum(each.state == "connected" for each in self.runtime.servers.statuses()),
        }

    def _secrets_of(self, server: str) -> frozenset[str]:
        return self.runtime.servers.secrets(server)

    def _note_change(self) -> None:
        self._changed.set()

    async def _announce(self) -> None:
        """Waits for changes of the modules and notifies listeners, debounced; never returns."""
        self._shown = self._seen()
        while True:
            await self._changed.wait()
            await anyio.sleep(_SECONDS_OF_CHANGES)
            self._changed = anyio.Event()
            now = self._seen()
            if now != self._shown:
                self._shown = now
                await self._notify_all(self._listeners)

    async def _notify_all(self, listeners: Iterable[Callable[[], Awaitable[None]]]) -> None:
        """Calls each listener in turn; logs what one raises."""
        for listener in listeners:
            try:
                await listener()
            except Exception:
                _log.exception("A change could not be announced")

    def _seen(self) -> str:
        """Returns a text that changes with the tools that clients see."""
        modules = self.runtime.list_modules()
        return f"{self.has_management} {[(module.specifier, module.tools) for module in modules]}"

    async def _sweep(self) -> None:
        """Closes idle sessions and ends forgotten calls every two seconds; never returns."""
        while True:
            await anyio.sleep(_SECONDS_BETWEEN_SWEEPS)
            self.sessions.close_idle()
            self._rounds.end_forgotten()


__all__ = ["Client", "ServeOptions", "Service"]


# The MCP server, for both protocol versions: the handshake (≤ 2025-11) and 2026-07-28.


NAME = "toolbridge"
_STATE_SECONDS = 3600.0
"""The lifetime of a seal; the call that it names ends sooner."""


class CodeModeServer(Server[Any]):
    """The MCP server. Instructions list the modules at the time of the handshake."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._bus = InMemorySubscriptionBus()
        super().__init__(
            NAME,
            version=__version__,
            title="toolbridge",
            description="Your MCP servers as modules for programs in a sandbox",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=ListenHandler(self._bus),
            cache_hints={"tools/list": CacheHint(ttl_ms=0, scope="private")},
            get_tool_input_schema=self._input_schema,
        )
        self.add_request_handler("logging/setLevel", SetLevelRequestParams, self._set_level)
        self.add_request_handler("server/discover", RequestParams, self._discover)
        security = RequestStateSecurity.ephemeral(ttl=_STATE_SECONDS)
        self.middleware.append(RequestStateBoundary(security, default_audience=NAME))
        self.middleware.append(self._noted)
        service.on_change(service.clients.notify_changed)
        service.on_change(self._publish)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Makes the answer to `initialize`, with the modules of now; the SDK calls this at every handshake."""
        self.instructions = self._service.instructions()
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    async def _discover(self, context: Context, params: RequestParams) -> DiscoverResult:
        """Answers `server/discover` with the modules that there are now."""
        del params
        return DiscoverResult(
            supported_versions=list(MODERN_PROTOCOL_VERSIONS),
            capabilities=self.get_capabilities(protocol_version=context.protocol_version),
            instructions=self._service.instructions(),
        )

    async def _list_tools(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        del context, params
        return ListToolsResult(tools=list(self._service.tools()))

    async def _call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        return await self._service.call(context, params)

    async def _set_level(self, context: Context, params: SetLevelRequestParams) -> EmptyResult:
        """Sets the minimum level of a client's log notifications."""
        self._service.clients.of(context).least_level = params.level
        return EmptyResult()

    async def _noted(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Passes a request on, and registers a client after its handshake, for notifications of changes."""
        result = await call_next(ctx)
        if ctx.method == "notifications/initialized":
            self._service.clients.of(ctx)
        return result

    async def _publish(self) -> None:
        """Notifies clients that subscribed (2026-07-28) of changed tools."""
        await self._bus.publish(ToolsListChanged())

    def _input_schema(self, name: str) -> dict[str, Any] | None:
        """Returns a tool's input schema; None if it isn't offered."""
        tool = self._service.tool(name)
        return None if tool is None else tool.input_schema
