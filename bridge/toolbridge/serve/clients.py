"""Who is connected: one client over stdio, one for each HTTP session; 2026-07-28 over HTTP has no sessions."""

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
from toolbridge.serve.fairness import LOOPBACK, Turn
from toolbridge.trust.text.sanitise import for_error

if TYPE_CHECKING:
    from mcp.server.session import ServerSession
    from starlette.datastructures import Headers
    from starlette.types import Scope

    from toolbridge.serve.channels import Context


# Who called one of our tools: whom a run may ask, and where its progress goes.
#
# The caller of the moment is a context variable: what a run does on its way (approvals, permissions) happens in tasks
# that were started from it, and finds the caller there. With none, nobody can be asked.


Action: TypeAlias = Literal["accept", "decline", "cancel"]
Level: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: tuple[Level, ...] = get_args(Level)

_MOST_NEWS = 256


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked through the client."""

    key: str
    """Names what is asked about, digest included: an answer to one question is none to another."""
    message: str
    schema: Mapping[str, Any]
    """The form: a flat JSON Schema, as elicitation has it."""


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """What the person answered."""

    action: Action
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])


NOBODY = FormAnswer("cancel")


@dataclass(frozen=True, slots=True)
class Notification:
    """Something that happened in a run: shown as progress, or as a line of the log."""

    message: str
    level: Level | None = None
    """None for progress."""


ClientKey: TypeAlias = tuple[str, str]
"""A kind of client, and which of them: no text that a client sends can be another's key."""


class ClientChannel(Protocol):
    """The way to the client, as the protocol's era has it."""

    @property
    def has_elicitation(self) -> bool:
        """Whether the client said that it can put questions to a person: the same for as long as a call lasts."""
        ...

    @property
    def can_ask(self) -> bool:
        """Whether it can be asked now."""
        ...

    async def ask(self, question: Question) -> FormAnswer:
        """Ask; whatever goes wrong is no answer."""
        ...

    async def tell(self, news: Notification, number: int) -> None:
        """Pass on what happens. `number` grows."""
        ...


class Client:
    """One client for as long as it is known: a connection, or an HTTP session."""

    def __init__(self, key: ClientKey, peer: str = "") -> None:
        self.key = key
        self.peer = peer
        """The address that it connects from: what is limited for each client is counted by it, not by `key`."""
        self.turn = anyio.Lock()
        """Its person is asked one thing at a time: see `Caller.persons_turn`."""
        self.refused: dict[str, str] = {}
        """Digests that its person said no to, with their servers: they are not asked again about the same, unless the
        model asks for it."""
        self.least_level: Level = "info"
        """Of the lines of the log that it wants."""


