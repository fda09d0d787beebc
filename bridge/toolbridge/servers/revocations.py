"""SECURITY: approvals that are taken back elsewhere while servers are connected: those are closed (T1).

A person revokes or disables a server in one terminal, and means the host that runs in another. It looks before each
run, which costs no more than a look at a file's time.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

import anyio
import anyio.to_thread

from toolbridge.errors import ServerError
from toolbridge.servers.slot import Slot
from toolbridge.servers.start import prepare
from toolbridge.trust.approver import Approver, MayTakeBack

_log = logging.getLogger("toolbridge")


class Revocations:
    """What an approver has approved and does not approve any more."""

    def __init__(self, approver: Approver, close: Callable[[Slot], Awaitable[None]]) -> None:
        self._approver = approver if isinstance(approver, MayTakeBack) else None
        self._close = close
        self._seen = None if self._approver is None else self._approver.stamp()
        self._turn: anyio.Lock | None = None

    async def follow(self, slots: Iterable[Slot]) -> None:
        """Close those of these servers that are not approved any more. Nobody is asked: the next use does that."""
        if self._approver is None or self._approver.stamp() == self._seen:
            return
        # Whoever comes second waits: what is being closed must not be used meanwhile.
        self._turn = self._turn or anyio.Lock()
        async with self._turn:
            stamp = self._approver.stamp()
            if stamp == self._seen:
                return
            async with anyio.create_task_group() as tasks:
                for slot in list(slots):
                    tasks.start_soon(self._look, self._approver, slot)
            self._seen = stamp

    async def unapproved(self, slots: Iterable[Slot], environ: Mapping[str, str]) -> frozenset[str]:
        """The servers that were not tried yet and need an approval first. Asks nobody, and starts nothing."""
        found: set[str] = set()
        if self._approver is None:
            return frozenset()
        for slot in slots:
            if slot.attempt is not None or slot.own_tools is not None or not slot.server.enabled:
                continue
            try:
                request, _ = await anyio.to_thread.run_sync(prepare, slot.server, environ)
                if not await self._approver.still_approves(request):
                    found.add(slot.name)
            except ServerError:
                continue  # its next start says why
        return frozenset(found)

    async def _look(self, approver: MayTakeBack, slot: Slot) -> None:
        start = None if slot.attempt is None else slot.attempt.start
        if start is None or await approver.still_approves(start.request):
            return
        _log.warning("Server %r is closed: it was revoked, disabled, or is not what was approved.", slot.name)
        await self._close(slot)
