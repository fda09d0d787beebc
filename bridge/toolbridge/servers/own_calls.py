"""Calls of the host's own tools that wait for nobody: there is nothing to connect, to send, or to stand in line for.

The manager's `call` does all of that for any server. This way is taken only where it would find nothing to do, so that
calling a function of the host's costs little more than the function.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

import anyio

from toolbridge.errors import ServerClosedError, ServerError

if TYPE_CHECKING:
    from toolbridge.servers.own_tool import InProcessTool
    from toolbridge.servers.slot import Slot


def ready_tool(slot: Slot, line: anyio.Semaphore, tool: str) -> InProcessTool[..., Any] | None:
    """The tool, if a call of it could begin this moment; nothing must be awaited before it does."""
    connection = slot.own_connection
    if connection is None or connection.ended or slot.closing or not line.value or tool not in slot.exposed_names():
        return None
    own = connection.find(tool)
    return None if own is None or own.arguments.wants_context else own


async def finish_call(
    slot: Slot, line: anyio.Semaphore, own: InProcessTool[..., Any], result: Awaitable[dict[str, Any]], seconds: float
) -> dict[str, Any]:
    """The raw result of a call that was begun when its tool was ready. To be awaited at once.

    Raises:
        ServerError: there is none: it took too long, or was closed.
    """
    connection, closings = slot.own_connection, slot.closings
    assert connection is not None
    line.acquire_nowait()  # there was room, and nobody had a turn since
    try:
        return await connection.finish(own, result, seconds)
    except ServerError:
        if slot.closings != closings:
            raise ServerClosedError(slot.name, f"was closed during the call of {own.name!r}") from None
        raise
    finally:
        line.release()
