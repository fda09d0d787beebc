"""A server of the MCP SDK alone, over HTTP, with one tool that does nothing: a yardstick for `toolbridge serve`."""

from __future__ import annotations

import socket
import sys

import uvicorn
from mcp.server import MCPServer


def main() -> None:
    """Serve at a free port, and say which."""
    server = MCPServer("bare", log_level="ERROR")

    @server.tool()
    def run_code(code: str) -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]  # the decorator keeps it
        """Give back what was given."""
        return {"value": code}

    listening = socket.create_server(("127.0.0.1", 0))
    sys.stderr.write(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp\n")
    sys.stderr.flush()
    config = uvicorn.Config(server.streamable_http_app(), log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
