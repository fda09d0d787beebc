"""SECURITY: the complete list of host functions that a guest may call. What isn't here, it can't reach.

A host function never raises: every error becomes a reply or a trap. The functions are defined once, on one linker, and
find their run through the thread that calls them. Each has a blocking form (an import, called on a guest thread) and an
awaited form (a request in the mailbox, answered on an event loop): the table `IMPORTS` shows both.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Awaitable, Callable
from ctypes import c_ubyte
from math import inf
from struct import Struct
from time import monotonic, perf_counter
from typing import Any, NamedTuple, Protocol

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
from toolbridge.boundary.run_state import NOTHING, REFUSAL, REFUSED, OutOfBoundsError, RunOver, RunState
from toolbridge.boundary.wire import CallRequest, ImportRequest

# ── guest memory: every pointer and length comes from the guest and is bounds-checked ─────────────────────────────


class GuestMemory:
    """The linear memory of one instance. Must not be used after the instance is closed.

    WebAssembly memory grows and never shrinks, and the engine is configured not to move it: an address that was in
    bounds once stays in bounds, so the size is read again only for addresses beyond the known size.
    """

    __slots__ = ("_context", "_memory", "_size", "_view", "base")

    def __init__(self, context: int, memory: int) -> None:
        self._context = context
        self._memory = memory
        self.base: int = memory_data(context, memory)
        """The address of its first byte in this process. The engine never moves it."""
        self._look()

    def _look(self) -> None:
        """Reads the memory's size again, and views all of it."""
        self._size: int = memory_data_size(self._context, self._memory)
        self._view = memoryview((c_ubyte * self._size).from_address(self.base)).cast("B")

    @property
    def size(self) -> int:
        """The current size in bytes."""
        return memory_data_size(self._context, self._memory)

    def read(self, pointer: int, length: int) -> bytes:
        """Copies `length` bytes from `pointer`.

        Raises:
            OutOfBoundsError: any of them lies outside the memory.
        """
        end = pointer + length
        if pointer < 0 or length < 0 or end > self._size:
            self._check_grown(pointer, length)
        return self._view[pointer:end].tobytes()

    def write(self, pointer: int, data: bytes) -> None:
        """Writes `data` at `pointer`.

        Raises:
            OutOfBoundsError: any byte of it would lie outside the memory.
        """
        end = pointer + len(data)
        if pointer < 0 or end > self._size:
            self._check_grown(pointer, len(data))
        self._view[pointer:end] = data

    def place(self, pointer: int, length: int) -> memoryview:
        """Returns a live view of `length` bytes from `pointer`: memory never moves, and in bounds stays in bounds.

        Raises:
            OutOfBoundsError: any of them lies outside the memory.
        """
        if pointer < 0 or length < 0 or pointer + length > self._size:
            self._check_grown(pointer, length)
        return self._view[pointer : pointer + length]

    def _check_grown(self, pointer: int, length: int) -> None:
        """Reads the size again: the memory has grown, or OutOfBoundsError is raised."""
        self._look()
        if pointer < 0 or length < 0 or pointer + length > self._size:
            raise OutOfBoundsError(f"{length} bytes at {pointer}")


# ── the mailbox: how a guest on a fiber requests a host function (guest/WIRE.md) ──────────────────────────────────

CALL, START, WAIT, TAKE, LOG, NOW = 1, 2, 3, 4, 5, 6
"""Operations: one more than the place of the import in `IMPORTS`."""

_QUESTION = Struct("<I12xq4I")
_ANSWER = Struct("<IIq")
MAILBOX_BYTES = _QUESTION.size
_SIGN = 1 << 63


class Asked(NamedTuple):
    """One request: an operation and its arguments, all chosen by the guest."""

    operation: int
    number: int
    """Of `wait` only: its microseconds."""
    first: int
    second: int
    third: int
    fourth: int


