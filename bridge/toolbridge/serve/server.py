"""Our tools as an MCP server of both eras: the handshake's, and 2026-07-28."""

from __future__ import annotations

from typing import Any

from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    DiscoverResult,
    EmptyResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    RequestParams,
    SetLevelRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolbridge import __version__
from toolbridge.serve.channels import Context
from toolbridge.serve.service import Service

NAME = "toolbridge"
_STATE_SECONDS = 3600.0
"""How long a sealed state can be unsealed. What it names ends sooner."""


class CodeModeServer(Server[Any]):
    """Tells every client at its start which modules there are then."""

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
        service.on_change(service.clients.tell_changed)
        service.on_change(self._publish)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """What `initialize` answers: asked for by the SDK at every handshake."""
        self.instructions = self._service.instructions()
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    async def _discover(self, context: Context, params: RequestParams) -> DiscoverResult:
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
        self._service.clients.of(context).least_level = params.level
        return EmptyResult()

    async def _noted(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """A client that has only just come is told of changes, too."""
        result = await call_next(ctx)
        if ctx.method == "notifications/initialized":
            self._service.clients.of(ctx)
        return result

    async def _publish(self) -> None:
        await self._bus.publish(ToolsListChanged())

    def _input_schema(self, name: str) -> dict[str, Any] | None:
        return next((tool.input_schema for tool in self._service.tools() if tool.name == name), None)
