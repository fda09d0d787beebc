"""Who called one of our tools: whom a run may ask, and where its progress goes.

The caller of the moment is a context variable: what a run does on its way (approvals, permissions) happens in tasks
that were started from it, and finds the caller there. With none, nobody can be asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, get_args

import anyio

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


class Channel(Protocol):
    """The way to the client, as the protocol's era has it."""

    @property
    def can_ask(self) -> bool:
        """Whether the client can put a question to a person."""
        ...

    async def ask(self, question: Question) -> Answer:
        """Ask; whatever goes wrong is no answer."""
        ...

    async def tell(self, news: News, number: int) -> None:
        """Pass on what happens. `number` grows."""
        ...


class Client:
    """One client for as long as it is known: a connection, or an HTTP session."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.turn = anyio.Lock()
        """Its person is asked one thing at a time."""
        self.refused: set[str] = set()
        """Digests that its person said no to: they are not asked again about the same, unless the model asks for it."""
        self.least_level: Level = "info"
        """Of the lines of the log that it wants."""


class Turn:
    """One of the programs that run at a time. It is given up while a person thinks: others may run meanwhile."""

    def __init__(self, turns: anyio.Semaphore) -> None:
        self._turns = turns
        self._is_held = False

    async def take(self) -> None:
        """Wait for it."""
        await self._turns.acquire()
        self._is_held = True

    def give_up(self) -> None:
        """Let somebody else have it, if it is held."""
        if self._is_held:
            self._is_held = False
            self._turns.release()


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
    def can_ask(self) -> bool:
        """Whether a person can be asked."""
        return self._channel.can_ask and not self._is_over

    async def ask(self, question: Question) -> Answer:
        """The person's answer; `cancel` when there is none in time, or the call is over."""
        if not self.can_ask:
            return NOBODY
        answer = NOBODY
        if self.turn is not None:
            self.turn.give_up()
        with anyio.move_on_after(self._ask_seconds) as scope:
            self._asking.add(scope)
            try:
                answer = await self._channel.ask(question)
            finally:
                self._asking.discard(scope)
        if self.turn is not None and not self._is_over:
            await self.turn.take()
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
