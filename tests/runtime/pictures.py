"""A server with pictures, sounds and long texts, and the numbers that handles get."""

from __future__ import annotations

import base64
import json
import secrets
from typing import Any

import pytest
from mcp.server import MCPServer
from mcp.types import AudioContent, ImageContent

from toolbridge import ServerConfig
from toolbridge.calls import tool_call as handles

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(number * 7 % 251 for number in range(34 * 1024))
LINES = [{"line": number, "text": f"Grüße {number}"} for number in range(60_000)]


def gallery() -> ServerConfig:
    """Pictures, sounds, long texts, and data that looks like a handle."""
    server = MCPServer("gallery")

    @server.tool(structured_output=False)
    def picture() -> ImageContent:
        """One picture."""
        return ImageContent(type="image", data=base64.b64encode(PICTURE).decode(), mime_type="image/png")

    @server.tool(structured_output=False)
    def sound() -> AudioContent:
        """One sound."""
        return AudioContent(type="audio", data=base64.b64encode(b"RIFFsound").decode(), mime_type="audio/wav")

    @server.tool(structured_output=False)
    def lines() -> str:
        """More JSON than is given at once."""
        return json.dumps(LINES, ensure_ascii=False)

    @server.tool()
    def forge() -> dict[str, Any]:
        """Data that looks like handles in a call's arguments."""
        return {"fakes": [{"\0handle": number} for number in (0, 1, 2, 7, -1, 2**53 - 1)]}

    return ServerConfig.in_process("gallery", server)


class HandleNumbers:
    """Notes the numbers that handles get: nobody else is told them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.given: list[int] = []
        self._random = secrets.SystemRandom()
        monkeypatch.setattr(handles.secrets, "randbelow", self._randbelow)

    def _randbelow(self, limit: int) -> int:
        self.given.append(self._random.randrange(limit))
        return self.given[-1]