class Mailbox:
    """The mailbox of one guest: it lies in front of its inbox."""

    __slots__ = ("_place",)

    def __init__(self, memory: GuestMemory, inbox: int) -> None:
        self._place = memory.place(inbox - MAILBOX_BYTES, MAILBOX_BYTES)

    def read(self) -> Asked | None:
        """Returns the guest's request; None if the guest was suspended for another reason."""
        content = _QUESTION.unpack(self._place)
        return Asked._make(content) if content[0] else None

    def answer(self, number: int) -> None:
        """Writes the answer that the guest reads when it resumes, and clears the request."""
        number &= 2 * _SIGN - 1
        _ANSWER.pack_into(self._place, 0, 0, 0, number - 2 * _SIGN if number >= _SIGN else number)


def answer(state: RunState, asked: Asked) -> int:
    """Performs a request in its blocking form, on this thread; returns the answer, 0 if there is none.

    Raises:
        RunOver: the run is over; its state has the reason.
    """
    try:
        item = _requested_import(state, asked)
        return item.blocking(state, *asked[item.fields]) or 0
    except Exception as error:
        state.end_for(error)
        raise RunOver from None


def _requested_import(state: RunState, asked: Asked) -> Import:
    """Looks up the import that a request names; if there is none, ends the run and raises RunOver."""
    if not CALL <= asked.operation <= NOW:
        state.end("protocol", f"The guest asked for operation {asked.operation}, which doesn't exist.")
        raise RunOver
    return IMPORTS[asked.operation - 1]


class Perform(Protocol):
    """Makes a call of an async function, in time; never raises but for cancellation."""

    def __call__(self, call: PendingCall, begun: Awaitable[Reply] | None = None) -> Awaitable[Reply]:
        """The reply; `begun` is the awaitable of a function that was called already."""
        ...


class AwaitedRequests:
    """Performs the requests of one guest in their awaited form. Used on the event loop's thread.

    All checks and counts are the run state's own, as for an import.
    """

    def __init__(self, state: RunState, perform: Perform) -> None:
        import anyio

        self._state = state
        self._perform = perform
        self._delivered: anyio.Event | None = None
        state.pending.on_delivery = self._note_delivery

    def answer(self, asked: Asked) -> int | Awaitable[int]:
        """Performs a request: the answer, or an awaitable of it if something has to be awaited first.

        Raises:
            RunOver: the run is over; its state has the reason. The awaitable may raise it, too.
        """
        try:
            item = _requested_import(self._state, asked)
            given = asked[item.fields]
            return item.blocking(self._state, *given) or 0 if item.awaited is None else item.awaited(self, *given)
        except Exception as error:
            self._state.end_for(error)
            raise RunOver from None

    def call(self, pointer: int, length: int, reply: int, capacity: int) -> int | Awaitable[int]:
        """Performs a call or import that guest code waits for: the reply's length, or an awaitable of it."""
        state = self._state
        request = state.requested(pointer, length)
        if type(request) is CallRequest:
            function = find_function(state.modules, request)
            if function is None:
                frame = unknown_function(request)
            elif not function.is_async:
                frame = state.perform_here(function, request, length)
            elif not function.may_answer:
                return self._performed(state.begun(function, request, length), None, reply, capacity)
            else:
                began = perf_counter()
                try:
                    given = function.function(*request.arguments)
                except BaseException as error:
                    given = _raised(error)
                if type(given) is not Reply:
                    call = state.begun(function, request, length, began=began)
                    return self._performed(call, given, reply, capacity)
                frame = state.answered(function, request, given, began, length)
        elif type(request) is ImportRequest:
            specifier = state.unresolved(request)
            if specifier is not None:
                assert state.importer is not None
                try:
                    given = state.importer(specifier)
                except BaseException as error:
                    given = _raised(error)
                if given is not None:
                    call = state.begun_import(specifier, length)
                    return self._performed(call, given, reply, capacity, request)
            frame = answer_import(state.modules, request)
        else:
            assert type(request) is bytes
            frame = request
        return state.give(frame, reply, capacity)

    async def _performed(
        self,
        call: PendingCall,
        begun: Awaitable[Any] | None,
        pointer: int,
        capacity: int,
        request: ImportRequest | None = None,
    ) -> int:
        """Awaits a call (of an import: then lists the module's functions), writes its reply and returns the length."""
        state = self._state
        try:
            frame = state.completed(call, await self._perform(call, begun))
            if request is not None and not frame.startswith(REFUSAL):
                frame = answer_import(state.modules, request)
            return state.give(frame, pointer, capacity)
        except Exception as error:
            state.end_for(error)
            raise RunOver from None

    async def wait(self, microseconds: int, pointer: int, capacity: int) -> int:
        """Awaits the next settled call and writes its frame, as `RunState.wait` does, without blocking."""
        state, pending = self._state, self._state.pending
        until = inf if microseconds < 0 else monotonic() + microseconds / 1e6
        try:
            frame = pending.next_settled()
            while frame is None:
                if microseconds < 0 and not pending.can_settle():
                    return REFUSED
                arrived = self._arrived()
                if arrived is not None:
                    call, reply = arrived
                    state.log_of_calls.add(call.function, call.request, reply, call.began, call.request_bytes)
                    pending.settle(call.identity, reply.frame)
                    frame = pending.next_settled()
                elif not await self._delivery(until):
                    state.ensure_time()
                    return NOTHING
            return state.give(frame, pointer, capacity)
        except Exception as error:
            state.end_for(error)
            raise RunOver from None

    def _arrived(self) -> tuple[PendingCall, Reply] | None:
        """Returns a reply that has arrived, without waiting; None if there is none. Raises RunOver at the run's end."""
        while True:
            try:
                return self._state.pending.receive(0.0)
            except Interrupted:
                self._state.ensure_time()

    async def _delivery(self, until: float) -> bool:
        """Waits for the next delivery until `until` (monotonic clock); returns whether there was one."""
        import anyio

        self._delivered = delivered = anyio.Event()
        with anyio.move_on_after(until - monotonic()):
            await delivered.wait()
        return delivered.is_set()

    def _note_delivery(self) -> None:
        if self._delivered is not None:
            self._delivered.set()


