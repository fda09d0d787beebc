"""Registry of the configured servers: states, listings, pins and the catalog. Nothing here connects."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from toolbridge.config.config import listing_key
from toolbridge.errors import UnknownServerError
from toolbridge.events import ServerObserver, ServerState, StateChanged, ToolsChanged, _Event
from toolbridge.servers.listing import Admissions, Listing, ListingStore, original_names
from toolbridge.servers.pool import Slot
from toolbridge_codegen.catalog import Catalog, ServerListing, build_catalog, identifier, module_specifier

if TYPE_CHECKING:
    from toolbridge.config.server_config import ServerConfig
    from toolbridge.servers.pool import ServerStatus
    from toolbridge.trust.pins.admission import Admission, BlockedTool
    from toolbridge.trust.pins.pins import Pins

_log = logging.getLogger("toolbridge")


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
        """Every server's status, sorted by name."""
        return tuple(slot.status() for _, slot in sorted(self._slots.items()))

    def status(self, server: str) -> ServerStatus:
        """One server's status."""
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
        """Module specifier → server, for all enabled servers."""
        if self._specifiers is None:
            self._specifiers = {module_specifier(name): name for name in self.enabled_servers()}
        return self._specifiers

    def unconnected(self, servers: Iterable[str]) -> list[str]:
        """Those of the named servers without a live connection."""
        return [name for name in servers if (slot := self._slots.get(name)) is None or slot.live_connection() is None]

    def exports(self, server: str) -> dict[str, str]:
        """Exports of a server's module, function → tool; changed tools included, whose call explains the block.

        A changed tool whose function had to be renamed is left out: that name could be another tool's.
        """
        module = self.catalog.module(module_specifier(server))
        exports = dict(module.exports) if module is not None else {}
        for name in self.changed_tools(server):
            if identifier(name) == name:
                exports.setdefault(name, name)
        return exports

    def secrets(self, server: str) -> frozenset[str]:
        """Secrets to redact from any text of a server, also after the server was removed."""
        slot = self._slots.get(server)
        former = self._former_secrets.get(server, frozenset())
        return former if slot is None else slot.secrets | former if former else slot.secrets

    def listing(self, server: str) -> Listing | None:
        """A server's listing, live or from disk; None when it was never listed."""
        return self._slot(server).listing

    def listed(self) -> Catalog:
        """The catalog of all listed tools, exposed or not."""
        listings = [(slot.name, slot.listing) for slot in self._slots.values()]
        return build_catalog(ServerListing(name, each.tools) for name, each in listings if each is not None)

    def other_tools(self, server: str) -> dict[str, tuple[str, ...]]:
        """Tool names of all other servers, by server: the audit looks for them in this server's text."""
        others = {name: slot.listing for name, slot in self._slots.items() if name != server}
        return {name: tuple(tool.name for tool in each.tools) for name, each in others.items() if each is not None}

    def changed_tools(self, server: str) -> tuple[str, ...]:
        """Tools of a server that differ from their pins and were not refused by a person."""
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
        """Verify that a server exposes a tool now.

        Raises:
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
        """Every exposed tool of every enabled server whose listing is known; built once per change."""
        catalog = self._catalog
        if catalog is None:
            listings = [slot.exposed() for slot in self._slots.values() if slot.server.enabled]
            catalog = self._catalog = build_catalog(listing for listing in listings if listing is not None)
        return catalog

    @property
    def filter_warnings(self) -> tuple[str, ...]:
        """Warnings about `allowTools` and `denyTools` entries that match no tool; computed once per catalog."""
        version = self.catalog
        if self._filter_warnings is None or self._filter_warnings[0] is not version:
            slots = [slot for slot in self._slots.values() if slot.server.enabled]
            found = [f"Server {slot.name!r}: {problem}." for slot in slots for problem in slot.filter_problems()]
            self._filter_warnings = version, tuple(found)
        return self._filter_warnings[1]

    async def accept_tools(self, server: str, listing: Listing, tools: Collection[str] | None = None) -> None:
        """Pin tools of a listing that a person has seen: all of them, or the named ones.

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
        """Verify the pins of a fresh listing, take both over, notify observers and write the listing to disk."""
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
        """Verify an unchanged listing again after its pins changed."""
        listing = slot.listing
        if listing is None:
            return
        admission = await self._admissions.verify_in_thread(slot.server, listing)
        if slot.listing is listing and admission != slot.admission:  # no newer listing was admitted meanwhile
            slot.set_listing(listing, admission)
            self._catalog = None
            notify(self._observers, ToolsChanged(slot.name))

    def _add(self, server: ServerConfig) -> None:
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
        slot = self._slots.get(server)
        if slot is None:
            raise UnknownServerError(server, tuple(sorted(self._slots)))
        return slot

    def _set_state(self, slot: Slot, state: ServerState, error: str = "", reason: str = "") -> None:
        if error:
            slot.last_error = error
        if slot.host_tools is None and (state == "connected" or (state == "error" and error)):
            self._store.save_error(listing_key(slot.server), error)
        if slot.state != state:
            slot.state = state
            notify(self._observers, StateChanged(slot.name, state, error, reason))


def notify(observers: Iterable[Callable[[_Event], object]], event: _Event) -> None:
    """Call every observer with an event; an observer that raises is logged and stops neither others nor the run."""
    for observer in observers:
        try:
            observer(event)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # also a cancellation: nothing was awaited, so it isn't the host's
            _log.exception("An observer raised")
