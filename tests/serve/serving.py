"""A service with clients of both eras, in this process: the SDK's own client, without sockets or pipes."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import jsonschema
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp_types import CallToolResult, ElicitRequestFormParams, ElicitRequestURLParams, ElicitResult, TextContent

from toolbridge import ApprovalStore, Config, ServerConfig
from toolbridge.serve.service import CodeModeServer, ServeOptions, Service
from toolbridge.servers.lifecycle import prepare

Era: TypeAlias = Literal["legacy", "auto"]
ERAS: tuple[Era, ...] = ("legacy", "auto")
"""The handshake, and 2026-07-28."""

Says: TypeAlias = Callable[[ElicitRequestFormParams], ElicitResult]


def yes(params: ElicitRequestFormParams) -> ElicitResult:
    """Agrees to whatever is asked."""
    asked = params.requested_schema["properties"]
    return ElicitResult(action="accept", content={"agree": True} if "agree" in asked else {"allow": "once"})


def no(_params: ElicitRequestFormParams) -> ElicitResult:
    """Refuses."""
    return ElicitResult(action="decline")


class Person:
    """Whoever sits at a client: answers questions, and remembers them."""

    def __init__(self, says: Says = yes) -> None:
        self._says = says
        self.asked: list[ElicitRequestFormParams] = []

    async def __call__(
        self, context: ClientRequestContext, params: ElicitRequestFormParams | ElicitRequestURLParams
    ) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params)
        return self._says(params)

    @property
    def messages(self) -> list[str]:
        return [each.message for each in self.asked]


@asynccontextmanager
async def service_of(
    directory: Path, *servers: ServerConfig, options: ServeOptions | None = None, **config: Any
) -> AsyncGenerator[Service]:
    """A service whose approvals and caches are in a directory of their own."""
    async with Service(
        Config.of(*servers, **config),
        options,
        store=ApprovalStore(directory / "approvals"),
        directory=str(directory / "cache"),
    ) as service:
        yield service


def approve(directory: Path, server: ServerConfig) -> None:
    """As a person did before the service of that directory began."""
    request, *_ = prepare(server, os.environ)
    ApprovalStore(directory / "approvals").approve(request)


@asynccontextmanager
async def client_of(service: Service, era: Era, person: Person | None = None, **more: Any) -> AsyncGenerator[Client]:
    """A client of a service."""
    async with Client(CodeModeServer(service), mode=era, elicitation_callback=person, **more) as client:
        yield client


async def call(client: Client, name: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> CallToolResult:
    """A call whose result is as its schema says."""
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    result = await client.call_tool(name, dict(arguments or {}), **more)
    schema = listed[name].output_schema
    assert schema is not None
    if result.structured_content is not None:
        jsonschema.validate(result.structured_content, schema)
    else:
        assert result.is_error
    return result


async def run(client: Client, code: str, **more: Any) -> dict[str, Any]:
    """What a program comes to."""
    result = await call(client, "run_code", {"code": code, **more})
    assert result.structured_content is not None, text_of(result)
    return result.structured_content


def text_of(result: CallToolResult) -> str:
    """What a model reads."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text
