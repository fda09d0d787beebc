"""What a host may call a tool with. Its own mistakes are not a server's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolbridge.errors import MisuseError

_TEXT: set[type] = {str}


def check_arguments(tool: object, arguments: object, timeout: object) -> None:
    """See that a call can be one.

    Raises:
        MisuseError: it can't.
    """
    if not isinstance(tool, str):
        raise MisuseError("tool", tool, "the tool's name")
    keys = cast("Mapping[Any, Any]", arguments) if isinstance(arguments, Mapping) else [None]
    if set(map(type, keys)) != _TEXT and not all(isinstance(key, str) for key in keys):
        raise MisuseError("arguments", cast("object", arguments), "a mapping with text as keys")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float))):
        raise MisuseError("timeout", timeout, "a number of seconds")
