"""Clients and their calls: one client over stdio, one per HTTP session; HTTP has no sessions in 2026-07-28."""

from __future__ import annotations

import ipaddress
import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

import anyio
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from toolbridge.events import (
    CallEnded,
    CallProgressed,
    CallStarted,
    DecisionMade,
    Event,
    RunEnded,
    RunStarted,
    StateChanged,
    ToolsChanged,
)
from toolbridge.serve.fairness import LOOPBACK, RunPermit
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from mcp.server.session import ServerSession
    from starlette.datastructures import Headers
    from starlette.types import Scope

    from toolbridge.serve.channels import Context


# The caller of a tool: the client to ask, and the receiver of progress notifications.
# #
# # A context variable holds the current caller: a run's approvals and permissions are decided in tasks that inherit it.
# # Without a caller, there is no person to ask.


Action: TypeAlias = Literal["accept", "decline", "cancel"]
Level: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: tuple[Level, ...] = get_args(Level)

_MOST_NEWS = 256


@dataclass(frozen=True, slots=True)
class Question:
    """A form for a person."""

    key: str
    """Identifies the question by its subject's digest: an answer to one question never answers another."""
    message: str
    schema: Mapping[str, Any]
    """The form: a flat JSON Schema, as elicitation requires."""


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """A person's answer to a question."""

    action: Action
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])


NOBODY = FormAnswer("cancel")


@dataclass(frozen=True, slots=True)
class Notification:
    """A progress or log notification about a run."""

    message: str
    level: Level | None = None
    """None for progress."""


ClientKey: TypeAlias = tuple[str, str]
"""A kind of client and an identity within it: no client can forge another's key."""


class ClientChannel(Protocol):
    """The channel to a client; one implementation per protocol version."""

    @property
    def has_elicitation(self) -> bool:
        """Whether the client announced elicitation; constant during a call."""
        ...

    @property
    def can_ask(self) -> bool:
        """Returns whether a question can be asked now."""
        ...

    async def ask(self, question: Question) -> FormAnswer:
        """Asks the client's person and waits for the answer; every failure counts as `cancel`."""
        ...

    async def notify(self, news: Notification, number: int) -> None:
        """Sends a notification; `number` increases from one to the next. Never raises for a client that is gone."""
        ...


class Client:
    """One client: a connection, or an HTTP session."""

    def __init__(self, key: ClientKey, peer: str = "") -> None:
        self.key = key
        self.peer = peer
        """Its address. Limits per client are counted by it, not by `key`."""
        self.question_lock = anyio.Lock()
        """Serialises questions to its person: see `Caller.question_lock`."""
        self.refused: dict[str, str] = {}
        """Digest → server of refused approvals: not asked again, unless the model requests the approval."""
        self.least_level: Level = "info"
        """The minimum level of log notifications."""