class Caller:
    """One call of one of our tools."""

    def __init__(self, client: Client, channel: ClientChannel, *, ask_seconds: float) -> None:
        self.client = client
        self._channel = channel
        self._ask_seconds = ask_seconds
        self.unanswered: set[str] = set()
        """Digests that were asked about without an answer: not again in the same call."""
        self.turn: Turn | None = None
        """Of the program that runs for it."""
        self._asking: set[anyio.CancelScope] = set()
        self._is_over = False
        self._news, self._inbox = anyio.create_memory_object_stream[Notification](_MOST_NEWS)

    @property
    def has_elicitation(self) -> bool:
        """Whether there is a person behind the client who can be asked, if perhaps not now."""
        return self._channel.has_elicitation

    @property
    def can_ask(self) -> bool:
        """Whether a person can be asked now."""
        return self._channel.can_ask and not self._is_over

    @asynccontextmanager
    async def persons_turn(self) -> AsyncGenerator[None]:
        """The person is asked by nobody else meanwhile, and the program's place is free for others: see `go_on`."""
        with nullcontext() if self.turn is None else self.turn.given_up():
            async with self.client.turn:
                yield

    async def go_on(self) -> None:
        """Take the program's place back, outside the person's turn: who waits for one of the two never holds the other.

        For the program's own tasks. Others may wait for that of a connection, and hold places: there, the program goes
        on without one.
        """
        if self.turn is not None:
            await self.turn.take()

    async def ask(self, question: Question) -> FormAnswer:
        """The person's answer; `cancel` when there is none in time, or the call is over. In the person's turn only."""
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

    def tell(self, news: Notification) -> None:
        """Pass on what happens, if the client wants it and keeps up."""
        if news.level is not None and LEVELS.index(news.level) < LEVELS.index(self.client.least_level):
            return
        with suppress(anyio.WouldBlock, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._news.send_nowait(news)

    async def deliver(self) -> None:
        """Passes news on until the call is over."""
        number = 0
        with suppress(anyio.ClosedResourceError):  # closed while we waited: the call is over
            async for news in self._inbox:
                number += 1
                await self._channel.tell(news, number)

    def finish(self) -> None:
        """No more news. What was told is still delivered."""
        self._news.close()

    def close(self) -> None:
        """The call is over: nobody waits for its questions any more, wherever they are asked from."""
        self._is_over = True
        if self.turn is not None:
            self.turn.end()
        self._news.close()
        self._inbox.close()
        for scope in list(self._asking):
            scope.cancel()


_current: ContextVar[Caller | None] = ContextVar("toolbridge_caller", default=None)


def current_caller() -> Caller | None:
    """On whose behalf this task works."""
    return _current.get()


def set_caller(caller: Caller) -> None:
    """From here on this task, and those that it starts, work for this caller."""
    _current.set(caller)


# What happens in runs, told to their callers: progress for each call, and lines of a log.


_CallEvent: TypeAlias = CallStarted | CallProgressed | CallEnded | DecisionMade


class Watch:
    """An observer. `on_change` is called when modules may have changed; `secrets_of` are a server's."""

    def __init__(self, on_change: Callable[[], None], secrets_of: Callable[[str], frozenset[str]]) -> None:
        self._on_change = on_change
        self._secrets_of = secrets_of
        self._callers: dict[str, Caller] = {}
        self._servers: dict[str, Counter[Caller]] = {}
        self.runs = self.failed_runs = self.calls = self.failed_calls = 0

    @property
    def running(self) -> int:
        """How many programs run now."""
        return len(self._callers)

    def callers_of(self, server: str) -> Counter[Caller]:
        """Who has calls under way at a server."""
        return self._servers.get(server, Counter())

    def __call__(self, event: Event) -> None:
        """Is told of everything, on the event loop's thread."""
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
                self._tell(caller, event)
            if isinstance(event, RunEnded):
                self._callers.pop(event.run, None)

    def _count(self, event: _CallEvent | RunEnded) -> None:
        if isinstance(event, CallEnded):
            self.calls += 1
            self.failed_calls += event.outcome != "ok"
        elif isinstance(event, RunEnded):
            self.failed_runs += event.outcome != "ok"

    def _tell(self, caller: Caller, event: _CallEvent | RunEnded) -> None:
        if isinstance(event, CallStarted):
            self._servers.setdefault(event.server, Counter())[caller] += 1
            caller.tell(Notification(f"{_name(event)} …"))
        elif isinstance(event, CallProgressed):
            words = for_error(event.message, self._secrets_of(event.server), limit=200)
            caller.tell(Notification(f"{_name(event)}: {_amount(event)}{' ' if words else ''}{words}"))
        elif isinstance(event, CallEnded):
            self._ended(caller, event.server)
            words = f"{_name(event)}: {event.outcome}, {event.seconds:.1f} s"
            caller.tell(Notification(words))
            if event.outcome != "ok":
                caller.tell(Notification(words, "notice"))
        elif isinstance(event, DecisionMade):
            if not event.allowed:
                caller.tell(Notification(f"{_name(event)} was denied ({for_error(event.rule, limit=200)})", "warning"))
        else:
            caller.tell(Notification(f"run {event.outcome}: {event.calls} calls, {event.seconds:.1f} s", "debug"))

    def _ended(self, caller: Caller, server: str) -> None:
        counts = self._servers.get(server)
        if counts is not None:
            counts[caller] -= 1
            if counts[caller] <= 0:
                del counts[caller]
            if not counts:
                del self._servers[server]


def _name(event: _CallEvent) -> str:
    tool = for_error(event.tool, limit=100)
    return f"{event.server}.{tool}" if event.server else tool


def _amount(event: CallProgressed) -> str:
    return f"{event.done:g}" if event.total is None else f"{event.done:g} of {event.total:g}"


STDIO: ClientKey = ("stdio", "")
HTTP: ClientKey = ("http", "")
"""Every client of 2026-07-28 over HTTP: they are told apart by what only they were given, such as a session's id."""
OPENING: ClientKey = ("opening", "")
"""Requests that come before there is a session."""
GONE = "toolbridge.gone"
"""Where an HTTP request's scope has the event of its client's going away."""
SESSION_HEADER = "mcp-session-id"
_VERSION_HEADER = "mcp-protocol-version"
_MOST = 10_000

_log = logging.getLogger("toolbridge")


class Clients:
    """The clients that are known, and how each can be told of changes."""

    def __init__(self) -> None:
        self._known: OrderedDict[ClientKey, tuple[Client, ServerSession]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, context: Context) -> Client:
        """The client of a request."""
        request: Any = context.request
        key, peer = (STDIO, "") if request is None else (request_key(request.headers), peer_of(request.scope))
        if key == HTTP:
            client = Client(key, peer)
            client.least_level = "debug"  # there, each request says what it wants, and the SDK obeys
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
        """It is gone."""
        self._known.pop(key, None)

    async def tell_changed(self) -> None:
        """Tell clients of the handshake's era that the tools changed. The others listen for themselves."""
        for key, (_, session) in list(self._known.items()):
            if session.protocol_version in MODERN_PROTOCOL_VERSIONS:
                continue
            try:
                await session.send_tool_list_changed()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                self.forget(key)


def gone_event(context: Context) -> anyio.Event | None:
    """Set when the client of an HTTP request no longer waits for its answer."""
    request: Any = context.request
    return None if request is None else request.scope.get(GONE)


def request_key(headers: Headers) -> ClientKey:
    """Whose an HTTP request says it is, by the header that the SDK tells the eras apart by.

    The SDK refuses a session that it did not open, or that has ended.
    """
    version = headers.get(_VERSION_HEADER)
    if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
        return HTTP  # there are no sessions in 2026-07-28: whoever names one there has made it up
    session = headers.get(SESSION_HEADER)
    return ("session", session) if session else OPENING


def peer_of(scope: Scope) -> str:
    """The address that a request comes from."""
    client: tuple[str, int] | None = scope.get("client")
    return peer_at(client[0] if client else "")


def peer_at(host: str) -> str:
    """The peer at an address: of IPv6 the /64, since one host has all of those, and one for all of loopback."""
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
