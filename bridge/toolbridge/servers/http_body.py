"""SECURITY: the body of an answer, unpacked piece by piece, in bounded memory whatever is sent.

httpx's own iterators are generators within generators, which an event loop other than asyncio's wants closed by hand.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpcore2
import httpx2

from toolbridge.servers.channel import BadAnswerError

ACCEPT_ENCODING = "gzip, deflate"
_PIECE = 256 * 1024
_BODY = "toolbridge.body"


class Body(httpx2.AsyncByteStream):
    """The bytes of an answer as they come in."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response
        self._chunks: Any = None

    async def next_chunk(self) -> bytes | None:
        """The next bytes; None at the end."""
        if self._chunks is None:
            self._chunks = self._response.aiter_stream()
        return await anext(self._chunks, None)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (chunk := await self.next_chunk()) is not None:
            yield chunk

    async def aclose(self) -> None:
        """Give the connection back."""
        if self._chunks is not None:
            await self._chunks.aclose()
        await self._response.aclose()

    def marked(self) -> dict[str, Any]:
        """What an answer carries so that its body can be found again."""
        return {_BODY: self}


class BodyReader:
    """Reads the body of one answer."""

    def __init__(self, response: httpx2.Response) -> None:
        self._body: Body = response.extensions[_BODY]
        self._unpack = _unpacker(response.headers.get("content-encoding", ""))
        self._pieces: Iterator[bytes] = iter(())

    async def next_piece(self) -> bytes | None:
        """The next bytes, unpacked; None at the end.

        Raises:
            BadAnswerError: it is packed in a way that was not asked for, or not at all.
        """
        while True:
            try:
                for piece in self._pieces:
                    return piece
            except zlib.error:
                raise BadAnswerError("The answer is said to be compressed, but is not") from None
            chunk = await self._body.next_chunk()
            if chunk is None:
                return None
            self._pieces = self._unpack(chunk)


async def read_body(response: httpx2.Response, most_bytes: int) -> bytes:
    """The whole body of an answer.

    Raises:
        BadAnswerError: it is too long, or can't be unpacked.
    """
    reader = BodyReader(response)
    body = bytearray()
    while (piece := await reader.next_piece()) is not None:
        body += piece
        if len(body) > most_bytes:
            raise BadAnswerError(f"The answer is too long: more than {most_bytes} bytes")
    return bytes(body)


def content_type(response: httpx2.Response) -> str:
    """The media type of an answer."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


class _Inflater:
    """A little input can be a lot of output: it is given out in pieces, so that whoever counts can stop."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._inflate = zlib.decompressobj(window)
        self._begun = False

    def __call__(self, chunk: bytes) -> Iterator[bytes]:
        rest = chunk
        while rest:
            try:
                piece = self._inflate.decompress(rest, _PIECE)
            except zlib.error:
                if self._begun or self._window != zlib.MAX_WBITS:
                    raise
                # Some servers leave out deflate's own wrapping.
                self._inflate, self._begun = zlib.decompressobj(-zlib.MAX_WBITS), True
                continue
            self._begun = True
            rest = self._inflate.unconsumed_tail
            if piece:
                yield piece


def _as_it_is(chunk: bytes) -> Iterator[bytes]:
    return iter((chunk,))


def _unpacker(encoding: str) -> Callable[[bytes], Iterator[bytes]]:
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return _as_it_is
    if encoding in ("gzip", "x-gzip"):
        return _Inflater(zlib.MAX_WBITS | 16)
    if encoding == "deflate":
        return _Inflater(zlib.MAX_WBITS)
    raise BadAnswerError("The answer is compressed in a way that was not asked for")
