"""Connection pool: a cap on connections, LRU eviction of idle servers, and the attempts to connect."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import ConnectionLimitError, ServerClosedError, ToolbridgeError
from toolbridge.servers.lifecycle import (
    AcquireMode,
    ApprovedStart,
    Attempt,
    LiveConnection,
    SetState,
    approved_start,
    run_connection,
)
from toolbridge.servers.listing import Listing
from toolbridge.servers.requests import ServerRequests
from toolbridge.trust.approval.approver import Approver, AsksSomebody

if TYPE_CHECKING:
    from toolbridge.servers.auth.sign_in import SignIn
    from toolbridge.servers.registry import Slot

_log = logging.getLogger("toolbridge")


class ConnectionPool:
    """SECURITY: caps connections, and evicts the least recently used idle server when the pool is full (T9).

    A slot holds its place from before the server starts until its clean-up is over, even if a reload removed it from
    the configuration. A server with users is never evicted, and an eviction counts as no respawn. Counting and
    acquiring are one step: no other task runs between.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._holders: set[Slot] = set()
        self.waiting = 0
        """How many tasks wait for a place."""
        self._changed = anyio.Event()

    async def acquire(self, slot: Slot, attempt: Attempt) -> None:
        """Take a place, evicting an idle server if `attempt.acquire` allows, and wait while one is about to be free.

        Does nothing for host tools.

        Raises:
            ConnectionLimitError: the pool is full, and no server can be evicted.
        """
        if slot.host_tools is not None:
            return  # host tools need no place
        while len(self._holders) >= self._limit():
            if sum(_is_leaving(holder) for holder in self._holders) <= self.waiting:
                idle = self._eviction_candidate(attempt.acquire)
                if idle is not None:
                    _evict(idle, slot)
                elif attempt.acquire != "queue" or not any(map(_is_in_transition, self._holders)):
                    raise self._full(slot)
            await self._wait_for_change()
        self._holders.add(slot)

    def release(self, slot: Slot) -> None:
        """Free the place of a slot, if it has one, and wake the waiting tasks."""
        self._holders.discard(slot)
        self.notify()

    def notify(self) -> None:
        """Wake the tasks that wait for a place."""
        if self.waiting:
            self._changed.set()

    async def _wait_for_change(self) -> None:
        """Wait for the next `notify`, counted in `waiting` meanwhile."""
        if not self.waiting or self._changed.is_set():
            self._changed = anyio.Event()
        self.waiting += 1
        try:
            await self._changed.wait()
        finally:
            self.waiting -= 1

    def _eviction_candidate(self, acquire: AcquireMode) -> Slot | None:
        """Return the least recently used idle server, one that was only listed first; None if the mode forbids it."""
        if acquire == "if_free":
            return None
        idle = [holder for holder in self._holders if _is_idle(holder)]
        if acquire == "queue" and any(map(_is_in_transition, self._holders)):
            # A place is free in a moment, so a server in use stays.
            idle = [holder for holder in idle if not holder.last_used]
        return min(idle, key=lambda holder: (holder.last_used, holder.name), default=None)

    def _full(self, slot: Slot) -> ConnectionLimitError:
        """Build the error for a full pool, with the names of the servers that hold it."""
        names = ", ".join(sorted(holder.name for holder in self._holders))
        return ConnectionLimitError(
            slot.name,
            f"can't be connected: {len(self._holders)} servers are connected and in use ({names}), and no more than "
            f"{self._limit()} may be. Try again later, close one, or raise `limits.connections`",
        )


def _is_leaving(holder: Slot) -> bool:
    """Return whether it was closed, ended or failed, and is being cleaned up."""
    is_settled = holder.attempt is not None and holder.attempt.is_settled
    return holder.closing or (is_settled and (holder.connection is None or holder.connection.ended))


def _is_idle(holder: Slot) -> bool:
    return not holder.users and holder.connection is not None and not _is_leaving(holder)


def _is_in_transition(holder: Slot) -> bool:
    """Return whether it is connecting, being cleaned up, or used only for its listing and so idle in a moment."""
    return holder.connection is None or _is_leaving(holder) or 0 < holder.users == holder.listing_users


