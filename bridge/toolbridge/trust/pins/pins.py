"""SECURITY: pins: a tool is used as it was when this user accepted it, or not at all (T11, T25, T26).

A project's lock narrows: a tool that differs from it is blocked. It never widens: a definition is used once this user
accepted it, or, where nobody can be asked, once the audit has passed it; never after this user refused it. A program
alone writes no pins into a project's lock: pins of unseen definitions are in the user's state directory. A lock is read
once, and again only after `reread`: changes by a tool meanwhile have no effect.
"""

from __future__ import annotations

import inspect
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from toolbridge.config.config import listing_key
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import ToolbridgeError
from toolbridge.trust.approval.sealed_store import ApprovalStoreError
from toolbridge.trust.pins.admission import Admission, FirstListing, ListingLike, Withheld, admit
from toolbridge.trust.pins.decisions import (
    INSTRUCTIONS,
    MOST_AUDITED,
    Decision,
    Decisions,
    Named,
    ServerKey,
    ToolDecisionStore,
    instructions_digest,
    server_key,
)
from toolbridge.trust.pins.definition import PinnedTool, canonical_text
from toolbridge.trust.pins.lock_file import (
    Lock,
    LockError,
    LockNotWritableError,
    LockPlace,
    PinnedServer,
    change_lock,
    lock_place,
    own_place,
    pinned_server,
    read_lock,
)
from toolbridge.trust.sanitise import for_error

P = ParamSpec("P")
T = TypeVar("T")
FirstUse: TypeAlias = Literal["pin", "ask", "refuse"]
Answer: TypeAlias = bool | Literal["unseen"] | None
AcceptTools: TypeAlias = Callable[[FirstListing], Answer | Awaitable[Answer]]
"""Shows a person definitions that they have not accepted. True accepts, False refuses, both for good; "unseen" means
that no person was there, None that no person answered."""

_log = logging.getLogger("toolbridge")


class Pins(Protocol):
    """Decides which of a server's listed tools may be used."""

    def admit(self, server: ServerConfig, listing: ListingLike) -> Admission:
        """Compares a listing with the pins. Asks nobody and changes nothing; an exception admits nothing."""
        ...

    async def settle(
        self, server: ServerConfig, listing: ListingLike, other_tools: Mapping[str, Collection[str]]
    ) -> None:
        """Decides about new definitions of a fresh listing, before `admit`; `other_tools` are names by server."""
        ...

    async def accept(
        self, server: ServerConfig, listing: ListingLike, tools: Collection[str] | None = None
    ) -> Admission:
        """Pins a listing that a person has seen: all of it, or these tools. Returns what may be used now."""
        ...

    def reread(self) -> None:
        """Reads pins of other processes again."""
        ...


