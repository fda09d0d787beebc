"""The life of one connection: respawn rule, approval, start, negotiation, listing, watching, clean-up.

It runs in one task from beginning to end (see `manager`). The SDK is imported only once a server is approved.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread

from toolbridge.config.server_config import ServerConfig
from toolbridge.config.server_limits import ServerLimits
from toolbridge.errors import (
    ConnectionLimitError,
    ServerClosedError,
    ServerError,
    ServerNotApprovedError,
    ServerRespawnError,
    ServerTimeoutError,
)
from toolbridge.servers.attempt import Attempt
from toolbridge.servers.connection_places import ConnectionPlaces
from toolbridge.servers.events import ServerState
from toolbridge.servers.listing import Listing
from toolbridge.servers.own_server import ToolServer
from toolbridge.servers.pausable_deadline import PausableDeadline, pausable
from toolbridge.servers.server_requests import ServerRequests
from toolbridge.servers.slot import Slot
from toolbridge.servers.start import Start, approved_start, open_channel
from toolbridge.trust.approver import Approver
from toolbridge.trust.package_runners import is_package_runner
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from toolbridge.servers.connection import Connection
    from toolbridge.servers.sign_in import SignIn

_log = logging.getLogger("toolbridge")
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
    from toolbridge.servers.own_connection import OwnConnection

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