class Caller:
    """One call of one of our tools."""

    def __init__(self, client: Client, channel: ClientChannel, *, ask_seconds: float) -> None:
        self.client = client
        self._channel = channel
        self._ask_seconds = ask_seconds
        self.unanswered: set[str] = set()
        """Digests whose question was not answered in this call: not asked again."""
        self.permit: RunPermit | None = None
        """The run permit of its program."""
        self._asking: set[anyio.CancelScope] = set()
        self._is_over = False
        self._news, self._inbox = anyio.create_memory_object_stream[Notification](_MOST_NEWS)

    @property
    def has_elicitation(self) -> bool:
        """Returns whether the client announced elicitation; its person may be unreachable now."""
        return self._channel.has_elicitation

    @property
    def can_ask(self) -> bool:
        """Returns whether its person can be asked now: not after the call is over."""
        return self._channel.can_ask and not self._is_over

    @asynccontextmanager
    async def question_lock(self) -> AsyncGenerator[None]:
        """Waits for and holds the client's question lock; releases the run permit, so that other programs run.

        The permit stays released afterwards: call `resume` to get it back.
        """
        with nullcontext() if self.permit is None else self.permit.released():
            async with self.client.question_lock:
                yield

    async def resume(self) -> None:
        """Waits for the run permit again, after the question lock is released; does nothing if the call has no permit.

        For the program's own tasks. A connect task is shared with callers that hold permits: it continues without.
        """
        if self.permit is not None:
            await self.permit.take()

    async def ask(self, question: Question) -> FormAnswer:
        """Asks the client's person; returns `NOBODY` on timeout, at the call's end, or if nobody can be asked now.

        Call it within `question_lock`.
        """
        if not self.can_ask:
            return NOBODY
        answer = NOBODY
        with anyio.move_on_after(self._ask_seconds) as scope:
            self._asking.add(scope)
            try:
                answer = await self._channel.ask(question)
            finally:
                self._asking.discard(scope)
        return answer

    def notify(self, news: Notification) -> None:
        """Queues a notification for `deliver`; drops it below the client's level, at 256 queued, or after the call."""
        if news.level is not None and LEVELS.index(news.level) < LEVELS.index(self.client.least_level):
            return
        with suppress(anyio.WouldBlock, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._news.send_nowait(news)

    async def deliver(self) -> None:
        """Sends queued notifications one by one until `finish` or `close` is called."""
        number = 0
        with suppress(anyio.ClosedResourceError):  # closed during the wait: the call is over
            async for news in self._inbox:
                number += 1
                await self._channel.notify(news, number)

    def finish(self) -> None:
        """Refuses further notifications; `deliver` still sends queued ones, and then returns."""
        self._news.close()

    def close(self) -> None:
        """Ends the call: cancels its open questions, releases its run permit for good, drops queued notifications."""
        self._is_over = True
        if self.permit is not None:
            self.permit.end()
        self._news.close()
        self._inbox.close()
        for scope in list(self._asking):
            scope.cancel()


_current: ContextVar[Caller | None] = ContextVar("toolbridge_caller", default=None)


def current_caller() -> Caller | None:
    """Returns the caller of the current task; None outside of calls."""
    return _current.get()


def set_caller(caller: Caller) -> None:
    """Sets the caller of the current task and of tasks started from it."""
    _current.set(caller)


# Events of runs, sent to their callers as progress and log notifications.


_CallEvent: TypeAlias = CallStarted | CallProgressed | CallEnded | DecisionMade


class Watch:
    """Observer: counts runs and calls, and notifies callers. `on_change` fires when modules may have changed."""

    def __init__(self, on_change: Callable[[], None], secrets_of: Callable[[str], frozenset[str]]) -> None:
        self._on_change = on_change
        self._secrets_of = secrets_of
        self._callers: dict[str, Caller] = {}
        self._servers: dict[str, Counter[Caller]] = {}
        self.runs = self.failed_runs = self.calls = self.failed_calls = 0

    @property
    def running(self) -> int:
        """Returns the number of programs that run for callers."""
        return len(self._callers)

    def callers_of(self, server: str) -> Counter[Caller]:
        """Returns the callers with calls in progress at a server, with the number of calls of each."""
        return self._servers.get(server, Counter())

    def __call__(self, event: Event) -> None:
        """Counts an event, notifies its run's caller, and calls `on_change` for changes of servers."""
        if isinstance(event, RunStarted):
            self.runs += 1
            caller = current_caller()
            if caller is not None:
                self._callers[event.run] = caller
        elif isinstance(event, (ToolsChanged, StateChanged)):
            self._on_change()
        elif isinstance(event, (CallStarted, CallProgressed, CallEnded, DecisionMade, RunEnded)):
            caller = self._callers.get(event.run)
            self._count(event)
            if caller is not None:
                self._notify_caller(caller, event)
            if isinstance(event, RunEnded):
                self._callers.pop(event.run, None)

    def _count(self, event: _CallEvent | RunEnded) -> None:
        """Updates the totals of calls and failed runs."""
        if isinstance(event, CallEnded):
            self.calls += 1
            self.failed_calls += event.outcome != "ok"
        elif isinstance(event, RunEnded):
            self.failed_runs += event.outcome != "ok"

    def _notify_caller(self, caller: Caller, event: _CallEvent | RunEnded) -> None:
        """Tells a caller of an event, failures and denials as log messages too; keeps count of its calls by server."""
        if isinstance(event, CallStarted):
            self._servers.setdefault(event.server, Counter())[caller] += 1
            caller.notify(Notification(f"{_name(event)} …"))
        elif isinstance(event, CallProgressed):
            words = for_error(event.message, self._secrets_of(event.server), limit=200)
            caller.notify(Notification(f"{_name(event)}: {_amount(event)}{' ' if words else ''}{words}"))
        elif isinstance(event, CallEnded):
            self._ended(caller, event.server)
            words = f"{_name(event)}: {event.outcome}, {event.seconds:.1f} s"
            caller.notify(Notification(words))
            if event.outcome != "ok":
                caller.notify(Notification(words, "notice"))
        elif isinstance(event, DecisionMade):
            if not event.allowed:
                caller.notify(
                    Notification(f"{_name(event)} was denied ({for_error(event.rule, limit=200)})", "warning")
                )
        else:
            caller.notify(Notification(f"run {event.outcome}: {event.calls} calls, {event.seconds:.1f} s", "debug"))

    def _ended(self, caller: Caller, server: str) -> None:
        """Uncounts one call of a caller at a server."""
        counts = self._servers.get(server)
        if counts is not None:
            counts[caller] -= 1
            if counts[caller] <= 0:
                del counts[caller]
            if not counts:
                del self._servers[server]


def _name(event: _CallEvent) -> str:
    """Returns `server.tool`, the tool's name sanitised."""
    tool = for_error(event.tool, limit=100)
    return f"{event.server}.{tool}" if event.server else tool


def _amount(event: CallProgressed) -> str:
    """Returns `3`, or `3 of 10` if the total is known."""
    return f"{event.done:g}" if event.total is None else f"{event.done:g} of {event.total:g}"


STDIO: ClientKey = ("stdio", "")
HTTP: ClientKey = ("http", "")
"""All clients of 2026-07-28 over HTTP: identified by secrets that only they hold, such as a session's id."""
OPENING: ClientKey = ("opening", "")
"""Requests before there is a session."""
GONE = "toolbridge.gone"
"""Scope key of an HTTP request's disconnect event."""
SESSION_HEADER = "mcp-session-id"
_VERSION_HEADER = "mcp-protocol-version"
_MOST = 10_000

_log = logging.getLogger("toolbridge")


class Clients:
    """The known clients and their SDK sessions; LRU eviction above a cap."""

    def __init__(self) -> None:
        self._known: OrderedDict[ClientKey, tuple[Client, ServerSession]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, context: Context) -> Client:
        """Returns the client of a request and registers it; above 10,000, the least recently used client is dropped.

        Clients of 2026-07-28 over HTTP have no identity: each of their requests gets a new, unregistered client.
        """
        request: Any = context.request
        key, peer = (STDIO, "") if request is None else (request_key(request.headers), peer_of(request.scope))
        if key == HTTP:
            client = Client(key, peer)
            client.least_level = "debug"  # each request states its level, and the SDK filters by it
            return client
        known = self._known.get(key)
        client = known[0] if known else Client(key, peer)
        if not known and context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            client.least_level = "debug"
        self._known[key] = client, context.session
        self._known.move_to_end(key)
        if len(self._known) > _MOST:
            self._known.popitem(last=False)
        return client

    def forget(self, key: ClientKey) -> None:
        """Removes a client, if it is known."""
        self._known.pop(key, None)

    async def notify_changed(self) -> None:
        """Notifies clients of protocol ≤ 2025-11 of changed tools (others subscribe); removes disconnected ones."""
        for key, (_, session) in list(self._known.items()):
            if session.protocol_version in MODERN_PROTOCOL_VERSIONS:
                continue
            try:
                await session.send_tool_list_changed()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                self.forget(key)


def gone_event(context: Context) -> anyio.Event | None:
    """Returns the event that an HTTP request's disconnect sets; None over stdio."""
    request: Any = context.request
    return None if request is None else request.scope.get(GONE)


def request_key(headers: Headers) -> ClientKey:
    """Returns the client key that an HTTP request claims, by the header that tells protocol versions apart.

    It is not verified: the SDK refuses unknown and ended sessions.
    """
    version = headers.get(_VERSION_HEADER)
    if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
        return HTTP  # 2026-07-28 has no sessions: a session id there is made up
    session = headers.get(SESSION_HEADER)
    return ("session", session) if session else OPENING


def peer_of(scope: Scope) -> str:
    """Returns the peer of an HTTP request, as `peer_at` does; empty if it is unknown."""
    client: tuple[str, int] | None = scope.get("client")
    return peer_at(client[0] if client else "")


def peer_at(host: str) -> str:
    """Returns the peer of an IP address: the /64 of IPv6, as one host has it all; one peer for all of loopback.

    Empty for what is no IP address.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return LOOPBACK
    is_one_host = isinstance(address, ipaddress.IPv4Address)
    return str(address if is_one_host else ipaddress.ip_network((address, 64), strict=False))
