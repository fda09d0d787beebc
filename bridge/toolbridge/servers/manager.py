"""All servers: connects them, calls their tools, closes and reloads them.

Each connection lives in a task of its own, from approval to clean-up, inside the manager's task group: connections are
closed by the task that opened them even if their callers are cancelled, and closing the manager closes them all.
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
from toolbridge.config.config import Config, same_connection
from toolbridge.errors import (
    MisuseError,
    ServerClosedError,
    ServerConnectError,
    ServerDisconnectedError,
    ServerError,
)
from toolbridge.events import ServerObserver, ServerState, ToolsChanged
from toolbridge.servers.lifecycle import AcquireMode, Attempt, CallNotSentError, approved_start, prepare
from toolbridge.servers.listing import Listing
from toolbridge.servers.pool import Connector
from toolbridge.servers.registry import ServerRegistry, ServerStatus, Slot, notify
from toolbridge.servers.requests import ElicitorLike, RootsLike, SamplerLike, ServerRequests
from toolbridge.tools.binding import OnProgress
from toolbridge.trust.approval.approver import Approver, ApproverLike, MayTakeBack
from toolbridge.trust.approval.approvers import approver_of
from toolbridge.trust.pins.pins import Pins
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from toolbridge.config.server_config import ServerConfig
    from toolbridge.servers.auth.sign_in import SignIn, SignInLike
    from toolbridge.tools.tool import InProcessTool

_log = logging.getLogger("toolbridge")
_TEXT: set[type] = {str}


class ServerManager(ServerRegistry):
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
        super().__init__(
            pins=pins,
            directory=None if directory is None else Path(directory),
            listing_bytes=config.limits.listing_bytes,
            observers=observers_of(observers),
        )
        self._limits = config.limits
        async_approver = approver_of(approver)
        self._connector = Connector(
            limits=config.limits,
            approver=async_approver,
            requests=ServerRequests.of(elicitor, sampler, roots),
            sign_in=_sign_in_of(sign_in),
            environ=os.environ if environ is None else environ,
            store_listing=self._store_listing,
            set_state=self._set_state_and_notify,
            is_configured=lambda slot: self._slots.get(slot.name) is slot,
        )
        self._revocations = Revocations(async_approver, self._close)
        for server in config.servers.values():
            self._add(server)

    async def __aenter__(self) -> ServerManager:
        await self._connector.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        del kind, error, traceback
        self._connector.is_closed = True
        for slot in self._slots.values():
            slot.stop()
        try:
            await self._connector.close()
        finally:
            for slot in self._slots.values():
                self._set_state(slot, "closed")

    # ── connecting ───────────────────────────────────────────────────────────────────────────────────────────────

    async def connect(self, server: str, *, acquire: AcquireMode = "evict") -> Listing:
        """Connect a server unless it is connected, and return its listing. Waits, also for a person's approval.

        Args:
            server: its name.
            acquire: how hard to try for a place in a full connection pool: `if_free` evicts no server, `evict` evicts
                an idle one, `queue` also waits for servers that are being connected or closed.

        Raises:
            ServerError: it can't be connected; the kind says why.
        """
        slot = self._slot(server)
        lists_only = acquire != "evict"
        slot.users += 1
        slot.listing_users += lists_only
        try:
            await self._connector.connection(slot, acquire)
        finally:
            slot.listing_users -= lists_only
            self._leave(slot, has_used=not lists_only)
        assert slot.listing is not None
        return slot.listing

    async def wait_for_approval(self, server: str, *, acquire: AcquireMode = "evict") -> None:
        """Begin to connect a server unless it is connected, and wait until its approval is decided or the attempt ends.

        The attempt goes on in the background, and its failure is not raised.

        Raises:
            ServerError: it may not be connected, or this task's approver refused to join another task's attempt.
        """
        attempt = await self._connector.attempt(self._slot(server), acquire)
        if isinstance(attempt, Attempt):
            await attempt.decided.wait()

    async def start_all(self, only: Collection[str] | None = None) -> tuple[ServerStatus, ...]:
        """Connect all enabled servers, or the named ones, at once, and wait. Failures are in the statuses, not raised.

        If there are more servers than the pool holds, those that were never listed take turns: each is closed again
        while others wait. So the catalog gets complete, and as many servers as possible stay connected.
        """
        slots = self._slots.values()
        enabled = [slot for slot in slots if slot.server.enabled and (only is None or slot.name in only)]

        async def start(name: str, acquire: AcquireMode) -> None:
            with contextlib.suppress(ServerError):  # its status has the reason
                await self.connect(name, acquire=acquire)

        async with anyio.create_task_group() as tasks:
            for slot in sorted(enabled, key=lambda slot: slot.listing is not None):
                tasks.start_soon(start, slot.name, "queue" if slot.listing is None else "if_free")
        return self.statuses()

    def _set_state_and_notify(self, slot: Slot, state: ServerState, error: str = "", reason: str = "") -> None:
        """Set a slot's state, notify observers if it changed, and wake the tasks that wait for a place in the pool."""
        self._set_state(slot, state, error, reason)
        self._connector.pool.notify()

    def _leave(self, slot: Slot, *, has_used: bool = True) -> None:
        """Count one user less and note the time of use; the last one wakes tasks that wait for a place in the pool."""
        slot.users -= 1
        if has_used:
            slot.last_used = monotonic()
        if not slot.users and self._connector.pool.waiting:
            self._connector.pool.notify()

    # ── calling ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def call(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout: float | None = None,  # noqa: ASYNC109  # the server's own time, without the wait for a semaphore
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """Call a tool by its original name and return the raw result; connects the server first if necessary.

        Waiting for a connection or the server's semaphore doesn't count against the timeout.

        Raises:
            ServerError: there is no result; the kind says why. A call is never sent twice.
        """
        slot = self._slots.get(server) or self._slot(server)
        validate_call(tool, arguments, timeout)
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
        """Call an exposed tool after waiting for connection and semaphore; connects anew if the call was not sent."""
        close_count, attempts = slot.close_count, 0
        connection = slot.live_connection() or await self._connector.connection(slot)
        async with slot.semaphore(self._limits):
            while True:
                attempts += 1
                if slot.close_count != close_count:
                    raise ServerClosedError(slot.name, f"was closed before the call of {tool!r} was sent")
                if tool not in slot.exposed_names():  # now: it may have changed while the call waited
                    slot.check_exposed(tool)
                secrets, seconds = slot.secrets, slot.server.call_timeout or self._limits.call_seconds
                if timeout is not None:
                    seconds = min(seconds, timeout)
                try:
                    return await connection.call(
                        tool, arguments, seconds=seconds, secrets=secrets, on_progress=on_progress
                    )
                except CallNotSentError:
                    await connection.wait_for_end()
                    if attempts > max(1, self._limits.respawns):  # a remote server may be connected without limit
                        reason = for_error(connection.end_reason(), slot.secrets, limit=300)
                        problem = f"ended {attempts} times before it took the call of {tool!r}: {reason}"
                        raise ServerDisconnectedError(slot.name, problem) from None
                    if slot.close_count == close_count:
                        connection = await self._connector.connection(slot)
                except ServerError:
                    if slot.close_count != close_count:
                        raise ServerClosedError(slot.name, f"was closed during the call of {tool!r}") from None
                    raise

    def ready_tool(self, server: str, tool: str) -> InProcessTool[..., Any] | None:
        """Return a host tool that could be called now, without waiting and without a context; else None."""
        slot = self._slots.get(server)
        if slot is None or (connection := slot.host_connection) is None or connection.ended or slot.closing:
            return None
        if not slot.semaphore(self._limits).value or tool not in slot.exposed_names():
            return None
        found = connection.find(tool)
        return None if found is None or found.arguments.wants_context else found

    async def finish_call(
        self, server: str, tool: InProcessTool[..., Any], result: Awaitable[dict[str, Any]], seconds: float
    ) -> dict[str, Any]:
        """Await the raw result of a host tool's call that has begun, holding the semaphore; must be awaited at once.

        Raises:
            ServerError: there is none: the call took too long, or the server was closed.
        """
        slot = self._slots[server]
        configured = slot.server.call_timeout or self._limits.call_seconds
        seconds = min(each for each in (configured, seconds, tool.timeout) if each is not None)
        connection, close_count, semaphore = slot.host_connection, slot.close_count, slot.semaphore(self._limits)
        assert connection is not None
        semaphore.acquire_nowait()  # `ready_tool` found it free, and no other task ran since
        try:
            return await connection.finish(tool, result, seconds)
        except ServerError:
            if slot.close_count != close_count:
                raise ServerClosedError(slot.name, f"was closed during the call of {tool.name!r}") from None
            raise
        finally:
            semaphore.release()

    # ── signing in ───────────────────────────────────────────────────────────────────────────────────────────────

    async def sign_in(self, server: str, how: SignInLike) -> bool:
        """Have a person sign in to an HTTP server now, after its approval; False if the server wanted no sign-in.

        Raises:
            ServerError: it is not approved, not reached or not an HTTP server, or nobody signed in.
        """
        config, sign_in = self._http_server(server), _sign_in_of(how)
        assert sign_in is not None
        start = await approved_start(config, self._connector.approver, self._connector.environ)
        from toolbridge.servers.http.transport import sign_in_to

        secret = start.environment.client_secret
        return await sign_in_to(config, start.environment.headers, self._limits, sign_in=sign_in, client_secret=secret)

    async def sign_out(self, server: str) -> bool:
        """Delete the stored sign-in to an HTTP server; False if there was none. Leaves the connection open."""
        config = self._http_server(server)
        from toolbridge.servers.http.transport import sign_out

        return await sign_out(config)

    def _http_server(self, server: str) -> ServerConfig:
        """Return an HTTP server's configuration. Raises `ServerConnectError` for a server of another transport."""
        config = self._slot(server).server
        if config.transport not in ("http", "sse"):
            raise ServerConnectError(server, f"has transport {config.transport}: only HTTP servers have a sign-in")
        return config

    # ── closing and reloading ────────────────────────────────────────────────────────────────────────────────────

    async def close_server(self, server: str) -> None:
        """Close one server's connection or attempt and wait for its clean-up; the next use connects anew."""
        await self._close(self._slot(server))

    async def close(self) -> None:
        """Close every connection for good and wait for the clean-up. Safe to call again, and from several tasks."""
        self._connector.is_closed = True
        async with anyio.create_task_group() as tasks:
            for slot in list(self._slots.values()):
                tasks.start_soon(self._close, slot)

    async def close_revoked(self) -> None:
        """Close servers whose approval was revoked elsewhere, and wait; does nothing if the approver can't tell."""
        await self._revocations.close_revoked(self._slots.values())

    async def update_approval_states(self) -> None:
        """Set or clear `needs_approval` for servers without an attempt to connect, if the approver can tell."""
        waiting = [slot for slot in self._slots.values() if slot.attempt is None]
        unapproved = await self._revocations.unapproved(waiting, self._connector.environ)
        for slot in waiting:
            if slot.attempt is None and slot.name in unapproved:
                self._set_state(slot, "needs_approval")
            elif slot.attempt is None and slot.state == "needs_approval":
                self._set_state(slot, "error" if slot.last_error else "idle")

    async def reload(self, config: Config, *, reread_pins: bool = False) -> None:
        """Take over a changed configuration: changed and removed servers are closed, the rest stays connected.

        A server stays connected if only its description, filter, labels, schemas or timeouts changed. Pins are read
        again only if `reread_pins` says so: a tool may have written the file. Notifies observers of changed tools, and
        returns once the servers are closed.
        """
        unchanged = {
            name
            for name, slot in self._slots.items()
            if name in config.servers and same_connection(slot.server, config.servers[name])
        }
        gone = [self._slots.pop(name) for name in list(self._slots) if name not in unchanged]
        for slot in gone:
            slot.stop()  # now: its place in the pool is about to be free
            self._former_secrets[slot.name] = self._former_secrets.get(slot.name, frozenset()) | slot.secrets
        self._limits = self._connector.limits = config.limits
        self._catalog = self._specifiers = None
        if reread_pins:
            self._admissions.reread()
        for slot in self._slots.values():
            slot.reset_semaphore()
            if slot.reconfigure(config.servers[slot.name]):
                notify(self._observers, ToolsChanged(slot.name))
        kept = list(self._slots.values())
        for name, server in config.servers.items():
            if name not in unchanged:
                self._add(server)
        with anyio.CancelScope(shield=True):  # else a tool that its pins no longer admit stays callable
            async with anyio.create_task_group() as tasks:
                for slot in kept:
                    tasks.start_soon(self._verify_pins, slot)
        async with anyio.create_task_group() as tasks:
            for slot in gone:
                tasks.start_soon(self._close, slot)

    async def _close(self, slot: Slot) -> None:
        """Stop a server, wait for its clean-up, reset its count of starts and set its state to closed."""
        slot.stop()
        if slot.attempt is not None:
            await slot.attempt.ended.wait()
        slot.start_count = 0
        self._set_state(slot, "closed")


