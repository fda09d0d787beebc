"""The life of one connection: respawn rule, approval, start, negotiation, listing, watching, clean-up.

It runs in one task from beginning to end (see `manager`). The SDK is imported only once a server is approved.
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
from toolbridge.servers.listing import Listing
from toolbridge.servers.requests import ServerRequests
from toolbridge.tools.binding import OnProgress
from toolbridge.tools.server import ToolServer
from toolbridge.trust.approval.approver import Approval, ApprovalRequest, Approver
from toolbridge.trust.approval.warnings import is_package_runner
from toolbridge.trust.text.sanitise import for_error

if TYPE_CHECKING:
    from toolbridge.servers.auth.sign_in import SignIn
    from toolbridge.servers.connection import Channel, Connection, PausableDeadline
    from toolbridge.servers.pool import ConnectionPlaces, Slot


# One try to connect a server: who waits for it, who may say yes to it, and what it came to.


Place: TypeAlias = Literal["if_free", "make_room", "in_turn"]
"""How much one of the connections there may be is wanted: one that is free, one that an idle server gives up, or one
that others are still on their way to, too."""
_ORDER: tuple[Place, ...] = get_args(Place)


class Attempt:
    """One try to connect, for which any number of tasks may wait.

    It runs in the context of the task that began it, and so does its question whether the server may be connected. Who
    joins it with somebody else to ask does so: the first yes holds for all, and a no for whoever got it.
    """

    def __init__(self, place: Place = "make_room", *, asker: object = None, start: Start | None = None) -> None:
        self.asker = asker
        """Who is asked by the task that began it: see `AsksSomebody`."""
        self.place: Place = place
        self.start = start
        """What may be opened: None until somebody has said so."""
        self.over = anyio.Event()
        """Set when its task has ended, with everything cleaned up."""
        self.decided = anyio.Event()
        """Set when it is known whether the server may be connected: nobody is asked any more."""
        self._askings: set[anyio.CancelScope] = set()
        self._done = anyio.Event()
        self._connection: Connected | None = None
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

    def want(self, place: Place) -> None:
        """Somebody joins who wants a connection this much."""
        if _ORDER.index(place) > _ORDER.index(self.place):
            self.place = place

    async def ask(self, question: Callable[[], Awaitable[Start]]) -> Start | None:
        """What a question is answered with; None when somebody else has said yes meanwhile.

        Raises:
            ServerError: whatever the question raises, for the one who asked.
        """
        with anyio.CancelScope() as asking:
            self._askings.add(asking)
            try:
                return await question()
            except ServerError:
                if self.start is None:
                    raise
            finally:
                self._askings.discard(asking)
        return None

    def approve(self, start: Start) -> None:
        """Somebody said yes: the others need not answer any more."""
        if self.start is None:
            self.start = start
            self.decided.set()
            for asking in self._askings:
                asking.cancel()

    def succeed(self, connection: Connected) -> None:
        """Give the connection to those who wait."""
        self._connection = connection
        self._settle()

    def fail(self, error: ServerError) -> None:
        """Give an error to those who wait; too late after a success."""
        if not self.is_settled:
            self._error = error
            self._settle()

    def _settle(self) -> None:
        self.decided.set()
        self._done.set()

    async def outcome(self) -> Connected:
        """Wait for the connection.

        Raises:
            ServerError: the attempt failed.
        """
        await self._done.wait()
        if self._connection is None:
            assert self._error is not None
            raise self._error.with_traceback(None)  # not with the last waiter's
        return self._connection


# What the manager needs of a live connection, be it to another process or to functions of the host's own.


class CallNotSentError(Exception):
    """The server was gone before it could have seen a call. Sending it to the next one is no second call."""


class Connected(Protocol):
    """A live connection to one server."""

    @property
    def ended(self) -> bool:
        """Whether nothing that is sent now would reach it."""
        ...

    async def wait_for_end(self) -> None:
        """Until its end is known."""
        ...

    def end_reason(self) -> str:
        """Why it ended, in the server's words or the system's; "" if nobody said."""
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
        """The raw result of a call.

        Raises:
            ServerError: there is no result.
            CallNotSentError: the server was gone before it could have seen the call.
        """
        ...


# What a connection's own task is woken for.


class News:
    """Set by whoever notices something; waited for by one task."""

    def __init__(self) -> None:
        self.is_changed = False
        self.is_doubted = False
        self._event = anyio.Event()

    def change(self) -> None:
        """The server says that its tools changed."""
        self.is_changed = True
        self._event.set()

    def doubt(self) -> None:
        """A call got no answer in time."""
        self.is_doubted = True
        self._event.set()

    async def wait_or(self, end: anyio.Event) -> None:
        """Until there is news, or the end."""
        if self._event.is_set() and not (self.is_changed or self.is_doubted):
            self._event = anyio.Event()
        event = self._event
        async with anyio.create_task_group() as tasks:

            async def first(wanted: anyio.Event) -> None:
                await wanted.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(first, event)
            tasks.start_soon(first, end)


# SECURITY: the one way in which a server is started or reached: prepared, approved, then exactly that is opened.
#
# What the approver sees is the snapshot that is opened: nothing is read again in between (T23).


_log = logging.getLogger("toolbridge")


@dataclass(frozen=True, slots=True)
class Start:
    """A server that was approved, with all that is needed to open it."""

    server: ServerConfig
    executable: str | None
    directory: str | None
    environment: ResolvedEnvironment
    request: ApprovalRequest
    """What was approved."""


def prepare(server: ServerConfig, environ: Mapping[str, str]) -> tuple[ApprovalRequest, ResolvedEnvironment]:
    """The snapshot that would be opened, and what to ask about it. Nothing is started or reached.

    Raises:
        ServerEnvironmentError: a variable is not set.
        ServerConnectError: its command is not there.
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
    """Where it is started. Fixed before approval: this program may change its own directory in between."""
    try:
        return os.path.abspath(server.cwd or os.curdir)
    except OSError:
        problem = "can't be started: the current directory no longer exists. Change into another one, or set `cwd`."
        raise ServerConnectError(server.name, problem) from None


