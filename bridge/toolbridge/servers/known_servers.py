"""What is known of the servers: states, listings, what of them is exposed, the catalog. Nothing here connects."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Collection, Sequence
from pathlib import Path

import anyio.to_thread

from toolbridge.config.digest import listing_key
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import ToolNotFoundError, UnknownServerError
from toolbridge.servers.admissions import Admissions, blocked_error
from toolbridge.servers.events import ServerObserver, ServerState, StateChanged, ToolsChanged, tell
from toolbridge.servers.listing import Listing
from toolbridge.servers.listing_store import ListingStore
from toolbridge.servers.slot import ServerStatus, Slot
from toolbridge.servers.tool_filter import original_names
from toolbridge.trust.admission import Admission, BlockedTool
from toolbridge.trust.pins import Pins
from toolbridge.trust.sanitise import for_error
from toolbridge_codegen.catalog import Catalog, ServerListing, build_catalog

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
            near = difflib.get_close_matches(tool, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
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