def _evict(holder: Slot, wanted_for: Slot) -> None:
    """Stop an idle server to make room for `wanted_for`, and log it; not counted as a respawn. Does not wait."""
    reason = f"closed to make room for server {wanted_for.name!r}"
    _log.info("Server %r was %s.", holder.name, reason)
    holder.start_count -= 1
    holder.stop(reason)


class Connector:
    """Opens connections and owns their tasks: one attempt per server at a time, shared by all that wait for it.

    Approval is not shared: one person's silence keeps no other from answering, and one person's no counts for that
    person only.
    """

    def __init__(
        self,
        *,
        limits: ServerLimits,
        approver: Approver,
        requests: ServerRequests,
        sign_in: SignIn | None,
        environ: Mapping[str, str],
        store_listing: Callable[[Slot, Listing], Awaitable[None]],
        set_state: SetState,
        is_configured: Callable[[Slot], bool],
    ) -> None:
        self.limits = limits
        self.is_closed = False
        self.pool = ConnectionPool(lambda: self.limits.connections)
        self.approver = approver
        self.requests = requests
        self.sign_in = sign_in
        self.environ = environ
        self.store_listing = store_listing
        """Takes over a listing as far as its pins admit; may ask a person."""
        self.set_state = set_state
        self._is_configured = is_configured
        self._tasks: anyio.abc.TaskGroup | None = None

    async def open(self) -> None:
        """Enter the task group of the connections. Connects nothing.

        Raises:
            ToolbridgeError: it was entered before.
        """
        if self._tasks is not None:
            raise ToolbridgeError("A ServerManager is entered once: make a new one.")
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()

    async def close(self) -> None:
        """Cancel and await all tasks. Must be called by the task that called `open`."""
        assert self._tasks is not None
        # Connections clean up under shields of their own, each bounded in time. A host's exception is not handed to
        # the task group, which would wrap it in an exception group.
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)

    async def connection(self, slot: Slot, acquire: AcquireMode = "evict") -> LiveConnection:
        """Return the live connection, or begin or join an attempt and wait for its outcome.

        Raises:
            ServerError: the server can't be connected.
        """
        found = await self.attempt(slot, acquire)
        return await found.outcome() if isinstance(found, Attempt) else found

    async def attempt(self, slot: Slot, acquire: AcquireMode) -> Attempt | LiveConnection:
        """Return the live connection, or the attempt that is joined or begun, without awaiting its outcome.

        Joining may ask this task's approver first; an attempt that is being cleaned up is waited for.

        Raises:
            ServerError: the server may not be connected.
        """
        close_count = slot.close_count
        start: ApprovedStart | None = None
        while True:
            live = slot.live_connection()
            if live is not None:
                return live
            self._check(slot)
            attempt = slot.attempt
            if attempt is None:
                return self._begin(slot, Attempt(acquire, asker=self._asker(), start=start))
            if attempt.is_settled or slot.closing:
                # Its connection has just ended, and its task is still cleaning up.
                await attempt.ended.wait()
                continue
            attempt.raise_mode(acquire)
            if start is not None:
                attempt.approve(start)
            if attempt.start is not None or attempt.asker == self._asker():
                return attempt
            start = await attempt.ask(lambda: approved_start(slot.server, self.approver, self.environ))
            if slot.close_count != close_count:
                raise ServerClosedError(slot.name, "was closed by the host")

    def _check(self, slot: Slot) -> None:
        """Raise `ServerClosedError` for a disabled, removed or closed server; ToolbridgeError before `open`."""
        if self._tasks is None:
            raise ToolbridgeError("A ServerManager connects inside `async with`.")
        if self.is_closed:
            raise ServerClosedError(slot.name, "can't be connected: the servers are closed")
        if not self._is_configured(slot):
            raise ServerClosedError(slot.name, "was closed: the configuration has changed")
        if not slot.server.enabled:
            raise ServerClosedError(slot.name, "is disabled in the configuration")

    def _asker(self) -> object:
        return self.approver.asker() if isinstance(self.approver, AsksSomebody) else None

    def _begin(self, slot: Slot, attempt: Attempt) -> Attempt:
        """Register the attempt at its slot and run it in a task of its own."""
        assert self._tasks is not None
        slot.attempt = attempt
        self._tasks.start_soon(run_connection, slot, attempt, self, name=f"server {slot.name}")
        return attempt