async def approved_start(server: ServerConfig, approver: Approver, environ: Mapping[str, str]) -> Start:
    """Prepare a server and ask for approval.

    Raises:
        ServerNotApprovedError: the approver refused, or failed.
        ServerEnvironmentError: a variable is not set.
        ServerConnectError: its command is not there.
    """
    request, environment = prepare(server, environ)
    approval: Any = None
    try:
        approval = await callback("approver", approver, "approve", "request")(request)
    except BaseException as error:
        if not isinstance(error, Exception) and not is_foreign(error):
            raise
        # The type only: programs are told the reason, and the text of an error of the host is nothing for them.
        words = for_error(str(error), environment.secrets)
        _log.warning("The approver failed for server %r with %s: %s", server.name, type(error).__name__, words)
        approval = Approval(False, f"the approver failed with {type(error).__name__}")
    if not isinstance(approval, Approval):
        approval = Approval(False, f"the approver answered with a {type(approval).__name__}, not an Approval")
    if approval.approved is not True:
        raise ServerNotApprovedError(server.name, f"is not approved: {approval.reason or 'the approver refused it'}")
    return Start(server, request.executable, request.directory, environment, request)


@asynccontextmanager
async def open_channel(start: Start, limits: ServerLimits, sign_in: SignIn | None) -> AsyncGenerator[Channel]:
    """Open the channel of an approved server. There is no other way to one."""
    server = start.server
    if server.transport == "in_process":
        from toolbridge.servers.transports import open_in_process

        opening = open_in_process(server)
    elif server.transport == "stdio":
        from toolbridge.servers.stdio.launch import Launch
        from toolbridge.servers.transports import open_stdio

        assert start.executable is not None
        environment = start.environment
        launch = Launch(start.executable, server.args, environment.env, start.directory, environment.secrets)
        opening = open_stdio(server.name, launch, limits)
    else:
        from toolbridge.servers.http.transport import open_http, open_sse

        open_by = open_http if server.transport == "http" else open_sse
        secret = start.environment.client_secret
        opening = open_by(server, start.environment.headers, limits, sign_in=sign_in, client_secret=secret)
    async with opening as channel:
        yield channel


