"""SECURITY: what a server says of how far a call is: cut, masked, and so seldom that a flood of it reaches nobody."""

from __future__ import annotations

import math
from time import monotonic
from typing import TYPE_CHECKING

from toolbridge.servers.connected import OnProgress
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT

MOST_MESSAGE = 200
MOST_AT_ONCE = 20
MOST_PER_SECOND = 10.0


def passed_on(report: OnProgress, secrets: frozenset[str]) -> ProgressFnT:
    """What the progress of one call is told to, as the SDK wants it. What comes too fast is left out."""
    left, before = float(MOST_AT_ONCE), monotonic()

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        nonlocal left, before
        now = monotonic()
        left, before = min(MOST_AT_ONCE, left + (now - before) * MOST_PER_SECOND), now
        if left < 1 or not math.isfinite(progress):
            return
        left -= 1
        whole = total if total is not None and math.isfinite(total) else None
        report(progress, whole, for_error(message, secrets, limit=MOST_MESSAGE) if message else "")

    return tell
