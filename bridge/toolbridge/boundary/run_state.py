"""The state of one run, on the trusted side: what the imports in `imports.py` work on.

One thread at a time uses it while the run lasts. Other threads only end the run from outside: `end`,
`cancel` and `prolong` are the only methods they may call.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from threading import get_ident
from time import monotonic, thread_time
from typing import NamedTuple, Protocol

from toolbridge.boundary.host_call import (
    ASYNC_SUFFIX,
    CallLog,
    CallRecord,
    HostFunction,
    HostSide,
    Interrupted,
    PendingCall,
    Reply,
    Scheduler,
    StartedCalls,
    answer_import,
    failed,
    find_function,
    is_awaitable,
    known_specifier,
    reply_with,
    too_large,
    unknown_function,
)
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

# What a guest prints, kept up to a limit.


STDOUT, STDERR = 1, 2


class Output:
    """The two streams of a run, which share one limit. Beyond it text is counted and dropped."""

    __slots__ = ("_dropped", "_kept", "_room")

    def __init__(self, most_bytes: int) -> None:
        # Not a list of what was printed: an object of the host's for each byte of a guest's is what it would like.
        self._kept = {STDOUT: bytearray(), STDERR: bytearray()}
        self._dropped = {STDOUT: 0, STDERR: 0}
        self._room = most_bytes

    @property
    def dropped(self) -> int:
        """Bytes that were not kept."""
        return self._dropped[STDOUT] + self._dropped[STDERR]

    def room(self, stream: int, length: int) -> int:
        """How many of `length` bytes will be kept; the others count as dropped."""
        kept = min(length, self._room)
        self._dropped[_known(stream)] += length - kept
        return kept

    def add(self, stream: int, text: bytes) -> None:
        """Keeps text for which there is room."""
        self._room -= len(text)
        self._kept[_known(stream)] += text

    def text(self, stream: int) -> str:
        """A stream's text; where some was dropped, the end says so."""
        text = self._kept[stream].decode("utf-8", "replace")
        if self._dropped[stream]:
            text += f"\n[output limit reached: {self._dropped[stream]} more bytes were dropped]\n"
        return text


def _known(stream: int) -> int:
    """A stream other than stdout is stderr."""
    return STDOUT if stream == STDOUT else STDERR


# A run's time: its deadline, and how long guest code has computed.


class Ticks:
    """How many ticks have passed. The ticker counts, runs compare."""

    __slots__ = ("count", "seconds")

    def __init__(self, seconds: float) -> None:
        self.count: int = 0
        self.seconds = seconds


class RunTime:
    """Wall clock from the start, and time spent in guest code: host calls are not billed to it.

    A stretch of guest code is billed the ticks that passed in it, and no more than its thread has computed since the
    last time that something was billed: waiting for a processor, or for the interpreter's lock, is not computing.
    """

    def __init__(self, limits: Limits, ticks: Ticks) -> None:
        self.began = monotonic()
        self.deadline: float = self.began + limits.wall_seconds
        self._ticks = ticks
        self._billed_until: int | None = None
        """Up to which tick guest code has been billed; None while it doesn't run."""
        self._guest_ticks: int = 0
        self._seen_ticks: int = 0
        self._guest_seconds = 0.0
        self._most_guest_seconds = limits.cpu_seconds
        self._billed_thread: tuple[int, float] = (0, 0.0)
        """Which thread was last looked at, and how long it had computed then."""

    def charge(self, wall_seconds: float, cpu_seconds: float) -> None:
        """Counts time that was spent on the program before it began."""
        self.began -= wall_seconds
        self.deadline -= wall_seconds
        self._guest_seconds += cpu_seconds

    def cpu_seconds(self) -> float:
        """Time spent in guest code."""
        return self._guest_seconds

    def leave_guest(self) -> None:
        """Guest code stops being billed: a host function begins."""
        if self._billed_until is not None:
            if self._ticks.count != self._billed_until:
                self._bill(self._ticks.count - self._billed_until)
            self._billed_until = None

    def _bill(self, ticks: int) -> None:
        self._guest_ticks += ticks
        computed = inf
        thread, before = self._billed_thread
        self._billed_thread = get_ident(), thread_time()
        if thread == self._billed_thread[0]:
            computed = self._billed_thread[1] - before
        self._guest_seconds += min(ticks * self._ticks.seconds, computed)

    def enter_guest(self) -> None:
        """Guest code is billed again."""
        self._billed_until = self._ticks.count

    def has_ticked(self) -> bool:
        """Whether guest code has been billed since this was last asked."""
        seen, self._seen_ticks = self._seen_ticks, self._guest_ticks
        return seen != self._guest_ticks

    def is_computed_out(self) -> bool:
        """Whether guest code has used up its processor time."""
        return self._guest_seconds > self._most_guest_seconds