_END_WORDS = 300


class SetState(Protocol):
    """Takes notice of a server's new state."""

    def __call__(self, slot: Slot, state: ServerState, error: str = "", reason: str = "") -> None:
        """With the error, or the reason where that is none."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What connections need from their manager."""

    limits: ServerLimits
    approver: Approver
    requests: ServerRequests
    sign_in: SignIn | None
    environ: Mapping[str, str]
    is_closed: Callable[[], bool]
    places: ConnectionPlaces
    keep_listing: Callable[[Slot, Listing], Awaitable[None]]
    """Takes over what a server lists, as far as its pins allow; a person may be asked."""
    set_state: SetState


async def live(slot: Slot, attempt: Attempt, around: Surroundings) -> None:
    """Everything from the first step to the last, whatever happens in between; raises nothing but cancellation."""
    failure: ServerError | None = None
    try:
        with anyio.CancelScope() as scope:
            slot.scope = scope
            if slot.closing:
                scope.cancel()
            try:
                await _open_and_watch(slot, attempt, around, scope)
            except Exception as error:
                failure = _why(slot, around, error)
        if not attempt.succeeded and failure is None:
            failure = _why(slot, around, None)
    finally:
        # Also when the whole manager is cancelled: nobody waits for an attempt that is over.
        attempt.fail(failure or ServerClosedError(slot.name, "was closed by the host"))
        closed = slot.closing or around.is_closed()
        slot.release()
        # A refused respawn quotes the last error, and would otherwise become the last error that it quotes.
        silent = closed or failure is None or isinstance(failure, ServerRespawnError)
        state: ServerState = "closed" if closed else _state_after(failure)
        around.set_state(slot, state, "" if silent else str(failure), slot.closing_reason)
        slot.settle()
        around.places.give_back(slot)


async def _open_and_watch(slot: Slot, attempt: Attempt, around: Surroundings, scope: anyio.CancelScope) -> None:
    if slot.own_tools is not None:
        await _offer(slot, attempt, around, slot.own_tools)
        return
    await _wait_for_respawn(slot, around)
    start = await _approved(slot, attempt, around)
    await around.places.take(slot, attempt)
    _warn_of_unset(slot, start)
    slot.own_secrets = start.environment.secrets
    slot.started += 1
    around.set_state(slot, "connecting")
    # The SDK takes a good part of a second to import, which would hold up the host's other tasks.
    await anyio.to_thread.run_sync(importlib.import_module, "toolbridge.servers.connection")
    from toolbridge.servers.connection import pausable

    scope.deadline = anyio.current_time() + slot.connect_seconds(around.limits)
    with pausable(scope) as deadline:
        if await _serve(slot, attempt, around, start, deadline):
            await _serve(slot, attempt, around, start, deadline)


async def _approved(slot: Slot, attempt: Attempt, around: Surroundings) -> Start:
    """Whoever says yes first: the one who is asked here, or one who was asked by a task that joined."""
    if attempt.start is None:
        around.set_state(slot, "needs_approval")
        start = await attempt.ask(lambda: approved_start(slot.server, around.approver, around.environ))
        if start is not None:
            attempt.approve(start)
    assert attempt.start is not None
    return attempt.start


def _warn_of_unset(slot: Slot, start: Start) -> None:
    """Once for each variable: the person who forgot it looks for the fault elsewhere."""
    for words in start.environment.warnings:
        if words not in slot.environment_warnings:
            _log.warning("%s", words)
    slot.environment_warnings = start.environment.warnings


async def _offer(slot: Slot, attempt: Attempt, around: Surroundings, tools: ToolServer) -> None:
    """The host's own tools, until the host closes them: they are its own code, which runs without anybody's leave."""
    from toolbridge.tools.server import OwnConnection

    connection = OwnConnection(slot.name, tools)
    try:
        await around.keep_listing(slot, tools.listing(slot.name))
        slot.connection = slot.own_connection = connection
        around.set_state(slot, "connected")
        attempt.succeed(connection)
        await connection.keep_time()
    finally:
        connection.close()


