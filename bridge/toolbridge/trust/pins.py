"""SECURITY: pins: a tool is used as it was when somebody accepted it, or not at all (T11, T26).

`admit` compares and changes nothing. Pins come into being in two ways only: at the first discovery of a server that
has none (`settle`), and when somebody accepts what they were shown (`accept`). What nobody has seen is pinned only
where the audit finds nothing grave in it. A lock is read once: what a tool or anybody else writes into it meanwhile
means nothing to this process until it is told to read again.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

from toolbridge.config.digest import listing_key
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import ToolbridgeError
from toolbridge.trust.admission import Admission, BlockedTool, ListingLike, Withheld, admit
from toolbridge.trust.first_listing import FirstListing
from toolbridge.trust.lock_file import LockPlace, change_lock, lock_place, read_lock
from toolbridge.trust.lock_text import Lock, LockError, PinnedServer, pinned_server
from toolbridge.trust.pinned_tool import PinnedTool, canonical_text
from toolbridge.trust.sanitise import for_error

__all__ = ["Admission", "BlockedTool", "FirstListing", "FirstUse", "ListingLike", "LockPins", "Pins"]

FirstUse: TypeAlias = Literal["pin", "ask", "refuse"]
Answer: TypeAlias = bool | Literal["unseen"]
AcceptTools: TypeAlias = Callable[[FirstListing], Answer | Awaitable[Answer]]
"""Shows a person what a server that was never used lists. Only True accepts it; "unseen" says that nobody was there."""

_log = logging.getLogger("toolbridge")


class Pins(Protocol):
    """Decides which of a server's listed tools may be used."""

    def admit(self, server: ServerConfig, listing: ListingLike) -> Admission:
        """What of a listing may be used. Changes nothing; an exception admits nothing."""
        ...

    async def settle(
        self, server: ServerConfig, listing: ListingLike, other_tools: Mapping[str, Collection[str]]
    ) -> None:
        """Called with each fresh listing before it is admitted: the moment for a server's first pins.

        `other_tools` are the names of the tools of the other servers, by server.
        """
        ...

    async def accept(
        self, server: ServerConfig, listing: ListingLike, tools: Collection[str] | None = None
    ) -> Admission:
        """Pin a listing that somebody has seen: all of it, or these tools."""
        ...

    def reread(self) -> None:
        """Take notice of what others have pinned meanwhile."""
        ...