async def _raised(error: BaseException) -> Reply:
    """Raises `error` when it is awaited."""
    raise error


# ── the table of imports ──────────────────────────────────────────────────────────────────────────────────────────

IMPORT_MODULE = b"toolbridge"
I32, I64 = 0, 1

# Arguments and results sit in slots of 16 bytes, read here as 32-bit words.
_SLOT = 4
_LOW = 0xFFFFFFFF


class _Current(threading.local):
    run: RunState | None = None


current = _Current()
"""The run that host functions called on this thread belong to."""


def set_current_run(run: RunState | None) -> RunState | None:
    """Sets the run that host functions on this thread belong to; returns the one before."""
    before, current.run = current.run, run
    return before


class Import(NamedTuple):
    """One function that the guest imports: its name, its WebAssembly type, its two forms on the host."""

    name: bytes
    parameters: tuple[int, ...]
    results: tuple[int, ...]
    blocking: Callable[..., int | None]
    """On a guest thread: of the run's state and the arguments."""
    awaited: Callable[..., int | Awaitable[int]] | None
    """On an event loop's thread; None: the blocking form, which never waits."""
    is_billed: bool
    """Whether guest code's CPU time goes on meanwhile: these are too quick to stop it."""
    fields: slice
    """Its arguments among the fields of a mailbox request."""


IMPORTS = (
    Import(b"call", (I32, I32, I32, I32), (I32,), RunState.call, AwaitedRequests.call, False, slice(2, 6)),
    Import(b"start", (I32, I32), (I32,), RunState.start, None, False, slice(2, 4)),
    Import(b"wait", (I64, I32, I32), (I32,), RunState.wait, AwaitedRequests.wait, False, slice(1, 4)),
    Import(b"take", (I32, I32), (I32,), RunState.take, None, True, slice(2, 4)),
    Import(b"log", (I32, I32, I32), (), RunState.log, None, True, slice(2, 5)),
    Import(b"now", (I32,), (I64,), RunState.now, None, True, slice(2, 3)),
)


