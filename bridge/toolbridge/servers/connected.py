"""What the manager needs of a live connection, be it to another process or to functions of the host's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

OnProgress: TypeAlias = Callable[[float, float | None, str], None]
"""Told how far a call is: done, total if it is known, and a message. Called on the event loop's thread."""


class CallNotSentError(Exception):
    """The server was gone before it could have seen a call. Sending it to the next one is no second call."""


class Connected(Protocol):
    """A live connection to one server."""

    @property
    def ended(self) -> bool:
        """Whether nothing that is sent now would reach it."""
        ...

    async def wait_for_end(self) -> None:
        """Until its end is known."""
        ...

    def end_reason(self) -> str:
        """Why it ended, in the server's words or the system's; "" if nobody said."""
        ...

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        seconds: float,
        secrets: frozenset[str],
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """The raw result of a call.

        Raises:
            ServerError: there is no result.
            CallNotSentError: the server was gone before it could have seen the call.
        """
        ...
