"""Servers that are functions of the host's own: no process, no pipe, no approval; the same gate as any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import MisuseError, ToolDefinitionError
from toolbridge.servers.listing import Listing
from toolbridge.servers.own_tool import InProcessTool, tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from toolbridge.config.server_options import CommonOptions


class ToolServer:
    """The tools of one server, as they are for as long as it lives."""

    def __init__(self, tools: Mapping[str, InProcessTool[..., Any]], instructions: str, version: str) -> None:
        self.tools = MappingProxyType(dict(tools))
        self._instructions = instructions
        self._version = version

    def listing(self, server: str) -> Listing:
        """What there is: known without asking anybody."""
        definitions = tuple(each.definition for each in self.tools.values())
        return Listing(
            server, definitions, server_name=server, server_version=self._version, instructions=self._instructions
        )


def create_server(
    name: str,
    tools: Iterable[InProcessTool[..., Any] | Callable[..., Any]],
    *,
    instructions: str = "",
    version: str = "",
    **options: Unpack[CommonOptions],
) -> ServerConfig:
    """A server of tools made by `tool`, or of plain functions, for `Config.of` or a section's `mcps`.

    Raises:
        ToolDefinitionError: a tool is none, or two have one name.
        ConfigError: the server can't be used as it is.
    """
    made: dict[str, InProcessTool[..., Any]] = {}
    for field, value in (("instructions", instructions), ("version", version)):
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise MisuseError(field, value, "text")
    if isinstance(tools, str) or not isinstance(tools, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise MisuseError("tools", tools, "a list of functions, or of what `tool` gives")
    for each in tools:
        if not callable(each):  # pyright: ignore[reportUnnecessaryComparison]
            raise ToolDefinitionError(
                each, f"it is of type {type(each).__name__}, neither a function nor made by `tool`"
            )
        own = cast("InProcessTool[..., Any]", each if isinstance(each, InProcessTool) else tool(each))
        if own.name in made:
            raise ToolDefinitionError(own.name, f"server {name!r} has two tools of this name")
        made[own.name] = own
    return ServerConfig.in_process(name, ToolServer(made, instructions, version), **options)
