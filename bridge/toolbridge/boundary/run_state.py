"""State of one run on the host, on which the imports in `imports.py` operate.

One thread at a time uses it. Only `end`, `cancel` and `prolong` are thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import monotonic
from typing import NamedTuple, Protocol

from toolbridge.boundary.host_call import (
    ASYNC_SUFFIX,
    CallLog,
    CallRecord,
    HostFunction,
    HostSide,
    Interrupted,
    PendingCall,
    PendingCalls,
    Reply,
    Scheduler,
    answer_import,
    failed,
    find_function,
    is_awaitable,
    known_specifier,
    reply_with,
    too_large,
    unknown_function,
)
from toolbridge.boundary.run_time import RunTime, Ticks
from toolbridge.boundary.wire import (
    CallRequest,
    ErrorFrame,
    ImportRequest,
    KnownHeads,
    WireError,
    decode_request,
    encode_error,
)
from toolbridge.limits import Limits

STDOUT, STDERR = 1, 2


class Output:
    """Captured stdout and stderr of a run, under one limit; text beyond it is counted and dropped."""

    __slots__ = ("_dropped", "_kept", "_room")

    def __init__(self, most_bytes: int) -> None:
        # Not a list of chunks: a guest that prints single bytes would make the host keep an object for each.
        self._kept = {STDOUT: bytearray(), STDERR: bytearray()}
        self._dropped = {STDOUT: 0, STDERR: 0}
        self._room = most_bytes

    @property
    def dropped(self) -> int:
        """Bytes dropped of both streams."""
        return self._dropped[STDOUT] + self._dropped[STDERR]

    def room(self, stream: int, length: int) -> int:
        """Returns how many of `length` bytes fit, and counts the others as dropped."""
        kept = min(length, self._room)
        self._dropped[STDOUT if stream == STDOUT else STDERR] += length - kept
        return kept

    def add(self, stream: int, text: bytes) -> None:
        """Appends text that fits: see `room`."""
        self._room -= len(text)
        self._kept[STDOUT if stream == STDOUT else STDERR] += text

    def text(self, stream: int) -> str:
        """Returns the text of a stream, with a last line on dropped bytes, if any."""
        text = self._kept[stream].decode("utf-8", "replace")
        if self._dropped[stream]:
            text += f"\n[output limit reached: {self._dropped[stream]} more bytes were dropped]\n"
        return text


_PLAIN_TYPES = frozenset({dict, list, str, int, float, bool, type(None)})  # fast path: these are not awaitable
_MOST_OTHER_REQUESTS = 10_000
# Decoding a frame can't be interrupted, and holds the GIL. The slowest (a million numbers) take this long.
_LONG_FRAME = 256 * 1024
_SECONDS_PER_BYTE = 1e-7
_LATE_SECONDS = 0.1

REFUSED, NOTHING = -1, 0  # answers of the imports that are not a length: guest/WIRE.md
REFUSAL = b'{"error":'  # the head of a reply without a value


class Ending(NamedTuple):
    """Why the host ended a run: the kind and message of the failure."""

    kind: str
    message: str


class RunOver(Exception):  # noqa: N818  # control flow inside the boundary, not an error
    """Unwinds a host function when the run is over; the import turns it into a trap."""


class RunState(RunTime):
    """Limits, modules, output and pending calls of a run."""

    memory: TextMemory
    """Of the instance that runs the program; unset before and after."""

    def __init__(
        self,
        *,
        limits: Limits,
        host: HostSide,
        scheduler: Scheduler,
        ticks: Ticks,
        clock: Callable[[], float],
        frame: bytes,
        spent: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.output = Output(limits.output_bytes)
        super().__init__(limits, ticks, spent)
        if host.clock is not None:
            host.clock.attach(self)
        self.limits = limits
        self.modules = host.modules
        self.importer = host.importer
        self.scheduler = scheduler
        self.clock = clock
        self.ending: Ending | None = None
        self.ended_at: float | None = None
        self.calling: PendingCall | None = None
        """The plain function that the guest's thread is running."""
        self.on_change: Callable[[], None] | None = None
        """Called, on any thread, when the run is ended or its deadline moves."""
        self._held = frame
        self._call_count = 0
        self._other_count = 0
        self._heads: KnownHeads = {}
        self.log_of_calls = CallLog()
        self.pending = PendingCalls(limits.frame_bytes)

    def ensure_time(self) -> None:
        """Ends the run if its time is up.

        Raises:
            RunOver: the run was ended, now or before.
        """
        if self.ending is None:
            if monotonic() >= self.deadline:
                self.time_out()
            elif self.exceeds_cpu_limit():
                self.end("timeout", f"The program computed for longer than {self.limits.cpu_seconds:g} s of CPU time.")
        if self.ending is not None:
            raise RunOver

    def check_time_for(self, length: int) -> None:
        """Ends the run if decoding a frame of this length could take far longer than its deadline.

        Raises:
            RunOver: the run was ended.
        """
        if length > _LONG_FRAME and monotonic() + length * _SECONDS_PER_BYTE > self.deadline + _LATE_SECONDS:
            most = f"{self.limits.wall_seconds:g} s"
            self.end("timeout", f"The run may take {most}, which leaves no time for its host to read {length} bytes.")
            raise RunOver

    def tick(self) -> None:
        """Bills guest code for an epoch tick.

        Raises:
            RunOver: the run's time is up.
        """
        if self.rebill() or self.ending is not None or monotonic() >= self.deadline:
            self.ensure_time()

    def end(self, kind: str, message: str) -> None:
        """Ends the run at its next tick or wait; the first reason is kept. Thread-safe."""
        if self.ending is None:
            self.ended_at = monotonic()
            self.ending = Ending(kind, message)
            self._notify_change()

    def end_for(self, error: BaseException) -> None:
        """Ends the run because of an exception in a host function's import; does nothing for RunOver."""
        if isinstance(error, OutOfBoundsError):
            self.end("protocol", f"The guest passed an address outside its memory: {error}.")
        elif not isinstance(error, RunOver):
            self.end("crashed", f"A host function failed: {type(error).__name__}.")

    def time_out(self) -> None:
        """Ends the run at its deadline."""
        self.end("timeout", f"The run took longer than {self.limits.wall_seconds:g} s.")

    def prolong(self, seconds: float) -> None:
        """Moves the deadline: a person is asked, or has answered. Thread-safe."""
        self.deadline += seconds
        self._notify_change()

    def _notify_change(self) -> None:
        """Interrupts the guest's wait and calls `on_change`. Thread-safe."""
        self.pending.interrupt()
        if self.on_change is not None:
            self.on_change()

    def cancel(self) -> None:
        """Ends the run on the host's request. Thread-safe."""
        self.end("cancelled", "The run was cancelled.")

    def give(self, data: bytes, pointer: int, capacity: int) -> int:
        """Writes a reply into guest memory if it fits, else holds it for `take`; returns its length."""
        if len(data) <= capacity:
            self.memory.write(pointer, data)
        else:
            self._held = data
        return len(data)

    @property
    def held(self) -> bytes:
        """The frame that the guest takes next."""
        return self._held

    def take(self, pointer: int, length: int) -> int:
        """Writes the held frame into guest memory; returns its length, or REFUSED for a wrong length."""
        if length != len(self._held):
            return REFUSED
        held, self._held = self._held, b""
        self.memory.write(pointer, held)
        return length

    def _read_request(self, pointer: int, length: int) -> CallRequest | ImportRequest | bytes:
        """Decodes a request; the error reply if it is malformed or too large. Raises RunOver, OutOfBoundsError."""
        if length > self.limits.frame_bytes:
            return too_large("The call", length, self.limits.frame_bytes)
        self.check_time_for(length)
        try:
            return decode_request(self.memory.read(pointer, length), self._heads)
        except WireError as error:
            return encode_error(ErrorFrame("protocol", f"The request was not understood: {error}."))

    def _count_call(self) -> None:
        """Counts a host call; over the limit, ends the run and raises RunOver."""
        self._call_count += 1
        if self._call_count > self.limits.host_calls:
            self.end("limit", f"The program made more than {self.limits.host_calls} host calls.")
            raise RunOver

    def _count_other(self) -> None:
        """Counts imports and refused requests; absurdly many end the run and raise RunOver."""
        self._other_count += 1
        if self._other_count > _MOST_OTHER_REQUESTS:
            self.end("limit", f"The program made more than {_MOST_OTHER_REQUESTS} requests that were no calls.")
            raise RunOver

    def requested(self, pointer: int, length: int) -> CallRequest | ImportRequest | bytes:
        """Decodes and counts a request that guest code waits for; returns the error reply if it is refused.

        Raises:
            RunOver: the run is over, or has made too many requests.
        """
        if self.ending is not None or monotonic() >= self.deadline:
            self.ensure_time()
        request = self._read_request(pointer, length)
        if type(request) is CallRequest:
            self._count_call()
        else:
            self._count_other()
        return request

    def call(self, pointer: int, length: int, reply: int, capacity: int) -> int:
        """Performs a call or import, blocks until its reply, and writes it; returns its length."""
        request = self.requested(pointer, length)
        if type(request) is CallRequest:
            data = self._perform(request, length)
            if len(data) <= capacity:
                self.memory.write(reply, data)
                return len(data)
            return self.give(data, reply, capacity)
        data = self._import(request, length) if type(request) is ImportRequest else request
        assert type(data) is bytes
        return self.give(data, reply, capacity)

    def _import(self, request: ImportRequest, request_bytes: int) -> bytes:
        """Resolves an import, blocking until it is done; returns the reply frame."""
        specifier = self.unresolved(request)
        if specifier is not None:
            call = self.begun_import(specifier, request_bytes)
            self.scheduler.start(call, self.pending.deliver)
            reply = self._await_reply(call)
            if reply.frame.startswith(REFUSAL):
                return reply.frame
        return answer_import(self.modules, request)

    def unresolved(self, request: ImportRequest) -> str | None:
        """Returns the specifier for the importer to resolve; None if the run has the module, or no importer."""
        specifier = request.module.removesuffix(ASYNC_SUFFIX)
        if self.importer is None or specifier in self.modules:
            return None
        specifier = known_specifier(specifier, self.modules)
        return None if specifier in self.modules else specifier

    def begun_import(self, specifier: str, request_bytes: int) -> PendingCall:
        """Registers the importer's call as pending, without starting it."""
        assert self.importer is not None
        function = HostFunction(self.importer, is_async=True, keeps_time=True, is_recorded=False)
        call = CallRequest(specifier, "import", [specifier])
        return self.begun(function, call, request_bytes, identity=-self._other_count)

    def _perform(self, request: CallRequest, request_bytes: int) -> bytes:
        """Makes a call and blocks until its reply: a plain function on this thread, an async one by the scheduler."""
        functions = self.modules.get(request.module)
        function = functions.get(request.function) if functions is not None else None
        if function is None:
            return unknown_function(request)
        if function.is_async:
            return self._await_reply(self._begin(function, request, request_bytes)).frame
        return self.perform_here(function, request, request_bytes)

    def perform_here(self, function: HostFunction, request: CallRequest, request_bytes: int) -> bytes:
        """Calls a plain function here, records it, and returns its reply frame. Raises RunOver after the end."""
        call = self.calling = PendingCall(self._call_count, function, request, request_bytes)
        try:
            value = function.function(*request.arguments)
        except BaseException as error:
            reply = Reply(failed(error))
        else:
            if type(value) not in _PLAIN_TYPES and is_awaitable(value):
                return self._await_reply(self._begin(function, request, request_bytes, awaiting=value)).frame
            reply = reply_with(request, value, self.limits.frame_bytes)
        finally:
            self.calling = None
        self.log_of_calls.add(function, request, reply, call.began, request_bytes)
        if self.ending is not None:
            raise RunOver
        return reply.frame

    def answered(
        self, function: HostFunction, request: CallRequest, reply: Reply, began: float, request_bytes: int
    ) -> bytes:
        """Records the reply of a function that returned at once; returns its frame. Raises RunOver after the end."""
        if len(reply.frame) > self.limits.frame_bytes:
            reply = reply_with(request, reply, self.limits.frame_bytes)
        self.log_of_calls.add(function, request, reply, began, request_bytes)
        if self.ending is not None:
            raise RunOver
        return reply.frame

    def calls(self) -> tuple[CallRecord, ...]:
        """Records of all calls so far, those without a reply last."""
        return self.log_of_calls.with_unfinished(self.pending.unfinished())

    def _begin(
        self,
        function: HostFunction,
        request: CallRequest,
        request_bytes: int,
        *,
        awaiting: object = None,
        may_begin: Callable[[], bool] | None = None,
    ) -> PendingCall:
        """Registers a call as pending and starts it by the scheduler, or awaits `awaiting` there; never blocks."""
        call = self.begun(function, request, request_bytes, may_begin=may_begin)
        if awaiting is None:
            self.scheduler.start(call, self.pending.deliver)
        else:
            self.scheduler.start_awaiting(call, awaiting, self.pending.deliver)
        return call

    def begun(
        self,
        function: HostFunction,
        request: CallRequest,
        request_bytes: int,
        *,
        may_begin: Callable[[], bool] | None = None,
        identity: int | None = None,
        began: float | None = None,
    ) -> PendingCall:
        """Registers a call as pending, without starting it, until its reply arrives, or it is `completed`."""
        identity = self._call_count if identity is None else identity
        call = PendingCall(identity, function, request, request_bytes, may_begin)
        if began is not None:
            call.began = began
        self.pending.add(call)
        return call

    def completed(self, call: PendingCall, reply: Reply) -> bytes:
        """Records the reply of a pending call that was awaited directly; returns its frame.

        Raises:
            RunOver: the run is over.
        """
        self.pending.remove(call)
        self.log_of_calls.add(call.function, call.request, reply, call.began, call.request_bytes)
        if self.ending is not None:
            raise RunOver
        return reply.frame

    def start(self, pointer: int, length: int) -> int:
        """Starts a call without waiting; returns the number that its reply will carry, or REFUSED for an import."""
        self.ensure_time()
        self._count_call()
        request = self._read_request(pointer, length)
        if type(request) is CallRequest:
            function = find_function(self.modules, request)
            passed = self.pending.request_bytes_with(length)
            if passed > self.pending.most_bytes:
                request = too_large("The arguments of pending calls", passed, self.pending.most_bytes)
            elif function is not None:
                return self._begin(function, request, length, may_begin=self.pending.has_room).identity
            else:
                request = unknown_function(request)
        if type(request) is not bytes:
            return REFUSED
        # Refused before it began: its reply arrives like any other.
        self.pending.settle(self._call_count, request)
        return self._call_count

    def receive(self, timeout: float | None) -> tuple[PendingCall, Reply] | None:
        """Blocks until the next reply, and records it; None after `timeout` seconds.

        Raises:
            RunOver: the run's time is up, or it was ended.
        """
        asked_until = inf if timeout is None else monotonic() + timeout
        while True:
            try:
                arrived = self.pending.receive(min(self.deadline, asked_until))
            except Interrupted:
                self.ensure_time()
                continue
            if arrived is None:
                self.ensure_time()
                return None
            call, reply = arrived
            self.log_of_calls.add(call.function, call.request, reply, call.began, call.request_bytes)
            return arrived

    def _await_reply(self, awaited: PendingCall) -> Reply:
        """Blocks until this call's reply; holds replies of other calls that arrive meanwhile for `wait`."""
        while True:
            arrived = self.receive(None)
            if arrived is None:
                continue
            call, reply = arrived
            if call is awaited:
                return reply
            self.pending.settle(call.identity, reply.frame)

    def wait(self, microseconds: int, pointer: int, capacity: int) -> int:
        """Blocks until a started call settles, and writes its frame; NOTHING after the timeout (negative: none).

        REFUSED if no call is pending.
        """
        while (frame := self.pending.next_settled()) is None:
            if microseconds < 0 and not self.pending.can_settle():
                return REFUSED
            arrived = self.receive(None if microseconds < 0 else microseconds / 1e6)
            if arrived is None:
                return NOTHING
            call, reply = arrived
            self.pending.settle(call.identity, reply.frame)
        return self.give(frame, pointer, capacity)

    def log(self, stream: int, pointer: int, length: int) -> None:
        """Captures text that guest code printed; text beyond the limit is counted and dropped."""
        if kept := self.output.room(stream, length):
            self.output.add(stream, self.memory.read(pointer, kept))

    def now(self, clock: int) -> int:
        """Returns nanoseconds of the granted clock (0; if it fails, the run ends), or since the run began."""
        if clock == 0:
            try:
                return max(0, int(self.clock() * 1e9))
            except Exception as error:
                self.end("crashed", f"The clock that the host grants failed: {type(error).__name__}.")
                raise RunOver from None
        return int((monotonic() - self.began) * 1e9)


class OutOfBoundsError(Exception):
    """A guest's pointer and length are outside its memory. Never leaves the boundary."""


class TextMemory(Protocol):
    """Memory of a guest, as a run reads and writes it."""

    @property
    def size(self) -> int:
        """Current size in bytes; 0 if unknown."""
        ...

    def read(self, pointer: int, length: int) -> bytes:
        """Copies `length` bytes from `pointer`; raises OutOfBoundsError."""
        ...

    def write(self, pointer: int, data: bytes) -> None:
        """Writes `data` at `pointer`; raises OutOfBoundsError."""
        ...
