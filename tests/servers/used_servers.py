"""Using one whole server through a manager, for tests of servers that are as they should be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import anyio

from servers.fault_servers import manager_of
from servers.live_processes import left_after, processes_by_a_word
from toolbridge.config.server_config import ServerConfig, ServerLimits
from toolbridge.servers.manager import ServerManager

LIMITS = ServerLimits(connect_seconds=60.0, call_seconds=60.0, close_seconds=1.0)
"""Real servers take a second or more to start, and longer on a busy machine."""

Use = Callable[[ServerManager], Awaitable[None]]


def use_server(server: ServerConfig, use: Use) -> None:
    """Use a server, and see that nothing of it is left."""

    async def main() -> None:
        with processes_by_a_word() as word:
            found_again = replace(server, env={**server.env, "TEST_WORD": word}) if server.command else server
            async with manager_of([found_again], LIMITS) as manager:
                await use(manager)
            assert await left_after(word) == {}

    anyio.run(main)


async def tools_of(manager: ServerManager, server: str, left_out: Mapping[str, str] | None = None) -> set[str]:
    """The tools that a server lists, all of which must be fine, but for those that are left out for this reason."""
    listing = await manager.connect(server)
    assert {problem.tool: problem.problem for problem in listing.problems} == (left_out or {})
    return {tool.name for tool in listing.tools}


async def call(manager: ServerManager, server: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of a call that must not fail."""
    result = await manager.call(server, tool, arguments)
    assert not result.get("isError"), result
    return result
