"""Servers in this process that remember every call that reached them, for the gate's threat tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

from runtime.worlds import runtime_of
from toolbridge import Config, Permissions, Runtime, ServerConfig
from toolbridge.approval import CanUseTool
from toolbridge.config.policy import Level


class Reached:
    """What reached the servers."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def server(self, name: str, tools: Mapping[str, Mapping[str, Any]], *labels: str) -> ServerConfig:
        """A server with tools of these names and annotations, each with one optional text for an argument."""
        server = MCPServer(name)

        def add(tool: str, hints: Mapping[str, Any]) -> None:
            def handler(text: str = "", other: Any = None) -> str:
                self.calls.append((name, tool))
                if text == "fail":
                    raise ValueError("as asked")
                return f"{name} did {tool}"

            server.add_tool(handler, name=tool, description=tool, annotations=ToolAnnotations.model_validate(hints))

        for tool, hints in tools.items():
            add(tool, hints)
        return ServerConfig.in_process(name, server, labels=labels)


@asynccontextmanager
async def gated(
    directory: Path,
    *servers: ServerConfig,
    flows: Mapping[str, Level] | None = None,
    can_use_tool: CanUseTool | None = None,
    **permissions: Any,
) -> AsyncGenerator[Runtime]:
    """A runtime with these servers, all approved, and these permissions."""
    config = Config.of(*servers, permissions=Permissions(**permissions), flows=flows)
    async with runtime_of(directory, config=config, can_use_tool=can_use_tool, pins="none") as runtime:
        yield runtime