class LockPins:
    """Pins in `toolbridge.lock`: in the given file, or for each server in that of its origin (see `lock_file`).

    `on_first_use` decides about definitions that this user has not decided about, whether or not a lock pins them:
    "pin" uses them (trust on first use), except those with a high finding of the audit, which wait for a person; "ask"
    shows them to `accept`; "refuse" never pins, for machines that only use committed pins, and commands that only look.
    `trust_lock` takes pinned definitions as accepted: for hosts that vouch for the file. `again` shows refused
    definitions once more. `own` makes pins in the user's state directory count where the project's lock is writable;
    where it isn't, they always do. Without a given file, servers that a program configures are pinned in memory; its
    in-process objects are not pinned.
    """

    def __init__(
        self,
        lock: str | os.PathLike[str] | None = None,
        *,
        on_first_use: FirstUse = "pin",
        accept: AcceptTools | None = None,
        environ: Mapping[str, str] | None = None,
        trust_lock: bool = False,
        again: bool = False,
        own: bool = True,
    ) -> None:
        """Reads nothing yet. `environ` (default: `os.environ`) tells where the user's directory is."""
        self._given = None if lock is None else LockPlace(os.path.abspath(lock))
        self._on_first_use: FirstUse = on_first_use
        self._ask = accept
        self._environ = os.environ if environ is None else environ
        self._trust_lock = trust_lock
        self._again = again
        self._own = own
        self._store = ToolDecisionStore()
        self._locks: dict[LockPlace, Lock | LockError] = {}
        self._in_memory: dict[LockPlace, Lock] = {}
        self._stamp: object = None
        self._decided: dict[ServerKey, Decisions] | ApprovalStoreError | None = None
        self._own_decisions: dict[ServerKey, Decisions] = {}
        """Decisions of this process: about servers of a program, and those that could not be stored."""
        self._asked: set[tuple[LockPlace, str]] = set()
        self._failures: dict[tuple[LockPlace, str], str] = {}
        self._withheld: dict[tuple[LockPlace, str], tuple[Withheld, ...]] = {}
        self._caching = threading.Lock()
        self._generation = 0
        """Of the cached files: a worker thread may read them while they are written or forgotten."""

    def place(self, server: ServerConfig) -> LockPlace | None:
        """Returns the place of a server's shared pins, which need not exist; None if it is not pinned at all.

        Raises:
            LockError: there is no such place on this machine.
        """
        place = self._given or lock_place(server.origin, self._environ)
        if place is None and server.transport != "in_process":
            # The key covers the whole configuration: another server of this name is another place.
            return LockPlace(listing_key(server), in_memory=True)
        return place

    def where(self, server: ServerConfig) -> LockPlace | None:
        """Returns the place of the pins in force: the shared one, else the user's own; may read both.

        Raises:
            LockError: a lock can't be used.
        """
        place = self.place(server)
        if place is None or not self._has_own(place) or server.name in self._lock(place).servers:
            return place
        if not self._own and os.access(os.path.dirname(place.path), os.W_OK):
            return place
        own = own_place(place)
        return own if server.name in self._lock(own).servers else place

    def pinned(self, server: ServerConfig) -> PinnedServer | None:
        """Returns the pins of a server, or None; reads its lock if that is not cached.

        Raises:
            LockError: its lock can't be used.
        """
        place = self.where(server)
        return None if place is None else self._lock(place).servers.get(server.name)

    def admit(self, server: ServerConfig, listing: ListingLike) -> Admission:
        """Returns which definitions may be used: those as pinned and decided on; see `admission.admit`. Asks nobody.

        All may be used of a server that is not pinned (an object of the program); none, with a `problem`, if a lock or
        the store can't be used. Blocks on files that are not cached, and on the digests of the listing.
        """
        try:
            place = self.place(server)
            if place is None:
                return Admission(tools=listing.tools, instructions=listing.instructions)
            pinned = self.pinned(server)
            decisions = self._decisions(server, place)
        except (LockError, ApprovalStoreError) as error:
            return Admission(problem=f"its pins can't be read, so none of its tools can be used: {error}")
        failure = self._failures.get((place, server.name), "")
        found = admit(pinned, listing, decisions, trusted=self._trust_lock)
        found = replace(found, is_of_program=server.origin.kind == "code")
        withheld = self._withheld.get((place, server.name), ())
        if withheld:
            waiting: set[str | None] = {tool.name for tool in found.blocked if tool.why in ("new", "unseen")}
            waiting |= {None} if found.instructions_diff or None in found.pending else set()
            found = replace(found, withheld=tuple(each for each in withheld if each.tool in waiting))
        return replace(found, tools=(), problem=failure) if pinned is None and failure else found

    async def settle(
        self, server: ServerConfig, listing: ListingLike, other_tools: Mapping[str, Collection[str]] | None = None
    ) -> None:
        """Shows undecided definitions to a person, once per server; where none can be asked, the audit decides.

        Stores decisions, and pins a new server's definitions. Changes nothing if the listing is not live, the server is
        not pinned, or a lock or the store can't be used: `admit` reports that.
        """
        try:
            place = self.place(server)
            if place is None or not listing.live:
                return
            self._refresh_decisions()
            is_shared = server.name in self._lock(place).servers
            decisions = self._decisions(server, place)
            found = await _in_thread(self.admit, server, listing)
            if found.problem and not self._failures.pop((place, server.name), None):
                return
        except (LockError, ApprovalStoreError):
            return  # `admit` says so
        whole = FirstListing(server, listing.tools, listing.instructions, other_tools or {}, listing.about)
        if self._on_first_use == "ask":
            is_first = not (is_shared or decisions.has_persons)
            first = whole if is_first else whole.only(self._undecided(found))
            if is_first or first.tools or first.instructions:
                answer = await self._answer(place, first)
                if isinstance(answer, bool):
                    names: set[str | None] = {tool.name for tool in (*found.tools, *first.tools)}
                    names |= {None} if first.instructions or found.instructions else set[None]()
                    kept = whole.only(names)
                    await self._decided_by_person(place, server, first, kept, accepted=answer)
                if answer != "unseen":
                    return
        elif self._on_first_use == "refuse" and not found.is_pinned:
            return
        await self._settle_unseen(place, server, whole, decisions)

    async def _settle_unseen(
        self, place: LockPlace, server: ServerConfig, listed: FirstListing, decisions: Decisions
    ) -> None:
        """Stores definitions without high findings as audited, pins them at first use, and withholds the others."""
        found = await _in_thread(self.admit, server, listed)
        names = [each for each in found.pending if decisions.may_pass_unseen(each or "", is_pinned=found.is_pinned)]
        is_first = not found.is_pinned and not decisions.has_persons
        if not names and not is_first:
            return
        first = listed.only(names)
        withheld = await _in_thread(lambda: first.withheld)

        def audited() -> Named:
            known = {digest: name for digest, name in digests_of(listed).items() if digest in decisions.audited}
            return {**known, **digests_of(first.without(withheld))}

        await self._record(place, server, "audited", await _in_thread(audited))
        if is_first:
            where = own_place(place) if self._has_own(place) else place
            passed = await _in_thread(admit, None, listed, self._decisions(server, place))
            fresh = await _in_thread(pinned_server, passed.tools, passed.instructions)

            def add(lock: Lock) -> Lock:
                # Another process may have pinned first: its pins hold.
                return lock if server.name in lock.servers else lock.with_server(server.name, fresh)

            try:
                await self._change(where, server, add)
            except LockError as error:
                self._failures[place, server.name] = f"its tools can't be pinned, so none can be used: {error}"
                return
            in_file = "memory" if where.in_memory else where.path
            _log.info("Pinned %d tools of server %r, unseen, in %s", len(fresh.tools), server.name, in_file)
        self._withheld[place, server.name] = withheld

    async def _decided_by_person(
        self, place: LockPlace, server: ServerConfig, first: FirstListing, kept: FirstListing, *, accepted: bool
    ) -> None:
        """Stores an answer; a yes to definitions that no lock pins also pins them. `admit` reports a failure."""
        try:
            if not accepted or server.name in self._lock(place).servers:
                digests = await _in_thread(digests_of, first)
                await self._record(place, server, "accepted" if accepted else "refused", digests)
            else:
                await self._accept(place, server, kept, None, seen=True)
        except (LockError, ApprovalStoreError) as error:
            self._failures[place, server.name] = f"its tools can't be pinned, so none can be used: {error}"

    def _undecided(self, found: Admission) -> set[str | None]:
        """Returns the tools (None: the instructions) that nobody decided about; with `again` also refused ones."""
        names: set[str | None] = {*found.pending, *found.unseen}
        if self._again:
            names |= {tool.name for tool in found.blocked if tool.why == "refused"}
            names |= {None} if found.refused_instructions else set()
        return names

    async def accept(
        self, server: ServerConfig, listing: ListingLike, tools: Collection[str] | None = None, *, seen: bool = True
    ) -> Admission:
        """Pins a listing that this user accepts: all of it, or these tools. Returns what may be used now.

        A named tool that is not listed any more loses its pin. With `seen` false the listing is pinned without being
        accepted, and without definitions that this user refused.

        Raises:
            ToolbridgeError: a name is neither listed nor pinned, or can't be pinned; or the server is not pinned.
            LockError: the lock can't be used.
            ApprovalStoreError: the decision can't be kept; pins may be written.
        """
        place = self.place(server)
        if place is None:
            raise ToolbridgeError(f"Server {server.name!r} is an object of this program, which is not pinned.")
        await self._accept(place, server, listing, tools, seen=seen)
        self._failures.pop((place, server.name), None)
        self._withheld.pop((place, server.name), None)
        return await _in_thread(self.admit, server, listing)

    async def _accept(
        self, place: LockPlace, server: ServerConfig, listing: ListingLike, tools: Collection[str] | None, *, seen: bool
    ) -> None:
        """Writes the pins, in the user's own lock if the shared one can't be written, then the decision."""
        first = FirstListing(server, listing.tools, listing.instructions)
        if not seen:
            refused = self._decisions(server, place).refused
            digests = await _in_thread(digests_of, first)
            first = first.only({name or None for digest, name in digests.items() if digest not in refused})
        fresh = await _in_thread(pinned_server, first.tools, first.instructions)
        wanted = None if tools is None else {canonical_text(name) for name in tools}
        old = self.pinned(server)
        decided = await _in_thread(digests_of, first, wanted, with_instructions=wanted is None or old is None)

        def change(lock: Lock) -> Lock:
            now = fresh if wanted is None else _with_tools(server, lock.servers.get(server.name) or old, fresh, wanted)
            return lock.with_server(server.name, now)

        try:
            await self._change(place, server, change)
        except LockNotWritableError:
            # Pins of this user are enough, unless the shared lock pins this server.
            if not self._has_own(place) or server.name in self._lock(place).servers:
                raise
            await self._change(own_place(place), server, change)
        await self._record(place, server, "accepted" if seen else "audited", decided)

    async def refuse(self, shown: FirstListing) -> None:
        """Stores this user's refusal of definitions that were shown to them; nothing if the server is not pinned."""
        place = self.place(shown.server)
        if place is not None:
            digests = await _in_thread(digests_of, shown)
            await self._record(place, shown.server, "refused", digests)

    async def trust(self, server: ServerConfig) -> PinnedServer | None:
        """Accepts the pins of a server for this user, without starting it; returns them, or None if it has none.

        Raises:
            LockError: the lock can't be used.
            ApprovalStoreError: the decision can't be kept.
        """
        place, pinned = self.place(server), self.pinned(server)
        if place is not None and pinned is not None:
            named = {pin.digest: name for name, pin in pinned.tools.items()}
            if pinned.instructions:
                named[instructions_digest(pinned.instructions)] = INSTRUCTIONS
            await self._record(place, server, "accepted", named)
        return pinned

    def reread(self) -> None:
        """Forgets cached locks and decisions, and asks again about unanswered servers. Pins in memory stay."""
        with self._caching:
            self._generation += 1
            self._locks.clear()
            self._decided = None
        self._asked.clear()
        self._failures.clear()
        self._withheld.clear()

    def _decisions(self, server: ServerConfig, place: LockPlace) -> Decisions:
        """Returns this user's decisions about a server; caches the store or its ApprovalStoreError, which it raises."""
        key = server_key(server)
        if place.in_memory or not self._store.has_place or key in self._own_decisions:
            return self._own_decisions.get(key, Decisions())
        decided = self._decided
        if decided is None:
            generation, stamp = self._generation, self._store.stamp()
            try:
                decided = self._store.read()
            except ApprovalStoreError as error:
                decided = error
            with self._caching:
                if generation == self._generation:
                    self._decided, self._stamp = decided, stamp
        if isinstance(decided, ApprovalStoreError):
            raise decided.with_traceback(None)
        return decided.get(key, Decisions())

    def _refresh_decisions(self) -> None:
        """Forgets cached decisions if another process changed the store."""
        if self._decided is not None and self._store.stamp() != self._stamp:
            self._forget_decisions()

    def _forget_decisions(self) -> None:
        """Makes the next use read the store again, also if a worker thread is just reading it."""
        with self._caching:
            self._generation += 1
            self._decided = None

    async def _record(self, place: LockPlace, server: ServerConfig, decision: Decision, named: Named) -> None:
        """Stores a new decision; if it can't, keeps it in memory, but raises ApprovalStoreError for "accepted"."""
        key, known = server_key(server), self._decisions(server, place)
        after = known.with_decision(decision, named)
        if after == known:
            return
        if not place.in_memory and self._store.has_place and len(after.audited) <= MOST_AUDITED:
            try:
                await _in_thread(self._store.record, server, decision, named)
                self._forget_decisions()
                self._own_decisions.pop(key, None)
                return
            except ApprovalStoreError as error:
                if decision == "accepted":
                    raise
                _log.warning(
                    "What was decided about the tools of server %r holds in this process only: %s", key[1], error
                )
        self._own_decisions[key] = after

    def _has_own(self, place: LockPlace) -> bool:
        """Whether this user may have pins of their own beside the shared ones."""
        return not (place.private or place.in_memory or place == self._given)

    def _lock(self, place: LockPlace) -> Lock:
        """Returns the lock at a place; caches it until `reread`, as well as its LockError, which it raises."""
        if place.in_memory:
            return self._in_memory.get(place, Lock())
        found = self._locks.get(place)
        if found is None:
            generation = self._generation
            try:
                found = read_lock(place)
            except LockError as error:
                found = error
            with self._caching:
                if generation == self._generation:
                    self._locks[place] = found
        if isinstance(found, LockError):
            raise found.with_traceback(None)
        return found

    async def _change(self, place: LockPlace, server: ServerConfig, change: Callable[[Lock], Lock]) -> None:
        """Changes a lock, on disk or in memory, and caches this server's pins alone; raises LockError."""
        if place.in_memory:
            self._in_memory[place] = change(self._lock(place))
            return
        now = await _in_thread(change_lock, place, change)
        # Takes over only this server's entry, not changes by others.
        with self._caching:
            self._generation += 1
            known = self._locks.get(place)
            base = known if isinstance(known, Lock) else now
            self._locks[place] = base.with_server(server.name, now.servers.get(server.name))

    async def _answer(self, place: LockPlace, first: FirstListing) -> Answer:
        """Asks a person about a listing, once per server; None without an answer. A callback's error is logged."""
        server = first.server
        if self._ask is None or (place, server.name) in self._asked:
            return None
        self._asked.add((place, server.name))
        try:
            answer: Any = self._ask(first)
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:
            words = for_error(str(error) or type(error).__name__)
            _log.warning("Nobody could be asked about the tools of server %r: %s", server.name, words)
            return None
        return answer if isinstance(answer, bool) or answer == "unseen" else None


