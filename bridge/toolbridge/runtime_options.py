"""What a host gives a runtime besides its configuration. One for a task gets the same as the one it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolbridge.config.policy import Errors
    from toolbridge.limits import Limits
    from toolbridge.observe.events import Observer
    from toolbridge.sandbox.engine import CompileNotice
    from toolbridge.servers.server_requests import ElicitorLike, RootsLike, SamplerLike
    from toolbridge.servers.sign_in import SignInLike
    from toolbridge.trust.approver import ApproverLike
    from toolbridge.trust.pins import Pins
    from toolbridge.trust.tool_use import CanUseTool


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeOptions:
    """`open_runtime` says what each of these is for."""

    approver: ApproverLike | None
    elicitor: ElicitorLike | None
    sampler: SamplerLike | None
    roots: RootsLike | None
    sign_in: SignInLike | None
    can_use_tool: CanUseTool | None
    limits: Limits
    observers: tuple[Observer, ...]
    errors: Errors | None
    """None: as configured."""
    strict_results: bool | None
    """None: as configured."""
    pins: Pins | None
    directory: str
    """Where listings and stubs are kept."""
    on_compile: CompileNotice | None
