"""All servers: their states, their connections, and the calls that go through them.

Each connection lives in a task of its own, from approval to clean-up, inside the manager's task group: whatever
happens to a caller, connections are closed by the task that opened them, and closing the manager closes them all.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread

from toolbridge.callbacks import observers_of
from toolbridge.config.config import Config, listing_key, same_connection
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import (
    MisuseError,
    ServerClosedError,
    ServerConnectError,
    ServerDisconnectedError,
    ServerError,
    ToolNotFoundError,
    UnknownServerError,
    nearest,
)
from toolbridge.events import ServerObserver, ServerState, StateChanged, ToolsChanged, _Event
from toolbridge.servers.lifecycle import Attempt, CallNotSentError, Place
from toolbridge.servers.listing import Admissions, Listing, ListingStore, blocked_error, original_names
from toolbridge.servers.pool import Connecting, Revocations, ServerStatus, Slot
from toolbridge.servers.requests import ElicitorLike, RootsLike, SamplerLike, ServerRequests
from toolbridge.tools.binding import OnProgress
from toolbridge.trust.approval.approver import ApproverLike
from toolbridge.trust.approval.approvers import approver_of
from toolbridge.trust.pins.admission import Admission, BlockedTool
from toolbridge.trust.pins.pins import Pins
from toolbridge.trust.text.sanitise import for_error
from toolbridge_codegen.catalog import Catalog, ServerListing, build_catalog, identifier, module_specifier

if TYPE_CHECKING:
    from toolbridge.servers.auth.sign_in import SignIn, SignInLike
    from toolbridge.tools.tool import InProcessTool


# What a host may call a tool with. Its own mistakes are not a server's.


_TEXT: set[type] = {str}


def check_arguments(tool: object, arguments: object, timeout: object) -> None:
    """See that a call can be one.

    Raises:
        MisuseError: it can't.
    """
    if not isinstance(tool, str):
        raise MisuseError("tool", tool, "the tool's name")
    keys = cast("Mapping[Any, Any]", arguments) if isinstance(arguments, Mapping) else [None]
    if set(map(type, keys)) != _TEXT and not all(isinstance(key, str) for key in keys):
        raise MisuseError("arguments", cast("object", arguments), "a mapping with text as keys")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float))):
        raise MisuseError("timeout", timeout, "a number of seconds")


# What is known of the servers: states, listings, what of them is exposed, the catalog. Nothing here connects.


_log = logging.getLogger("toolbridge")


class KnownServers:
    """The servers of one configuration, as far as they are known."""

    def __init__(
        self, *, pins: Pins | None, directory: Path | None, listing_bytes: int, observers: Sequence[ServerObserver]
    ) -> None:
        self._admissions = Admissions(pins)
        self._observers = tuple(observers)
        self._store = ListingStore(directory, limit=2 * listing_bytes)
        self._slots: dict[str, Slot] = {}
        self._former_secrets: dict[str, frozenset[str]] = {}
        self._catalog: Catalog | None = None
        self._specifiers: dict[str, str] | None = None
        self._filter_warnings: tuple[Catalog, tuple[str, ...]] | None = None

    def statuses(self) -> tuple[ServerStatus, ...]:
        """Every server's status, by name."""
        return tuple(slot.status() for _, slot in sorted(self._slots.items()))

    def status(self, server: str) -> ServerStatus:
        """One server's status."""
        return self._slot(server).status()

    def config_of(self, server: str) -> ServerConfig:
        """How a server is configured."""
        return self._slot(server).server

    def enabled_servers(self) -> tuple[str, ...]:
        """The names of servers that may be connected."""
        return tuple(sorted(name for name, slot in self._slots.items() if slot.server.enabled))

    def names(self) -> tuple[str, ...]:
        """The names of all servers, disabled ones too."""
        return tuple(sorted(self._slots))

    def specifiers(self) -> Mapping[str, str]:
        """Module specifier → server, for all enabled servers."""
        if self._specifiers is None:
            self._specifiers = {module_specifier(name): name for name in self.enabled_servers()}
        return self._specifiers

    def unconnected(self, servers: Iterable[str]) -> list[str]:
        """Those of these servers that have no live connection, which a call could use at once."""
        return [name for name in servers if (slot := self._slots.get(name)) is None or slot.live() is None]

    def exports(self, server: str) -> dict[str, str]:
        """Function → tool: what a server's module exports.

        A tool that changed since the program was written is among them: calling it says so. One whose function had to
        be renamed is not: that name could be another tool's.
        """
        module = self.catalog.module(module_specifier(server))
        exports = dict(module.exports) if module is not None else {}
        for name in self.changed_tools(server):
            if identifier(name) == name:
                exports.setdefault(name, name)
        return exports

    def secrets(self, server: str) -> frozenset[str]:
        """What must not be in anything that a server's words are put into; also of one that is gone."""
        slot = self._slots.get(server)
        former = self._former_secrets.get(server, frozenset())
        return former if slot is None else slot.secrets | former if former else slot.secrets

    def listing(self, server: str) -> Listing | None:
        """What a server lists: live, or as it was kept; None when it was never asked."""
        return self._slot(server).listing

    def listed(self) -> Catalog:
        """Everything that servers list, exposed or not."""
        listings = [(slot.name, slot.listing) for slot in self._slots.values()]
        return build_catalog(ServerListing(name, each.tools) for name, each in listings if each is not None)

    def other_tools(self, server: str) -> dict[str, tuple[str, ...]]:
        """The names of the tools of all other servers that are known, by server: for the audit of this one's texts."""
        others = {name: slot.listing for name, slot in self._slots.items() if name != server}
        return {name: tuple(tool.name for tool in each.tools) for name, each in others.items() if each is not None}

    def changed_tools(self, server: str) -> tuple[str, ...]:
        """Tools of a server that are blocked because they are not as they were pinned, and nobody has refused that."""
        slot = self._slot(server)
        blocked = slot.admission.blocked if slot.admission is not None else ()
        changed = [tool.name for tool in blocked if tool.why == "changed" and not tool.was_refused]
        return tuple(name for name in changed if slot.blocked(name) is not None)

    def servers_with_blocked_tools(self) -> tuple[str, ...]:
        """The names of servers some of whose tools their pins don't let through."""
        admissions = [(name, slot.admission) for name, slot in self._slots.items()]
        return tuple(name for name, each in admissions if each is not None and (each.blocked or each.problem))

    def blocked_tools(self, server: str) -> tuple[BlockedTool, ...]:
        """The tools of a server that would be exposed, if their pins let them through."""
        return self._slot(server).blocked_tools()

    def check_exposed(self, server: str, tool: str) -> None:
        """Whether a server exposes a tool now.

        Raises:
            ToolBlockedError: its pin doesn't let it through.
            ToolNotFoundError: it doesn't.
        """
        self._check_exposed(self._slot(server), tool)

    def exposed(self, server: str) -> ServerListing | None:
        """The tools of a server that its pins and configuration let through; None when it was never asked."""
        return self._slot(server).exposed()

    def admission(self, server: str) -> Admission | None:
        """What a server's pins let through and what not; None when it is not pinned, or was never asked."""
        return self._slot(server).admission

    @property
    def catalog(self) -> Catalog:
        """Every exposed tool of every enabled server whose listing is known."""
        catalog = self._catalog
        if catalog is None:
            listings = [slot.exposed() for slot in self._slots.values() if slot.server.enabled]
            catalog = self._catalog = build_catalog(listing for listing in listings if listing is not None)
        return catalog

    @property
    def filter_warnings(self) -> tuple[str, ...]:
        """What to tell of entries of `allowTools` and `denyTools` that name no tool; found anew with each catalog."""
        version = self.catalog
        if self._filter_warnings is None or self._filter_warnings[0] is not version:
            slots = [slot for slot in self._slots.values() if slot.server.enabled]
            found = [f"Server {slot.name!r}: {problem}." for slot in slots for problem in slot.filter_problems()]
            self._filter_warnings = version, tuple(found)
        return self._filter_warnings[1]

    def _check_exposed(self, slot: Slot, tool: str) -> None:
        names = slot.exposed_names()
        if tool not in names:
            blocked = slot.blocked(tool)
            if blocked is not None:
                raise blocked_error(slot.server, blocked)
            near = nearest(tool, names)
            hint = f"; did you mean {near!r}?" if near else ""
            raise ToolNotFoundError(slot.name, f"exposes no tool {for_error(tool, limit=100)!r}{hint}")

    # ── what servers say ─────────────────────────────────────────────────────────────────────────────────────────

    async def _keep(self, slot: Slot, listing: Listing) -> None:
        await self._admissions.settle(slot.server, listing, self.other_tools(slot.name))
        # Asked also when the listing seems to be the same: for Python, `true` equals 1.
        admission = await self._admissions.of_foreign(slot.server, listing)
        is_same = listing == slot.listing and admission == slot.admission
        slot.take(listing, admission)
        if is_same:
            return
        self._catalog = None
        for name in slot.unmatched_names():
            _log.warning("Server %r has no tool %r, which its allowTools or denyTools names.", slot.name, name)
        tell(self._observers, ToolsChanged(slot.name))
        if slot.own_tools is None:  # those are known without a file, and may be others tomorrow
            await anyio.to_thread.run_sync(self._store.save, listing_key(slot.server), listing)

    async def accept_tools(self, server: str, listing: Listing, tools: Collection[str] | None = None) -> None:
        """Pin the tools of a listing that a person has seen: all of them, or these.

        Raises:
            ToolbridgeError: they are not pinned here, or the pins can't be changed so.
        """
        slot = self._slot(server)
        if tools is not None:
            known = [tool.name for tool in listing.tools]
            gone = () if slot.admission is None else slot.admission.removed
            tools = original_names(server, [*known, *gone], tools)
        try:
            await self._admissions.accept(slot.server, listing, tools)
        finally:  # cancelled, too: what is pinned is what is admitted
            with anyio.CancelScope(shield=True):
                await self._admit_again(slot)

    async def _admit_again(self, slot: Slot) -> None:
        """The pins changed, and the listing did not."""
        listing = slot.listing
        if listing is None:
            return
        admission = await self._admissions.of_foreign(slot.server, listing)
        if slot.listing is listing and admission != slot.admission:  # no newer listing was admitted meanwhile
            slot.take(listing, admission)
            self._catalog = None
            tell(self._observers, ToolsChanged(slot.name))

    # ── slots ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _add(self, server: ServerConfig) -> None:
        slot = Slot(server)
        own = slot.own_tools
        listing = self._store.load(server.name, listing_key(server)) if own is None else own.listing(server.name)
        admission = None if listing is None else self._admissions.of(server, listing)
        # A program's server without pins gets its first when it lists its tools; till then nothing is known of it.
        is_premature = admission is not None and admission.is_of_program and not admission.is_pinned
        if listing is not None and not is_premature:
            slot.take(listing, admission)
        if own is None and (error := self._store.load_error(listing_key(server))):
            slot.last_error, slot.state = error, "error"
        self._slots[server.name] = slot
        self._specifiers = None

    def _slot(self, server: str) -> Slot:
        slot = self._slots.get(server)
        if slot is None:
            raise UnknownServerError(server, tuple(sorted(self._slots)))
        return slot

    def _set_state(self, slot: Slot, state: ServerState, error: str = "", reason: str = "") -> None:
        if error:
            slot.last_error = error
        if slot.own_tools is None and (state == "connected" or (state == "error" and error)):
            self._store.save_error(listing_key(slot.server), error)
        if slot.state != state:
            slot.state = state
            tell(self._observers, StateChanged(slot.name, state, error, reason))


