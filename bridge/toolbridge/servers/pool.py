"""Connection pool: one slot per configured server, a cap on connections, and LRU eviction of idle servers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from toolbridge.config.server_config import Origin, ServerConfig, ServerLimits, Transport
from toolbridge.errors import (
    ConnectionLimitError,
    ServerClosedError,
    ToolbridgeError,
    ToolNotFoundError,
    nearest,
)
from toolbridge.events import ServerState
from toolbridge.servers.lifecycle import (
    AcquireMode,
    ApprovedStart,
    Attempt,
    LiveConnection,
    SetState,
    approved_start,
    run_connection,
)
from toolbridge.servers.listing import Listing, blocked_error, by_original_name, exposed_tools, unmatched_names
from toolbridge.servers.requests import ServerRequests
from toolbridge.tools.server import ToolServer
from toolbridge.trust.approval.approver import Approver, AsksSomebody
from toolbridge.trust.pins.admission import Admission, BlockedTool
from toolbridge.trust.text.sanitise import for_error
from toolbridge_codegen.catalog import ServerListing

if TYPE_CHECKING:
    from toolbridge.servers.auth.sign_in import SignIn
    from toolbridge.tools.server import HostConnection

_log = logging.getLogger("toolbridge")


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A snapshot of one server."""

    name: str
    display_name: str
    origin: Origin
    transport: Transport
    state: ServerState
    tools: int | None
    """Exposed tools; None when the server was never listed."""
    last_error: str
    problems: tuple[str, ...]
    """Unusable tools, tools blocked by pins, configured tool names that match no tool, unset variables."""
    respawns: int
    unseen: int = 0
    """Exposed tools that passed the audit and were not accepted by this user yet."""


