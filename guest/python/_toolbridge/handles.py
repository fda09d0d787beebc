"""Handle: a large or binary result that stays on the host. A program reads parts of it, or passes it on to a tool.

Programs will treat a handle as the value it stands for, so a missing attribute raises an error that says what to do.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any, NoReturn

from . import wire
from .tool_errors import tool_error

MARK = "\0handle"
_BRIDGE = "host:bridge"
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}", re.ASCII)
_READABLE = re.compile(r"text/.*|.*[/+](?:json|xml|yaml|csv|javascript)", re.ASCII)
_LONGEST_NAME = 80
_SECRET = object()


def size_text(size: int) -> str:
    """Formats a size in units of 1024, with a decimal below ten: 512 B, 3.1 KB, 34 KB, 2 MB."""
    if size < 1024:
        return f"{size} B"
    amount, unit = size / 1024, "KB"
    if round(amount) >= 1024:
        amount, unit = amount / 1024, "MB"
    text = f"{amount:.1f}".removesuffix(".0") if amount < 9.95 else f"{amount:.0f}"
    return f"{text} {unit}"


class Handle:
    """A large or binary result, kept on the host. Can be given to a tool in place of its text or bytes."""

    __slots__ = ("_identity", "mime", "name", "size")
    __module__ = "host.bridge"

    mime: str
    size: int
    name: str | None

    def __init__(self, *arguments: Any) -> None:
        if len(arguments) != 2 or arguments[0] is not _SECRET:
            raise TypeError("a Handle can't be constructed: a tool returns one for a large or binary result")
        fields = arguments[1]
        for name, value in (
            ("_identity", fields["id"]),
            ("mime", fields["mime"]),
            ("size", fields["size"]),
            ("name", fields.get("name")),
        ):
            object.__setattr__(self, name, value)

    def text(self) -> str:
        """Returns the content as text; blocks until the host answers. ToolError if it isn't text or too large."""
        return self._read("handle_text")

    def json(self) -> Any:
        """Returns the content parsed as JSON; blocks until the host answers. Raises ToolError if it can't be."""
        return self._read("handle_json")

    def bytes(self) -> bytes:
        """Returns the content; blocks until the host answers. Raises ToolError if it is too large."""
        return base64.b64decode(self._read("handle_bytes"))

    def slice(self, start: int = 0, end: int | None = None) -> Handle:
        """Returns a handle of the bytes from start up to end, which may be negative; blocks until the host answers."""
        first, last, _ = slice(start, end).indices(self.size)
        return self._read("handle_slice", first, max(first, last))

    def _read(self, function: str, *more: Any) -> Any:
        """Calls a host function on the handle, blocking; returns its value, or raises ToolError."""
        identity = object.__getattribute__(self, "_identity")
        arguments = json.dumps([identity, *more])
        frame = f'{{"op":"call","module":"{_BRIDGE}","function":"{function}","arguments":{arguments}}}'
        reply = wire.request(frame)
        if "error" in reply:
            raise tool_error(reply["error"], _BRIDGE, function)
        return value_of(reply)

    def _as_argument(self) -> dict[str, int]:
        return {MARK: object.__getattribute__(self, "_identity")}

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a Handle can't be changed: {name} stays as it is")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Handle can't be changed: {name} stays as it is")

    def __repr__(self) -> str:
        name = self.name or ""
        shown = name[:_LONGEST_NAME] + "…" if len(name) > _LONGEST_NAME else name
        quoted = f" {json.dumps(shown, ensure_ascii=False)}" if shown else ""
        return f"<{self._mime_text()} {size_text(self.size)}{quoted}>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a Handle can't be copied: use the one there is")

    def _mime_text(self) -> str:
        """Returns the media type if it looks like one, as a server chose it; else "data" in its place."""
        found = _MEDIA_TYPE.match(self.mime)
        return found[0] if found else "data"

    def _not_the_value(self) -> str:
        """Formats the error for code that treats the handle as its value."""
        mime = self._mime_text()
        if _READABLE.fullmatch(mime):
            advice = "too large to be given whole: use .json(), .text(), .slice() or .bytes() to read it"
        else:
            advice = "binary data that stays on the host: use .bytes(), .text() or .slice() to read it"
        return f"This result is a Handle ({mime}, {size_text(self.size)}), {advice}, or pass it to a tool."

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(self._not_the_value())

    def __getitem__(self, key: Any) -> NoReturn:
        raise TypeError(self._not_the_value())

    def __iter__(self) -> NoReturn:
        raise TypeError(self._not_the_value())

    def __len__(self) -> NoReturn:
        raise TypeError(self._not_the_value())

    def __contains__(self, item: Any) -> NoReturn:
        raise TypeError(self._not_the_value())

    def __bool__(self) -> bool:
        return True


def value_of(reply: dict[str, Any]) -> Any:
    """Returns the value of a reply, with handles in place of the None that the host put there.

    Raises:
        RuntimeError: the place of a handle isn't None.
    """
    value: Any = reply["ok"]
    for path, fields in reply.get("handles", ()):
        handle = Handle(_SECRET, fields)
        if not path:
            value = handle
            continue
        holder: Any = value
        for key in path[:-1]:
            holder = holder[key]
        if holder[path[-1]] is not None:
            raise RuntimeError("the host's reply names a missing place for a handle")
        holder[path[-1]] = handle
    return value
