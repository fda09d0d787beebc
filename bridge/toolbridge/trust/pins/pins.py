"""SECURITY: pins: a tool is used as it was when this user accepted it, or not at all (T11, T25, T26).

A project's lock narrows: a tool that differs from it is blocked. It never widens: a definition is used once this user
accepted it, or, where nobody can be asked, once the audit has passed it; and not after this user refused it. A program
alone writes no pins into a project's lock: those of definitions that nobody has seen are in the user's state directory.
A lock is read once: what a tool or anybody else writes into it meanwhile means nothing to this process until `reread`.
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
from toolbridge.trust.pins.admission import Admission, BlockedTool, FirstListing, ListingLike, Withheld, admit
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
from toolbridge.trust.text.sanitise import for_error

__all__ = ["Admission", "BlockedTool", "FirstListing", "FirstUse", "ListingLike", "LockPins", "Pins"]

P = ParamSpec("P")
T = TypeVar("T")
FirstUse: TypeAlias = Literal["pin", "ask", "refuse"]
Answer: TypeAlias = bool | Literal["unseen"] | None
AcceptTools: TypeAlias = Callable[[FirstListing], Answer | Awaitable[Answer]]
"""Shows a person definitions that they have not accepted. True accepts, False refuses, both for good; "unseen" says
that nobody was there, and None that nobody has answered."""

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

    `on_first_use` says what becomes of definitions that this user has not decided about, whatever a lock says of them.
    "pin" uses them (trust on first use), except for texts in which the audit finds something grave: those wait for a
    person. "ask" shows them to `accept`: True accepts them, False refuses them for good, "unseen" is like "pin".
    "refuse" never pins: for machines that only use what was committed, and commands that only look.
    `trust_lock` takes definitions as accepted that the lock pins: for hosts that vouch for its file. `again` shows
    refused definitions once more. `own` says whether pins in the user's state directory count where the project's lock
    could be written; where it can't, they always do.
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
        trust_lock: bool = False,
        again: bool = False,
        own: bool = True,
    ) -> None:
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
        """Of this process: about servers made in code, and those that could not be kept."""
        self._asked: set[tuple[LockPlace, str]] = set()
        self._failures: dict[tuple[LockPlace, str], str] = {}
        self._withheld: dict[tuple[LockPlace, str], tuple[Withheld, ...]] = {}
        self._caching = threading.Lock()
        self._generation = 0
        """Of what is cached of files: `admit` may read them in a thread while they are written or forgotten."""

    def place(self, server: ServerConfig) -> LockPlace | None:
        """Where a server's pins are for all who share them; None if it is not pinned at all.

        Raises:
            LockError: there is no such place on this machine.
        """
        place = self._given or lock_place(server.origin, self._environ)
        if place is None and server.transport != "in_process":
            # By all that is started or reached: a program that configures another server under this name means it.
            return LockPlace(listing_key(server), in_memory=True)
        return place

    def where(self, server: ServerConfig) -> LockPlace | None:
        """Where the pins of a server are that hold: those of the user's state directory only where it has no others.

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
        """The pins of a server, if it has any.

        Raises:
            LockError: its lock can't be used.
        """
        place = self.where(server)
        return None if place is None else self._lock(place).servers.get(server.name)

    def admit(self, server: ServerConfig, listing: ListingLike) -> Admission:
        """Compare a listing with pins and decisions; a lock or store that can't be used admits nothing."""
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
        """Put undecided definitions to a person, or to the audit where nobody can be asked."""
        try:
            place = self.place(server)
            if place is None or not listing.live:
                return
            self._look_again()
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
        """Let the audit pass what nobody can be asked about; the rest stays hidden."""
        found = await _in_thread(self.admit, server, listed)
        names = [each for each in found.pending if decisions.may_pass_unseen(each or "", is_pinned=found.is_pinned)]
        is_first = not found.is_pinned and not decisions.has_persons
        if not names and not is_first:
            return
        first = listed.only(names)
        withheld = await _in_thread(lambda: first.withheld)

        def audited() -> Named:
            # Those that passed before are among them as long as they are listed.
            known = {digest: name for digest, name in digests_of(listed).items() if digest in decisions.audited}
            return {**known, **digests_of(first.without(withheld))}

        await self._record(place, server, "audited", await _in_thread(audited))
        if is_first:
            where = own_place(place) if self._has_own(place) else place
            passed = await _in_thread(admit, None, listed, self._decisions(server, place))
            fresh = await _in_thread(pinned_server, passed.tools, passed.instructions)

            def add(lock: Lock) -> Lock:
                # Another process may have been first: its pins hold, and this listing is compared with them.
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
        """Keep an answer; after a yes to what no lock pins, also pin it, beside what was accepted before."""
        try:
            if not accepted or server.name in self._lock(place).servers:
                digests = await _in_thread(digests_of, first)
                await self._record(place, server, "accepted" if accepted else "refused", digests)
            else:
                await self._accept(place, server, kept, None, is_shown=True)
        except (LockError, ApprovalStoreError) as error:
            self._failures[place, server.name] = f"its tools can't be pinned, so none can be used: {error}"

    def _undecided(self, found: Admission) -> set[str | None]:
        """What a person is asked about: all that they have not accepted, and, once more, what they refused."""
        names: set[str | None] = {*found.pending, *found.unseen}
        if self._again:
            names |= {tool.name for tool in found.blocked if tool.why == "refused"}
            names |= {None} if found.refused_instructions else set()
        return names

    async def accept(
        self,
        server: ServerConfig,
        listing: ListingLike,
        tools: Collection[str] | None = None,
        *,
        seen: bool = True,
    ) -> Admission:
        """Pin this listing, which this user accepts: all of it, or just these tools of it.

        A tool that is named and not listed any more loses its pin. With `seen` false it is pinned, and nobody has
        accepted it: what this user refused is left out.

        Raises:
            ToolbridgeError: a name is neither listed nor pinned, or can't be pinned; or the server is not pinned.
            LockError: the lock can't be used.
        """
        place = self.place(server)
        if place is None:
            raise ToolbridgeError(f"Server {server.name!r} is an object of this program, which is not pinned.")
        await self._accept(place, server, listing, tools, is_shown=seen)
        self._failures.pop((place, server.name), None)
        self._withheld.pop((place, server.name), None)
        return await _in_thread(self.admit, server, listing)

    async def _accept(
        self,
        place: LockPlace,
        server: ServerConfig,
        listing: ListingLike,
        tools: Collection[str] | None,
        *,
        is_shown: bool,
    ) -> None:
        first = FirstListing(server, listing.tools, listing.instructions)
        if not is_shown:
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
            # A lock that pins this server narrows what is used; without such pins, those of this user are enough.
            if not self._has_own(place) or server.name in self._lock(place).servers:
                raise
            await self._change(own_place(place), server, change)
        await self._record(place, server, "accepted" if is_shown else "audited", decided)

    async def refuse(self, shown: FirstListing) -> None:
        """Keep that this user has said no to all of this, which they were shown."""
        place = self.place(shown.server)
        if place is not None:
            digests = await _in_thread(digests_of, shown)
            await self._record(place, shown.server, "refused", digests)

    async def trust(self, server: ServerConfig) -> PinnedServer | None:
        """Accept for this user what the lock pins of a server, without starting it; gives that.

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
        """Read every lock again when it is next needed, and ask again about servers without an answer.

        What is pinned in memory stays: nobody else could have changed it.
        """
        with self._caching:
            self._generation += 1
            self._locks.clear()
            self._decided = None
        self._asked.clear()
        self._failures.clear()
        self._withheld.clear()

    # ── decisions ────────────────────────────────────────────────────────────────────────────────────────────────

    def _decisions(self, server: ServerConfig, place: LockPlace) -> Decisions:
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

    def _look_again(self) -> None:
        """A decision that another process kept meanwhile holds from the next listing on."""
        if self._decided is not None and self._store.stamp() != self._stamp:
            self._forget_decisions()

    def _forget_decisions(self) -> None:
        with self._caching:
            self._generation += 1
            self._decided = None

    async def _record(self, place: LockPlace, server: ServerConfig, decision: Decision, named: Named) -> None:
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

    # ── locks ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _has_own(self, place: LockPlace) -> bool:
        """Whether this user may have pins apart from those that all who use this place share."""
        return not (place.private or place.in_memory or place == self._given)

    def _lock(self, place: LockPlace) -> Lock:
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
        if place.in_memory:
            self._in_memory[place] = change(self._lock(place))
            return
        now = await _in_thread(change_lock, place, change)
        # Of what others wrote meanwhile, nothing but this server's entry is taken.
        with self._caching:
            self._generation += 1
            known = self._locks.get(place)
            base = known if isinstance(known, Lock) else now
            self._locks[place] = base.with_server(server.name, now.servers.get(server.name))

    async def _answer(self, place: LockPlace, first: FirstListing) -> Answer:
        """What a person says of a listing; None without an answer. Asked once, however often it changes."""
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
    """Work on a listing, which may be megabytes long: the event loop goes on meanwhile."""
    import anyio.to_thread

    return await anyio.to_thread.run_sync(partial(work, *given, **named))


def digests_of(first: FirstListing, tools: Collection[str] | None = None, *, with_instructions: bool = True) -> Named:
    """The digests of what can be pinned of a listing, or of these tools in it, each with its tool's name."""
    pins = pinned_server(first.tools, first.instructions if with_instructions else "")
    named = {pin.digest: name for name, pin in pins.tools.items() if tools is None or name in tools}
    if pins.instructions:
        named[instructions_digest(pins.instructions)] = INSTRUCTIONS
    return named


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
