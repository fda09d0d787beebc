"""Requests for approval, as `servers.start` makes them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from toolbridge.config.config import configuration_digest
from toolbridge.config.server_config import Origin, ServerConfig, checked_server
from toolbridge.trust.approval.approver import ApprovalRequest

PROJECT = Origin("project", "/srv/shop/toolbridge.json")


def stdio(name: str = "weather", *args: str, command: str = "npx", **options: Any) -> ServerConfig:
    """A server of a project's file."""
    given: dict[str, Any] = {"cwd": "/srv/shop", "origin": PROJECT, **options}
    return checked_server(name=name, transport="stdio", command=command, args=args, **given)


def http(name: str = "web", url: str = "https://example.com/mcp", **options: Any) -> ServerConfig:
    """A server that is reached by URL."""
    given: dict[str, Any] = {"origin": PROJECT, **options}
    return checked_server(name=name, transport="http", url=url, **given)


def unchecked(server: ServerConfig, **changes: Any) -> ServerConfig:
    """The same server with other fields, also such as no configuration could have."""
    return checked_server(**{each.name: getattr(server, each.name) for each in fields(server)} | changes)


def request(
    server: ServerConfig | None = None,
    *,
    executable: str = "/usr/bin/npx",
    directory: str = "/srv/shop",
    **changes: Any,
) -> ApprovalRequest:
    """What would be asked about a server, with these of its fields changed."""
    server = unchecked(server or stdio(), **changes)
    if server.transport != "stdio":
        return ApprovalRequest(server, None, configuration_digest(server, None))
    where = server.cwd or directory
    return ApprovalRequest(server, executable, configuration_digest(server, executable, where), where)
