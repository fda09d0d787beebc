"""toolbridge: a model writes ordinary code against MCP servers, in a sandbox that can reach nothing else.

Names are imported when they are first used, so that a command pays only for what it needs.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs a command a tenth of its start-up to import
if TYPE_CHECKING:
    from typing import Any

    from toolbridge.boundary.host_call import CallRecord
    from toolbridge.errors import (
        EngineError,
        GuestImageError,
        HostModuleError,
        LimitsError,
        MisuseError,
        SandboxClosedError,
        SeedError,
        SessionBusyError,
        ToolbridgeError,
    )
    from toolbridge.limits import Limits
    from toolbridge.sandbox.outcome import Failure, RunResult, Usage
    from toolbridge.sandbox.sandbox import Sandbox
    from toolbridge.sandbox.session import Session

__version__ = "0.1.0"

_WHERE = {
    "CallRecord": "toolbridge.boundary.host_call",
    "EngineError": "toolbridge.errors",
    "Failure": "toolbridge.sandbox.outcome",
    "GuestImageError": "toolbridge.errors",
    "HostModuleError": "toolbridge.errors",
    "Limits": "toolbridge.limits",
    "LimitsError": "toolbridge.errors",
    "MisuseError": "toolbridge.errors",
    "RunResult": "toolbridge.sandbox.outcome",
    "Sandbox": "toolbridge.sandbox.sandbox",
    "SandboxClosedError": "toolbridge.errors",
    "SeedError": "toolbridge.errors",
    "Session": "toolbridge.sandbox.session",
    "SessionBusyError": "toolbridge.errors",
    "ToolbridgeError": "toolbridge.errors",
    "Usage": "toolbridge.sandbox.outcome",
}

__all__ = [
    "CallRecord",
    "EngineError",
    "Failure",
    "GuestImageError",
    "HostModuleError",
    "Limits",
    "LimitsError",
    "MisuseError",
    "RunResult",
    "Sandbox",
    "SandboxClosedError",
    "SeedError",
    "Session",
    "SessionBusyError",
    "ToolbridgeError",
    "Usage",
]


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'toolbridge' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(where), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
