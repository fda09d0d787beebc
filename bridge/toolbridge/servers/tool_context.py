"""What a tool of the host's own may ask for: where it is called, and a way to say how far it is."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from toolbridge.servers.connected import OnProgress

MOST_MESSAGE = 200


@dataclass(frozen=True, slots=True)
class ToolContext:
    """A handler gets one by declaring a parameter of this type. In a unit test, `ToolContext()` does."""

    server: str = ""
    tool: str = ""
    _report: OnProgress | None = field(default=None, repr=False, compare=False)

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tell observers how far the call is. From any thread; nothing happens if nobody listens."""
        if self._report is None or not math.isfinite(done) or (total is not None and not math.isfinite(total)):
            return
        self._report(float(done), None if total is None else float(total), str(message)[:MOST_MESSAGE])


def on_loop_thread(report: OnProgress, post: Callable[[Callable[[], Any]], Any]) -> OnProgress:
    """The same report from any thread: from another than the event loop's, it is handed over."""
    home = threading.get_ident()

    def tell(done: float, total: float | None, message: str) -> None:
        if threading.get_ident() == home:
            report(done, total, message)
        else:
            try:
                post(partial(report, done, total, message))
            except RuntimeError:  # the event loop is gone: nobody listens
                return

    return tell
