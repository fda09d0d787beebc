"""Tools that a program wants and is not offered because of their pins: told to whoever reads the result.

A checker, and a guest that imports them, know only that there are no such functions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolbridge.calls.run_modules import mentioned_servers
from toolbridge.servers.admissions import blocked_error
from toolbridge_codegen.names import identifier

if TYPE_CHECKING:
    from toolbridge.servers.manager import ServerManager

_WORD = re.compile(r"[^\W\d][\w$]*")
_MOST_TOLD = 5


def hidden_tool_warnings(manager: ServerManager, code: str, told: str = "") -> tuple[str, ...]:
    """Why tools that a program names are missing from its modules, and what a person can do. No words of a server.

    What was told already, because the program called it, is left out.
    """
    hiding = manager.servers_with_blocked_tools()
    if not hiding:
        return ()
    words = set(_WORD.findall(code))
    lines: list[str] = []
    for server in mentioned_servers(code, hiding):
        blocked = manager.blocked_tools(server)
        named = [tool for tool in blocked if identifier(tool.name) in words]
        exposed = manager.exposed(server)
        if not named and (exposed is None or not exposed.tools):
            named = list(blocked)  # without any, whatever a program wants of it is missing
        config = manager.config_of(server)
        problems = [str(blocked_error(config, tool)) for tool in named[:_MOST_TOLD]]
        lines += [f"{problem}." for problem in problems if problem not in told]
        more = len(named) - _MOST_TOLD
        lines += [f"Server {server!r} has {more} more tools blocked."] if more > 0 else []
    return tuple(lines)
