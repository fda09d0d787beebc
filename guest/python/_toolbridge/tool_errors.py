"""ToolError and its subclasses, one for each kind of failed call, as `host.bridge` exports them."""

from __future__ import annotations

from typing import Any


class ToolError(Exception):
    """A call that failed: `server`, `tool`, `kind` and `message` say which, how and why."""

    def __init__(
        self,
        message: str = "",
        *,
        kind: str = "failed",
        server: str = "",
        tool: str = "",
        module: str = "",
        function: str = "",
        data: Any = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.server = server
        self.tool = tool
        self.module = module
        self.function = function
        self.data = data


class ToolTimeoutError(ToolError):
    """No answer in time; the call may or may not have taken effect."""


class ToolDeniedError(ToolError):
    """The call was not allowed."""


class ToolDisconnectedError(ToolError):
    """The server is gone."""


class ToolArgumentsError(ToolError):
    """The arguments don't match the tool's schema."""


class ToolLimitError(ToolError):
    """Too large."""


class ToolFailedError(ToolError):
    """The tool itself says so."""


BY_KIND: dict[str, type[ToolError]] = {
    "timeout": ToolTimeoutError,
    "denied": ToolDeniedError,
    "disconnected": ToolDisconnectedError,
    "invalid_arguments": ToolArgumentsError,
    "limit": ToolLimitError,
    "failed": ToolFailedError,
}
CLASSES = (ToolError, *BY_KIND.values())
for _class in CLASSES:
    _class.__module__ = "host.bridge"


def tool_error(fields: dict[str, Any], module: str, function: str) -> ToolError:
    """Makes (doesn't raise) the ToolError for an error frame, of the class for its kind."""
    kind = str(fields.get("kind", "failed"))
    return BY_KIND.get(kind, ToolError)(
        str(fields.get("message", "")),
        kind=kind,
        server=fields.get("server") or "",
        tool=fields.get("tool") or function,
        module=module,
        function=function,
        data=fields.get("data"),
    )