async def _in_thread(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Runs work on a listing, which may have megabytes, in a worker thread."""
    import anyio.to_thread

    return await anyio.to_thread.run_sync(partial(work, *given, **named))


def digests_of(first: FirstListing, tools: Collection[str] | None = None, *, with_instructions: bool = True) -> Named:
    """Returns the digests of a listing's pinnable definitions, or of these tools, each with its tool's name."""
    pins = pinned_server(first.tools, first.instructions if with_instructions else "")
    named = {pin.digest: name for name, pin in pins.tools.items() if tools is None or name in tools}
    if pins.instructions:
        named[instructions_digest(pins.instructions)] = INSTRUCTIONS
    return named


def _with_tools(
    server: ServerConfig, old: PinnedServer | None, fresh: PinnedServer, wanted: Collection[str]
) -> PinnedServer:
    """Returns the pins with those of these tools replaced by the listed definitions, or removed.

    Raises:
        ToolbridgeError: a name is neither listed nor pinned.
    """
    known: Mapping[str, PinnedTool] = {} if old is None else old.tools
    unknown = sorted(name for name in wanted if name not in fresh.tools and name not in known)
    if unknown:
        shown = for_error(unknown[0], limit=100)
        raise ToolbridgeError(f"Server {server.name!r} lists no tool {shown!r} that could be pinned.")
    kept = {name: pin for name, pin in known.items() if name not in wanted}
    taken = {name: fresh.tools[name] for name in wanted if name in fresh.tools}
    # The first tools come with the instructions; later, only a whole listing does.
    return PinnedServer({**kept, **taken}, fresh.instructions if old is None else old.instructions)
