"""A client of toolbridge's for the official conformance suite: connects to the URL it is given, and calls every tool.

The suite starts it as a program, and watches from the server's side.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import anyio

from toolbridge.config.config import Config
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import ServerError
from toolbridge.servers.manager import ServerManager
from toolbridge.trust.approval.approver import Approval, ApprovalRequest


class _ApproveAll:
    async def approve(self, request: ApprovalRequest) -> Approval:
        return Approval(True)


_VALUES: dict[str, Any] = {"string": "text", "integer": 7, "number": 7, "boolean": True, "array": [], "object": {}}


def _arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """A value of the right type for every property."""
    return {name: _value(each) for name, each in schema.get("properties", {}).items()}


def _value(schema: dict[str, Any]) -> Any:
    if schema.get("type") == "object":
        return _arguments(schema)
    return schema["enum"][0] if "enum" in schema else _VALUES.get(str(schema.get("type")), "text")


def _wanted() -> list[tuple[str, dict[str, Any]]]:
    """The calls that a scenario asks for, if it does."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    return [(each["name"], each["arguments"]) for each in context.get("toolCalls", [])]


async def _call_all(url: str) -> None:
    server = ServerConfig(name="suite", transport="http", url=url)
    async with ServerManager(Config.of(server), approver=_ApproveAll()) as manager:
        listing = await manager.connect("suite")
        for name, arguments in _wanted() or [
            (tool.name, _arguments(dict(tool.input_schema))) for tool in listing.tools
        ]:
            try:
                await manager.call("suite", name, arguments)
            except ServerError as error:
                sys.stderr.write(f"{error}\n")  # a scenario may fail a call on purpose


if __name__ == "__main__":
    anyio.run(_call_all, sys.argv[1])
