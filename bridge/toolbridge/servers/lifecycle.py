"""The life of one connection: respawn rule, approval, start, negotiation, listing, watching, clean-up.

It runs in one task from beginning to end (see `manager`). The MCP SDK is imported only once a server is approved.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

import anyio
import anyio.to_thread

from toolbridge.callbacks import callback
from toolbridge.concurrency import is_foreign
from toolbridge.config.config import configuration_digest
from toolbridge.config.references import ResolvedEnvironment, resolve_environment
from toolbridge.config.server_config import ServerConfig, ServerLimits
from toolbridge.errors import (
    ConnectionLimitError,
    ServerClosedError,
    ServerConnectError,
    ServerError,
    ServerNotApprovedError,
    ServerRespawnError,
    ServerTimeoutError,
)
from toolbridge.events import ServerState
from toolbridge.tools.binding import OnProgress
from toolbridge.tools.server import HostConnection, ToolServer
from toolbridge.trust.approval.approver import Approval, ApprovalRequest, Approver
from toolbridge.trust.approval.warnings import is_package_runner
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from toolbridge.servers.auth.sign_in import SignIn
    from toolbridge.servers.connection import Connection, PausableDeadline, ServerChannel
    from toolbridge.servers.pool import Connector
    from toolbridge.servers.registry import Slot

_log = logging.getLogger("toolbridge")
_MAX_END_REASON = 300

AcquireMode: TypeAlias = Literal["if_free", "evict", "queue"]
"""How hard to try for a place in a full connection pool: not at all, by evicting an idle server, or by also waiting
for servers that are being connected or closed."""
_MODES: tuple[AcquireMode, ...] = get_args(AcquireMode)


class Attempt:
    """One attempt to connect, which any number of tasks may await.

    It runs in the context of the task that began it, and so does its approval. A task that joins with another person
    to ask does so: the first yes holds for all, and a no only for the task that got it.
    """

    def __init__(
        self, acquire: AcquireMode = "evict", *, asker: object = None, start: ApprovedStart | None = None
    ) -> None:
        self.asker = asker
        """The person asked by the task that began it: see `AsksSomebody`."""
        self.acquire: AcquireMode = acquire
        self.start = start
        """The approved start: None until a person or a stored approval said yes."""
        self.ended = anyio.Event()
        """Set when its task has ended, clean-up included."""
        self.decided = anyio.Event()
        """Set when its approval is decided."""
        self._questions: set[anyio.CancelScope] = set()
        self._done = anyio.Event()
        self._connection: LiveConnection | None = None
        self._error: ServerError | None = None
        if start is not None:
            self.decided.set()

    @property
    def is_settled(self) -> bool:
        """Whether its outcome is known."""
        return self._done.is_set()

    @property
    def succeeded(self) -> bool:
        """Whether it led to a connection."""
        return self._connection is not None

    def raise_mode(self, acquire: AcquireMode) -> None:
        """Adopt a joining task's mode if it tries harder than the current one; else do nothing."""
        if _MODES.index(acquire) > _MODES.index(self.acquire):
            self.acquire = acquire

    async def ask(self, question: Callable[[], Awaitable[ApprovedStart]]) -> ApprovedStart | None:
        """Await `question`'s approval; cancels it and returns None when another task gets an approval meanwhile.

        Does not store the answer: see `approve`.

        Raises:
            ServerError: the question failed or was answered with no, and no other task got a yes.
        """
        with anyio.CancelScope() as scope:
            self._questions.add(scope)
            try:
                return await question()
            except ServerError:
                if self.start is None:
                    raise
            finally:
                self._questions.discard(scope)
        return None

    def approve(self, start: ApprovedStart) -> None:
        """Store the first approval, wake tasks waiting for it, and cancel other questions; ignores later approvals."""
        if self.start is None:
            self.start = start
            self.decided.set()
            for scope in self._questions:
                scope.cancel()

    def succeed(self, connection: LiveConnection) -> None:
        """Settle the attempt: hand the connection to all waiting tasks."""
        self._connection = connection
        self._settle()

    def fail(self, error: ServerError) -> None:
        """Settle the attempt: raise an error in all waiting tasks. Does nothing if it is settled already."""
        if not self.is_settled:
            self._error = error
            self._settle()

    def _settle(self) -> None:
        self.decided.set()
        self._done.set()

    async def outcome(self) -> LiveConnection:
        """Wait until the attempt is settled and return its connection.

        Raises:
            ServerError: the attempt failed.
        """
        await self._done.wait()
        if self._connection is None:
            assert self._error is not None
            raise self._error.with_traceback(None)  # not with the last waiter's
        return self._connection


