"""All servers: their states, their connections, and the calls that go through them.

Each connection lives in a task of its own, from approval to clean-up, inside the manager's task group: whatever
happens to a caller, connections are closed by the task that opened them, and closing the manager closes them all.
"""

from __future__ import annotations

import contextlib
import difflib
import logging
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.abc

from toolbridge.config.config import Config
from toolbridge.config.digest import listing_key
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import (
    ConnectionLimitError,
    MisuseError,
    ServerClosedError,
    ServerConnectError,
    ServerDisconnectedError,
    ServerError,
    ToolbridgeError,
    ToolNotFoundError,
    UnknownServerError,
)
from toolbridge.servers.admissions import Admissions, blocked_error
from toolbridge.servers.connected import CallNotSentError, Connected, OnProgress
from toolbridge.servers.events import ServerObserver, ServerState, StateChanged, ToolsChanged, tell
from toolbridge.servers.lifecycle import Surroundings, live
from toolbridge.servers.listing import Listing
from toolbridge.servers.listing_store import ListingStore
from toolbridge.servers.server_requests import Elicitor, Roots, Sampler, ServerRequests
from toolbridge.servers.slot import Attempt, ServerStatus, Slot
from toolbridge.servers.start import approved_start
from toolbridge.servers.tool_filter import original_names
from toolbridge.trust.admission import Admission
from toolbridge.trust.approver import Approver, DenyAll
from toolbridge.trust.pins import Pins
from toolbridge.trust.sanitise import for_error
from toolbridge_codegen.catalog import Catalog, ServerListing, build_catalog

if TYPE_CHECKING:
    from toolbridge.servers.sign_in import SignIn

_log = logging.getLogger("toolbridge")


