"""Channels to a client: elicitation requests (protocol ≤ 2025-11), or questions as interim results (2026-07-28)."""

from __future__ import annotations

import logging
import secrets
import warnings
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Any, TypeAlias, cast

import anyio
import anyio.abc
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    InputResponses,
)
from pydantic import ValidationError

from toolbridge.serve.clients import NOBODY, Caller, Client, FormAnswer, Notification, Question

_MOST_ROUNDS = 8

Context: TypeAlias = ServerRequestContext[Any, Any]


def can_elicit(capabilities: ClientCapabilities | None) -> bool:
    """Returns whether a client announced form elicitation: by `form`, or by an empty `elicitation` object."""
    elicitation = None if capabilities is None else capabilities.elicitation
    if elicitation is None:
        return False
    return elicitation.form is not None or elicitation.url is None  # an empty object means forms


class RequestChannel:
    """Sends elicitation requests to the client during its own request."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def has_elicitation(self) -> bool:
        """Whether the client announced elicitation."""
        return can_elicit(self._context.session.client_capabilities)

    @property
    def can_ask(self) -> bool:
        """Returns whether the client announced elicitation and can be sent requests now."""
        return self._context.session.can_send_request and self.has_elicitation

    async def ask(self, question: Question) -> FormAnswer:
        """Sends an elicitation request, related to the client's own, and waits without a timeout for its answer.

        Returns `NOBODY` if the client answers with an error or malformed result, or disconnects.
        """
        try:
            result = await self._context.session.elicit_form(
                question.message, dict(question.schema), related_request_id=self._context.request_id
            )
        except (MCPError, ValidationError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return NOBODY
        return _answer(result)

    async def notify(self, news: Notification, number: int) -> None:
        """Sends a progress or log notification; does nothing if the client disconnected or refuses it."""
        await notify_client(self._context, news, number)


class RoundsChannel:
    """Returns questions as an interim result; the client's next request carries the answers."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.has_elicitation = can_elicit(context.session.client_capabilities)
        """Whether the client announced elicitation, with the first request of the call."""
        self._waiting: dict[str, _PendingQuestion] = {}
        self._shown: set[str] = set()
        self._rounds = 0
        self.changed = anyio.Event()
        """Wakeup event: a question or the result is ready to return."""

    @property
    def can_ask(self) -> bool:
        """Returns whether the client announced elicitation and has rounds left: 8, as clients give up after ten."""
        return self.has_elicitation and self._rounds < _MOST_ROUNDS

    def continue_with(self, context: Context) -> None:
        """Replaces the request over which notifications are sent by the client's newest one."""
        self._context = context

    async def ask(self, question: Question) -> FormAnswer:
        """Registers a question, sets `changed`, and waits without a timeout until `answer` has the response."""
        key = f"{question.key} {secrets.token_hex(4)}"
        waiting = self._waiting[key] = _PendingQuestion(question)
        self.changed.set()
        try:
            await waiting.answered.wait()
        finally:
            del self._waiting[key]
            self._shown.discard(key)
        return waiting.answer

    def questions(self, state: str) -> InputRequiredResult | None:
        """Returns the interim result with the questions that were not returned before; None if there is none.

        Marks them as returned, and counts a round.
        """
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
        """Wakes the `ask` of every returned question with its response; one without a valid response gets `NOBODY`."""
        given: Mapping[str, object] = responses or {}
        for key in list(self._shown):
            waiting = self._waiting.get(key)
            if waiting is not None:
                response = given.get(key)
                waiting.answer = _answer(response) if isinstance(response, ElicitResult) else NOBODY
                waiting.answered.set()

    async def notify(self, news: Notification, number: int) -> None:
        """Sends a progress or log notification; does nothing if the client disconnected or refuses it."""
        await notify_client(self._context, news, number)


