"""One configured server's place: its state, and the connection it has or is getting."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import anyio.abc
import anyio.to_thread

from toolbridge.config.server_config import Origin, ServerConfig, ServerLimits, Transport
from toolbridge.errors import ConnectionLimitError, ServerClosedError, ServerError, ToolbridgeError
from toolbridge.events import ServerState
from toolbridge.servers.lifecycle import (
    Attempt,
    Connected,
    Place,
    SetState,
    Start,
    Surroundings,
    approved_start,
    live,
    prepare,
)
from toolbridge.servers.listing import Listing, ToolNames, by_original_name, exposed_tools
from toolbridge.servers.requests import ServerRequests
from toolbridge.tools.server import ToolServer
from toolbridge.trust.approval.approver import Approver, AsksSomebody, MayTakeBack
from toolbridge.trust.pins.admission import Admission, BlockedTool
from toolbridge.trust.text.sanitise import for_error
from toolbridge_codegen.catalog import ServerListing, ToolDefinition

if TYPE_CHECKING:
    from toolbridge.servers.auth.sign_in import SignIn
    from toolbridge.tools.server import OwnConnection


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """What is known of one server at a moment."""

    name: str
    display_name: str
    origin: Origin
    transport: Transport
    state: ServerState
    tools: int | None
    """Exposed tools; None when the server was never asked."""
    last_error: str
    problems: tuple[str, ...]
    """Tools that can't be used or are blocked by their pins, configured tool names that match none, unset variables."""
    respawns: int
    unseen: int = 0
    """Exposed tools that this user has not accepted: the audit passed them, and nobody has seen them."""