class CallNotSentError(Exception):
    """The server ended before it could have seen a call, so sending the call again is safe."""


class LiveConnection(Protocol):
    """A live connection to one server, in another process or to host tools."""

    @property
    def ended(self) -> bool:
        """Whether a message sent now would no longer reach it."""
        ...

    async def wait_for_end(self) -> None:
        """Wait until its end is known."""
        ...

    def end_reason(self) -> str:
        """Why it ended, in the server's or the system's words; may be empty. Not sanitised."""
        ...

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        seconds: float,
        secrets: frozenset[str],
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """Call a tool and return the raw result.

        Raises:
            ServerError: there is no result.
            CallNotSentError: the server ended before it could have seen the call.
        """
        ...


@dataclass(frozen=True, slots=True)
class ApprovedStart:
    """SECURITY: an approved snapshot, against TOCTOU: what is opened is this, and nothing is read again (T23)."""

    server: ServerConfig
    executable: str | None
    directory: str | None
    environment: ResolvedEnvironment
    request: ApprovalRequest


def prepare(server: ServerConfig, environ: Mapping[str, str]) -> tuple[ApprovalRequest, ResolvedEnvironment]:
    """Resolve a server's environment and executable into an approval request. Starts nothing; blocks on file I/O.

    Raises:
        ServerEnvironmentError: a variable is not set.
        ServerConnectError: its command or the current directory does not exist.
    """
    environment = resolve_environment(server, environ)
    executable = directory = target = None
    if server.transport == "stdio":
        from toolbridge.servers.stdio.launch import find_executable, link_target

        directory = _directory(server)
        executable = find_executable(replace(server, cwd=directory), environment.env.get("PATH", os.defpath))
        target = link_target(server, executable, directory)
    digest = configuration_digest(server, executable, directory, target)
    return ApprovalRequest(server, executable, digest, directory, target), environment


def _directory(server: ServerConfig) -> str:
    """Return the absolute working directory, fixed before approval: the program may change its own afterwards.

    Raises:
        ServerConnectError: the current directory no longer exists. The configured one is not checked.
    """
    try:
        return os.path.abspath(server.cwd or os.curdir)
    except OSError:
        problem = "can't be started: the current directory no longer exists. Change into another one, or set `cwd`."
        raise ServerConnectError(server.name, problem) from None


async def approved_start(server: ServerConfig, approver: Approver, environ: Mapping[str, str]) -> ApprovedStart:
    """Prepare a server and await its approval, which may ask a person. An approver that raises counts as a refusal.

    Raises:
        ServerNotApprovedError: the approver refused, or failed.
        ServerEnvironmentError: a variable is not set.
        ServerConnectError: its command does not exist.
    """
    request, environment = prepare(server, environ)
    approval: Any = None
    try:
        approval = await callback("approver", approver, "approve", "request")(request)
    except BaseException as error:
        if not isinstance(error, Exception) and not is_foreign(error):
            raise
        # The reason names the type only: guest code sees it, and must not see the text of a host's error.
        words = for_error(str(error), environment.secrets)
        _log.warning("The approver failed for server %r with %s: %s", server.name, type(error).__name__, words)
        approval = Approval(False, f"the approver failed with {type(error).__name__}")
    if not isinstance(approval, Approval):
        approval = Approval(False, f"the approver answered with a {type(approval).__name__}, not an Approval")
    if approval.approved is not True:
        raise ServerNotApprovedError(server.name, f"is not approved: {approval.reason or 'the approver refused it'}")
    return ApprovedStart(server, request.executable, request.directory, environment, request)


