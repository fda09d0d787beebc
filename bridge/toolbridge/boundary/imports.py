"""SECURITY: the complete list of what a guest may call. What isn't here, it can't reach.

A host function never raises: whatever happens becomes an answer or a trap. The functions are
defined once, on one linker; each finds its run through the thread it is called on.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Awaitable, Callable
from ctypes import c_ubyte
from math import inf
from struct import Struct
from time import monotonic, perf_counter
from typing import Any, NamedTuple, Protocol, cast

from toolbridge.boundary import library
from toolbridge.boundary.host_call import (
    Interrupted,
    PendingCall,
    Reply,
    answer_import,
    find_function,
    unknown_function,
)
from toolbridge.boundary.library import memory_data, memory_data_size
from toolbridge.boundary.run_state import NOTHING, REFUSAL, REFUSED, OutOfBoundsError, RunEnded, RunState
from toolbridge.boundary.wire import CallRequest, ImportRequest

# SECURITY: reading and writing guest memory. Every pointer and length is the guest's word, so it is checked.


class GuestMemory:
    """The linear memory of one instance. Must not be used after the instance is closed.

    WebAssembly memory grows and never shrinks, and the engine is configured not to move it: what was
    in bounds once stays in bounds, so the size is asked again only for what lies beyond it.
    """

    __slots__ = ("_base", "_context", "_memory", "_size", "_view")

    def __init__(self, context: int, memory: int) -> None:
        self._context = context
        self._memory = memory
        self._base: int = memory_data(context, memory)
        self._look()

    def _look(self) -> None:
        self._size: int = memory_data_size(self._context, self._memory)
        self._view = memoryview((c_ubyte * self._size).from_address(self._base)).cast("B")

    @property
    def size(self) -> int:
        """In bytes, now."""
        return memory_data_size(self._context, self._memory)

    @property
    def base(self) -> int:
        """Where it lies in this process; it is never moved."""
        return self._base

    def read(self, pointer: int, length: int) -> bytes:
        """`length` bytes from `pointer`.

        Raises:
            OutOfBoundsError: any of them lies outside the memory.
        """
        end = pointer + length
        if pointer < 0 or length < 0 or end > self._size:
            self._check_grown(pointer, length)
        return self._view[pointer:end].tobytes()

    def write(self, pointer: int, data: bytes) -> None:
        """Puts `data` at `pointer`.

        Raises:
            OutOfBoundsError: any byte of it would lie outside the memory.
        """
        end = pointer + len(data)
        if pointer < 0 or end > self._size:
            self._check_grown(pointer, len(data))
        self._view[pointer:end] = data

    def place(self, pointer: int, length: int) -> memoryview:
        """`length` bytes from `pointer` as they are at any time: memory is not moved, and in bounds stays in bounds.

        Raises:
            OutOfBoundsError: any of them lies outside the memory.
        """
        if pointer < 0 or length < 0 or pointer + length > self._size:
            self._check_grown(pointer, length)
        return self._view[pointer : pointer + length]

    def _check_grown(self, pointer: int, length: int) -> None:
        """What lies beyond the size that was known: the memory has grown, or it is out of bounds."""
        self._look()
        if pointer < 0 or length < 0 or pointer + length > self._size:
            raise OutOfBoundsError(f"{length} bytes at {pointer}")


# SECURITY: what a guest asks of its host when it may not call it: it writes that down, and is put aside.
#
# guest/WIRE.md is the specification. Every number here is the guest's word; where it means an address or a length,
# the run's state checks it as it does for an import.


CALL, START, WAIT, TAKE, LOG, NOW = 1, 2, 3, 4, 5, 6
"""Operations: the imports of the same names."""

_QUESTION = Struct("<I12xq4I")
_ANSWER = Struct("<IIq")
MAILBOX_BYTES = _QUESTION.size
_SIGN = 1 << 63


class Asked(NamedTuple):
    """One request: which import the guest would call, and with what."""

    operation: int
    number: int
    """Of `wait` only: its microseconds."""
    first: int
    second: int
    third: int
    fourth: int


class Mailbox:
    """The mailbox of one guest: in front of its inbox."""

    __slots__ = ("_place",)

    def __init__(self, memory: GuestMemory, inbox: int) -> None:
        self._place = memory.place(inbox - MAILBOX_BYTES, MAILBOX_BYTES)

    def read(self) -> Asked | None:
        """What the guest asks for; None if it was put aside for another reason."""
        content = _QUESTION.unpack(self._place)
        return Asked._make(content) if content[0] else None

    def answer(self, number: int) -> None:
        """The guest gets this when it goes on."""
        number &= 2 * _SIGN - 1
        _ANSWER.pack_into(self._place, 0, 0, 0, number - 2 * _SIGN if number >= _SIGN else number)


def answer(state: RunState, asked: Asked) -> int:
    """Does what the guest asked for, on this thread, however long it takes.

    Raises:
        RunEnded: the run is over; why is in its state.
    """
    try:
        return _answer(state, asked)
    except Exception as error:
        state.end_for(error)
        raise RunEnded from None


def _answer(state: RunState, asked: Asked) -> int:
    operation, number, first, second, third, fourth = asked
    if operation == CALL:
        return state.call(first, second, third, fourth)
    if operation == START:
        return state.start(first, second)
    if operation == WAIT:
        return state.wait(number, first, second)
    if operation == TAKE:
        return state.take(first, second)
    if operation == LOG:
        state.log(first, second, third)
        return 0
    if operation == NOW:
        return state.now(first)
    state.end("protocol", f"The guest asked for operation {operation}, which doesn't exist.")
    raise RunEnded


# SECURITY: answers what a guest asks by mailbox on an event loop: calls and waits are awaited there.
#
# What can be answered at once is `mailbox.answer`'s. The checks and counts are the run state's own, as for an import.


class Perform(Protocol):
    """Makes a call of an async function, in time; never raises but for cancellation."""

    def __call__(self, call: PendingCall, begun: Awaitable[Reply] | None = None) -> Awaitable[Reply]:
        """The reply; `begun` is what the function gave, if it was called already."""
        ...


class AwaitedRequests:
    """The requests of one guest, one at a time. Used on the event loop's thread."""

    def __init__(self, state: RunState, perform: Perform) -> None:
        import anyio

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

    def _imported(self, request: ImportRequest, length: int) -> bytes | Awaitable[bytes]:
        call = self._state.importing(request, length)
        if call is None:
            return answer_import(self._state.modules, request)
        try:
            given = call.function.function(*call.arguments)
        except BaseException as error:
            given = _raised(error)
        if given is None:
            self._state.started.remove(call)
            return answer_import(self._state.modules, request)
        return self._import_performed(call, given, request)

    async def _import_performed(self, call: PendingCall, begun: Awaitable[Any], request: ImportRequest) -> bytes:
        frame = await self._performed(call, begun)
        return frame if frame.startswith(REFUSAL) else answer_import(self._state.modules, request)

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
        import anyio

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