# Calls of the host's own tools that wait for nobody: there is nothing to connect, to send, or to stand in line for.
#
# The manager's `call` does all of that for any server. This way is taken only where it would find nothing to do, so
# that calling a function of the host's costs little more than the function.


def ready_tool(slot: Slot, line: anyio.Semaphore, tool: str) -> InProcessTool[..., Any] | None:
    """The tool, if a call of it could begin this moment; nothing must be awaited before it does."""
    connection = slot.own_connection
    if connection is None or connection.ended or slot.closing or not line.value or tool not in slot.exposed_names():
        return None
    own = connection.find(tool)
    return None if own is None or own.arguments.wants_context else own


async def finish_call(
    slot: Slot, line: anyio.Semaphore, own: InProcessTool[..., Any], result: Awaitable[dict[str, Any]], seconds: float
) -> dict[str, Any]:
    """The raw result of a call that was begun when its tool was ready. To be awaited at once.

    Raises:
        ServerError: there is none: it took too long, or was closed.
    """
    connection, closings = slot.own_connection, slot.closings
    assert connection is not None
    line.acquire_nowait()  # there was room, and nobody had a turn since
    try:
        return await connection.finish(own, result, seconds)
    except ServerError:
        if slot.closings != closings:
            raise ServerClosedError(slot.name, f"was closed during the call of {own.name!r}") from None
        raise
    finally:
        line.release()


