"""SECURITY: reading a request's body: only so much of it, and only for so long (T27)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from toolbridge.serve.http_guard import Refused

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope

_BREAK = ((b"connection", b"close"),)


class BodyError(Exception):
    """A body that is not read to its end."""

    def __init__(self, refused: Refused | None) -> None:
        self.refused = refused
        """None when nobody is there any more to be told."""


async def read_body(scope: Scope, receive: Receive, *, most: int, within: anyio.CancelScope) -> bytes | None:
    """The whole body; None if it did not arrive before its scope was cancelled.

    Raises:
        BodyError: it is too long, or its sender is gone.
    """
    for name, value in scope["headers"]:
        if name == b"content-length" and (not value.isdigit() or int(value[:20]) > most):
            raise BodyError(_too_long(most))
    body = bytearray()
    with within:
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise BodyError(None)
            body += message.get("body", b"")
            if len(body) > most:
                raise BodyError(_too_long(most))
            if not message.get("more_body", False):
                return bytes(body)
    return None


class Replay:
    """Gives a body that was read once more, and then whatever else comes. `gone` is set when the client is."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive
        self.gone = anyio.Event()

    async def __call__(self) -> Message:
        """The next message."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.gone.set()
        return message


def _too_long(most: int) -> Refused:
    return Refused(413, f"The request has more than {most:,} bytes.", _BREAK)
