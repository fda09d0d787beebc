"""Registry of the configured servers: one slot each, with state, listing and pins; and the catalog of their tools."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from toolbridge.config.config import listing_key
from toolbridge.config.server_config import Origin, ServerConfig, ServerLimits, Transport
from toolbridge.errors import ToolNotFoundError, UnknownServerError, nearest
from toolbridge.events import ServerObserver, ServerState, StateChanged, ToolsChanged, _Event
from toolbridge.servers.listing import (
    Admissions,
    Listing,
    ListingStore,
    blocked_error,
    by_original_name,
    exposed_tools,
    original_names,
    unmatched_names,
)
from toolbridge.tools.server import ToolServer
from toolbridge.trust.sanitise import for_error
from toolbridge_codegen.catalog import Catalog, ServerListing, build_catalog, identifier, module_specifier

if TYPE_CHECKING:
    from toolbridge.servers.lifecycle import Attempt, LiveConnection
    from toolbridge.tools.server import HostConnection
    from toolbridge.trust.pins.admission import Admission, BlockedTool
    from toolbridge.trust.pins.pins import Pins

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
        """Return the secrets to redact: those of its configuration, and every token seen since it was first started."""
        if self.channel_secrets is not None:
            self._seen_secrets |= self.channel_secrets()
        return self.config_secrets | self._seen_secrets if self._seen_secrets else self.config_secrets

    @property
    def host_tools(self) -> ToolServer | None:
        """The in-process functions it is made of, else None; such a server needs no process and no approval."""
        found: object = self.server.server
        return found if isinstance(found, ToolServer) and self.server.origin.kind == "code" else None

    def live_connection(self) -> LiveConnection | None:
        """Return its connection if a call can use it at once; None while it connects or closes, or after its end."""
        connection = self.connection
        return None if connection is None or self.closing or connection.ended else connection

    def connect_seconds(self, limits: ServerLimits) -> float:
        """Return the timeout for connecting it: its own, or else the one of `limits`."""
        return self.server.connect_timeout or limits.connect_seconds

    def semaphore(self, limits: ServerLimits) -> anyio.Semaphore:
        """Return the semaphore that caps calls under way; created at the first use, from the limits of that moment."""
        if self._semaphore is None:
            self._semaphore = anyio.Semaphore(limits.calls_in_flight, fast_acquire=True)
        return self._semaphore

    def reset_semaphore(self) -> None:
        """Drop the semaphore after the limits changed: later calls share a new one, earlier ones keep the old one."""
        self._semaphore = None

    def end_reason(self) -> str:
        """Return why its channel ended, or ""; the server's or system's words, not sanitised."""
        return self.channel_end() if self.channel_end is not None else ""

    def ended_message(self, reason: str) -> str:
        """Return the error message for a server that ended by itself, with `reason` sanitised and secrets masked."""
        reason = for_error(reason, self.secrets, limit=300)
        return f"Server {self.name!r} ended{': ' + reason if reason else ''}"

    def set_listing(self, listing: Listing, admission: Admission | None) -> None:
        """Replace listing and admission, always together."""
        self.listing, self.admission, self._exposed_names = listing, admission, None

    def reconfigure(self, server: ServerConfig) -> bool:
        """Replace the configuration and keep the connection. True if the exposed tools or their texts changed."""
        before, self.server, self._exposed_names = self.exposed(), server, None
        return self.exposed() != before

    def exposed(self) -> ServerListing | None:
        """Return the tools that pins and configuration admit; None if the server was never listed."""
        if self.listing is None:
            return None
        admitted = self.admission or self.listing
        tools = exposed_tools(self.name, admitted.tools, self.server.allow_tools, self.server.deny_tools)
        server = self.server
        name = server.display_name or self.name
        schemas = by_original_name(self.name, admitted.tools, server.output_schemas)
        return ServerListing(self.name, tools, name, admitted.instructions, server.reading, schemas)

    def exposed_names(self) -> frozenset[str]:
        """Return the original names of exposed tools, cached per listing; empty if the server was never listed."""
        if self._exposed_names is None:
            exposed = self.exposed()
            self._exposed_names = frozenset(tool.name for tool in exposed.tools) if exposed else frozenset()
        return self._exposed_names

    def check_exposed(self, tool: str) -> None:
        """Verify from the stored listing that a tool is exposed now.

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
        """Return the blocked tool of this name, if its pin is all that keeps it from being exposed; else None."""
        if self.admission is None or name not in self._allowed_names():
            return None
        return self.admission.find_blocked(name)

    def blocked_tools(self) -> tuple[BlockedTool, ...]:
        """Return all tools that would be exposed if their pins admitted them, by name."""
        admission = self.admission
        if admission is None or not (admission.blocked or admission.problem):
            return ()
        found = [admission.find_blocked(name) for name in sorted(self._allowed_names())]
        return tuple(tool for tool in found if tool is not None)

    def _allowed_names(self) -> frozenset[str]:
        """Return the original names of listed tools that the configuration allows, pinned or not."""
        tools = () if self.listing is None else self.listing.tools
        if self.server.allow_tools is not None or self.server.deny_tools:
            tools = exposed_tools(self.name, tools, self.server.allow_tools, self.server.deny_tools)
        return frozenset([tool.name for tool in tools])

    def unmatched_names(self) -> tuple[str, ...]:
        """Return entries of `allowTools` and `denyTools` that match no listed tool; none if it was never listed."""
        if self.listing is None or not (self.server.allow_tools or self.server.deny_tools):
            return ()
        return unmatched_names(self.name, self.listing.tools, self.server.allow_tools, self.server.deny_tools)

    def filter_problems(self) -> list[str]:
        """Warnings about configured tool names that match no listed tool."""
        return [f"allowTools or denyTools names {name!r}, which it does not list" for name in self.unmatched_names()]

    def stop(self, reason: str = "") -> None:
        """Cancel its connection or the attempt at one, without waiting; `close_count` rises even if there is none."""
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
        """Reset the closing state and wake the tasks that wait for the attempt's end: a new attempt may begin."""
        attempt, self.attempt = self.attempt, None
        self.closing = False
        self.closing_reason = ""
        if attempt is not None:
            attempt.ended.set()

    def status(self) -> ServerStatus:
        """Return a snapshot of its state; a connection that has just ended counts as an error already."""
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


