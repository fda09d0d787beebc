"""Telling the host's cancellation from one that foreign code raised by itself.

On asyncio any code can raise `CancelledError`, and a function that awaited a cancelled task does. Passed on, it would
cancel tasks that nobody wanted to cancel.
"""

from __future__ import annotations

import asyncio

import anyio


def is_foreign(error: BaseException) -> bool:
    """Whether a caught exception is a cancellation that nobody asked of this task."""
    if not isinstance(error, anyio.get_cancelled_exc_class()):
        return False
    return not (_is_cancelled_by_asyncio() or anyio.get_current_task().has_pending_cancellation())


def _is_cancelled_by_asyncio() -> bool:
    """Whether `Task.cancel()` was called, of which anyio knows nothing once it has been delivered."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # trio, where there are only cancel scopes
        return False
    return task is not None and task.cancelling() > 0
