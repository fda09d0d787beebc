"""SECURITY: handles: results that stay on the host while guest code looks at parts of them, or passes them on.

They belong to one run, or one session, and are gone with it. `add` is called on the event loop's thread, the functions
that guest code calls run on the guest's thread.
"""

from __future__ import annotations

import base64
import secrets
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from toolbridge.boundary.host_call import CallFailed, HostFunction, Reply
from toolbridge.boundary.json_codec import WireError, encode_json, scan_whole, without_lone_surrogates
from toolbridge.boundary.wire import ErrorFrame, HandleFrame, encode_handles
from toolbridge.calls.sizes import size_text
from toolbridge.limits import Limits
from toolbridge.servers.blobs import Blob
from toolbridge.servers.exact_json import has_long_integer, without_large_integers

_MOST_HANDLES = 10_000
# What a JavaScript number holds. Numbers are random so that no server can name another's handle in its data.
_MOST_IDENTITY = 2**53 - 1


class _Held(NamedTuple):
    """A handle's content: all of a result, or a part of one. Parts share its memory."""

    data: memoryview
    mime: str
    name: str
    is_part: bool = False


class HandleStore:
    """The handles of one run or session."""

    def __init__(self, limits: Limits, *, exact_integers: bool = False) -> None:
        self._limits = limits
        self._exact_integers = exact_integers
        self._held: dict[int, _Held] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def add(self, path: tuple[str | int, ...], blob: Blob) -> HandleFrame:
        """Keeps a result; what the guest is told of it.

        Raises:
            CallFailed: there are too many handles, or they are too large together.
        """
        with self._lock:
            if self._bytes + len(blob.data) > self._limits.handle_bytes:
                most = size_text(self._limits.handle_bytes)
                size = size_text(len(blob.data))
                raise CallFailed(
                    ErrorFrame("limit", f"The result has {size}: with it, this run's handles would pass {most}.")
                )
            self._bytes += len(blob.data)
        return self._keep(path, _Held(memoryview(blob.data), blob.mime, blob.name))

    @property
    def is_empty(self) -> bool:
        """Whether there is none."""
        return not self._held

    def find(self, identity: int) -> Blob:
        """A handle's content.

        Raises:
            KeyError: there is none with this number.
        """
        held = self._held[identity]
        return Blob(held.data.tobytes(), held.mime, held.name)

    def close(self) -> None:
        """Frees all of them."""
        with self._lock:
            self._held.clear()
            self._bytes = 0

    def functions(self) -> dict[str, HostFunction]:
        """What the guest's Handle objects call."""
        offered: dict[str, Callable[..., Any]] = {
            "handle_text": self._text,
            "handle_json": self._json,
            "handle_bytes": self._base64,
            "handle_slice": self._slice,
        }
        return {
            name: HostFunction(function, is_async=False, is_recorded=False, is_quick=True)
            for name, function in offered.items()
        }

    # ---- called by guest code, on its thread: every argument is hostile

    def _text(self, identity: object = None, *_: object) -> str:
        held = self._readable(identity)
        if held.is_part:
            return str(held.data, "utf-8", "replace")  # it may begin or end inside a character
        try:
            return str(held.data, "utf-8")
        except UnicodeDecodeError:
            raise CallFailed(ErrorFrame("failed", f"This {held.mime} handle is not text: use bytes().")) from None

    def _json(self, identity: object = None, *_: object) -> Reply:
        text = without_lone_surrogates(self._text(identity))
        try:
            value = scan_whole(text)
        except WireError as error:
            raise CallFailed(ErrorFrame("failed", f"This handle does not hold JSON: {error}.")) from None
        data = text.encode("utf-8", "replace")
        if not self._exact_integers and has_long_integer(data):
            data = encode_json(without_large_integers(value)[0])
        return Reply(b'{"ok":%b}' % data, "ok")

    def _base64(self, identity: object = None, *_: object) -> str:
        return base64.b64encode(self._readable(identity, of=3, to=4).data).decode("ascii")

    def _slice(self, identity: object = None, start: object = 0, end: object = None, *_: object) -> Reply:
        held = self._get(identity)
        first, last = (bound if type(bound) is int else None for bound in (start, end))
        part = held._replace(data=held.data[first:last], is_part=True)
        return Reply(encode_handles([self._keep((), part)], encode_json(None)), "ok")

    def _get(self, identity: object) -> _Held:
        held = self._held.get(identity) if type(identity) is int else None
        if held is None:
            raise CallFailed(ErrorFrame("failed", "This handle is gone: handles end with the run that made them."))
        return held

    def _readable(self, identity: object, *, of: int = 1, to: int = 1) -> _Held:
        """A handle whose content, grown by `to` for every `of` bytes, fits into one frame."""
        held = self._get(identity)
        most = self._limits.frame_bytes * of // to
        if held.data.nbytes > most:
            raise CallFailed(
                ErrorFrame(
                    "limit",
                    f"This handle has {size_text(held.data.nbytes)}, and no more than {size_text(most)} can be read "
                    "at once: read parts of it with slice(start, end).",
                )
            )
        return held

    def _keep(self, path: tuple[str | int, ...], held: _Held) -> HandleFrame:
        with self._lock:
            if len(self._held) >= _MOST_HANDLES:
                raise CallFailed(ErrorFrame("limit", f"This run has {_MOST_HANDLES} handles, and may have no more."))
            identity = 0
            while identity in self._held or identity == 0:
                identity = secrets.randbelow(_MOST_IDENTITY)
            self._held[identity] = held
            return HandleFrame(path, identity, held.mime, held.data.nbytes, held.name)