class ServerManager:
    """The servers of one configuration. Use it as `async with`; its methods are safe from any task of that loop."""

    def __init__(
        self,
        config: Config,
        *,
        approver: Approver | None = None,
        pins: Pins | None = None,
        elicitor: Elicitor | None = None,
        sampler: Sampler | None = None,
        roots: Roots | None = None,
        sign_in: SignIn | None = None,
        directory: str | os.PathLike[str] | None = None,
        observers: Sequence[ServerObserver] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._limits = config.limits
        self._approver = approver or DenyAll()
        self._admissions = Admissions(pins)
        self._requests = ServerRequests(elicitor, sampler, roots)
        self._sign_in = sign_in
        self._observers = tuple(observers)
        self._environ = os.environ if environ is None else environ
        self._store = ListingStore(None if directory is None else Path(directory), limit=2 * self._limits.listing_bytes)
        self._slots: dict[str, Slot] = {}
        self._former_secrets: dict[str, frozenset[str]] = {}
        self._catalog: Catalog | None = None
        self._tasks: anyio.abc.TaskGroup | None = None
        self._closed = False
        for server in config.servers.values():
            self._add(server)

    async def __aenter__(self) -> ServerManager:
        if self._tasks is not None:
            raise ToolbridgeError("A ServerManager is entered once: make a new one.")
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        del kind, error, traceback
        assert self._tasks is not None
        self._closed = True
        for slot in self._slots.values():
            slot.stop()
        # Cancelled connections clean up under shields of their own, each bounded in time. What the host raised is
        # not handed to the task group, which would wrap it in an exception group.
        self._tasks.cancel_scope.cancel()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            for slot in self._slots.values():
                self._set_state(slot, "closed")

    # ── what is known ────────────────────────────────────────────────────────────────────────────────────────────

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

    def secrets(self, server: str) -> frozenset[str]:
        """What must not be in anything that a server's words are put into; also of one that is gone."""
        slot = self._slots.get(server)
        former = self._former_secrets.get(server, frozenset())
        return former if slot is None else slot.secrets | former if former else slot.secrets

    def listing(self, server: str) -> Listing | None:
        """What a server lists: live, or as it was kept; None when it was never asked."""
        return self._slot(server).listing

    def changed_tools(self, server: str) -> tuple[str, ...]:
        """Tools of a server that are blocked because they are not as they were pinned: a person had accepted them."""
        slot = self._slot(server)
        blocked = slot.admission.blocked if slot.admission is not None else ()
        return tuple(tool.name for tool in blocked if tool.why == "changed" and slot.blocked(tool.name) is not None)

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
        if self._catalog is None:
            listings = [slot.exposed() for slot in self._slots.values() if slot.server.enabled]
            self._catalog = build_catalog(listing for listing in listings if listing is not None)
        return self._catalog

    # ── connecting ───────────────────────────────────────────────────────────────────────────────────────────────

    async def connect(self, server: str) -> Listing:
        """Connect a server if it is not, and give its listing.

        Raises:
            ServerError: it can't be connected; the kind says why.
        """
        slot = self._slot(server)
        await self._connection(slot)
        assert slot.listing is not None
        return slot.listing

    async def wait_for_approval(self, server: str) -> None:
        """Begin to connect a server if it is not, and wait while somebody is asked whether it may be."""
        attempt = await self._attempt(self._slot(server))
        if isinstance(attempt, Attempt):
            await attempt.decided.wait()

    async def start_all(self, only: Collection[str] | None = None) -> tuple[ServerStatus, ...]:
        """Connect all enabled servers, or these of them, at once. A broken one holds nobody up, and is not raised.

        Where there are more than may be connected, those that were never asked for their tools take turns: each is
        closed again while others wait. So the catalog is complete, and as many as may be are connected.
        """
        slots = self._slots.values()
        enabled = [slot for slot in slots if slot.server.enabled and (only is None or slot.name in only)]
        unasked = {slot.name for slot in enabled if slot.listing is None}
        free = self._limits.connections - sum(slot.holds_connection for slot in slots)
        room = anyio.Semaphore(max(1, free))

        async def start(slot: Slot) -> None:
            async with room:
                unasked.discard(slot.name)
                is_ours = not slot.holds_connection
                with contextlib.suppress(ServerError):  # its status says why
                    connection = await self._connection(slot)
                    if unasked and is_ours and not connection.is_in_use:
                        await self._close(slot)

        async with anyio.create_task_group() as tasks:
            for slot in sorted(enabled, key=lambda slot: slot.listing is not None):
                tasks.start_soon(start, slot)
        return self.statuses()

    async def _connection(self, slot: Slot) -> Connected:
        """A live connection: the one there is, the one being opened, or a new one."""
        found = await self._attempt(slot)
        return await found.outcome() if isinstance(found, Attempt) else found

    async def _attempt(self, slot: Slot) -> Attempt | Connected:
        """The attempt to connect it that is under way, or a new one; or the live connection that there is."""
        while True:
            if slot.connection is not None and not slot.connection.ended:
                return slot.connection
            if self._tasks is None:
                raise ToolbridgeError("A ServerManager connects inside `async with`.")
            if self._closed:
                raise ServerClosedError(slot.name, "can't be connected: the servers are closed")
            if not slot.server.enabled:
                raise ServerClosedError(slot.name, "is disabled in the configuration")
            attempt = slot.attempt
            if attempt is None:
                attempt = slot.attempt = Attempt()
                self._tasks.start_soon(live, slot, attempt, self._surroundings(), name=f"server {slot.name}")
            elif attempt.is_settled:
                # What it led to has ended a moment ago, and its task is still cleaning up.
                await attempt.over.wait()
                continue
            return attempt

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            limits=self._limits,
            approver=self._approver,
            requests=self._requests,
            sign_in=self._sign_in,
            environ=self._environ,
            is_closed=lambda: self._closed,
            take_connection=self._take_connection,
            keep_listing=self._keep,
            set_state=self._set_state,
        )

    def _take_connection(self, slot: Slot) -> None:
        """Takes one of the connections there may be. Counting and taking are one step: no other task runs between."""
        if slot.own_tools is not None:
            return  # there is nothing to hold
        holders = sorted(other.name for other in self._slots.values() if other.holds_connection)
        if len(holders) >= self._limits.connections:
            raise ConnectionLimitError(
                slot.name,
                f"can't be connected: {len(holders)} servers are connected ({', '.join(holders)}), and no more than "
                f"{self._limits.connections} may be. Close one, or raise `limits.connections`",
            )
        slot.holds_connection = True

    async def _keep(self, slot: Slot, listing: Listing) -> None:
        await self._admissions.settle(slot.server, listing)
        # Asked also when the listing seems to be the same: for Python, `true` equals 1.
        admission = self._admissions.of(slot.server, listing)
        is_same = listing == slot.listing and admission == slot.admission
        slot.take(listing, admission)
        if is_same:
            return
        self._catalog = None
        if slot.own_tools is None:  # those are known without a file, and may be others tomorrow
            self._store.save(listing_key(slot.server), listing)
        for name in slot.unmatched_names():
            _log.warning("Server %r has no tool %r, which its allowTools or denyTools names.", slot.name, name)
        tell(self._observers, ToolsChanged(slot.name))

    async def accept_tools(self, server: str, listing: Listing, tools: Collection[str] | None = None) -> None:
        """Pin the tools of a listing that a person has seen: all of them, or these.

        Raises:
            ToolbridgeError: they are not pinned here, or the pins can't be changed so.
        """
        slot = self._slot(server)
        if tools is not None:
            known = [tool.name for tool in listing.tools]
            tools = original_names(server, known, tools)
        await self._admissions.accept(slot.server, listing, tools)
        self._admit_again(slot)

    def _admit_again(self, slot: Slot) -> None:
        """The pins changed, and the listing did not."""
        if slot.listing is None:
            return
        admission = self._admissions.of(slot.server, slot.listing)
        if admission != slot.admission:
            slot.take(slot.listing, admission)
            self._catalog = None
            tell(self._observers, ToolsChanged(slot.name))

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
        _check_arguments(tool, arguments, timeout)
        closings = slot.closings
        connection = await self._connection(slot)
        self._check_exposed(slot, tool)
        seconds = slot.server.call_timeout or self._limits.call_seconds
        if timeout is not None:
            seconds = min(seconds, timeout)
        async with slot.line(self._limits):
            attempts = 0
            while True:
                attempts += 1
                if slot.closings != closings:
                    raise ServerClosedError(server, f"was closed before the call of {tool!r} was sent")
                self._check_exposed(slot, tool)  # again: it may have changed while the call waited
                try:
                    return await connection.call(
                        tool, arguments, seconds=seconds, secrets=slot.secrets, on_progress=on_progress
                    )
                except CallNotSentError:
                    await connection.wait_for_end()
                    if attempts > max(1, self._limits.respawns):  # a server by URL may be connected ever again
                        reason = for_error(connection.end_reason(), slot.secrets, limit=300)
                        problem = f"ended {attempts} times before it took the call of {tool!r}: {reason}"
                        raise ServerDisconnectedError(server, problem) from None
                    if slot.closings == closings:
                        connection = await self._connection(slot)
                except ServerError:
                    if slot.closings != closings:
                        raise ServerClosedError(server, f"was closed during the call of {tool!r}") from None
                    raise

    def _check_exposed(self, slot: Slot, tool: str) -> None:
        names = slot.exposed_names()
        if tool not in names:
            blocked = slot.blocked(tool)
            if blocked is not None:
                raise blocked_error(slot.name, blocked)
            near = difflib.get_close_matches(tool, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ToolNotFoundError(slot.name, f"exposes no tool {for_error(tool, limit=100)!r}{hint}")

    # ── signing in ───────────────────────────────────────────────────────────────────────────────────────────────

    async def sign_in(self, server: str, how: SignIn) -> bool:
        """Have a person sign in to an HTTP server now; whether it wanted that.

        Raises:
            ServerError: it is not approved or not reached, or nobody signed in.
        """
        config = self._http_server(server)
        start = await approved_start(config, self._approver, self._environ)
        from toolbridge.servers.http import sign_in_to

        secret = start.environment.client_secret
        return await sign_in_to(config, start.environment.headers, self._limits, sign_in=how, client_secret=secret)

    async def sign_out(self, server: str) -> bool:
        """Forget the sign-in to a server; whether there was one."""
        config = self._http_server(server)
        from toolbridge.servers.http import sign_out

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
        self._closed = True
        async with anyio.create_task_group() as tasks:
            for slot in list(self._slots.values()):
                tasks.start_soon(self._close, slot)

    async def reload(self, config: Config) -> None:
        """Take over a changed configuration: what changed or vanished is closed, the rest stays connected."""
        unchanged = {name for name, slot in self._slots.items() if config.servers.get(name) == slot.server}
        gone = [self._slots.pop(name) for name in list(self._slots) if name not in unchanged]
        for slot in gone:  # calls that are under way will still quote it
            self._former_secrets[slot.name] = self._former_secrets.get(slot.name, frozenset()) | slot.secrets
        self._limits = config.limits
        self._catalog = None
        self._admissions.reread()
        for slot in self._slots.values():
            slot.renew_line()
            self._admit_again(slot)
        for name, server in config.servers.items():
            if name not in unchanged:
                self._add(server)
        async with anyio.create_task_group() as tasks:
            for slot in gone:
                tasks.start_soon(self._close, slot)

    async def _close(self, slot: Slot) -> None:
        slot.stop()
        await slot.wait_until_idle()
        slot.started = 0
        self._set_state(slot, "closed")

    # ── slots ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _add(self, server: ServerConfig) -> None:
        slot = Slot(server)
        own = slot.own_tools
        listing = self._store.load(server.name, listing_key(server)) if own is None else own.listing(server.name)
        if listing is not None:
            slot.take(listing, self._admissions.of(server, listing))
        self._slots[server.name] = slot

    def _slot(self, server: str) -> Slot:
        slot = self._slots.get(server)
        if slot is None:
            raise UnknownServerError(server, tuple(sorted(self._slots)))
        return slot

    def _set_state(self, slot: Slot, state: ServerState, error: str = "") -> None:
        if error:
            slot.last_error = error
        if slot.state != state:
            slot.state = state
            tell(self._observers, StateChanged(slot.name, state, error))


def _check_arguments(tool: object, arguments: object, timeout: object) -> None:
    """The host's own mistakes are not a server's."""
    if not isinstance(tool, str):
        raise MisuseError("tool", tool, "the tool's name")
    keys = cast("Mapping[Any, Any]", arguments) if isinstance(arguments, Mapping) else [None]
    if not all(isinstance(key, str) for key in keys):
        raise MisuseError("arguments", cast("object", arguments), "a mapping with text as keys")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float))):
        raise MisuseError("timeout", timeout, "a number of seconds")
