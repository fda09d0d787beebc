"""Who called one of our tools: whom a run may ask, and where its progress goes.

The caller of the moment is a context variable: what a run does on its way (approvals, permissions) happens in tasks
that were started from it, and finds the caller there. With none, nobody can be asked.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, get_args

import anyio

from toolbridge.serve.turns import Turn

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
class Answer:
    """What the person answered."""

    action: Action
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])


NOBODY = Answer("cancel")


@dataclass(frozen=True, slots=True)
class News:
    """Something that happened in a run: shown as progress, or as a line of the log."""

    message: str
    level: Level | None = None
    """None for progress."""


ClientKey: TypeAlias = tuple[str, str]
"""A kind of client, and which of them: no text that a client sends can be another's key."""


class Channel(Protocol):
    """The way to the client, as the protocol's era has it."""

    @property
    def has_elicitation(self) -> bool:
        """Whether the client said that it can put questions to a person: the same for as long as a call lasts."""
        ...

    @property
    def can_ask(self) -> bool:
        """Whether it can be asked now."""
        ...

    async def ask(self, question: Question) -> Answer:
        """Ask; whatever goes wrong is no answer."""
        ...

    async def tell(self, news: News, number: int) -> None:
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

    def __init__(self, client: Client, channel: Channel, *, ask_seconds: float) -> None:
        self.client = client
        self._channel = channel
        self._ask_seconds = ask_seconds
        self.unanswered: set[str] = set()
        """Digests that were asked about without an answer: not again in the same call."""
        self.turn: Turn | None = None
        """Of the program that runs for it."""
        self._asking: set[anyio.CancelScope] = set()
        self._is_over = False
        self._news, self._inbox = anyio.create_memory_object_stream[News](_MOST_NEWS)

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

    async def ask(self, question: Question) -> Answer:
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

    def tell(self, news: News) -> None:
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
