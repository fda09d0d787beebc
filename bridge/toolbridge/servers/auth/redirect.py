"""SECURITY: waits on this machine for the browser to come back from a sign-in. Anybody may knock; one answer counts."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.abc
from anyio.abc import SocketAttribute

PATH = "/callback"
_HOST = "127.0.0.1"
_MOST_REQUEST = 16 * 1024
_REQUEST_SECONDS = 10.0
_MOST_CONNECTIONS = 16

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>toolbridge</title></head>
<body><p>{text}</p></body></html>
"""
_SIGNED_IN = "Thank you. You can close this page and go back to where you came from."
_REFUSED = "The sign-in did not succeed. You can close this page and go back to where you came from."
_NOT_IT = "This is not the page that is waited for."


@dataclass(frozen=True, slots=True, repr=False)
class AuthorizationAnswer:
    """What an authorization server sent the browser back with: a code, or an error's name."""

    state: str
    code: str = ""
    issuer: str | None = None
    error: str = ""


def read_answer(query: str) -> AuthorizationAnswer | None:
    """The answer in the query of a redirect; None if there is none."""
    try:
        given = parse_qs(query, max_num_fields=50)
    except ValueError:
        return None
    first = {name: values[0] for name, values in given.items()}
    if "state" not in first or not ("code" in first or "error" in first):
        return None
    return AuthorizationAnswer(first["state"], first.get("code", ""), first.get("iss"), first.get("error", ""))


class RedirectListener:
    """Listens on loopback only, until closed."""

    def __init__(self, listener: anyio.abc.Listener[anyio.abc.SocketStream]) -> None:
        self._listener: Any = listener
        self._port: int = self._listener.extra(SocketAttribute.local_port)  # noqa: S610  # not Django's
        self._connections = 0

    @property
    def redirect_uri(self) -> str:
        """Where the browser is to come back to."""
        return f"http://{_HOST}:{self._port}{PATH}"

    async def answer(self, state: str) -> AuthorizationAnswer:
        """The first answer that knows the state; whoever comes without it is told so, and waited on."""
        found: list[AuthorizationAnswer] = []
        async with anyio.create_task_group() as tasks:

            async def handle(stream: anyio.abc.SocketStream) -> None:
                async with stream:
                    if self._connections >= _MOST_CONNECTIONS:
                        return
                    self._connections += 1
                    try:
                        answer = await self._handle(stream, state)
                    finally:
                        self._connections -= 1
                if answer is not None and not found:
                    found.append(answer)
                    tasks.cancel_scope.cancel()

            await self._listener.serve(handle, tasks)
        return found[0]

    async def aclose(self) -> None:
        """Stop listening."""
        await self._listener.aclose()

    async def _handle(self, stream: anyio.abc.SocketStream, state: str) -> AuthorizationAnswer | None:
        answer = None
        with anyio.move_on_after(_REQUEST_SECONDS):
            try:
                request = await _read_head(stream)
                answer = self._read(request, state)
                text = _NOT_IT if answer is None else _REFUSED if answer.error else _SIGNED_IN
                await stream.send(_response("404 Not Found" if answer is None else "200 OK", text))
            except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
                # A browser that has said what it had to say need not read what we say.
                pass
        return answer

    def _read(self, request: bytes, state: str) -> AuthorizationAnswer | None:
        lines = request.decode("latin-1").split("\r\n")
        method, _, rest = lines[0].partition(" ")
        target = rest.partition(" ")[0]
        hosts = [line.partition(":")[2].strip() for line in lines[1:] if line.lower().startswith("host:")]
        # A page elsewhere whose name was made to lead here gives itself away.
        if method != "GET" or hosts not in ([f"{_HOST}:{self._port}"], [f"localhost:{self._port}"]):
            return None
        try:
            parts = urlsplit(target)
        except ValueError:
            return None
        answer = read_answer(parts.query) if parts.path == PATH else None
        if answer is None or not secrets.compare_digest(answer.state.encode(), state.encode()):
            return None
        return answer


async def open_listener(port: int | None, *, fixed: bool) -> RedirectListener:
    """Listen on a port: the one that is asked for, or any other unless it is fixed.

    Raises:
        OSError: the fixed port is in use.
    """
    if port is not None:
        try:
            return RedirectListener(await anyio.create_tcp_listener(local_host=_HOST, local_port=port))
        except OSError:
            if fixed:
                raise
    return RedirectListener(await anyio.create_tcp_listener(local_host=_HOST))


async def _read_head(stream: anyio.abc.SocketStream) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _MOST_REQUEST:
        head += await stream.receive(_MOST_REQUEST)
    return head


def _response(status: str, text: str) -> bytes:
    body = _PAGE.format(text=text).encode()
    head = (
        f"HTTP/1.1 {status}\r\n"
        "Content-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "Content-Security-Policy: default-src 'none'\r\n"
        "Referrer-Policy: no-referrer\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