class ServerManager(KnownServers):
    """The servers of one configuration. Use it as `async with`; its methods are safe from any task of that loop."""

    def __init__(
        self,
        config: Config,
        *,
        approver: ApproverLike | None = None,
        pins: Pins | None = None,
        elicitor: ElicitorLike | None = None,
        sampler: SamplerLike | None = None,
        roots: RootsLike | None = None,
        sign_in: SignInLike | None = None,
        directory: str | os.PathLike[str] | None = None,
        observers: Sequence[ServerObserver] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        place = None if directory is None else Path(directory)
        super().__init__(
            pins=pins, directory=place, listing_bytes=config.limits.listing_bytes, observers=observers_of(observers)
        )
        self._limits = config.limits
        asked = approver_of(approver)
        self._connecting = Connecting(
            limits=config.limits,
            approver=asked,
            requests=ServerRequests.of(elicitor, sampler, roots),
            sign_in=_sign_in_of(sign_in),
            environ=os.environ if environ is None else environ,
            keep_listing=self._keep,
            set_state=self._note_state,
            is_configured=lambda slot: self._slots.get(slot.name) is slot,
        )
        self._revocations = Revocations(asked, self._close)
        for server in config.servers.values():
            self._add(server)

    async def __aenter__(self) -> ServerManager:
        await self._connecting.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        del kind, error, traceback
        self._connecting.is_closed = True
        for slot in self._slots.values():
            slot.stop()
        try:
            await self._connecting.end()
        finally:
            for slot in self._slots.values():
                self._set_state(slot, "closed")

    # ── connecting ───────────────────────────────────────────────────────────────────────────────────────────────

    async def connect(self, server: str, *, place: Place = "make_room") -> Listing:
        """Connect a server if it is not, and give its listing. An idle server may have to make room for it.

        Args:
            server: its name.
            place: `in_turn` also waits for those that are being connected; `if_free` closes nobody for it.

        Raises:
            ServerError: it can't be connected; the kind says why.
        """
        slot = self._slot(server)
        visits = place != "make_room"
        slot.users += 1
        slot.visitors += visits
        try:
            await self._connecting.connection(slot, place)
        finally:
            slot.visitors -= visits
            self._leave(slot, has_used=not visits)
        assert slot.listing is not None
        return slot.listing

    async def wait_for_approval(self, server: str, *, place: Place = "make_room") -> None:
        """Begin to connect a server if it is not, and wait while somebody is asked whether it may be."""
        attempt = await self._connecting.attempt(self._slot(server), place)
        if isinstance(attempt, Attempt):
            await attempt.decided.wait()

    async def start_all(self, only: Collection[str] | None = None) -> tuple[ServerStatus, ...]:
        """Connect all enabled servers, or these of them, at once. A broken one holds nobody up, and is not raised.

        Where there are more than may be connected, those that were never asked for their tools take turns: each is
        closed again while others wait. So the catalog is complete, and as many as may be are connected.
        """
        slots = self._slots.values()
        enabled = [slot for slot in slots if slot.server.enabled and (only is None or slot.name in only)]

        async def start(name: str, place: Place) -> None:
            with contextlib.suppress(ServerError):  # its status says why
                await self.connect(name, place=place)

        async with anyio.create_task_group() as tasks:
            for slot in sorted(enabled, key=lambda slot: slot.listing is not None):
                tasks.start_soon(start, slot.name, "in_turn" if slot.listing is None else "if_free")
        return self.statuses()

    def _note_state(self, slot: Slot, state: ServerState, error: str = "", reason: str = "") -> None:
        self._set_state(slot, state, error, reason)
        self._connecting.places.notice()

    def _leave(self, slot: Slot, *, has_used: bool = True) -> None:
        """One user less: without any it may be closed for another's sake, those that were never used first."""
        slot.users -= 1
        if has_used:
            slot.last_used = monotonic()
        if not slot.users:
            self._connecting.places.notice()

    # ── calling ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def call(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout: float | None = None,  # noqa: ASYNC109  # only the server's own time counts, not that spent in line
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """Call a tool by its original name, connecting its server first if need be; gives the raw result.

        Time spent waiting for a connection or in line is not the call's.

        Raises:
            ServerError: there is no result; the kind says why. The call is never sent twice.
        """
        slot = self._slot(server)
        check_arguments(tool, arguments, timeout)
        slot.users += 1
        try:
            return await self._call(slot, tool, arguments, timeout, on_progress)
        finally:
            self._leave(slot)

    async def _call(
        self,
        slot: Slot,
        tool: str,
        arguments: Mapping[str, Any],
        timeout: float | None,  # noqa: ASYNC109
        on_progress: OnProgress | None,
    ) -> dict[str, Any]:
        closings, attempts = slot.closings, 0
        connection = slot.live() or await self._connecting.connection(slot)
        async with slot.line(self._limits):
            while True:
                attempts += 1
                if slot.closings != closings:
                    raise ServerClosedError(slot.name, f"was closed before the call of {tool!r} was sent")
                if tool not in slot.exposed_names():  # now: it may have changed while the call waited
                    self._check_exposed(slot, tool)
                secrets, seconds = slot.secrets, slot.server.call_timeout or self._limits.call_seconds
                if timeout is not None:
                    seconds = min(seconds, timeout)
                try:
                    return await connection.call(
                        tool, arguments, seconds=seconds, secrets=secrets, on_progress=on_progress
                    )
                except CallNotSentError:
                    await connection.wait_for_end()
                    if attempts > max(1, self._limits.respawns):  # a server by URL may be connected ever again
                        reason = for_error(connection.end_reason(), slot.secrets, limit=300)
                        problem = f"ended {attempts} times before it took the call of {tool!r}: {reason}"
                        raise ServerDisconnectedError(slot.name, problem) from None
                    if slot.closings == closings:
                        connection = await self._connecting.connection(slot)
                except ServerError:
                    if slot.closings != closings:
                        raise ServerClosedError(slot.name, f"was closed during the call of {tool!r}") from None
                    raise

    def _seconds(self, slot: Slot, timeout: float | None) -> float:
        seconds = slot.server.call_timeout or self._limits.call_seconds
        return seconds if timeout is None else min(seconds, timeout)

    def ready_tool(self, server: str, tool: str) -> InProcessTool[..., Any] | None:
        """One of the host's own tools, if a call of it would wait for nobody and could begin this moment."""
        slot = self._slots.get(server)
        return None if slot is None else ready_tool(slot, slot.line(self._limits), tool)

    def finish_call(
        self, server: str, own: InProcessTool[..., Any], result: Awaitable[dict[str, Any]], seconds: float
    ) -> Awaitable[dict[str, Any]]:
        """The raw result of a call of such a tool, which has begun. May raise a ServerError."""
        slot = self._slots[server]
        seconds = self._seconds(slot, seconds if own.timeout is None else min(seconds, own.timeout))
        return finish_call(slot, slot.line(self._limits), own, result, seconds)

    # ── signing in ───────────────────────────────────────────────────────────────────────────────────────────────

    async def sign_in(self, server: str, how: SignInLike) -> bool:
        """Have a person sign in to an HTTP server now; whether it wanted that.

        Raises:
            ServerError: it is not approved or not reached, or nobody signed in.
        """
        config, asked = self._http_server(server), _sign_in_of(how)
        assert asked is not None
        start = await self._connecting.approved(config)
        from toolbridge.servers.http.transport import sign_in_to

        secret = start.environment.client_secret
        return await sign_in_to(config, start.environment.headers, self._limits, sign_in=asked, client_secret=secret)

    async def sign_out(self, server: str) -> bool:
        """Forget the sign-in to a server; whether there was one."""
        config = self._http_server(server)
        from toolbridge.servers.http.transport import sign_out

        return await sign_out(config)

    def _http_server(self, server: str) -> ServerConfig:
        config = self._slot(server).server
        if config.transport not in ("http", "sse"):
            raise ServerConnectError(server, f"has transport {config.transport}: only HTTP servers have a sign-in")
        return config

    # ── closing and reloading ────────────────────────────────────────────────────────────────────────────────────

    async def close_server(self, server: str) -> None:
        """Close one server's connection, if there is one; the next use opens it anew."""
        await self._close(self._slot(server))

    async def close(self) -> None:
        """Close every connection. Safe to call again, and from several tasks."""
        self._connecting.is_closed = True
        async with anyio.create_task_group() as tasks:
            for slot in list(self._slots.values()):
                tasks.start_soon(self._close, slot)

    async def follow_revocations(self) -> None:
        """Close what was revoked or disabled elsewhere since it was approved, if the approver can tell."""
        await self._revocations.follow(self._slots.values())

    async def note_approvals(self) -> None:
        """Set `needs_approval`, or take it back, for servers that were not tried yet, if the approver can tell."""
        waiting = [slot for slot in self._slots.values() if slot.attempt is None]
        needing = await self._revocations.unapproved(waiting, self._connecting.environ)
        for slot in waiting:
            if slot.attempt is None and slot.name in needing:
                self._set_state(slot, "needs_approval")
            elif slot.attempt is None and slot.state == "needs_approval":
                self._set_state(slot, "error" if slot.last_error else "idle")

    async def reload(self, config: Config, *, reread_pins: bool = False) -> None:
        """Take over a changed configuration: what changed or vanished is closed, the rest stays connected.

        So does a server of which only the description, filter, labels, schemas or timeouts changed. What was pinned
        elsewhere since is taken notice of only if `reread_pins` says so: a tool may have written it.
        """
        unchanged = {
            name
            for name, slot in self._slots.items()
            if name in config.servers and same_connection(slot.server, config.servers[name])
        }
        gone = [self._slots.pop(name) for name in list(self._slots) if name not in unchanged]
        for slot in gone:
            slot.stop()  # now: its place is as good as free
            # Calls that are under way will still quote it.
            self._former_secrets[slot.name] = self._former_secrets.get(slot.name, frozenset()) | slot.secrets
        self._limits = self._connecting.limits = config.limits
        self._catalog = self._specifiers = None
        if reread_pins:
            self._admissions.reread()
        for slot in self._slots.values():
            slot.renew_line()
            if slot.take_over(config.servers[slot.name]):
                tell(self._observers, ToolsChanged(slot.name))
        kept = list(self._slots.values())
        for name, server in config.servers.items():
            if name not in unchanged:
                self._add(server)
        with anyio.CancelScope(shield=True):  # else a tool that its pins no longer let through stays callable
            async with anyio.create_task_group() as tasks:
                for slot in kept:
                    tasks.start_soon(self._admit_again, slot)
        async with anyio.create_task_group() as tasks:
            for slot in gone:
                tasks.start_soon(self._close, slot)

    async def _close(self, slot: Slot) -> None:
        slot.stop()
        await slot.wait_until_idle()
        slot.started = 0
        self._set_state(slot, "closed")


def _sign_in_of(given: SignInLike | None) -> SignIn | None:
    if given is None:
        return None
    from toolbridge.servers.auth.sign_in import sign_in_of

    return sign_in_of(given)


def tell(observers: Iterable[Callable[[_Event], object]], event: _Event) -> None:
    """Tell every observer; one that raises is logged, and nobody else notices."""
    for observer in observers:
        try:
            observer(event)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # also a cancellation, which can't be the host's: nothing was awaited
            _log.exception("An observer raised")