@asynccontextmanager
async def open_channel(
    start: ApprovedStart, limits: ServerLimits, sign_in: SignIn | None
) -> AsyncGenerator[ServerChannel]:
    """Open an approved server's channel, the only way to one. For stdio, this starts the server's process."""
    server, environment = start.server, start.environment
    if server.transport == "in_process":
        from toolbridge.servers.connection import open_in_process

        opening = open_in_process(server)
    elif server.transport == "stdio":
        from toolbridge.servers.stdio.launch import Launch, open_stdio

        assert start.executable is not None
        launch = Launch(start.executable, server.args, environment.env, start.directory, environment.secrets)
        opening = open_stdio(server.name, launch, limits)
    else:
        from toolbridge.servers.http.transport import open_http, open_sse

        open_by = open_http if server.transport == "http" else open_sse
        secret = environment.client_secret
        opening = open_by(server, environment.headers, limits, sign_in=sign_in, client_secret=secret)
    async with opening as channel:
        yield channel


class SetState(Protocol):
    """Sets a server's state, with an error or, where that is none, a reason."""

    def __call__(self, slot: Slot, state: ServerState, error: str = "", reason: str = "") -> None:
        """Set the state and notify observers."""
        ...


async def run_connection(slot: Slot, attempt: Attempt, connector: Connector) -> None:
    """Run a connection from approval to clean-up; a failure is not raised: it goes to `attempt` and the state."""
    failure: ServerError | None = None
    try:
        with anyio.CancelScope() as scope:
            slot.scope = scope
            if slot.closing:
                scope.cancel()
            try:
                await _open_and_watch(slot, attempt, connector, scope)
            except Exception as error:
                failure = _failure(slot, connector, error)
        if not attempt.succeeded and failure is None:
            failure = _failure(slot, connector, None)
    finally:
        # Also when the whole manager is cancelled: no task may wait for an attempt that is over.
        attempt.fail(failure or ServerClosedError(slot.name, "was closed by the host"))
        closed = slot.closing or connector.is_closed
        slot.clear_connection()
        # A refused respawn quotes the last error, and would otherwise become the last error that it quotes.
        silent = closed or failure is None or isinstance(failure, ServerRespawnError)
        state: ServerState = "closed" if closed else _state_after(failure)
        connector.set_state(slot, state, "" if silent else str(failure), slot.closing_reason)
        slot.end_attempt()
        connector.pool.release(slot)


async def _open_and_watch(slot: Slot, attempt: Attempt, connector: Connector, scope: anyio.CancelScope) -> None:
    """Back off, await approval and a place in the pool, then connect, list and watch it to its end. Raises on failure.

    Host tools need none of it: they are served until cancelled.
    """
    if slot.host_tools is not None:
        await _serve_host_tools(slot, attempt, connector, slot.host_tools)
        return
    await _back_off(slot, connector)
    start = await _approved(slot, attempt, connector)
    await connector.pool.acquire(slot, attempt)
    for warning in start.environment.warnings:
        if warning not in slot.environment_warnings:  # once for each unset variable
            _log.warning("%s", warning)
    slot.environment_warnings = start.environment.warnings
    slot.config_secrets = start.environment.secrets
    slot.start_count += 1
    connector.set_state(slot, "connecting")
    # Importing the SDK takes a good part of a second, and would block the host's other tasks.
    await anyio.to_thread.run_sync(importlib.import_module, "toolbridge.servers.connection")
    from toolbridge.servers.connection import pausable

    scope.deadline = anyio.current_time() + slot.connect_seconds(connector.limits)
    with pausable(scope) as deadline:
        if await _connect_and_watch(slot, attempt, connector, start, deadline):
            await _connect_and_watch(slot, attempt, connector, start, deadline)


async def _approved(slot: Slot, attempt: Attempt, connector: Connector) -> ApprovedStart:
    """Return the approved start, from the approver asked here or from one that a joining task asked.

    Raises:
        ServerError: see `approved_start`.
    """
    if attempt.start is None:
        connector.set_state(slot, "needs_approval")
        start = await attempt.ask(lambda: approved_start(slot.server, connector.approver, connector.environ))
        if start is not None:
            attempt.approve(start)
    assert attempt.start is not None
    return attempt.start


async def _serve_host_tools(slot: Slot, attempt: Attempt, connector: Connector, tools: ToolServer) -> None:
    """Serve host tools until cancelled, without approval: they are the host's own code. Closes them at the end."""
    connection = HostConnection(slot.name, tools)
    try:
        await connector.store_listing(slot, tools.listing(slot.name))
        slot.connection = slot.host_connection = connection
        connector.set_state(slot, "connected")
        attempt.succeed(connection)
        await connection.keep_time()
    finally:
        connection.close()