class _PendingQuestion:
    """A question with an event for its answer."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.answered = anyio.Event()
        self.answer = NOBODY


def _answer(result: ElicitResult) -> FormAnswer:
    """Converts an SDK result; without content, to an empty form."""
    return FormAnswer(result.action, cast("Mapping[str, Any]", result.content or {}))


async def notify_client(context: Context, news: Notification, number: int) -> None:
    """Sends a progress notification, numbered `number`, or a log notification if `news` has a level.

    Does nothing if the client disconnected or refuses it.
    """
    session = context.session
    try:
        if news.level is None:
            await session.report_progress(float(number), None, news.message)
            return
        with warnings.catch_warnings():  # deprecated, and still supported by clients of both protocol versions
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            sending = session.send_log_message(  # pyright: ignore[reportDeprecated]
                news.level, news.message, logger="toolbridge", related_request_id=context.request_id
            )
        await sending
    except (MCPError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return


# SECURITY: calls over several requests, as in protocol 2026-07-28 (T23, T33).
# #
# # There, a server can't send requests: it returns questions, and the client repeats the call with the answers. The
# # program waits meanwhile. The SDK seals the call's state for exactly this call with these arguments, valid for one
# # round: an old, foreign or reused state continues nothing.


_log = logging.getLogger("toolbridge")

Perform = Callable[[Caller, CallToolRequestParams], Awaitable[CallToolResult]]


class _Call:
    """One call, from its first request to its result."""

    def __init__(self, caller: Caller, channel: RoundsChannel) -> None:
        self.id = secrets.token_hex(16)
        self.round = 0
        self.caller = caller
        self.channel = channel
        self.scope = anyio.CancelScope()
        self.result: CallToolResult | None = None
        self.is_over = False
        self.away_since: float | None = None
        """When questions were returned to the client; None while a request of it waits."""

    @property
    def state(self) -> str:
        """Returns the `requestState` of this round: the call's id and the number of the round."""
        return f"{self.id}.{self.round}"


class Rounds:
    """Calls with a waiting client, or with questions returned to it."""

    def __init__(self, perform: Perform, *, ask_seconds: float, most: int) -> None:
        self._perform = perform
        self._ask_seconds = ask_seconds
        self._most = most
        self._calls: dict[str, _Call] = {}

    def __len__(self) -> int:
        return len(self._calls)

    async def call(
        self, context: Context, params: CallToolRequestParams, client: Client, tasks: anyio.abc.TaskGroup
    ) -> CallToolResult | InputRequiredResult:
        """Starts a call in `tasks`, or continues the one in `request_state`; waits for its result or next questions.

        Cancelling, as when the client disconnects, ends the call.

        Raises:
            MCPError: there are too many calls, the state is unknown or of an earlier round, or the call was ended.
        """
        if params.request_state is None:
            call = self._begin(context, params, client, tasks)
        else:
            call = self._continued(context, params)
        try:
            return await self._outcome(call)
        except BaseException:  # the client disconnected or cancelled
            self._end(call)
            raise

    def end_forgotten(self) -> None:
        """Cancels calls whose client has not answered their questions for `ask_seconds`."""
        for call in list(self._calls.values()):
            if call.away_since is not None and monotonic() - call.away_since > self._ask_seconds:
                self._end(call)

    def _begin(
        self, context: Context, params: CallToolRequestParams, client: Client, tasks: anyio.abc.TaskGroup
    ) -> _Call:
        """Registers a call and starts its task in `tasks`.

        Raises:
            MCPError: too many calls are under way.
        """
        if len(self._calls) >= self._most:
            raise MCPError(INVALID_PARAMS, "Too many calls are under way: try again later")
        channel = RoundsChannel(context)
        call = _Call(Caller(client, channel, ask_seconds=self._ask_seconds), channel)
        self._calls[call.id] = call
        tasks.start_soon(self._run, call, params)
        return call

    async def _run(self, call: _Call, params: CallToolRequestParams) -> None:
        """Performs a call and stores its result; logs exceptions instead of raising them: they leave no result."""
        try:
            with call.scope:
                call.result = await self._perform(call.caller, params)
        except Exception:  # isolates calls from each other
            _log.exception("A call failed inside toolbridge")
        finally:
            call.is_over = True
            call.channel.changed.set()

    def _continued(self, context: Context, params: CallToolRequestParams) -> _Call:
        """Returns the call that a request continues, after it was given the answers and the new request.

        Raises:
            MCPError: the state is unknown, of another round, or its call is waited for by another request.
        """
        name, _, number = (params.request_state or "").partition(".")
        call = self._calls.get(name)
        if call is None or call.away_since is None or number != str(call.round):
            raise MCPError(INVALID_PARAMS, "Invalid or expired requestState", data={"reason": "invalid_request_state"})
        call.away_since = None
        call.round += 1
        call.channel.continue_with(context)
        call.channel.answer(params.input_responses)
        return call

    async def _outcome(self, call: _Call) -> CallToolResult | InputRequiredResult:
        """Waits until a call has its result or new questions, and returns them; a call with a result is forgotten.

        Raises:
            MCPError: the call ended without a result.
        """
        while True:
            if call.is_over:
                self._calls.pop(call.id, None)
                if call.result is None:
                    raise MCPError(INVALID_PARAMS, "The call was ended: its questions were not answered in time")
                return call.result
            asked = call.channel.questions(call.state)
            if asked is not None:
                call.away_since = monotonic()
                return asked
            call.channel.changed = anyio.Event()
            await call.channel.changed.wait()

    def _end(self, call: _Call) -> None:
        """Forgets and cancels a call; releases its run permit."""
        self._calls.pop(call.id, None)
        call.caller.close()
        call.scope.cancel()