class Slot:
    """A configured server: state, listing, connection or the attempt at one. Only the manager changes it."""

    def __init__(self, server: ServerConfig) -> None:
        self.server = server
        self.state: ServerState = "idle"
        self.last_error = ""
        self.listing: Listing | None = None
        self.admission: Admission | None = None
        """The listing verified against its pins; None when the host has no pins, and all tools are admitted."""
        self.connection: LiveConnection | None = None
        self.host_connection: HostConnection | None = None
        """The same connection, if the server is made of host tools."""
        self.attempt: Attempt | None = None
        self.scope: anyio.CancelScope | None = None
        self.config_secrets: frozenset[str] = frozenset()
        self.environment_warnings: tuple[str, ...] = ()
        """Variables that were unset at the last start and were left empty."""
        self.channel_secrets: Callable[[], frozenset[str]] | None = None
        self._seen_secrets: frozenset[str] = frozenset()
        self.start_count = 0
        """Starts since the host last closed it."""
        self.is_legacy = False
        """Whether the server exits when it is probed for the newer protocol."""
        self.users = 0
        """Tasks that wait for its connection or have a call under way: none may evict it meanwhile."""
        self.listing_users = 0
        """Those of its users that only want its listing, and are gone in a moment."""
        self.last_used = 0.0
        """When its last call or connect ended, for LRU eviction; 0 if only its listing was ever used."""
        self.closing = False
        self.closing_reason = ""
        """Why it is being closed, unless the host asked for it."""
        self.close_count = 0
        """Closes by the host: a call that began before one must not open the connection again."""
        self.channel_end: Callable[[], str] | None = None
        self._semaphore: anyio.Semaphore | None = None
        self._exposed_names: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """The server's name."""
        return self.server.name

    @property
    def secrets(self) -> frozenset[str]:
        """Secrets to redact: those of its configuration, and every token since it was first started."""
        if self.channel_secrets is not None:
            self._seen_secrets |= self.channel_secrets()
        return self.config_secrets | self._seen_secrets if self._seen_secrets else self.config_secrets

    @property
    def host_tools(self) -> ToolServer | None:
        """The in-process functions it is made of, if it is; such a server needs no process and no approval."""
        found: object = self.server.server
        return found if isinstance(found, ToolServer) and self.server.origin.kind == "code" else None

    def live_connection(self) -> LiveConnection | None:
        """Its connection, if a call can use it at once."""
        connection = self.connection
        return None if connection is None or self.closing or connection.ended else connection

    def connect_seconds(self, limits: ServerLimits) -> float:
        """The timeout for connecting it."""
        return self.server.connect_timeout or limits.connect_seconds

    def semaphore(self, limits: ServerLimits) -> anyio.Semaphore:
        """The semaphore that caps calls under way."""
        if self._semaphore is None:
            self._semaphore = anyio.Semaphore(limits.calls_in_flight, fast_acquire=True)
        return self._semaphore

    def reset_semaphore(self) -> None:
        """Drop the semaphore after the limits changed: calls from now on share a new one."""
        self._semaphore = None

    def end_reason(self) -> str:
        """Why its channel ended. Not sanitised."""
        return self.channel_end() if self.channel_end is not None else ""

    def ended_message(self, reason: str) -> str:
        """The error message for a server that ended by itself."""
        reason = for_error(reason, self.secrets, limit=300)
        return f"Server {self.name!r} ended{': ' + reason if reason else ''}"

    def set_listing(self, listing: Listing, admission: Admission | None) -> None:
        """Replace listing and admission, always together."""
        self.listing, self.admission, self._exposed_names = listing, admission, None

    def reconfigure(self, server: ServerConfig) -> bool:
        """Change the configuration and keep the connection; True if the exposed tools or their texts changed."""
        before, self.server, self._exposed_names = self.exposed(), server, None
        return self.exposed() != before

    def exposed(self) -> ServerListing | None:
        """The tools that pins and configuration admit."""
        if self.listing is None:
            return None
        admitted = self.admission or self.listing
        tools = exposed_tools(self.name, admitted.tools, self.server.allow_tools, self.server.deny_tools)
        server = self.server
        name = server.display_name or self.name
        schemas = by_original_name(self.name, admitted.tools, server.output_schemas)
        return ServerListing(self.name, tools, name, admitted.instructions, server.reading, schemas)

    def exposed_names(self) -> frozenset[str]:
        """The original names of exposed tools; computed once per listing."""
        if self._exposed_names is None:
            exposed = self.exposed()
            self._exposed_names = frozenset(tool.name for tool in exposed.tools) if exposed else frozenset()
        return self._exposed_names

    def check_exposed(self, tool: str) -> None:
        """Verify that a tool is exposed now.

        Raises:
            ToolBlockedError: its pin blocks it.
            ToolNotFoundError: the server has no such tool, or the configuration filters it out.
        """
        names = self.exposed_names()
        if tool in names:
            return
        blocked = self.blocked(tool)
        if blocked is not None:
            raise blocked_error(self.server, blocked)
        near = nearest(tool, names)
        hint = f"; did you mean {near!r}?" if near else ""
        raise ToolNotFoundError(self.name, f"exposes no tool {for_error(tool, limit=100)!r}{hint}")

    def blocked(self, name: str) -> BlockedTool | None:
        """A tool that would be exposed if its pin admitted it."""
        if self.admission is None or name not in self._allowed_names():
            return None
        return self.admission.find_blocked(name)

    def blocked_tools(self) -> tuple[BlockedTool, ...]:
        """All tools that would be exposed if their pins admitted them, by name."""
        admission = self.admission
        if admission is None or not (admission.blocked or admission.problem):
            return ()
        found = [admission.find_blocked(name) for name in sorted(self._allowed_names())]
        return tuple(tool for tool in found if tool is not None)

    def _allowed_names(self) -> frozenset[str]:
        """The original names of the tools that the configuration allows, pinned or not."""
        tools = () if self.listing is None else self.listing.tools
        allowed = exposed_tools(self.name, tools, self.server.allow_tools, self.server.deny_tools)
        return frozenset(tool.name for tool in allowed)

    def unmatched_names(self) -> tuple[str, ...]:
        """Configured tool names that match no listed tool."""
        if self.listing is None:
            return ()
        return unmatched_names(self.name, self.listing.tools, self.server.allow_tools, self.server.deny_tools)

    def filter_problems(self) -> list[str]:
        """Warnings about configured tool names that match no listed tool."""
        return [f"allowTools or denyTools names {name!r}, which it does not list" for name in self.unmatched_names()]

    def stop(self, reason: str = "") -> None:
        """Cancel its connection, or the attempt at one."""
        self.close_count += 1
        if self.attempt is not None:
            self.closing = True
            self.closing_reason = reason
            if self.scope is not None:
                self.scope.cancel()

    def clear_connection(self) -> None:
        """Drop the connection when its task is about to end."""
        self.connection = self.host_connection = self.scope = self.channel_end = None

    def end_attempt(self) -> None:
        """Mark its task as ended: a new attempt may begin."""
        attempt, self.attempt = self.attempt, None
        self.closing = False
        self.closing_reason = ""
        if attempt is not None:
            attempt.ended.set()

    def status(self) -> ServerStatus:
        """A snapshot of its state."""
        listing, state, last_error = self.listing, self.state, self.last_error
        if state == "connected" and not self.closing and self.connection is not None and self.connection.ended:
            # The task that watches it has yet to run.
            state, last_error = "error", self.ended_message(self.connection.end_reason())
        problems = [*self.environment_warnings]
        problems += [
            f"{f'tool {each.tool!r}' if each.tool else 'its tools/list'} {each.problem}"
            for each in (listing.problems if listing else ())
        ]
        if self.admission is not None:
            problems += self.admission.problems(self.name, self._allowed_names())
        problems += self.filter_problems()
        return ServerStatus(
            name=self.name,
            display_name=self.server.display_name or self.name,
            origin=self.server.origin,
            transport=self.server.transport,
            state=state,
            tools=None if listing is None else len(self.exposed_names()),
            last_error=last_error,
            problems=tuple(problems),
            respawns=max(0, self.start_count - 1),
            unseen=0 if self.admission is None else len(self.exposed_names().intersection(self.admission.unseen)),
        )