async def _connect_and_watch(
    slot: Slot, attempt: Attempt, connector: Connector, start: ApprovedStart, deadline: PausableDeadline
) -> bool:
    """Open and list the server, succeed the attempt, and watch it to its end; on failure, fail the attempt and raise.

    True when the server ended at the probe for the newer protocol, and must be started again without it.
    """
    from toolbridge.servers.connection import open_connection
    from toolbridge.servers.failures import EndedAtProbeError, innermost

    limits = connector.limits
    async with open_channel(start, limits, connector.sign_in) as channel:
        slot.channel_end = channel.end
        slot.channel_secrets = channel.secrets
        try:
            async with open_connection(
                slot.name,
                channel,
                connector.requests,
                limits,
                connect_seconds=slot.connect_seconds(limits),
                probe=not slot.is_legacy,
            ) as connection:
                listing = await connection.discover(slot.secrets)
                deadline.lift()
                await connector.store_listing(slot, listing)
                slot.connection = connection  # not before: no tool is called until the exposed tools are known
                connector.set_state(slot, "connected")
                attempt.succeed(connection)
                await connection.wait(lambda: _refresh(slot, connection, connector))
                # Before the channel is closed: ending a stubborn process takes time.
                connector.set_state(slot, "error", slot.ended_message(connection.end_reason()))
        except BaseException as error:
            if isinstance(innermost(error), EndedAtProbeError):
                # Some older servers exit at a first message they don't know. This is no respawn: nothing was called.
                slot.is_legacy = True
                return True
            # Waiting tasks are notified now: ending a stubborn process takes time.
            failure = _failure(slot, connector, error)
            if not isinstance(failure, ServerClosedError):
                connector.set_state(slot, "error", str(failure))
            attempt.fail(failure)
            raise
    return False


async def _back_off(slot: Slot, connector: Connector) -> None:
    """Wait out the exponential backoff before a respawn (at most 2 s; none before the first start).

    Raises:
        ServerRespawnError: a stdio server was respawned too often.
    """
    if slot.server.transport == "stdio" and slot.start_count > connector.limits.respawns:
        problem = f"ended or failed {slot.start_count} times and is not started again until the host closes it"
        raise ServerRespawnError(slot.name, f"{problem}. The last error: {slot.last_error or 'none was reported'}")
    if slot.start_count:
        await anyio.sleep(min(0.1 * 4 ** (slot.start_count - 1), 2.0))


async def _refresh(slot: Slot, connection: Connection, connector: Connector) -> None:
    """List the tools again and store the listing. A failed listing is logged as a warning and keeps the old one."""
    try:
        listing = await connection.discover(slot.secrets, connector.limits.connect_seconds)
    except Exception as error:
        failure = _failure(slot, connector, error)
        slot.last_error = f"Its tools changed and could not be listed again: {failure}"
        _log.warning("%s", slot.last_error)
        return
    await connector.store_listing(slot, listing)


def _failure(slot: Slot, connector: Connector, error: BaseException | None) -> ServerError:
    """Turn an exception into the attempt's `ServerError`; None or a cancellation means a timeout or a close."""
    if isinstance(error, ServerError):
        return error
    if isinstance(error, Exception):
        from toolbridge.servers.failures import connect_failure

        return connect_failure(slot.name, error, end=slot.end_reason(), secrets=slot.secrets)
    in_time = slot.scope is not None and anyio.current_time() < slot.scope.deadline
    if slot.closing or connector.is_closed or in_time:
        return ServerClosedError(slot.name, "was closed by the host")
    problem = f"was not connected and listed within {slot.connect_seconds(connector.limits):g} s"
    end = for_error(slot.end_reason(), slot.secrets, limit=_MAX_END_REASON).rstrip(".")
    problem = f"{problem}: {end}" if end else problem
    if is_package_runner(slot.server.command or ""):
        advice = "A package that is fetched first takes long once: try again, or raise its `connectTimeout`"
    else:
        advice = "If it needs longer, raise its `connectTimeout`"
    return ServerTimeoutError(slot.name, f"{problem}. {advice}")


def _state_after(failure: ServerError | None) -> ServerState:
    """Return the state after a task's end: needs_approval if it was refused, idle if the pool was full, else error."""
    if isinstance(failure, ServerNotApprovedError):
        return "needs_approval"
    return "idle" if isinstance(failure, ConnectionLimitError) else "error"
