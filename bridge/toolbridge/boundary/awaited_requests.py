"""SECURITY: answers what a guest asks by mailbox on an event loop: calls and waits are awaited there.

What can be answered at once is `mailbox.answer`'s. The checks and counts are the run state's own, as for an import.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from time import monotonic

import anyio

from toolbridge.boundary.host_call import PendingCall, Reply, answer_import, find_function, unknown_function
from toolbridge.boundary.mailbox import CALL, WAIT, Asked, answer
from toolbridge.boundary.run_state import NOTHING, REFUSAL, REFUSED, RunEnded, RunState
from toolbridge.boundary.started_calls import Interrupted
from toolbridge.boundary.wire import CallRequest, ImportRequest

Perform = Callable[[PendingCall], Awaitable[Reply]]
"""Makes a call of an async function, in time; never raises but for cancellation."""


class AwaitedRequests:
    """The requests of one guest, one at a time. Used on the event loop's thread."""

    def __init__(self, state: RunState, perform: Perform) -> None:
        self._state = state
        self._perform = perform
        self._delivered: anyio.Event | None = None
        state.started.on_delivery = self._note_delivery

    async def answer(self, asked: Asked) -> int:
        """Does what the guest asked for.

        Raises:
            RunEnded: the run is over; why is in its state.
        """
        try:
            if asked.operation == CALL:
                return await self._call(asked)
            if asked.operation == WAIT:
                return await self._wait(asked.number, asked.first, asked.second)
        except RunEnded:
            raise
        except Exception as error:
            self._state.end_for(error)
            raise RunEnded from None
        return answer(self._state, asked)

    async def _call(self, asked: Asked) -> int:
        state, length = self._state, asked.second
        request = state.requested(asked.first, length)
        if type(request) is CallRequest:
            frame = await self._called(request, length)
        elif type(request) is ImportRequest:
            frame = await self._imported(request, length)
        else:
            assert type(request) is bytes
            frame = request
        return state.give(frame, asked.third, asked.fourth)

    async def _called(self, request: CallRequest, length: int) -> bytes:
        state = self._state
        function = find_function(state.modules, request)
        if function is None:
            return unknown_function(request)
        if not function.is_async:
            return state.perform_here(function, request, length)
        return (await self._performed(state.begun(function, request, length))).frame

    async def _imported(self, request: ImportRequest, length: int) -> bytes:
        call = self._state.importing(request, length)
        if call is not None:
            reply = await self._performed(call)
            if reply.frame.startswith(REFUSAL):
                return reply.frame
        return answer_import(self._state.modules, request)

    async def _performed(self, call: PendingCall) -> Reply:
        reply = await self._perform(call)
        self._state.completed(call, reply)
        if self._state.ending is not None:
            raise RunEnded
        return reply

    async def _wait(self, microseconds: int, pointer: int, capacity: int) -> int:
        """The next settled call, as `RunState.wait` has it."""
        state, started = self._state, self._state.started
        until = inf if microseconds < 0 else monotonic() + microseconds / 1e6
        frame = started.next_settled()
        while frame is None:
            if microseconds < 0 and not started.can_settle():
                return REFUSED
            arrived = self._arrived()
            if arrived is not None:
                call, reply = arrived
                state.log_of_calls.add(call.function, call.request, reply, call.began, call.request_bytes)
                started.settle(call.identity, reply.frame)
                frame = started.next_settled()
            elif not await self._delivery(until):
                state.check()
                return NOTHING
        return state.give(frame, pointer, capacity)

    def _arrived(self) -> tuple[PendingCall, Reply] | None:
        """A reply that is there already."""
        while True:
            try:
                return self._state.started.receive(0.0)
            except Interrupted:
                self._state.check()

    async def _delivery(self, until: float) -> bool:
        """Waits for the next reply; whether one arrived in time."""
        self._delivered = delivered = anyio.Event()
        with anyio.move_on_after(until - monotonic()):
            await delivered.wait()
        return delivered.is_set()

    def _note_delivery(self) -> None:
        if self._delivered is not None:
            self._delivered.set()