class Slot:
    """A configured server. Only the manager changes it."""

    def __init__(self, server: ServerConfig) -> None:
        self.server = server
        self.state: ServerState = "idle"
        self.last_error = ""
        self.listing: Listing | None = None
        self.admission: Admission | None = None
        """What of the listing its pins let through; None when nothing is pinned, and all of it is."""
        self.connection: Connected | None = None
        self.own_connection: OwnConnection | None = None
        """The same, if it is one to the host's own functions."""
        self.attempt: Attempt | None = None
        self.scope: anyio.CancelScope | None = None
        self.own_secrets: frozenset[str] = frozenset()
        """Of its configuration."""
        self.environment_warnings: tuple[str, ...] = ()
        """Variables that were not set when it was last started, and were left empty."""
        self.channel_secrets: Callable[[], frozenset[str]] | None = None
        self._seen_secrets: frozenset[str] = frozenset()
        self.started = 0
        """How often it was started since the host last closed it."""
        self.is_old = False
        """Whether it ends when it is asked for the newer protocol first."""
        self.users = 0
        """Who waits for its connection or has a call under way: it is not closed for another's sake meanwhile."""
        self.visitors = 0
        """Those of its users who want no more than its listing, and are gone in a moment."""
        self.last_used = 0.0
        """When somebody last had a use for it other than its listing; 0 for never."""
        self.closing = False
        self.closing_reason = ""
        """Why it is being closed, if not because the host said so."""
        self.closings = 0
        """How often the host closed it: a call that began before must not open it again."""
        self.channel_end: Callable[[], str] | None = None
        self._line: anyio.Semaphore | None = None
        self._exposed_names: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """The server's name."""
        return self.server.name

    @property
    def secrets(self) -> frozenset[str]:
        """What must not be shown: of its configuration, and every token that its sign-in had since it was started."""
        if self.channel_secrets is not None:
            self._seen_secrets |= self.channel_secrets()
        return self.own_secrets | self._seen_secrets if self._seen_secrets else self.own_secrets

    @property
    def own_tools(self) -> ToolServer | None:
        """The host's own functions, if it is made of those: nothing is started or reached, and nobody is asked."""
        found: object = self.server.server
        return found if isinstance(found, ToolServer) and self.server.origin.kind == "code" else None

    def live(self) -> Connected | None:
        """Its connection, if a call can use it at once."""
        connection = self.connection
        return None if connection is None or self.closing or connection.ended else connection

    def connect_seconds(self, limits: ServerLimits) -> float:
        """How long it may take to connect."""
        return self.server.connect_timeout or limits.connect_seconds

    def line(self, limits: ServerLimits) -> anyio.Semaphore:
        """Where calls wait their turn."""
        if self._line is None:
            self._line = anyio.Semaphore(limits.calls_in_flight, fast_acquire=True)
        return self._line

    def renew_line(self) -> None:
        """The limits changed: calls that come from now on wait in a new line."""
        self._line = None

    def end_reason(self) -> str:
        """What its channel has to say of its end: not sanitised."""
        return self.channel_end() if self.channel_end is not None else ""

    def end_words(self, reason: str) -> str:
        """The error of a server that ended by itself."""
        reason = for_error(reason, self.secrets, limit=300)
        return f"Server {self.name!r} ended{': ' + reason if reason else ''}"

    def take(self, listing: Listing, admission: Admission | None) -> None:
        """A listing, and what of it may be used: always both at once."""
        self.listing, self.admission, self._exposed_names = listing, admission, None

    def take_over(self, server: ServerConfig) -> bool:
        """The same connection by a changed configuration; whether it may expose other tools, or show them otherwise."""
        before, self.server, self._exposed_names = self.exposed(), server, None
        return self.exposed() != before

    def exposed(self) -> ServerListing | None:
        """The tools that pins and configuration let through."""
        if self.listing is None:
            return None
        admitted = self.admission or self.listing
        tools = exposed_tools(self.name, admitted.tools, self.server.allow_tools, self.server.deny_tools)
        server = self.server
        name = server.display_name or self.name
        schemas = by_original_name(self.name, admitted.tools, server.output_schemas)
        return ServerListing(self.name, tools, name, admitted.instructions, server.reading, schemas)

    def exposed_names(self) -> frozenset[str]:
        """The original names of exposed tools; made once per listing."""
        if self._exposed_names is None:
            exposed = self.exposed()
            self._exposed_names = frozenset(tool.name for tool in exposed.tools) if exposed else frozenset()
        return self._exposed_names

    def blocked(self, name: str) -> BlockedTool | None:
        """A tool that would be exposed, if its pin let it through."""
        if self.admission is None or name not in self._wanted_names():
            return None
        return self.admission.find_blocked(name)

    def blocked_tools(self) -> tuple[BlockedTool, ...]:
        """All of those, by name."""
        admission = self.admission
        if admission is None or not (admission.blocked or admission.problem):
            return ()
        found = [admission.find_blocked(name) for name in sorted(self._wanted_names())]
        return tuple(tool for tool in found if tool is not None)

    def _wanted_names(self) -> frozenset[str]:
        """The original names of the tools that the configuration lets through, whatever the pins say."""
        tools = () if self.listing is None else self.listing.tools
        wanted = exposed_tools(self.name, tools, self.server.allow_tools, self.server.deny_tools)
        return frozenset(tool.name for tool in wanted)

    def unmatched_names(self) -> tuple[str, ...]:
        """Configured tool names that match no tool."""
        if self.listing is None:
            return ()
        return unmatched_names(self.name, self.listing.tools, self.server.allow_tools, self.server.deny_tools)

    def filter_problems(self) -> list[str]:
        """What to tell of these names."""
        return [f"allowTools or denyTools names {name!r}, which it does not list" for name in self.unmatched_names()]

    def stop(self, reason: str = "") -> None:
        """End its connection, or the attempt at one."""
        self.closings += 1
        if self.attempt is not None:
            self.closing = True
            self.closing_reason = reason
            if self.scope is not None:
                self.scope.cancel()

    def release(self) -> None:
        """Its task is about to end: it holds nothing any more."""
        self.connection = self.own_connection = None
        self.scope = None
        self.channel_end = None

    def settle(self) -> None:
        """Its task has ended: a new attempt may begin."""
        attempt, self.attempt = self.attempt, None
        self.closing = False
        self.closing_reason = ""
        if attempt is not None:
            attempt.over.set()

    async def wait_until_idle(self) -> None:
        """Until the task that it has now, if any, is over."""
        if self.attempt is not None:
            await self.attempt.over.wait()

    def status(self) -> ServerStatus:
        """What is known now."""
        listing, state, last_error = self.listing, self.state, self.last_error
        if state == "connected" and not self.closing and self.connection is not None and self.connection.ended:
            # The task that watches it has yet to run.
            state, last_error = "error", self.end_words(self.connection.end_reason())
        problems = [*self.environment_warnings]
        problems += [
            f"{f'tool {each.tool!r}' if each.tool else 'its tools/list'} {each.problem}"
            for each in (listing.problems if listing else ())
        ]
        if self.admission is not None:
            problems += self.admission.problems(self.name, self._wanted_names())
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
            respawns=max(0, self.started - 1),
            unseen=0 if self.admission is None else len(self.exposed_names().intersection(self.admission.unseen)),
        )