def _signed64(slots: Any) -> int:
    value = slots[0] | slots[1] << 32
    return value - (1 << 64) if value >> 63 else value


def import_callback(item: Import) -> Callable[[int, int, Any, int], int]:
    """Wraps an import for the library: arguments in slots, 0 or a trap as the answer. The wrapper never raises."""
    blocking, is_billed = item.blocking, item.is_billed
    words = slice(0, _SLOT * len(item.parameters), _SLOT)
    takes_wide, gives, gives_wide = I64 in item.parameters, bool(item.results), I64 in item.results

    def function(_data: int, _caller: int, slots: Any, _count: int) -> int:
        """Performs the import for this thread's run, its result in `slots`; a trap if it raises, which ends the run."""
        try:
            run = current.run
            if run is None:
                raise RunOver
            given = slots[words]
            if takes_wide:
                given[0] = _signed64(slots)
            if is_billed:
                number = blocking(run, *given)
            else:
                run.leave_guest()
                number = blocking(run, *given)
                run.enter_guest()
            if gives and number is not None:
                slots[0] = number & _LOW
                if gives_wide:
                    slots[1] = number >> 32 & _LOW
            return 0
        except BaseException as error:
            run = current.run
            if run is not None:
                run.end_for(error)
            return library.trap_new(b"ended", 5)  # nothing reads the trap's text: the reason is in the run's state

    return function


# The library keeps addresses only, so the callbacks must stay alive with the process.
_callbacks = tuple(library.HostFunction(import_callback(item)) for item in IMPORTS)

# `leave()` advances the epoch, which makes a guest on a fiber suspend itself (epoch interruption). It is a function of
# the library, with the engine as its data, and not of ours: no Python code may run on a fiber, because an exception
# that a signal handler raises there would be lost.
LEAVE = b"leave"
_leave = library.LibraryFunction(library.engine_increment_epoch)


def _value_types(kinds: tuple[int, ...]) -> library.ByteVector:
    """Makes the library's vector of these value types, which `functype_new` takes over."""
    vector = library.ByteVector()
    types = (ctypes.c_void_p * len(kinds))(*(library.valtype_new(kind) for kind in kinds))
    library.valtype_vector_new(ctypes.byref(vector), len(kinds), types)
    return vector


def define_imports(linker: int, engine: int) -> None:
    """Defines the guest's imports on a linker: the single grant of capability.

    Raises:
        EngineError: the library refuses a definition.
    """
    for item, callback in zip(IMPORTS, _callbacks, strict=True):
        _define(linker, item.name, (item.parameters, item.results), callback, None)
    _define(linker, LEAVE, ((), ()), ctypes.cast(_leave, library.HostFunction), engine)


def _define(
    linker: int, name: bytes, signature: tuple[tuple[int, ...], tuple[int, ...]], callback: Any, data: int | None
) -> None:
    """Defines one host function on a linker; raises EngineError if the library refuses it."""
    parameters, results = _value_types(signature[0]), _value_types(signature[1])
    kind = library.functype_new(ctypes.byref(parameters), ctypes.byref(results))
    error = library.linker_define_func_unchecked(
        *(linker, IMPORT_MODULE, len(IMPORT_MODULE), name, len(name)),
        *(kind, callback, data, library.NO_FINALIZER),
    )
    library.functype_delete(kind)
    library.check(error, f"define {name.decode()}")


# ── epoch interruption: called on the guest's thread when the epoch has advanced ──────────────────────────────────

_CONTINUE = 0


def _epoch_advanced(_context: int, _data: int, ticks: Any, kind: Any) -> int:
    """Lets a guest continue until the next tick; an error, which stops it, if its run is over."""
    try:
        ticks[0] = 1
        kind[0] = _CONTINUE
        if current.run is None:
            raise RunOver
        current.run.tick()
        return 0
    except BaseException as error:
        if not isinstance(error, RunOver) and current.run is not None:
            current.run.end("crashed", f"The epoch check failed: {type(error).__name__}.")
        return library.error_new(b"ended")


epoch_callback = library.EpochCallback(_epoch_advanced)