class ConnectionPool:
    """SECURITY: caps connections, and evicts the least recently used idle server when the pool is full (T9).

    A slot holds its place from before the server starts until its clean-up is over, even if a reload removed it from
    the configuration. A server with users is never evicted, and an eviction counts as no respawn. Counting and
    acquiring are one step: no other task runs between.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._holders: set[Slot] = set()
        self._waiting = 0
        self._changed = anyio.Event()

    @property
    def has_waiters(self) -> bool:
        """Whether a task waits for a place."""
        return self._waiting > 0

    async def acquire(self, slot: Slot, attempt: Attempt) -> None:
        """Acquire a place, or wait for one that is about to be free.

        Raises:
            ConnectionLimitError: the pool is full, and no server can be evicted.
        """
        if slot.host_tools is not None:
            return  # host tools need no place
        while len(self._holders) >= self._limit():
            if sum(_is_leaving(holder) for holder in self._holders) <= self._waiting:
                idle = self._eviction_candidate(attempt.acquire)
                if idle is not None:
                    _evict(idle, slot)
                elif attempt.acquire != "queue" or not any(map(_is_in_transition, self._holders)):
                    raise self._full(slot)
            await self._wait_for_change()
        self._holders.add(slot)

    def release(self, slot: Slot) -> None:
        """Free the place of a slot whose clean-up is over."""
        self._holders.discard(slot)
        self.notify()

    def notify(self) -> None:
        """Wake the tasks that wait for a place."""
        if self._waiting:
            self._changed.set()

    async def _wait_for_change(self) -> None:
        if not self._waiting or self._changed.is_set():
            self._changed = anyio.Event()
        self._waiting += 1
        try:
            await self._changed.wait()
        finally:
            self._waiting -= 1

    def _eviction_candidate(self, acquire: AcquireMode) -> Slot | None:
        """LRU eviction: the idle server that was not used for longest; one that was only listed goes first."""
        if acquire == "if_free":
            return None
        idle = [holder for holder in self._holders if _is_idle(holder)]
        if acquire == "queue" and any(map(_is_in_transition, self._holders)):
            # A place is free in a moment, so a server in use stays.
            idle = [holder for holder in idle if not holder.last_used]
        return min(idle, key=lambda holder: (holder.last_used, holder.name), default=None)

    def _full(self, slot: Slot) -> ConnectionLimitError:
        names = ", ".join(sorted(holder.name for holder in self._holders))
        return ConnectionLimitError(
            slot.name,
            f"can't be connected: {len(self._holders)} servers are connected and in use ({names}), and no more than "
            f"{self._limit()} may be. Try again later, close one, or raise `limits.connections`",
        )


def _is_leaving(holder: Slot) -> bool:
    """Whether it was closed, ended or failed, and is being cleaned up."""
    is_settled = holder.attempt is not None and holder.attempt.is_settled
    return holder.closing or (is_settled and (holder.connection is None or holder.connection.ended))


def _is_idle(holder: Slot) -> bool:
    return not holder.users and holder.connection is not None and not _is_leaving(holder)


def _is_in_transition(holder: Slot) -> bool:
    """Whether it is connecting, being cleaned up, or about to be idle."""
    return holder.connection is None or _is_leaving(holder) or 0 < holder.users == holder.listing_users


def _evict(holder: Slot, wanted_for: Slot) -> None:
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
        """Enter the task group of the connections.

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
        """The live connection, or the outcome of the attempt that is joined or begun.

        Raises:
            ServerError: the server can't be connected.
        """
        found = await self.attempt(slot, acquire)
        return await found.outcome() if isinstance(found, Attempt) else found

    async def attempt(self, slot: Slot, acquire: AcquireMode) -> Attempt | LiveConnection:
        """The live connection, or the attempt that is joined or begun; joining may ask this task's approver first.

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
        assert self._tasks is not None
        slot.attempt = attempt
        self._tasks.start_soon(run_connection, slot, attempt, self, name=f"server {slot.name}")
        return attempt
