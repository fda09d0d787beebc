"""The two ways to a client: requests of our own (the handshake's era), or questions as interim results (2026-07-28)."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import anyio
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import (
    ClientCapabilities,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    InputResponses,
)
from pydantic import ValidationError

from toolbridge.serve.caller import NOBODY, Answer, News, Question

_MOST_ROUNDS = 8

Context: TypeAlias = ServerRequestContext[Any, Any]


def can_elicit(capabilities: ClientCapabilities | None) -> bool:
    """Whether a client shows forms to a person."""
    elicitation = None if capabilities is None else capabilities.elicitation
    if elicitation is None:
        return False
    return elicitation.form is not None or elicitation.url is None  # an empty object has always meant forms


class RequestChannel:
    """Sends requests to the client while it waits for its own."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def has_elicitation(self) -> bool:
        """Whether the client announced it."""
        return can_elicit(self._context.session.client_capabilities)

    @property
    def can_ask(self) -> bool:
        """Whether the client announced elicitation, and can be reached."""
        return self._context.session.can_send_request and self.has_elicitation

    async def ask(self, question: Question) -> Answer:
        """Ask by a request that belongs to the client's own."""
        try:
            result = await self._context.session.elicit_form(
                question.message, dict(question.schema), related_request_id=self._context.request_id
            )
        except (MCPError, ValidationError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return NOBODY
        return _answer(result)

    async def tell(self, news: News, number: int) -> None:
        """Progress, or a line of the log."""
        await tell_client(self._context, news, number)


class RoundsChannel:
    """Gives questions back as an interim result; the client's next request brings the answers."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.has_elicitation = can_elicit(context.session.client_capabilities)
        """Whether the client announced it, with the call's first request."""
        self._waiting: dict[str, _Waiting] = {}
        self._shown: set[str] = set()
        self._rounds = 0
        self.changed = anyio.Event()
        """Set when there is something new to give back."""

    @property
    def can_ask(self) -> bool:
        """Whether the client announced elicitation, and has not been sent away too often: clients give up at ten."""
        return self.has_elicitation and self._rounds < _MOST_ROUNDS

    def continue_with(self, context: Context) -> None:
        """The client is back: from now on, progress is this request's."""
        self._context = context

    async def ask(self, question: Question) -> Answer:
        """Ask, and wait for as many rounds as it takes."""
        key = f"{question.key} {secrets.token_hex(4)}"
        waiting = self._waiting[key] = _Waiting(question)
        self.changed.set()
        try:
            await waiting.answered.wait()
        finally:
            del self._waiting[key]
            self._shown.discard(key)
        return waiting.answer

    def questions(self, state: str) -> InputRequiredResult | None:
        """What is to be asked now."""
        fresh: dict[str, InputRequest] = {
            key: ElicitRequest(
                params=ElicitRequestFormParams(
                    message=waiting.question.message, requested_schema=dict(waiting.question.schema)
                )
            )
            for key, waiting in self._waiting.items()
            if key not in self._shown
        }
        if not fresh:
            return None
        self._shown |= fresh.keys()
        self._rounds += 1
        return InputRequiredResult(input_requests=fresh, request_state=state)

    def answer(self, responses: InputResponses | None) -> None:
        """Takes the answers to exactly what was asked. A question that was shown and has none is not answered."""
        given: Mapping[str, object] = responses or {}
        for key in list(self._shown):
            waiting = self._waiting.get(key)
            if waiting is not None:
                response = given.get(key)
                waiting.answer = _answer(response) if isinstance(response, ElicitResult) else NOBODY
                waiting.answered.set()

    async def tell(self, news: News, number: int) -> None:
        """Progress, or a line of the log."""
        await tell_client(self._context, news, number)


class _Waiting:
    """A question that somebody waits for the answer to."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.answered = anyio.Event()
        self.answer = NOBODY


def _answer(result: ElicitResult) -> Answer:
    return Answer(result.action, cast("Mapping[str, Any]", result.content or {}))


async def tell_client(context: Context, news: News, number: int) -> None:
    """What a client hears besides the result. One that is gone hears nothing."""
    session = context.session
    try:
        if news.level is None:
            await session.report_progress(float(number), None, news.message)
            return
        with warnings.catch_warnings():  # logging is deprecated, and still what clients of both eras have
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            sending = session.send_log_message(  # pyright: ignore[reportDeprecated]
                news.level, news.message, logger="toolbridge", related_request_id=context.request_id
            )
        await sending
    except (MCPError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return
