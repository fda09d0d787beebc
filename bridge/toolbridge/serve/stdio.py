"""SECURITY: serving over stdin and stdout, which carry JSON-RPC only (T8).

Both are taken away from everybody else in this process and its children: what is printed goes to stderr, what reads
finds nothing. Reading waits in the event loop, not in a thread, so that a signal ends it at once.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, cast

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from toolbridge.serve.service import CodeModeServer

# JSON-RPC errors for lines that are no message: without one, the sender would wait forever.


def refusal_of(line: bytes) -> JSONRPCError | None:
    """Returns the error for a line that is no request; None for notifications and malformed responses."""
    try:
        message = json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return refusal("it is no JSON", PARSE_ERROR)
    if not isinstance(message, dict):
        return refusal("it is no JSON object")
    fields = cast("dict[str, Any]", message)
    if "method" not in fields or "id" not in fields:
        return None if fields.keys() & {"method", "result", "error"} else refusal("it has no method", of=fields)
    if _has_half(fields):
        return refusal("a text in it is not Unicode, such as half a surrogate pair", PARSE_ERROR, of=fields)
    return refusal("its fields are not those of JSON-RPC 2.0", of=fields)


def refusal(problem: str, code: int = INVALID_REQUEST, *, of: dict[str, Any] | None = None) -> JSONRPCError:
    """Makes a JSON-RPC error; it has the id of the request `of` if that is well-formed."""
    identity = (of or {}).get("id")
    if isinstance(identity, bool) or not isinstance(identity, (int, str)) or _has_half(identity):
        identity = None
    return JSONRPCError(
        jsonrpc="2.0", id=identity, error=ErrorData(code=code, message=f"The request can't be read: {problem}.")
    )


def _has_half(value: object) -> bool:
    """Returns whether a value has half a surrogate pair; False if it is nested too deeply to tell."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except RecursionError:
        pass
    return False


Inbound: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Outbound: TypeAlias = MemoryObjectSendStream[SessionMessage]

_PIECE = 65_536
_SECONDS_TO_WRITE = 2.0
_LONGEST_LINE = 16 * 2**20


async def serve_stdio(server: CodeModeServer) -> None:
    """Serves the client on stdin and stdout until it closes stdin. Replaces both in this process."""
    async with _streams() as (inbound, outbound):
        await server.run(inbound, outbound, server.create_initialization_options())


@asynccontextmanager
async def _streams() -> AsyncGenerator[tuple[Inbound, Outbound]]:
    """Takes stdin and stdout over and yields streams of messages; at the end, writes queued ones for at most 2 s."""
    source, target = _taken(0, os.devnull, os.O_RDONLY), _taken(1, None, os.O_WRONLY)
    to_server, inbound = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, source, to_server, outbound.clone())
        written = anyio.Event()
        tasks.start_soon(_write, target, from_server, written)
        try:
            yield inbound, outbound
            outbound.close()
            with anyio.move_on_after(_SECONDS_TO_WRITE):  # flushes queued responses
                await written.wait()
        finally:
            tasks.cancel_scope.cancel()


def _taken(descriptor: int, instead: str | None, flags: int) -> int:
    """Duplicates a descriptor for us alone, and replaces it by the file `instead`, or by stderr if that is None."""
    own = os.dup(descriptor)
    os.set_inheritable(own, False)
    other = os.dup(2) if instead is None else os.open(instead, flags)
    os.dup2(other, descriptor)
    os.close(other)
    return own


async def _read(
    source: int, to_server: MemoryObjectSendStream[SessionMessage | Exception], to_client: Outbound
) -> None:
    """Reads one message per line until the end of input. Answers a malformed or oversized line with an error."""
    read_some = _reader(source)
    line = bytearray()
    is_too_long = False
    async with to_server, to_client:
        while piece := await read_some():
            *ended, rest = piece.split(b"\n")
            for part in ended:
                line += part
                if not is_too_long and line.strip():
                    message = _message(bytes(line))
                    if isinstance(message, SessionMessage):
                        await to_server.send(message)
                    elif message is not None:
                        await to_client.send(SessionMessage(message))
                line.clear()
                is_too_long = False
            line += rest
            if len(line) > _LONGEST_LINE:
                line.clear()
                if not is_too_long:
                    await to_client.send(SessionMessage(refusal(f"it has more than {_LONGEST_LINE:,} bytes")))
                is_too_long = True


def _message(line: bytes) -> SessionMessage | JSONRPCError | None:
    """Parses a line; for a malformed one returns the error to answer with, or None if it gets none."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except Exception:
        return refusal_of(line)


def _reader(source: int) -> Callable[[], Awaitable[bytes]]:
    """Returns a cancellable function that waits for bytes of a descriptor; it returns none at the end of input."""
    mode = os.fstat(source).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(source)):  # no event loop waits for files
        return lambda: anyio.to_thread.run_sync(os.read, source, _PIECE, abandon_on_cancel=True)

    async def read() -> bytes:
        await anyio.wait_readable(source)
        try:
            return os.read(source, _PIECE)
        except BlockingIOError:
            return await read()
        except OSError:  # the terminal is gone
            return b""

    return read


async def _write(target: int, from_server: MemoryObjectReceiveStream[SessionMessage], written: anyio.Event) -> None:
    """Writes messages as lines until their stream or stdout is closed, then sets `written`."""
    async with from_server:
        async for message in from_server:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                await anyio.to_thread.run_sync(_write_all, target, text.encode() + b"\n", abandon_on_cancel=True)
            except OSError:  # the client closed stdout
                break
    written.set()


def _write_all(target: int, data: bytes) -> None:
    """Writes all of these bytes; blocks while it does."""
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]