class LockPins:
    """Pins in `toolbridge.lock`: in the given file, or for each server in that of its origin (see `lock_file`).

    `on_first_use` says what becomes of a server without pins. "pin" pins what it lists (trust on first use), except
    for texts in which the audit finds something grave: those wait for a person. "ask" pins all of it if `accept`
    answers True. "refuse" never pins: for machines that only use what was committed, and commands that only look.
    Without a given file, servers that a program makes in code are pinned in memory: they are others' programs, and have
    to stay as they were first listed while this one runs. Objects of the program itself are not: it is their author.
    """

    def __init__(
        self,
        lock: str | os.PathLike[str] | None = None,
        *,
        on_first_use: FirstUse = "pin",
        accept: AcceptTools | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._given = None if lock is None else LockPlace(os.path.abspath(lock))
        self._on_first_use: FirstUse = on_first_use
        self._ask = accept
        self._environ = os.environ if environ is None else environ
        self._locks: dict[LockPlace, Lock | LockError] = {}
        self._in_memory: dict[LockPlace, Lock] = {}
        self._asked: set[tuple[LockPlace, str]] = set()
        self._failures: dict[tuple[LockPlace, str], str] = {}
        self._withheld: dict[tuple[LockPlace, str], tuple[Withheld, ...]] = {}

    def place(self, server: ServerConfig) -> LockPlace | None:
        """Where a server's pins are; None if it is not pinned at all.

        Raises:
            LockError: there is no such place on this machine.
        """
        place = self._given or lock_place(server.origin, self._environ)
        if place is None and server.transport != "in_process":
            # By all that is started or reached: a program that configures another server under this name means it.
            return LockPlace(listing_key(server), in_memory=True)
        return place

    def pinned(self, server: ServerConfig) -> PinnedServer | None:
        """The pins of a server, if it has any.

        Raises:
            LockError: its lock can't be used.
        """
        place = self.place(server)
        return None if place is None else self._lock(place).servers.get(server.name)

    def admit(self, server: ServerConfig, listing: ListingLike) -> Admission:
        """Compare a listing with the pins; a lock that can't be used admits nothing."""
        try:
            place = self.place(server)
            if place is None:
                return Admission(tools=listing.tools, instructions=listing.instructions)
            pinned = self._lock(place).servers.get(server.name)
        except LockError as error:
            return Admission(problem=f"its pins can't be read, so none of its tools can be used: {error}")
        failure = self._failures.get((place, server.name), "")
        found = replace(admit(pinned, listing), is_of_program=server.origin.kind == "code")
        withheld = self._withheld.get((place, server.name), ())
        if withheld:
            waiting: set[str | None] = {tool.name for tool in found.blocked if tool.why == "new"}
            waiting |= {None} if found.instructions_diff else set()
            found = replace(found, withheld=tuple(each for each in withheld if each.tool in waiting))
        return replace(found, tools=(), problem=failure) if pinned is None and failure else found

    async def settle(
        self, server: ServerConfig, listing: ListingLike, other_tools: Mapping[str, Collection[str]] | None = None
    ) -> None:
        """Pin a server that has no pins at all, if that is wanted: what is pinned already is never touched here."""
        import anyio.to_thread

        try:
            place = self.place(server)
            if place is None or not listing.live or server.name in self._lock(place).servers:
                return
        except LockError:
            return  # `admit` says so
        first = FirstListing(server, listing.tools, listing.instructions, other_tools or {}, listing.about)
        answer = await self._answer(place, first)
        if answer is False:
            return
        # In a thread: a listing may be megabytes long, and others' calls must not wait for it.
        withheld = () if answer is True else await anyio.to_thread.run_sync(lambda: first.withheld)
        kept = first.without(withheld)
        fresh = pinned_server(kept.tools, kept.instructions)

        def add(lock: Lock) -> Lock:
            # Another process may have been first: its pins hold, and this listing is compared with them.
            return lock if server.name in lock.servers else lock.with_server(server.name, fresh)

        try:
            await self._change(place, server, add)
        except LockError as error:
            self._failures[place, server.name] = f"its tools can't be pinned, so none can be used: {error}"
            return
        self._failures.pop((place, server.name), None)
        self._withheld[place, server.name] = withheld
        where = "memory" if place.in_memory else place.path
        _log.info("Pinned %d tools of server %r in %s", len(fresh.tools), server.name, where)

    async def accept(
        self, server: ServerConfig, listing: ListingLike, tools: Collection[str] | None = None
    ) -> Admission:
        """Pin this listing, which somebody has seen: all of it, or just these tools of it.

        A tool that is named and not listed any more loses its pin.

        Raises:
            ToolbridgeError: a name is neither listed nor pinned, or can't be pinned; or the server is not pinned.
            LockError: the lock can't be used.
        """
        place = self.place(server)
        if place is None:
            raise ToolbridgeError(f"Server {server.name!r} is an object of this program, which is not pinned.")
        fresh = pinned_server(listing.tools, listing.instructions)
        wanted = None if tools is None else {canonical_text(name) for name in tools}

        def change(lock: Lock) -> Lock:
            old = lock.servers.get(server.name)
            return lock.with_server(server.name, fresh if wanted is None else _with_tools(server, old, fresh, wanted))

        await self._change(place, server, change)
        self._failures.pop((place, server.name), None)
        self._withheld.pop((place, server.name), None)
        return self.admit(server, listing)

    async def forget(self, server: ServerConfig) -> None:
        """Drop the pins of a server: its next use is its first.

        Raises:
            LockError: the lock can't be used.
        """
        place = self.place(server)
        if place is not None and server.name in self._lock(place).servers:
            await self._change(place, server, lambda lock: lock.with_server(server.name, None))
            self._asked.discard((place, server.name))

    def reread(self) -> None:
        """Read every lock again when it is next needed, and ask again about servers that were refused.

        What is pinned in memory stays: nobody else could have changed it.
        """
        self._locks.clear()
        self._asked.clear()
        self._failures.clear()
        self._withheld.clear()

    def _lock(self, place: LockPlace) -> Lock:
        if place.in_memory:
            return self._in_memory.get(place, Lock())
        if place not in self._locks:
            try:
                self._locks[place] = read_lock(place)
            except LockError as error:
                self._locks[place] = error
        found = self._locks[place]
        if isinstance(found, LockError):
            raise found.with_traceback(None)
        return found

    async def _change(self, place: LockPlace, server: ServerConfig, change: Callable[[Lock], Lock]) -> None:
        import anyio.to_thread

        if place.in_memory:
            self._in_memory[place] = change(self._lock(place))
            return
        now = await anyio.to_thread.run_sync(partial(change_lock, place, change))
        # Of what others wrote meanwhile, nothing but this server's entry is taken.
        known = self._locks.get(place)
        base = known if isinstance(known, Lock) else now
        self._locks[place] = base.with_server(server.name, now.servers.get(server.name))

    async def _answer(self, place: LockPlace, first: FirstListing) -> Answer:
        """Whether a first listing is pinned. A person is asked once, however often it is said to have changed."""
        if self._on_first_use == "pin":
            return "unseen"
        server = first.server
        if self._on_first_use == "refuse" or self._ask is None or (place, server.name) in self._asked:
            return False
        self._asked.add((place, server.name))
        answer: Any = False
        try:
            answer = self._ask(first)
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:
            words = for_error(str(error) or type(error).__name__)
            _log.warning("Nobody could be asked about the tools of server %r: %s", server.name, words)
            return False
        return "unseen" if answer == "unseen" else answer is True


def _with_tools(
    server: ServerConfig, old: PinnedServer | None, fresh: PinnedServer, wanted: Collection[str]
) -> PinnedServer:
    """The pins with these tools as they are listed now."""
    known: Mapping[str, PinnedTool] = {} if old is None else old.tools
    unknown = sorted(name for name in wanted if name not in fresh.tools and name not in known)
    if unknown:
        shown = for_error(unknown[0], limit=100)
        raise ToolbridgeError(f"Server {server.name!r} lists no tool {shown!r} that could be pinned.")
    kept = {name: pin for name, pin in known.items() if name not in wanted}
    taken = {name: fresh.tools[name] for name in wanted if name in fresh.tools}
    # With its first tools a server's instructions are accepted as well; later, only with everything.
    return PinnedServer({**kept, **taken}, fresh.instructions if old is None else old.instructions)
