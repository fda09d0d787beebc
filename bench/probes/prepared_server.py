"""A stdio server that costs next to nothing: it reads a file with JSON at its start, and sends it, already encoded.

    python prepared_server.py [FILE]

`as_text` sends it as a text block, `as_data` as structured content; `wait` answers after so many seconds, and others
meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

_TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("as_text", "as_data", "wait")]
_INFO: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "x", "version": "1"},
}
_WAITED = '"result":{"content":[{"type":"text","text":"waited"}]}'


def _send(identity: object, answer: str) -> None:
    sys.stdout.buffer.write(f'{{"jsonrpc":"2.0","id":{json.dumps(identity)},{answer}}}\n'.encode())
    sys.stdout.buffer.flush()


def _serve(message: dict[str, Any], results: dict[str, str]) -> None:
    send = partial(_send, message["id"])
    match message.get("method"):
        case "initialize":
            send(f'"result":{json.dumps(_INFO)}')
        case "tools/list":
            send(f'"result":{json.dumps({"tools": _TOOLS})}')
        case "tools/call" if message["params"]["name"] == "wait":
            asyncio.get_running_loop().call_later(message["params"]["arguments"]["seconds"], send, _WAITED)
        case "tools/call":
            send(f'"result":{results[message["params"]["name"]]}')
        case "ping":
            send('"result":{}')
        case _:
            send('"error":{"code":-32601,"message":"Method not found"}')


async def serve(text: str) -> None:
    """Serves until stdin is closed."""
    block = json.dumps(text, ensure_ascii=False)
    results = {
        "as_text": f'{{"content":[{{"type":"text","text":{block}}}]}}',
        "as_data": f'{{"content":[],"structuredContent":{{"records":{text}}}}}',
    }
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        message: dict[str, Any] = json.loads(line)
        if "id" in message:
            _serve(message, results)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]).read_text("utf-8") if len(sys.argv) > 1 else "[]"))
