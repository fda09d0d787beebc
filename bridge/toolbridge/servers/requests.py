"""SECURITY: requests of a server to the host (elicitation, sampling, roots): declined without a handler (T29).

A handler is told which server asks. Without one, the capability is not announced, and a server that asks
all the same is declined with one line in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from toolbridge.callbacks import callback

_log = logging.getLogger("toolbridge")


@dataclass(frozen=True, slots=True)
class ElicitationRequest:
    """A server's question to the person. Its words are the server's: show them with its name, and inert."""

    server: str
    message: str
    schema: Mapping[str, Any] | None
    """The form's JSON Schema; None when the server asks the person to open a page instead."""
    url: str | None = None


@dataclass(frozen=True, slots=True)
class ElicitationAnswer:
    """The person's answer."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, str | int | float | bool | list[str] | None] | None = None


class Elicitor(Protocol):
    """Asks the person on behalf of a server."""

    async def elicit(self, request: ElicitationRequest) -> ElicitationAnswer:
        """Show the question with the server's name, and answer it."""
        ...


class Sampler(Protocol):
    """Asks a model on behalf of a server."""

    async def sample(self, server: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer `sampling/createMessage`: parameters and result as the protocol has them."""
        ...


class Roots(Protocol):
    """Tells a server which directories it may consider."""

    async def list_roots(self, server: str) -> Sequence[str]:
        """The roots, as `file:` URIs."""
        ...


ElicitorLike: TypeAlias = Elicitor | Callable[[ElicitationRequest], ElicitationAnswer | Awaitable[ElicitationAnswer]]
SamplerLike: TypeAlias = Sampler | Callable[[str, Mapping[str, Any]], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]
RootsLike: TypeAlias = Roots | Callable[[str], Sequence[str] | Awaitable[Sequence[str]]]

_Handler: TypeAlias = Callable[..., Awaitable[Any]] | None


@dataclass(frozen=True, slots=True)
class ServerRequests:
    """The handlers that a host supplied, in their async form."""

    elicit: _Handler = None
    sample: _Handler = None
    list_roots: _Handler = None

    @classmethod
    def of(cls, elicitor: ElicitorLike | None, sampler: SamplerLike | None, roots: RootsLike | None) -> ServerRequests:
        """Wrap the host's handlers, sync or async, as async functions; None declines that kind of request.

        Raises:
            MisuseError: one of them can't be called.
        """
        return cls(
            None if elicitor is None else callback("elicitor", elicitor, "elicit", "request"),
            None if sampler is None else callback("sampler", sampler, "sample", "server", "parameters"),
            None if roots is None else callback("roots", roots, "list_roots", "server"),
        )

    def handles(self, method: str) -> bool:
        """Return whether a request of this method has a handler; true for every method but the three with one."""
        return {
            "elicitation/create": self.elicit is not None,
            "sampling/createMessage": self.sample is not None,
            "roots/list": self.list_roots is not None,
        }.get(method, True)


class Declines:
    """Declines one connection's requests without a handler, and logs each method once."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._said: set[str] = set()

    def answer(self, method: str) -> dict[str, Any] | None:
        """Return the declining answer, which only an elicitation has (else None); warns once for each method."""
        if method not in self._said:
            self._said.add(method)
            _log.warning("Server %r asked for %s and was declined: no handler is set up.", self._server, method)
        return {"action": "decline"} if method == "elicitation/create" else None