# SECURITY: the connections there may be at once, and who gives one up when all are taken (T9).
#
# A place is held from before a server is started until everything of it is cleaned up, also by a server that a reload
# has taken out of the configuration. When there is none left, the server that was not used for longest is closed, if
# nobody waits for it or has a call under way. What it gave up is no respawn: it did not fail.


_log = logging.getLogger("toolbridge")


class ConnectionPlaces:
    """Who holds one. Counting and taking are one step: no other task runs between."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._holders: set[Slot] = set()
        self._waiting = 0
        self._news = anyio.Event()

    async def take(self, slot: Slot, attempt: Attempt) -> None:
        """Take one, or wait for one that is about to be given up.

        Raises:
            ConnectionLimitError: all are held, and none can be given up.
        """
        if slot.own_tools is not None:
            return  # there is nothing to hold
        while len(self._holders) >= self._most():
            if not self._one_is_coming():
                idle = self._to_give_up(attempt)
                if idle is not None:
                    _give_up(idle, slot)
                elif attempt.place != "in_turn" or not any(_is_under_way(holder) for holder in self._holders):
                    raise self._refused(slot)
            await self._next_news()
        self._holders.add(slot)

    def give_back(self, slot: Slot) -> None:
        """Nothing of it is left."""
        self._holders.discard(slot)
        self.notice()

    def notice(self) -> None:
        """Something changed that those who wait for a place may have waited for."""
        if self._waiting:
            self._news.set()

    async def _next_news(self) -> None:
        if not self._waiting or self._news.is_set():
            self._news = anyio.Event()
        self._waiting += 1
        try:
            await self._news.wait()
        finally:
            self._waiting -= 1

    def _one_is_coming(self) -> bool:
        """Whether more are being given up than are waited for already."""
        return sum(_is_leaving(holder) for holder in self._holders) > self._waiting

    def _to_give_up(self, attempt: Attempt) -> Slot | None:
        """The idle server that was not used for longest; those that were only asked for their tools come first."""
        if attempt.place == "if_free":
            return None
        idle = [holder for holder in self._holders if _is_idle(holder)]
        if attempt.place == "in_turn" and any(_is_under_way(holder) for holder in self._holders):
            # One of those will be as good in a moment, and what somebody uses stays.
            idle = [holder for holder in idle if not holder.last_used]
        return min(idle, key=lambda holder: (holder.last_used, holder.name), default=None)

    def _refused(self, slot: Slot) -> ConnectionLimitError:
        names = ", ".join(sorted(holder.name for holder in self._holders))
        return ConnectionLimitError(
            slot.name,
            f"can't be connected: {len(self._holders)} servers are connected and in use ({names}), and no more than "
            f"{self._most()} may be. Try again later, close one, or raise `limits.connections`",
        )


def _is_leaving(holder: Slot) -> bool:
    """Whether it was closed, ended or failed, and is being cleaned up."""
    is_settled = holder.attempt is not None and holder.attempt.is_settled
    return holder.closing or (is_settled and (holder.connection is None or holder.connection.ended))


def _is_idle(holder: Slot) -> bool:
    return not holder.users and holder.connection is not None and not _is_leaving(holder)


def _is_under_way(holder: Slot) -> bool:
    """Whether it is on its way to a connection, or away from one, or about to be idle."""
    return holder.connection is None or _is_leaving(holder) or 0 < holder.users == holder.visitors


def _give_up(holder: Slot, wanted_for: Slot) -> None:
    reason = f"closed to make room for server {wanted_for.name!r}"
    _log.info("Server %r was %s.", holder.name, reason)
    holder.started -= 1
    holder.stop(reason)


# From a configured server to a live connection: one attempt at a time for each, in a task of its own.
#
# Those who want the same server share the attempt. Who is asked whether it may be connected is not shared: one
# person's silence keeps no other from answering, and one person's no is nobody else's.


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
            live = slot.live()
            if live is not None:
                return live
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


# SECURITY: approvals that are taken back elsewhere while servers are connected: those are closed (T1).
#
# A person revokes or disables a server in one terminal, and means the host that runs in another. It looks before each
# run, which costs no more than a look at a file's time.


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


def unmatched_names(
    server: str, tools: tuple[ToolDefinition, ...], allow: tuple[str, ...] | None, deny: tuple[str, ...]
) -> tuple[str, ...]:
    """Entries of allowTools and denyTools that name no tool: most often a misspelling."""
    if not allow and not deny:
        return ()
    names = ToolNames(server, [tool.name for tool in tools])
    missing = [entry for entry in allow or () if not names.meant(entry)]
    return tuple(dict.fromkeys([*missing, *(entry for entry in deny if not names.possible(entry))]))