IMPORT_MODULE = b"toolbridge"
I32, I64 = 0, 1

# Arguments and results sit in slots of 16 bytes, read here as 32-bit words.
_SLOT = 4
_LOW = 0xFFFFFFFF


class _Current(threading.local):
    run: RunState | None = None


_current = _Current()


def set_current_run(run: RunState | None) -> RunState | None:
    """The run that host functions called on this thread belong to; answers with the one before."""
    before, _current.run = _current.run, run
    return before


def _run() -> RunState:
    run = _current.run
    if run is None:
        raise RunEnded
    return run


def _signed64(slots: Any, index: int) -> int:
    value = slots[index] | slots[index + 1] << 32
    return value - (1 << 64) if value >> 63 else value


def _trap(error: BaseException) -> int:
    """Ends the guest. Why is in the run's state; the trap's own text is for nobody."""
    run = _current.run
    if run is not None:
        run.end_for(error)
    return library.trap_new(b"ended", 5)


def _call(_data: int, _caller: int, slots: Any, _count: int) -> int:
    try:
        run = _current.run
        if run is None:
            raise RunEnded
        run.leave_guest()
        slots[0] = run.call(slots[0], slots[_SLOT], slots[2 * _SLOT], slots[3 * _SLOT]) & _LOW
        run.enter_guest()
        return 0
    except BaseException as error:
        return _trap(error)


def _start(_data: int, _caller: int, slots: Any, _count: int) -> int:
    try:
        run = _run()
        run.leave_guest()
        slots[0] = run.start(slots[0], slots[_SLOT]) & _LOW
        run.enter_guest()
        return 0
    except BaseException as error:
        return _trap(error)