async def _serve(slot: Slot, attempt: Attempt, around: Surroundings, start: Start, deadline: PausableDeadline) -> bool:
    """One start of the server, until it ends. True when it should be started again for the older handshake."""
    from toolbridge.servers.connection import EndedAtProbeError, open_connection
    from toolbridge.servers.failures import innermost

    async with open_channel(start, around.limits, around.sign_in) as channel:
        slot.channel_end = channel.end
        slot.channel_secrets = channel.secrets
        try:
            async with open_connection(
                slot.name,
                channel,
                around.requests,
                around.limits,
                connect_seconds=slot.connect_seconds(around.limits),
                probe=not slot.is_old,
            ) as connection:
                listing = await connection.discover(slot.secrets)
                deadline.lift()
                await around.keep_listing(slot, listing)
                slot.connection = connection  # not before: nothing is called until it is known what may be
                around.set_state(slot, "connected")
                attempt.succeed(connection)
                await connection.wait(lambda: _refresh(slot, connection, around))
                # Before the channel is closed: a stubborn process takes its time.
                around.set_state(slot, "error", slot.end_words(connection.end_reason()))
        except BaseException as error:
            if isinstance(innermost(error), EndedAtProbeError):
                # Some older servers end when the first message is not theirs. This is no respawn: nothing was called.
                slot.is_old = True
                return True
            # Those who wait are told now: closing a stubborn process takes its time.
            failure = _why(slot, around, error)
            if not isinstance(failure, ServerClosedError):
                around.set_state(slot, "error", str(failure))
            attempt.fail(failure)
            raise
    return False


async def _wait_for_respawn(slot: Slot, around: Surroundings) -> None:
    """Starts after the first are counted, and wait longer each time."""
    if slot.server.transport == "stdio" and slot.started > around.limits.respawns:
        problem = f"ended or failed {slot.started} times and is not started again until the host closes it"
        raise ServerRespawnError(slot.name, f"{problem}. The last error: {slot.last_error or 'none was reported'}")
    if slot.started:
        await anyio.sleep(min(0.1 * 4 ** (slot.started - 1), 2.0))


async def _refresh(slot: Slot, connection: Connection, around: Surroundings) -> None:
    """List again after a change. A failure costs the freshness, not the connection."""
    try:
        listing = await connection.discover(slot.secrets, around.limits.connect_seconds)
    except Exception as error:
        failure = _why(slot, around, error)
        slot.last_error = f"Its tools changed and could not be listed again: {failure}"
        _log.warning("%s", slot.last_error)
        return
    await around.keep_listing(slot, listing)


def _why(slot: Slot, around: Surroundings, error: BaseException | None) -> ServerError:
    """Why an attempt has no connection; being cancelled means that the time was up, or that the host closed it."""
    if isinstance(error, ServerError):
        return error
    if isinstance(error, Exception):
        from toolbridge.servers.failures import connect_failure

        return connect_failure(slot.name, error, end=slot.end_reason(), secrets=slot.secrets)
    in_time = slot.scope is not None and anyio.current_time() < slot.scope.deadline
    if slot.closing or around.is_closed() or in_time:
        return ServerClosedError(slot.name, "was closed by the host")
    problem = f"was not connected and listed within {slot.connect_seconds(around.limits):g} s"
    end = for_error(slot.end_reason(), slot.secrets, limit=_END_WORDS).rstrip(".")
    problem = f"{problem}: {end}" if end else problem
    return ServerTimeoutError(slot.name, f"{problem}. {_how_to_wait(slot.server)}")


def _how_to_wait(server: ServerConfig) -> str:
    if is_package_runner(server.command or ""):
        return "A package that is fetched first takes long once: try again, or raise its `connectTimeout`"
    return "If it needs longer, raise its `connectTimeout`"


def _state_after(failure: ServerError | None) -> ServerState:
    """A server's state once its task is over and the host did not close it."""
    if isinstance(failure, ServerNotApprovedError):
        return "needs_approval"
    return "idle" if isinstance(failure, ConnectionLimitError) else "error"
