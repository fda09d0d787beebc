"""SECURITY: calls that go on over several requests, as the protocol of 2026-07-28 has it (T23, T33).

There, a server can't ask: it answers with its questions, and the client calls again with the answers. The program
waits meanwhile, where it is. What names it to the client is sealed by the SDK for exactly this call with these
arguments, and good for one round: an old or foreign state, or one that is used twice, continues nothing.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable
from time import monotonic

import anyio
import anyio.abc
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, CallToolResult, InputRequiredResult

from toolbridge.serve.caller import Caller, Client
from toolbridge.serve.channels import Context, RoundsChannel

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
        """When the client was sent away with questions; None while it waits here."""

    @property
    def state(self) -> str:
        return f"{self.id}.{self.round}"


class Rounds:
    """The calls whose clients are here, or have been sent away with questions."""

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
        """Begin a call, or continue the one that the client was sent away with."""
        if params.request_state is None:
            call = self._begin(context, params, client, tasks)
        else:
            call = self._continued(context, params)
        try:
            return await self._outcome(call)
        except BaseException:  # the client is gone, or does not want it any more
            self._end(call)
            raise

    def end_forgotten(self) -> None:
        """End calls whose clients did not come back."""
        for call in list(self._calls.values()):
            if call.away_since is not None and monotonic() - call.away_since > self._ask_seconds:
                self._end(call)

    def _begin(
        self, context: Context, params: CallToolRequestParams, client: Client, tasks: anyio.abc.TaskGroup
    ) -> _Call:
        if len(self._calls) >= self._most:
            raise MCPError(INVALID_PARAMS, "Too many calls are under way: try again later")
        channel = RoundsChannel(context)
        call = _Call(Caller(client, channel, ask_seconds=self._ask_seconds), channel)
        self._calls[call.id] = call
        tasks.start_soon(self._run, call, params)
        return call

    async def _run(self, call: _Call, params: CallToolRequestParams) -> None:
        try:
            with call.scope:
                call.result = await self._perform(call.caller, params)
        except Exception:  # one call's end is not that of all
            _log.exception("A call failed inside toolbridge")
        finally:
            call.is_over = True
            call.channel.changed.set()

    def _continued(self, context: Context, params: CallToolRequestParams) -> _Call:
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
        self._calls.pop(call.id, None)
        call.caller.close()
        call.scope.cancel()