def _wait(_data: int, _caller: int, slots: Any, _count: int) -> int:
    try:
        run = _run()
        run.leave_guest()
        slots[0] = run.wait(_signed64(slots, 0), slots[_SLOT], slots[2 * _SLOT]) & _LOW
        run.enter_guest()
        return 0
    except BaseException as error:
        return _trap(error)


def _take(_data: int, _caller: int, slots: Any, _count: int) -> int:
    try:
        slots[0] = _run().take(slots[0], slots[_SLOT]) & _LOW
        return 0
    except BaseException as error:
        return _trap(error)


def _log(_data: int, _caller: int, slots: Any, _count: int) -> int:
    try:
        _run().log(slots[0], slots[_SLOT], slots[2 * _SLOT])
        return 0
    except BaseException as error:
        return _trap(error)


def _now(_data: int, _caller: int, slots: Any, _count: int) -> int:
    try:
        nanoseconds = _run().now(slots[0])
        slots[0] = nanoseconds & _LOW
        slots[1] = nanoseconds >> 32 & _LOW
        return 0
    except BaseException as error:
        return _trap(error)


class Import(NamedTuple):
    """One function that the guest imports: its name, its WebAssembly type, our side of it."""

    name: bytes
    parameters: tuple[int, ...]
    results: tuple[int, ...]
    function: Callable[[int, int, Any, int], int]


IMPORTS = (
    Import(b"call", (I32, I32, I32, I32), (I32,), _call),
    Import(b"start", (I32, I32), (I32,), _start),
    Import(b"wait", (I64, I32, I32), (I32,), _wait),
    Import(b"take", (I32, I32), (I32,), _take),
    Import(b"log", (I32, I32, I32), (), _log),
    Import(b"now", (I32,), (I64,), _now),
)

# The library keeps addresses only, so the callbacks must stay alive with the process.
_callbacks = tuple(library.HostFunction(item.function) for item in IMPORTS)

# `leave()` advances the epoch, and that makes a guest that runs on its caller's thread put itself aside
# (sandbox/fiber_call.py). It is a function of the library that gets the engine as its data, and not a function of ours,
# because no Python code may run there: an exception that a signal handler raises in it would be lost.
LEAVE = b"leave"
_leave = library.LibraryFunction(library.engine_increment_epoch)


def _value_types(kinds: tuple[int, ...]) -> library.ByteVector:
    vector = library.ByteVector()
    types = (ctypes.c_void_p * len(kinds))(*(library.valtype_new(kind) for kind in kinds))
    library.valtype_vector_new(ctypes.byref(vector), len(kinds), types)
    return vector


def define_imports(linker: int, engine: int) -> None:
    """Defines the guest's imports on a linker: the single grant of capability."""
    for item, callback in zip(IMPORTS, _callbacks, strict=True):
        _define(linker, item.name, (item.parameters, item.results), callback, None)
    _define(linker, LEAVE, ((), ()), ctypes.cast(_leave, library.HostFunction), engine)


def _define(
    linker: int, name: bytes, signature: tuple[tuple[int, ...], tuple[int, ...]], callback: Any, data: int | None
) -> None:
    parameters, results = _value_types(signature[0]), _value_types(signature[1])
    kind = library.functype_new(ctypes.byref(parameters), ctypes.byref(results))
    error = library.linker_define_func_unchecked(
        *(linker, IMPORT_MODULE, len(IMPORT_MODULE), name, len(name)),
        *(kind, callback, data, library.NO_FINALIZER),
    )
    library.functype_delete(kind)
    library.check(error, f"define {name.decode()}")


# ---- epochs: called on the guest's thread when the epoch has advanced

_CONTINUE = 0


def _epoch_advanced(_context: int, _data: int, ticks: Any, kind: Any) -> int:
    try:
        ticks[0] = 1
        kind[0] = _CONTINUE
        _run().tick()
        return 0
    except BaseException as error:
        if not isinstance(error, RunEnded) and _current.run is not None:
            _current.run.end("crashed", f"The epoch check failed: {type(error).__name__}.")
        return library.error_new(b"ended")


epoch_callback = library.EpochCallback(_epoch_advanced)
