"""All servers: their states, their connections, and the calls that go through them.

Each connection lives in a task of its own, from approval to clean-up, inside the manager's task group: whatever
happens to a caller, connections are closed by the task that opened them, and closing the manager closes them all.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Awaitable, Collection, Mapping, Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio

from toolbridge.callbacks import observers_of
from toolbridge.config.config import Config
from toolbridge.config.digest import same_connection
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import ServerClosedError, ServerConnectError, ServerDisconnectedError, ServerError
from toolbridge.servers.attempt import Attempt, Place
from toolbridge.servers.call_arguments import check_arguments
from toolbridge.servers.connected import CallNotSentError, OnProgress
from toolbridge.servers.connecting import Connecting
from toolbridge.servers.events import ServerObserver, ServerState, ToolsChanged, tell
from toolbridge.servers.known_servers import KnownServers
from toolbridge.servers.listing import Listing
from toolbridge.servers.own_calls import finish_call, ready_tool
from toolbridge.servers.revocations import Revocations
from toolbridge.servers.server_requests import ElicitorLike, RootsLike, SamplerLike, ServerRequests
from toolbridge.servers.slot import ServerStatus, Slot
from toolbridge.trust.approver import ApproverLike
from toolbridge.trust.approvers import approver_of
from toolbridge.trust.pins import Pins
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from toolbridge.servers.own_tool import InProcessTool
    from toolbridge.servers.sign_in import SignIn, SignInLike


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

    def configured_paths(self, server: str) -> tuple[str, ...]:
        """Texts of a server's configuration that may name directories: arguments, variables, `cwd` and roots.

        One that begins with `~` or `.` is there as the server may resolve it, too.
        """
        slot = self._slots.get(server)
        if slot is None:
            return ()
        directory = slot.server.cwd or _working_directory()
        texts = (*slot.server.args, *slot.server.env.values())
        values = (text.rpartition("=")[2] for text in texts)
        resolved = (
            os.path.abspath(os.path.join(directory, os.path.expanduser(value)))
            for value in values
            if value.startswith(("~", "."))
        )
        return (*texts, *resolved, directory, *self._connecting.roots_of(server))

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
        closings = slot.closings
        connection = await self._connecting.connection(slot)
        self._check_exposed(slot, tool)
        seconds = self._seconds(slot, timeout)
        async with slot.line(self._limits):
            attempts = 0
            while True:
                attempts += 1
                if slot.closings != closings:
                    raise ServerClosedError(slot.name, f"was closed before the call of {tool!r} was sent")
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
        from toolbridge.servers.http import sign_in_to

        secret = start.environment.client_secret
        return await sign_in_to(config, start.environment.headers, self._limits, sign_in=asked, client_secret=secret)

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
        self._catalog = None
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


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it may be gone
        return ""


def _sign_in_of(given: SignInLike | None) -> SignIn | None:
    if given is None:
        return None
    from toolbridge.servers.sign_in import sign_in_of

    return sign_in_of(given)
