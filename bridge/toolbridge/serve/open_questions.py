"""Who is asked about which server's tools: nobody waits for another client's person longer than they want to."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from math import inf

import anyio

from toolbridge.serve.caller import Client


class OpenQuestions:
    """Questions about servers' tools that are open now, and the calls that wait for those servers."""

    def __init__(self) -> None:
        self._asked: dict[str, list[Client]] = {}
        self._waiting: dict[str, list[_Waiting]] = {}

    @contextmanager
    def about(self, server: str, client: Client) -> Generator[None]:
        """While a client's person is asked about a server's tools."""
        self._asked.setdefault(server, []).append(client)
        self._tell(server)
        try:
            yield
        finally:
            self._asked[server].remove(client)
            if not self._asked[server]:
                del self._asked[server]
            self._tell(server)

    @contextmanager
    def patience(self, server: str, client: Client, seconds: float) -> Generator[anyio.CancelScope]:
        """Wait for a server, of which only so long for persons of other clients. Then the scope is cancelled."""
        waiting = _Waiting(client, seconds)
        self._waiting.setdefault(server, []).append(waiting)
        self._tell(server)
        try:
            with waiting.scope:
                yield waiting.scope
        finally:
            self._waiting[server].remove(waiting)
            if not self._waiting[server]:
                del self._waiting[server]

    def _tell(self, server: str) -> None:
        asked = self._asked.get(server, [])
        for waiting in self._waiting.get(server, []):
            waiting.count(bool(asked) and waiting.client not in asked)


class _Waiting:
    """A call that waits; its time counts only while somebody else's person is asked."""

    def __init__(self, client: Client, seconds: float) -> None:
        self.client = client
        self.scope = anyio.CancelScope()
        self._left = seconds

    def count(self, counts: bool) -> None:
        is_counting = self.scope.deadline != inf
        if counts and not is_counting:
            self.scope.deadline = anyio.current_time() + self._left
        elif is_counting and not counts:
            self._left = max(0.0, self.scope.deadline - anyio.current_time())
            self.scope.deadline = inf