# What most functions return, and surely need not be awaited.
_PLAIN_TYPES = frozenset({dict, list, str, int, float, bool, type(None)})

_MOST_OTHER_REQUESTS = 10_000

# Reading a frame can't be interrupted, and holds up every other thread. The worst (a million numbers) take this long.
_LONG_FRAME = 256 * 1024
_SECONDS_PER_BYTE = 1e-7
_LATE_SECONDS = 0.1

# Answers of the imports that are not a length: guest/WIRE.md.
REFUSED = -1
NOTHING = 0

REFUSAL = b'{"error":'
"""How a reply that holds no value begins."""


class Ending(NamedTuple):
    """Why the host ended a run: a failure kind, and what to say."""

    kind: str
    message: str


class RunEnded(Exception):  # noqa: N818  # control flow inside the boundary, not an error
    """Unwinds a host function when the run is over. Turned into a trap by the import."""


class RunState(RunTime):
    """Everything that a run's host functions need."""

    memory: TextMemory
    """Of the instance that runs the program; there is none before and after."""

    def __init__(
        self,
        *,
        limits: Limits,
        host: HostSide,
        scheduler: Scheduler,
        ticks: Ticks,
        clock: Callable[[], float],
        frame: bytes,
    ) -> None:
        super().__init__(limits, ticks)
        self.limits = limits
        self.modules = host.modules
        self.importer = host.importer
        self.scheduler = scheduler
        self.clock = clock
        self.output = Output(limits.output_bytes)
        self.ending: Ending | None = None
        self.ended_at: float | None = None
        self.calling: PendingCall | None = None
        """The plain function that runs on the guest's thread now."""
        self.on_change: Callable[[], None] | None = None
        """Called, on any thread, when the run was ended or its deadline moved."""
        self._held = frame
        self._call_count = 0
        self._other_count = 0
        self._heads: KnownHeads = {}
        self.log_of_calls = CallLog()
        self.started = StartedCalls(limits.frame_bytes)
        if host.clock is not None:
            host.clock.attach(self)

    # ---- time

    def check(self) -> None:
        """Ends the run if its time is up.

        Raises:
            RunEnded: it is, or something else has ended it.
        """
        if self.ending is None:
            if monotonic() >= self.deadline:
                self.time_out()
            elif self.is_computed_out():
                self.end("timeout", f"The program computed for longer than {self.limits.cpu_seconds:g} s of CPU time.")
        if self.ending is not None:
            raise RunEnded

    def check_time_for(self, length: int) -> None:
        """Ends the run if reading a frame could take it far beyond its deadline.

        Raises:
            RunEnded: it could.
        """
        if length > _LONG_FRAME and monotonic() + length * _SECONDS_PER_BYTE > self.deadline + _LATE_SECONDS:
            most = f"{self.limits.wall_seconds:g} s"
            self.end("timeout", f"The run may take {most}, which leaves no time for its host to read {length} bytes.")
            raise RunEnded

    def tick(self) -> None:
        """The epoch advanced while guest code ran.

        Raises:
            RunEnded: the run's time is up.
        """
        self.leave_guest()
        self.enter_guest()
        self.check()

    # ---- ending, from any thread

    def end(self, kind: str, message: str) -> None:
        """Ends the run at the next tick or wait. The first reason stays."""
        if self.ending is None:
            self.ended_at = monotonic()
            self.ending = Ending(kind, message)
            self._tell_change()

    def end_for(self, error: BaseException) -> None:
        """Ends the run because one of its host functions could not go on."""
        if isinstance(error, OutOfBoundsError):
            self.end("protocol", f"The guest passed an address outside its memory: {error}.")
        elif not isinstance(error, RunEnded):
            self.end("crashed", f"A host function failed: {type(error).__name__}.")

    def time_out(self) -> None:
        """Ends the run at its deadline."""
        self.end("timeout", f"The run took longer than {self.limits.wall_seconds:g} s.")

    def prolong(self, seconds: float) -> None:
        """Moves the deadline: a person is being asked, or has answered."""
        self.deadline += seconds
        self._tell_change()

    def _tell_change(self) -> None:
        self.started.interrupt()
        if self.on_change is not None:
            self.on_change()

    def cancel(self) -> None:
        """The host no longer wants the result."""
        self.end("cancelled", "The run was cancelled.")

    # ---- calls

    def give(self, data: bytes, pointer: int, capacity: int) -> int:
        """Writes a reply if it fits, else holds it for `take`. The answer is its length."""
        length = len(data)
        if length <= capacity:
            self.memory.write(pointer, data)
        else:
            self._held = data
        return length

    @property
    def held(self) -> bytes:
        """The frame that waits to be taken."""
        return self._held

    def take(self, pointer: int, length: int) -> int:
        """The held frame, whole or not at all."""
        if length != len(self._held):
            return REFUSED
        held, self._held = self._held, b""
        self.memory.write(pointer, held)
        return length

    def _read_request(self, pointer: int, length: int) -> CallRequest | ImportRequest | bytes:
        """A request, or the reply that refuses it."""
        if length > self.limits.frame_bytes:
            return too_large("The call", length, self.limits.frame_bytes)
        self.check_time_for(length)
        try:
            return decode_request(self.memory.read(pointer, length), self._heads)
        except WireError as error:
            return encode_error(ErrorFrame("protocol", f"The request was not understood: {error}."))

    def _count_call(self) -> None:
        self._call_count += 1
        if self._call_count > self.limits.host_calls:
            self.end("limit", f"The program made more than {self.limits.host_calls} host calls.")
            raise RunEnded

    def _count_other(self) -> None:
        """Counts imports and refused requests, which are no calls; no honest program makes so many."""
        self._other_count += 1
        if self._other_count > _MOST_OTHER_REQUESTS:
            self.end("limit", f"The program made more than {_MOST_OTHER_REQUESTS} requests that were no calls.")
            raise RunEnded

    def requested(self, pointer: int, length: int) -> CallRequest | ImportRequest | bytes:
        """Reads and counts a request that guest code waits for; gives the reply instead if it is refused.

        Raises:
            RunEnded: the run is over, or that was one request too many.
        """
        if self.ending is not None or monotonic() >= self.deadline:
            self.check()
        request = self._read_request(pointer, length)
        if type(request) is CallRequest:
            self._count_call()
        else:
            self._count_other()
        return request

    def call(self, pointer: int, length: int, reply: int, capacity: int) -> int:
        """A call that guest code waits for."""
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
        specifier = self.unresolved(request)
        if specifier is not None:
            call = self.begun_import(specifier, request_bytes)
            self.scheduler.start(call, self.started.deliver)
            reply = self._await_reply(call)
            if reply.frame.startswith(REFUSAL):
                return reply.frame
        return answer_import(self.modules, request)

    def unresolved(self, request: ImportRequest) -> str | None:
        """The specifier that the importer has to resolve first; None if the run has the module, or no importer."""
        specifier = request.module.removesuffix(ASYNC_SUFFIX)
        if self.importer is None or specifier in self.modules:
            return None
        specifier = known_specifier(specifier, self.modules)
        return None if specifier in self.modules else specifier

    def begun_import(self, specifier: str, request_bytes: int) -> PendingCall:
        """Registers the call of the importer as under way."""
        assert self.importer is not None
        function = HostFunction(self.importer, is_async=True, keeps_time=True, is_recorded=False)
        call = CallRequest(specifier, "import", [specifier])
        return self.begun(function, call, request_bytes, identity=-self._other_count)

    def _perform(self, request: CallRequest, request_bytes: int) -> bytes:
        functions = self.modules.get(request.module)
        function = functions.get(request.function) if functions is not None else None
        if function is None:
            return unknown_function(request)
        if function.is_async:
            return self._await_reply(self._begin(function, request, request_bytes)).frame
        return self.perform_here(function, request, request_bytes)

    def perform_here(self, function: HostFunction, request: CallRequest, request_bytes: int) -> bytes:
        """The reply of a plain function, called on this thread."""
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
            raise RunEnded
        return reply.frame

    def answered(
        self, function: HostFunction, request: CallRequest, reply: Reply, began: float, request_bytes: int
    ) -> bytes:
        """The reply of a function that gave it at once, recorded."""
        if len(reply.frame) > self.limits.frame_bytes:
            reply = reply_with(request, reply, self.limits.frame_bytes)
        self.log_of_calls.add(function, request, reply, began, request_bytes)
        if self.ending is not None:
            raise RunEnded
        return reply.frame

    def calls(self) -> tuple[CallRecord, ...]:
        """Every call so far, those without a reply at the end."""
        return self.log_of_calls.with_unfinished(self.started.unfinished())

    def _begin(
        self,
        function: HostFunction,
        request: CallRequest,
        request_bytes: int,
        *,
        awaiting: object = None,
        may_begin: Callable[[], bool] | None = None,
    ) -> PendingCall:
        call = self.begun(function, request, request_bytes, may_begin=may_begin)
        if awaiting is None:
            self.scheduler.start(call, self.started.deliver)
        else:
            self.scheduler.start_awaiting(call, awaiting, self.started.deliver)
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
        """A call that counts as under way: until its reply arrives, or is `completed`."""
        number = self._call_count if identity is None else identity
        call = PendingCall(number, function, request, request_bytes, may_begin)
        if began is not None:
            call.began = began
        self.started.add(call)
        return call

    def completed(self, call: PendingCall, reply: Reply) -> bytes:
        """Records the reply of a call that was awaited where the guest waits; gives its frame.

        Raises:
            RunEnded: the run is over.
        """
        self.started.remove(call)
        self.log_of_calls.add(call.function, call.request, reply, call.began, call.request_bytes)
        if self.ending is not None:
            raise RunEnded
        return reply.frame

    def start(self, pointer: int, length: int) -> int:
        """A call that guest code goes on from: its number, by which the reply will be known."""
        self.check()
        self._count_call()
        request = self._read_request(pointer, length)
        if type(request) is CallRequest:
            function = find_function(self.modules, request)
            passed = self.started.request_bytes_with(length)
            if passed > self.started.most_bytes:
                request = too_large("What is passed to calls under way", passed, self.started.most_bytes)
            elif function is not None:
                return self._begin(function, request, length, may_begin=self.started.has_room).identity
            else:
                request = unknown_function(request)
        if type(request) is not bytes:
            return REFUSED
        # Refused before it began: the reply is ready, and arrives like any other.
        self.started.settle(self._call_count, request)
        return self._call_count

    def receive(self, timeout: float | None) -> tuple[PendingCall, Reply] | None:
        """The next reply; None when `timeout` is over first.

        Raises:
            RunEnded: the run's time is up, or it was ended.
        """
        asked_until = inf if timeout is None else monotonic() + timeout
        while True:
            try:
                arrived = self.started.receive(min(self.deadline, asked_until))
            except Interrupted:
                self.check()
                continue
            if arrived is None:
                self.check()
                return None
            call, reply = arrived
            self.log_of_calls.add(call.function, call.request, reply, call.began, call.request_bytes)
            return arrived

    def _await_reply(self, awaited: PendingCall) -> Reply:
        while True:
            arrived = self.receive(None)
            if arrived is None:
                continue
            call, reply = arrived
            if call is awaited:
                return reply
            self.started.settle(call.identity, reply.frame)

    def wait(self, microseconds: int, pointer: int, capacity: int) -> int:
        """The next settled call; 0 when the time is over first; refused when nothing can come."""
        frame = self.started.next_settled()
        while frame is None:
            if microseconds < 0 and not self.started.can_settle():
                return REFUSED
            arrived = self.receive(None if microseconds < 0 else microseconds / 1e6)
            if arrived is None:
                return NOTHING
            call, reply = arrived
            self.started.settle(call.identity, reply.frame)
            frame = self.started.next_settled()
        return self.give(frame, pointer, capacity)

    # ---- the rest

    def log(self, stream: int, pointer: int, length: int) -> None:
        """Text that guest code printed."""
        kept = self.output.room(stream, length)
        if kept:
            self.output.add(stream, self.memory.read(pointer, kept))

    def now(self, clock: int) -> int:
        """Nanoseconds: of the granted clock (0), or since the run began."""
        if clock == 0:
            try:
                return max(0, int(self.clock() * 1e9))
            except Exception as error:
                self.end("crashed", f"The clock that the host grants failed: {type(error).__name__}.")
                raise RunEnded from None
        return int((monotonic() - self.began) * 1e9)


class OutOfBoundsError(Exception):
    """A guest's pointer and length reach beyond its memory. Never leaves the boundary."""


class TextMemory(Protocol):
    """What a run reads from its guest and writes to it."""

    @property
    def size(self) -> int:
        """In bytes, now; 0 if it isn't known."""
        ...

    def read(self, pointer: int, length: int) -> bytes:
        """`length` bytes from `pointer`; raises OutOfBoundsError."""
        ...

    def write(self, pointer: int, data: bytes) -> None:
        """Puts `data` at `pointer`; raises OutOfBoundsError."""
        ...
