"""From a configured server to a live connection: one attempt at a time for each, in a task of its own.

Those who want the same server share the attempt. Who is asked whether it may be connected is not shared: one person's
silence keeps no other from answering, and one person's no is nobody else's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from toolbridge.config.server_config import ServerConfig
from toolbridge.config.server_limits import ServerLimits
from toolbridge.errors import ServerClosedError, ToolbridgeError
from toolbridge.servers.attempt import Attempt, Place
from toolbridge.servers.connected import Connected
from toolbridge.servers.connection_places import ConnectionPlaces
from toolbridge.servers.lifecycle import SetState, Surroundings, live
from toolbridge.servers.listing import Listing
from toolbridge.servers.server_requests import ServerRequests
from toolbridge.servers.slot import Slot
from toolbridge.servers.start import Start, approved_start
from toolbridge.trust.approver import Approver, AsksSomebody

if TYPE_CHECKING:
    from toolbridge.servers.sign_in import SignIn


class Connecting:
    """Opens connections, and owns the tasks that they live in."""

    def __init__(
        self,
        *,
        limits: ServerLimits,
        approver: Approver,
        requests: ServerRequests,
        sign_in: SignIn | None,
        environ: Mapping[str, str],
        keep_listing: Callable[[Slot, Listing], Awaitable[None]],
        set_state: SetState,
        is_configured: Callable[[Slot], bool],
    ) -> None:
        self.limits = limits
        self.is_closed = False
        self.places = ConnectionPlaces(lambda: self.limits.connections)
        self._approver = approver
        self._requests = requests
        self._sign_in = sign_in
        self.environ = environ
        self._keep_listing = keep_listing
        self._set_state = set_state
        self._is_configured = is_configured
        self._tasks: anyio.abc.TaskGroup | None = None

    def roots_of(self, server: str) -> tuple[str, ...]:
        """The roots that a server was told last."""
        return self._requests.listed_roots.get(server, ())

    async def open(self) -> None:
        """From now on there can be connections."""
        if self._tasks is not None:
            raise ToolbridgeError("A ServerManager is entered once: make a new one.")
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()

    async def end(self) -> None:
        """End all tasks. To be called by the task that opened it."""
        assert self._tasks is not None
        # Cancelled connections clean up under shields of their own, each bounded in time. What the host raised is
        # not handed to the task group, which would wrap it in an exception group.
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)

    async def approved(self, server: ServerConfig) -> Start:
        """What may be opened.

        Raises:
            ServerError: it is not approved, or can't be prepared.
        """
        return await approved_start(server, self._approver, self.environ)

    async def connection(self, slot: Slot, place: Place = "make_room") -> Connected:
        """A live connection: the one there is, the one being opened, or a new one."""
        found = await self.attempt(slot, place)
        return await found.outcome() if isinstance(found, Attempt) else found

    async def attempt(self, slot: Slot, place: Place = "make_room") -> Attempt | Connected:
        """The attempt to connect it that is under way, or a new one; or the live connection that there is."""
        closings = slot.closings
        start: Start | None = None
        while True:
            if slot.connection is not None and not slot.connection.ended and not slot.closing:
                return slot.connection
            self._check(slot)
            attempt = slot.attempt
            if attempt is None:
                return self._begin(slot, Attempt(place, asker=self._asker(), start=start))
            if attempt.is_settled or slot.closing:
                # What it led to has ended a moment ago, and its task is still cleaning up.
                await attempt.over.wait()
                continue
            attempt.want(place)
            if start is not None:
                attempt.approve(start)
            if attempt.start is not None or attempt.asker == self._asker():
                return attempt
            start = await attempt.ask(lambda: self.approved(slot.server))
            if slot.closings != closings:
                raise ServerClosedError(slot.name, "was closed by the host")

    def _check(self, slot: Slot) -> None:
        if self._tasks is None:
            raise ToolbridgeError("A ServerManager connects inside `async with`.")
        if self.is_closed:
            raise ServerClosedError(slot.name, "can't be connected: the servers are closed")
        if not self._is_configured(slot):
            raise ServerClosedError(slot.name, "was closed: the configuration has changed")
        if not slot.server.enabled:
            raise ServerClosedError(slot.name, "is disabled in the configuration")

    def _asker(self) -> object:
        return self._approver.asker() if isinstance(self._approver, AsksSomebody) else None

    def _begin(self, slot: Slot, attempt: Attempt) -> Attempt:
        assert self._tasks is not None
        slot.attempt = attempt
        around = Surroundings(
            limits=self.limits,
            approver=self._approver,
            requests=self._requests,
            sign_in=self._sign_in,
            environ=self.environ,
            is_closed=lambda: self.is_closed,
            places=self.places,
            keep_listing=self._keep_listing,
            set_state=self._set_state,
        )
        self._tasks.start_soon(live, slot, attempt, around, name=f"server {slot.name}")
        return attempt
