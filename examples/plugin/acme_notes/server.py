"""The server itself: one file of notes, one note a line, read only."""

import os
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("acme-notes")


@server.tool()
def find_notes(word: str) -> list[str]:
    """The shared notes that have a word in them."""
    lines = Path(os.environ["ACME_NOTES"]).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if word.lower() in line.lower()]


if __name__ == "__main__":
    server.run("stdio")
