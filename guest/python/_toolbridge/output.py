"""sys.stdout and sys.stderr: text goes to the host line by line, so that a crash loses none of it."""

from __future__ import annotations

import codecs
import contextlib
import io
import sys
from typing import Any

from . import wire

STDOUT, STDERR = 1, 2


class _HostChannel(io.RawIOBase):
    """A raw stream that writes to stdout or stderr of the host."""

    def __init__(self, channel: int) -> None:
        super().__init__()
        self._channel = channel
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        """Sends bytes to the host as text; an incomplete character waits for its rest."""
        text = self._decoder.decode(bytes(data))
        if text:
            wire.log(self._channel, text)
        return len(data)


def _stream(channel: int) -> io.TextIOWrapper:
    buffer = io.BufferedWriter(_HostChannel(channel))
    return io.TextIOWrapper(buffer, encoding="utf-8", errors="backslashreplace", newline="\n", line_buffering=True)


class _NoInput(io.StringIO):
    """sys.stdin: empty."""

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno")


def _install() -> None:
    """Replaces sys.stdout, sys.stderr and sys.stdin by new streams of ours."""
    sys.stdout = sys.__stdout__ = _stream(STDOUT)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(STDERR)  # type: ignore[misc]
    sys.stdin = sys.__stdin__ = _NoInput()  # type: ignore[misc]
    _ours[:] = [sys.stdout, sys.stderr, sys.stdin]


_ours: list[Any] = []
_is_new = True
_install()  # while the image is made: a run doesn't pay for creating them


def renew() -> None:
    """Restores the streams for the next run of a session, if the last one closed or replaced them."""
    global _is_new
    if _is_new:  # fast path: the first run has the image's streams, and checking them would cost a tenth of it
        _is_new = False
    elif not _is_usable():
        _install()


def begin_anew() -> None:
    """Resets the streams while the image is made: the next run will be the first."""
    global _is_new
    _install()
    _is_new = True


def _is_usable() -> bool:
    """Returns whether the streams are ours and open."""
    try:
        out, err, empty = _ours
        is_ours = sys.stdout is out and sys.stderr is err and sys.stdin is empty
        return is_ours and not (out.closed or err.closed or empty.closed)
    except Exception:  # one is gone, or detached
        return False


def flush() -> None:
    """Flushes stdout and stderr; ignores errors."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:  # the program closed or replaced one
        _flush_each()


def _flush_each() -> None:
    """Flushes each stream, so that an error of one doesn't keep the other from it."""
    for name in ("stdout", "stderr"):
        with contextlib.suppress(Exception):
            getattr(sys, name).flush()