class ServerRegistry:
    """The servers of one configuration, by name."""

    def __init__(
        self, *, pins: Pins | None, directory: Path | None, listing_bytes: int, observers: Sequence[ServerObserver]
    ) -> None:
        self._admissions = Admissions(pins)
        self._observers = tuple(observers)
        self._store = ListingStore(directory, limit=2 * listing_bytes)
        self._slots: dict[str, Slot] = {}
        self._former_secrets: dict[str, frozenset[str]] = {}
        """Secrets of removed servers: calls under way may still quote them."""
        self._catalog: Catalog | None = None
        self._specifiers: dict[str, str] | None = None
        self._filter_warnings: tuple[Catalog, tuple[str, ...]] | None = None

    def statuses(self) -> tuple[ServerStatus, ...]:
        """Return every server's status, sorted by name."""
        return tuple(slot.status() for _, slot in sorted(self._slots.items()))

    def status(self, server: str) -> ServerStatus:
        """Return one server's status.

        Raises:
            UnknownServerError: no server has this name.
        """
        return self._slot(server).status()

    def config_of(self, server: str) -> ServerConfig:
        """A server's configuration."""
        return self._slot(server).server

    def enabled_servers(self) -> tuple[str, ...]:
        """Sorted names of the servers that may be connected."""
        return tuple(sorted(name for name, slot in self._slots.items() if slot.server.enabled))

    def names(self) -> tuple[str, ...]:
        """Sorted names of all servers, disabled ones included."""
        return tuple(sorted(self._slots))

    def specifiers(self) -> Mapping[str, str]:
        """Return the map of module specifier to server for all enabled servers; cached."""
        if self._specifiers is None:
            self._specifiers = {module_specifier(name): name for name in self.enabled_servers()}
        return self._specifiers

    def unconnected(self, servers: Iterable[str]) -> list[str]:
        """Return those of the named servers without a live connection, unknown names included."""
        return [name for name in servers if (slot := self._slots.get(name)) is None or slot.live_connection() is None]

    def exports(self, server: str) -> dict[str, str]:
        """Return the exports of a server's module, function → tool; also changed tools, whose call explains the block.

        A changed tool whose function had to be renamed is left out: that name could be another tool's.
        """
        module = self.catalog.module(module_specifier(server))
        exports = dict(module.exports) if module is not None else {}
        for name in self.changed_tools(server):
            if identifier(name) == name:
                exports.setdefault(name, name)
        return exports

    def secrets(self, server: str) -> frozenset[str]:
        """Return the secrets to redact from a server's texts, also after its removal; empty for an unknown server."""
        slot = self._slots.get(server)
        former = self._former_secrets.get(server, frozenset())
        return former if slot is None else slot.secrets | former if former else slot.secrets

    def listing(self, server: str) -> Listing | None:
        """A server's listing, live or from disk; None when it was never listed."""
        return self._slot(server).listing

    def listed(self) -> Catalog:
        """Build the catalog of all listed tools of all servers, exposed or not."""
        listings = [(slot.name, slot.listing) for slot in self._slots.values()]
        return build_catalog(ServerListing(name, each.tools) for name, each in listings if each is not None)

    def other_tools(self, server: str) -> dict[str, tuple[str, ...]]:
        """Return all other listed servers' tool names, by server: the audit looks for them in this server's text."""
        others = {name: slot.listing for name, slot in self._slots.items() if name != server}
        return {name: tuple(tool.name for tool in each.tools) for name, each in others.items() if each is not None}

    def changed_tools(self, server: str) -> tuple[str, ...]:
        """Return a server's tools that changed since they were pinned, unless filtered out or refused by a person."""
        slot = self._slot(server)
        blocked = slot.admission.blocked if slot.admission is not None else ()
        changed = [tool.name for tool in blocked if tool.why == "changed" and not tool.was_refused]
        return tuple(name for name in changed if slot.blocked(name) is not None)

    def servers_with_blocked_tools(self) -> tuple[str, ...]:
        """Names of the servers some of whose tools are blocked by their pins."""
        admissions = [(name, slot.admission) for name, slot in self._slots.items()]
        return tuple(name for name, each in admissions if each is not None and (each.blocked or each.problem))

    def blocked_tools(self, server: str) -> tuple[BlockedTool, ...]:
        """The tools of a server that would be exposed if their pins admitted them."""
        return self._slot(server).blocked_tools()

    def check_exposed(self, server: str, tool: str) -> None:
        """Verify from the stored listing that a server exposes a tool.

        Raises:
            UnknownServerError: there is no such server.
            ToolBlockedError: its pin blocks it.
            ToolNotFoundError: the server has no such tool, or the configuration filters it out.
        """
        self._slot(server).check_exposed(tool)

    def exposed(self, server: str) -> ServerListing | None:
        """The tools of a server that pins and configuration admit; None when it was never listed."""
        return self._slot(server).exposed()

    def admission(self, server: str) -> Admission | None:
        """The outcome of verifying a server's pins; None when it is not pinned or was never listed."""
        return self._slot(server).admission

    @property
    def catalog(self) -> Catalog:
        """The catalog of every exposed tool of every enabled, listed server; cached until one of them changes."""
        catalog = self._catalog
        if catalog is None:
            listings = [slot.exposed() for slot in self._slots.values() if slot.server.enabled]
            catalog = self._catalog = build_catalog(listing for listing in listings if listing is not None)
        return catalog

    @property
    def filter_warnings(self) -> tuple[str, ...]:
        """Warnings about `allowTools` and `denyTools` entries that match no tool of an enabled server; cached."""
        version = self.catalog
        if self._filter_warnings is None or self._filter_warnings[0] is not version:
            slots = [slot for slot in self._slots.values() if slot.server.enabled]
            found = [f"Server {slot.name!r}: {problem}." for slot in slots for problem in slot.filter_problems()]
            self._filter_warnings = version, tuple(found)
        return self._filter_warnings[1]

    async def accept_tools(self, server: str, listing: Listing, tools: Collection[str] | None = None) -> None:
        """Pin tools of a listing that a person has seen: all of them, or the named ones, in any spelling.

        Then verifies the server's pins again, even after a failure, and notifies observers of a changed outcome.

        Raises:
            ToolbridgeError: this host has no pins, or they can't be changed so.
        """
        slot = self._slot(server)
        if tools is not None:
            known = [tool.name for tool in listing.tools]
            gone = () if slot.admission is None else slot.admission.removed
            tools = original_names(server, [*known, *gone], tools)
        try:
            await self._admissions.accept(slot.server, listing, tools)
        finally:  # also when cancelled: pinned tools must be admitted
            with anyio.CancelScope(shield=True):
                await self._verify_pins(slot)

    async def _store_listing(self, slot: Slot, listing: Listing) -> None:
        """Take over a fresh listing with its pins verified; the first pins may be created here, which may ask a person.

        If anything changed: notifies observers, warns about filter entries that match no tool, and, for all but host
        tools, writes the listing to disk.
        """
        await self._admissions.settle(slot.server, listing, self.other_tools(slot.name))
        # Verified even if the listing seems unchanged: in Python, `True == 1`.
        admission = await self._admissions.verify_in_thread(slot.server, listing)
        is_same = listing == slot.listing and admission == slot.admission
        slot.set_listing(listing, admission)
        if is_same:
            return
        self._catalog = None
        for name in slot.unmatched_names():
            _log.warning("Server %r has no tool %r, which its allowTools or denyTools names.", slot.name, name)
        notify(self._observers, ToolsChanged(slot.name))
        if slot.host_tools is None:  # host tools are known without a file
            await anyio.to_thread.run_sync(self._store.save, listing_key(slot.server), listing)

    async def _verify_pins(self, slot: Slot) -> None:
        """Verify the current listing again after its pins changed; notifies observers if the outcome differs."""
        listing = slot.listing
        if listing is None:
            return
        admission = await self._admissions.verify_in_thread(slot.server, listing)
        if slot.listing is listing and admission != slot.admission:  # no newer listing was admitted meanwhile
            slot.set_listing(listing, admission)
            self._catalog = None
            notify(self._observers, ToolsChanged(slot.name))

    def _add(self, server: ServerConfig) -> None:
        """Register a new slot, with its listing and last error read from disk; replaces one of the same name."""
        slot = Slot(server)
        host_tools = slot.host_tools
        key = listing_key(server)
        listing = self._store.load(server.name, key) if host_tools is None else host_tools.listing(server.name)
        admission = None if listing is None else self._admissions.verify(server, listing)
        # A server from code gets its first pins at its first live listing: until then its stored one is not used.
        is_premature = admission is not None and admission.is_of_program and not admission.is_pinned
        if listing is not None and not is_premature:
            slot.set_listing(listing, admission)
        if host_tools is None and (error := self._store.load_error(key)):
            slot.last_error, slot.state = error, "error"
        self._slots[server.name] = slot
        self._specifiers = None

    def _slot(self, server: str) -> Slot:
        """Return a server's slot. Raises `UnknownServerError`, which lists the known names."""
        slot = self._slots.get(server)
        if slot is None:
            raise UnknownServerError(server, tuple(sorted(self._slots)))
        return slot

    def _set_state(self, slot: Slot, state: ServerState, error: str = "", reason: str = "") -> None:
        """Set a slot's state; notify observers if it changed. Writes an error to disk, and deletes it on connecting."""
        if error:
            slot.last_error = error
        if slot.host_tools is None and (state == "connected" or (state == "error" and error)):
            self._store.save_error(listing_key(slot.server), error)
        if slot.state != state:
            slot.state = state
            notify(self._observers, StateChanged(slot.name, state, error, reason))


def notify(observers: Iterable[Callable[[_Event], object]], event: _Event) -> None:
    """Call every observer with an event, in order and in this task; whatever it raises is logged, not propagated.

    KeyboardInterrupt and SystemExit are raised, and keep later observers from being called.
    """
    for observer in observers:
        try:
            observer(event)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # also a cancellation: nothing was awaited, so it isn't the host's
            _log.exception("An observer raised")
