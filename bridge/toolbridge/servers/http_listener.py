"""The stream on which a server of the older era says what nobody asked. Losing it costs only freshness."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

import anyio
from mcp.shared.exceptions import MCPError

from toolbridge.errors import ServerError
from toolbridge.servers.http_answers import EVENT_STREAM, EventStream, Take
from toolbridge.servers.http_body import content_type
from toolbridge.servers.http_client import HttpClient
from toolbridge.servers.messages import parse_line
from toolbridge.servers.sse_events import Event

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_MOST_FAILURES = 5
_LOGGER = logging.getLogger("toolbridge")


async def listen(http: HttpClient, headers: Callable[[], dict[str, str]], take: Take, most_bytes: int) -> None:
    """Keep the stream open, for as long as the server does its part."""
    last_id, asked_pause, failures = "", None, 0
    while failures < _MOST_FAILURES:
        began = anyio.current_time()
        sent = {**headers(), "accept": EVENT_STREAM}
        if last_id:
            sent["last-event-id"] = last_id
        try:
            async with http.send("GET", sent) as response:
                if response.status_code != 200 or content_type(response) != EVENT_STREAM:
                    return  # it offers none
                stream = EventStream(response, most_bytes)
                while (event := await stream.next()) is not None:
                    last_id, asked_pause = stream.reader.last_id or last_id, stream.reader.retry_seconds
                    if isinstance(event, Event) and event.name == "message" and event.data:
                        _take_event(event, take)
        except (ServerError, MCPError) as error:
            _LOGGER.debug("The event stream of server %r failed: %s", http.server, error)
        # Opening it again and again would be a flood of our own.
        failures = 0 if anyio.current_time() - began > _LONGEST_PAUSE else failures + 1
        await anyio.sleep(pause(asked_pause, failures))


def pause(asked: float | None, failures: int = 0) -> float:
    """Before a stream is opened again: what the server asks for, but no flood of requests, and no endless wait."""
    return min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE * 2**failures, 1.0 if asked is None else asked))


def _take_event(event: Event, take: Take) -> None:
    try:
        message = parse_line(event.data)
    except ValueError:
        return
    if isinstance(message, dict):
        take(cast("dict[str, Any]", message), len(event.data))
