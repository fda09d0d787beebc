"""SECURITY: answers what a guest asks by mailbox on an event loop: calls and waits are awaited there.

What can be answered at once is `mailbox.answer`'s. The checks and counts are the run state's own, as for an import.
"""

from __future__ import annotations

from collections.abc import Awaitable
from math import inf
from time import monotonic, perf_counter
from typing import Protocol, cast

import anyio

from toolbridge.boundary.host_call import PendingCall, Reply, answer_import, find_function, unknown_function
from toolbridge.boundary.mailbox import CALL, WAIT, Asked, answer
from toolbridge.boundary.run_state import NOTHING, REFUSAL, REFUSED, RunEnded, RunState
from toolbridge.boundary.started_calls import Interrupted
from toolbridge.boundary.wire import CallRequest, ImportRequest


class Perform(Protocol):
    """Makes a call of an async function, in time; never raises but for cancellation."""

    def __call__(self, call: PendingCall, begun: Awaitable[Reply] | None = None) -> Awaitable[Reply]:
        """The reply; `begun` is what the function gave, if it was called already."""
        ...


class AwaitedRequests:
    """The requests of one guest, one at a time. Used on the event loop's thread."""

    def __init__(self, state: RunState, perform: Perform) -> None:
        self._state = state
        self._perform = perform
        self._delivered: anyio.Event | None = None
        state.started.on_delivery = self._note_delivery

    def answer(self, asked: Asked) -> int | Awaitable[int]:
        """Does what the guest asked for: the answer, or where something has to be awaited for it, what gives it then.

        Raises:
            RunEnded: the run is over; why is in its state. What is awaited may raise it, too.
        """
        try:
            if asked.operation == CALL:
                return self._call(asked)
            if asked.operation == WAIT:
                return self._ending(self._wait(asked.number, asked.first, asked.second))
        except RunEnded:
            raise
        except Exception as error:
            self._state.end_for(error)
            raise RunEnded from None
        return answer(self._state, asked)

    async def _ending(self, answer: Awaitable[int]) -> int:
        """The same for what is awaited: whatever goes wrong ends the run."""
        try:
            return await answer
        except RunEnded:
            raise
        except Exception as error:
            self._state.end_for(error)
            raise RunEnded from None

    def _call(self, asked: Asked) -> int | Awaitable[int]:
        state, length = self._state, asked.second
        request = state.requested(asked.first, length)
        if type(request) is CallRequest:
            frame = self._called(request, length)
        elif type(request) is ImportRequest:
            frame = self._imported(request, length)
        else:
            assert type(request) is bytes
            frame = request
        if type(frame) is bytes:
            return state.give(frame, asked.third, asked.fourth)
        return self._ending(self._given(cast("Awaitable[bytes]", frame), asked))

    async def _given(self, frame: Awaitable[bytes], asked: Asked) -> int:
        return self._state.give(await frame, asked.third, asked.fourth)

    def _called(self, request: CallRequest, length: int) -> bytes | Awaitable[bytes]:
        state = self._state
        function = find_function(state.modules, request)
        if function is None:
            return unknown_function(request)
        if not function.is_async:
            return state.perform_here(function, request, length)
        if not function.may_answer:
            return self._performed(state.begun(function, request, length))
        began = perf_counter()
        try:
            given = function.function(*request.arguments)
        except BaseException as error:
            given = _raised(error)
        if type(given) is Reply:
            return state.answered(function, request, given, began, length)
        return self._performed(state.begun(function, request, length, began=began), given)

    async def _imported(self, request: ImportRequest, length: int) -> bytes:
        call = self._state.importing(request, length)
        if call is not None:
            frame = await self._performed(call)
            if frame.startswith(REFUSAL):
                return frame
        return answer_import(self._state.modules, request)

    async def _performed(self, call: PendingCall, begun: Awaitable[Reply] | None = None) -> bytes:
        reply = await self._perform(call, begun)
        self._state.completed(call, reply)
        if self._state.ending is not None:
            raise RunEnded
        return reply.frame

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


async def _raised(error: BaseException) -> Reply:
    """What a call raised, for whoever makes a reply of it."""
    raise error