class Revocations:
    """SECURITY: closes servers whose approval is revoked in another process while they are connected (T1).

    Checked before each run, which costs a look at a file's time.
    """

    def __init__(self, approver: Approver, close: Callable[[Slot], Awaitable[None]]) -> None:
        self._approver = approver if isinstance(approver, MayTakeBack) else None
        self._close = close
        self._seen = None if self._approver is None else self._approver.stamp()
        self._lock: anyio.Lock | None = None

    async def close_revoked(self, slots: Iterable[Slot]) -> None:
        """Close servers that are no longer approved, if the approver's stamp has changed. Asks no person."""
        if self._approver is None or self._approver.stamp() == self._seen:
            return
        # A second task waits: a server that is being closed must not be used meanwhile.
        self._lock = self._lock or anyio.Lock()
        async with self._lock:
            stamp = self._approver.stamp()
            if stamp == self._seen:
                return
            async with anyio.create_task_group() as tasks:
                for slot in list(slots):
                    tasks.start_soon(self._close_if_revoked, self._approver, slot)
            self._seen = stamp

    async def unapproved(self, slots: Iterable[Slot], environ: Mapping[str, str]) -> frozenset[str]:
        """Return names of enabled servers that are not connecting and need an approval. Asks nobody, starts nothing."""
        found: set[str] = set()
        if self._approver is None:
            return frozenset()
        for slot in slots:
            if slot.attempt is not None or slot.host_tools is not None or not slot.server.enabled:
                continue
            try:
                request, _ = await anyio.to_thread.run_sync(prepare, slot.server, environ)
                if not await self._approver.still_approves(request):
                    found.add(slot.name)
            except ServerError:
                continue  # its next start reports the error
        return frozenset(found)

    async def _close_if_revoked(self, approver: MayTakeBack, slot: Slot) -> None:
        """Close a server, with a warning in the log, if what was approved at its start no longer is."""
        start = None if slot.attempt is None else slot.attempt.start
        if start is None or await approver.still_approves(start.request):
            return
        _log.warning("Server %r is closed: it was revoked, disabled, or is not what was approved.", slot.name)
        await self._close(slot)


def validate_call(tool: object, arguments: object, timeout: object) -> None:
    """Validate the types of a host's call: text, a mapping with text keys, and a number or None.

    Raises:
        MisuseError: a type is wrong.
    """
    if not isinstance(tool, str):
        raise MisuseError("tool", tool, "the tool's name")
    keys = cast("Mapping[Any, Any]", arguments) if isinstance(arguments, Mapping) else [None]
    if set(map(type, keys)) != _TEXT and not all(isinstance(key, str) for key in keys):
        raise MisuseError("arguments", cast("object", arguments), "a mapping with text as keys")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float))):
        raise MisuseError("timeout", timeout, "a number of seconds")


def _sign_in_of(given: SignInLike | None) -> SignIn | None:
    """Turn the host's `sign_in` into a `SignIn`; None stays None. Imports the sign-in code only if needed."""
    if given is None:
        return None
    from toolbridge.servers.auth.sign_in import sign_in_of

    return sign_in_of(given)
