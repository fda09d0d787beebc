"""Host calls: a guest's request in, the reply frame out. Nothing here raises towards the guest.

A plain function runs on the guest's own thread, where a call costs least. Async functions, and calls that guest code
starts without waiting (`/async` modules), run through `Scheduler`; their replies arrive in the run's reply queue.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from time import monotonic, perf_counter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from toolbridge.boundary.run_time import RunClock
from toolbridge.boundary.wire import (
    CallRequest,
    ErrorFrame,
    ImportRequest,
    WireError,
    encode_error,
    encode_module,
    encode_settled,
    encode_value,
)
from toolbridge.errors import nearest

ASYNC_SUFFIX = "/async"
BRIDGE = "host:bridge"
"""Built into the guest; the functions it needs of the host are registered under this name."""
MOST_MESSAGE = 4_000


class HostFunction(NamedTuple):
    """A function that guest code may call."""

    function: Callable[..., Any]
    is_async: bool
    """Whether calling it gives something to await."""
    keeps_time: bool = False
    """Whether it enforces its own timeout, so that waiting for its semaphore doesn't count."""
    is_recorded: bool = True
    server: str = ""
    tool: str = ""
    is_quick: bool = False
    """Whether it never blocks, so that it may run on an event loop's thread."""
    may_answer: bool = False
    """Whether an async function may return a `Reply` at once, with nothing to await."""


HostModules = Mapping[str, Mapping[str, HostFunction]]
Importer = Callable[[str], Awaitable[None] | None]
"""Adds a module to the modules of a run on import; may raise `CallFailed`.

Returns an awaitable only if something has to be awaited, such as a connection."""


class HostSide(NamedTuple):
    """The modules of a run, and how further ones are imported."""

    modules: HostModules
    importer: Importer | None = None
    clock: RunClock | None = None
    """Stops the run's time while a person is asked."""


class CallRecord(NamedTuple):
    """One host call, as the run's result reports it."""

    module: str
    function: str
    outcome: str
    """`ok`, or the kind of error that guest code got."""
    seconds: float
    request_bytes: int
    reply_bytes: int
    server: str = ""
    """The MCP server, if the function is a tool of one."""
    tool: str = ""
    """The tool's original name."""
    started: float = 0.0
    """Seconds since the run began."""
    notes: tuple[str, ...] = ()
    """Anomalies of the result, such as a mismatch with its schema."""
    sent: bool = True
    """False for a call that failed before its server could have seen it: it has no effect."""


class Reply(NamedTuple):
    """The encoded answer to a call; a host function may return one in place of a value."""

    frame: bytes
    outcome: str = ""
    """For the record; empty: derived from the frame."""
    notes: tuple[str, ...] = ()
    sent: bool = True
    """False if the call failed before it reached the server."""


class CallFailed(Exception):  # noqa: N818  # not an error of the host: it carries the guest's
    """Raised by a host function to give guest code exactly this error."""

    def __init__(self, error: ErrorFrame, notes: tuple[str, ...] = ()) -> None:
        self.error = error
        self.notes = notes
        """For the call's record."""
        super().__init__(error.message)


class PendingCall:
    """A call whose reply arrives later, through the reply queue.

    `may_begin`: whether there is room for one more reply; None for a call that the guest waits for.
    """

    __slots__ = ("arguments", "began", "function", "identity", "may_begin", "request", "request_bytes")

    def __init__(
        self,
        identity: int,
        function: HostFunction,
        request: CallRequest,
        request_bytes: int,
        may_begin: Callable[[], bool] | None = None,
    ) -> None:
        self.may_begin = may_begin
        self.identity = identity
        self.function = function
        self.request = request
        self.arguments = request.arguments
        self.request_bytes = request_bytes
        self.began = perf_counter()


Deliver = Callable[[PendingCall, Reply], None]


class Scheduler(Protocol):
    """Runs calls outside the guest's thread, and delivers each reply exactly once."""

    def start(self, call: PendingCall, deliver: Deliver) -> None:
        """Starts the call. Thread-safe, never blocks."""
        ...

    def start_awaiting(self, call: PendingCall, value: Any, deliver: Deliver) -> None:
        """Awaits the value of a call whose function has returned an awaitable."""
        ...


def failed(error: BaseException) -> bytes:
    """Encodes the error of a host function that raised: a CallFailed's own, else type and message, no traceback."""
    if isinstance(error, CallFailed):
        try:
            return encode_error(error.error)
        except WireError:  # its data has no JSON form
            return encode_error(ErrorFrame(error.error.kind, error.error.message))
    try:
        text = str(error)
    except BaseException:
        text = ""
    name = type(error).__name__
    return encode_error(ErrorFrame("failed", f"{name}: {text}"[:MOST_MESSAGE] if text else name))


def timed_out(request: CallRequest, seconds: float) -> bytes:
    """Encodes the error of a call that exceeded its timeout."""
    message = f"{request.function} did not answer within {seconds:g} s. It may or may not have taken effect."
    return encode_error(ErrorFrame("timeout", message))


def too_large(what: str, size: int, most: int) -> bytes:
    """Encodes the error of a frame over the limit."""
    return encode_error(ErrorFrame("limit", f"{what} is {size} bytes, more than the limit of {most}."))


_NOTHING = Reply(b'{"ok":null}', "ok")


def reply_with(request: CallRequest, value: Any, most_bytes: int) -> Reply:
    """Encodes the value (or `Reply`) of a host function; an error reply if it has no JSON form or is too large."""
    if type(value) is Reply:
        reply = value
    elif value is None:
        return _NOTHING
    else:
        try:
            reply = Reply(encode_value(value), "ok")
        except WireError as error:
            message = f"The result of {request.function} has no JSON form: {error}."
            return Reply(encode_error(ErrorFrame("protocol", message)))
    if len(reply.frame) > most_bytes:
        return Reply(too_large(f"The result of {request.function}", len(reply.frame), most_bytes))
    return reply


def outcome_of(reply: bytes) -> str:
    """Returns the outcome in a reply of ours: `ok`, or the kind of its error."""
    if reply.startswith((b'{"ok":', b'{"handles":')):
        return "ok"
    head = b'{"error":{"kind":"'
    return reply[len(head) : reply.index(b'"', len(head))].decode()


def is_awaitable(value: object) -> bool:
    """Whether a value must be awaited: `inspect.isawaitable` without its import."""
    return hasattr(type(value), "__await__")


def find_function(modules: HostModules, request: CallRequest) -> HostFunction | None:
    """Looks up the function that a call names."""
    functions = modules.get(request.module)
    return functions.get(request.function) if functions is not None else None


def unknown_function(request: CallRequest) -> bytes:
    """Encodes the error of a call to a function that doesn't exist."""
    message = f'There is no function "{request.function}" in module "{request.module}".'
    return encode_error(ErrorFrame("unknown", message))


# ── module names in Python: `host.mcp_weather` is the module `host:mcp-weather` ───────────────────────────────────

# A Python name has no dash, so it is resolved against the modules of the host.
_DOT = "host."


def is_python_name(asked: str) -> bool:
    """Whether a module name is in Python's form."""
    return asked.startswith(_DOT)


def python_name(specifier: str) -> str:
    """Converts a specifier to its Python name."""
    return specifier.replace("host:", _DOT, 1).replace("-", "_")


def known_specifier(asked: str, known: Iterable[str]) -> str:
    """Resolves a Python name to a known specifier; returns other names as they are."""
    if not is_python_name(asked):
        return asked
    return next((specifier for specifier in known if python_name(specifier) == asked), asked)


def answer_import(modules: HostModules, request: ImportRequest) -> bytes:
    """Encodes the reply to an import: the module's functions, or an error that lists the modules."""
    specifier = request.module
    base = specifier.removesuffix(ASYNC_SUFFIX)
    if base not in modules:
        specifier = known_specifier(specifier, modules)
        base = specifier.removesuffix(ASYNC_SUFFIX)
    functions = modules.get(base) if base != BRIDGE else None
    if functions is not None:
        return encode_module(base, list(functions), is_async=base != specifier)
    return encode_error(no_such_module(modules, specifier))


def no_such_module(known: Iterable[str], specifier: str) -> ErrorFrame:
    """Makes (doesn't raise) the error for an import of an unknown module: the nearest name, or a list of modules."""
    return ErrorFrame("unknown", _no_such_module(list(dict.fromkeys((*known, BRIDGE))), specifier), name="ModuleError")


def _no_such_module(known: list[str], specifier: str) -> str:
    """Formats the message for an unknown module, in Python's form if the specifier is; `known` are specifiers."""
    shown = specifier[:100]
    if is_python_name(specifier):
        return _no_such_python_module([python_name(name) for name in known], shown)
    base = shown.removesuffix(ASYNC_SUFFIX)
    names = [name.removeprefix("host:") for name in known]
    guess = nearest(base.removeprefix("host:"), names)
    if guess:
        suffix = ASYNC_SUFFIX if base != shown else ""
        return f'There is no module "{shown}". Did you mean "host:{guess}{suffix}"?'
    listed = ", ".join(f'"{name}"' for name in known[:20]) + (", …" if len(known) > 20 else "")
    reason = "" if shown.startswith("host:") else " Only host modules can be imported here: no files, no packages."
    return f'There is no module "{shown}".{reason} There is: {listed}.'


def _no_such_python_module(known: list[str], shown: str) -> str:
    """Formats the message for an unknown module in Python; `known` are Python names."""
    guess = nearest(shown, known)
    if guess:
        return f"There is no module {shown!r}. Did you mean {guess!r}?"
    listed = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
    return f"There is no module {shown!r}. There is: {listed}."


# ── records and pending calls ─────────────────────────────────────────────────────────────────────────────────────


class CallLog:
    """Records of a run's calls, one for each. Written by the guest's thread; read when the run is over."""

    __slots__ = ("_began", "ended")

    def __init__(self) -> None:
        self._began = perf_counter()
        self.ended: list[CallRecord] = []

    def add(self, function: HostFunction, request: CallRequest, reply: Reply, began: float, request_bytes: int) -> None:
        """Records a call with its reply, unless its function is not recorded."""
        if not function.is_recorded:
            return
        self.ended.append(
            CallRecord(
                request.module,
                request.function,
                reply.outcome or outcome_of(reply.frame),
                perf_counter() - began,
                request_bytes,
                len(reply.frame),
                function.server,
                function.tool,
                began - self._began,
                reply.notes,
                reply.sent,
            )
        )

    def with_unfinished(self, calls: Iterable[PendingCall]) -> tuple[CallRecord, ...]:
        """Returns all records; calls without a reply come last, since they may still take effect."""
        return (*self.ended, *(self.unfinished(call) for call in calls))

    def unfinished(self, call: PendingCall) -> CallRecord:
        """Makes the record of a call without a reply."""
        return CallRecord(
            call.request.module,
            call.request.function,
            "unfinished",
            perf_counter() - call.began,
            call.request_bytes,
            0,
            call.function.server,
            call.function.tool,
            call.began - self._began,
        )


T = TypeVar("T")
# A lock's longest timeout is finite, and differs between systems.
_LONGEST_WAIT = 3600.0


class QueueTimeoutError(Exception):
    """No item arrived before the deadline."""


class DeadlineQueue(Generic[T]):
    """FIFO queue with a deadline for `take`. Any thread may `put`, one may `take`.

    Not a `queue.SimpleQueue`: its `get` can wait for ever if its timeout passes between two tries, and a run would
    outlive its deadline.
    """

    __slots__ = ("_arrived", "_items")

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._arrived = threading.Lock()
        """Released while an item is new: acquiring it waits for one."""
        self._arrived.acquire()

    def put(self, item: T) -> None:
        """Adds an item. Thread-safe."""
        self._items.append(item)
        if self._arrived.locked():
            with contextlib.suppress(RuntimeError):  # another thread was first
                self._arrived.release()

    def take(self, until: float) -> T:
        """Blocks until there is an item, and removes it.

        Raises:
            QueueTimeoutError: none arrived before `until` (monotonic clock).
        """
        while True:
            try:
                return self._items.popleft()
            except IndexError:
                left = until - monotonic()
            if left <= 0 or not self._arrived.acquire(timeout=min(left, _LONGEST_WAIT)):
                if self._items or monotonic() < until:
                    continue
                raise QueueTimeoutError from None


# Requests of pending calls, and replies that the guest hasn't fetched, may each take as many of the largest frames.
_FRAMES_HELD = 4


class Interrupted(Exception):  # noqa: N818  # control flow inside the boundary, not an error
    """Interrupts a wait of the guest's thread."""


class PendingCalls:
    """Calls of a run that have no reply yet, and replies that the guest hasn't fetched: the reply queue.

    Used by the guest's thread, except for `deliver` and `interrupt`, which are thread-safe.
    """

    def __init__(self, frame_bytes: int) -> None:
        self.most_bytes = _FRAMES_HELD * frame_bytes
        self._under_way: dict[int, PendingCall] = {}
        self._replies: DeadlineQueue[tuple[PendingCall, Reply] | None] = DeadlineQueue()
        self._settled: deque[bytes] = deque()
        self._request_bytes = 0
        self._reply_bytes = 0
        self._reply_lock = threading.Lock()
        self.on_delivery: Callable[[], None] | None = None
        """Called when a reply arrives, on the thread that delivers it."""

    def request_bytes_with(self, length: int) -> int:
        """Bytes of all pending requests, and one more of this length."""
        return self._request_bytes + length

    def has_room(self) -> bool:
        """Whether one more unfetched reply may be held."""
        return self._reply_bytes < self.most_bytes

    def can_settle(self) -> bool:
        """Whether a reply has arrived, or can."""
        return bool(self._settled or self._under_way)

    def add(self, call: PendingCall) -> None:
        """Registers a call that begins."""
        self._under_way[call.identity] = call
        self._request_bytes += call.request_bytes

    def deliver(self, call: PendingCall, reply: Reply) -> None:
        """Queues the reply of a call. Thread-safe."""
        self._hold(len(reply.frame))
        self._replies.put((call, reply))
        if self.on_delivery is not None:
            self.on_delivery()

    def interrupt(self) -> None:
        """Interrupts `receive`. Thread-safe."""
        self._replies.put(None)

    def receive(self, until: float) -> tuple[PendingCall, Reply] | None:
        """Blocks until a pending call's reply, and removes the call; None if `until` (monotonic clock) comes first.

        Raises:
            Interrupted: `interrupt` was called.
        """
        while True:
            try:
                arrived = self._replies.take(until)
            except QueueTimeoutError:
                return None
            if arrived is None:
                raise Interrupted
            call, reply = arrived
            if self.remove(call):
                self._hold(-len(reply.frame))
                return arrived

    def remove(self, call: PendingCall) -> bool:
        """Removes a call; returns whether it was pending."""
        if self._under_way.pop(call.identity, None) is None:
            return False
        self._request_bytes -= call.request_bytes
        return True

    def settle(self, call: int, reply: bytes) -> None:
        """Holds a reply, with its call's number, until the guest fetches it."""
        frame = encode_settled(call, reply)
        self._hold(len(frame))
        self._settled.append(frame)

    def next_settled(self) -> bytes | None:
        """Removes and returns the oldest held reply."""
        if not self._settled:
            return None
        frame = self._settled.popleft()
        self._hold(-len(frame))
        return frame

    def unfinished(self) -> list[PendingCall]:
        """Returns the recorded calls without a reply: they may still take effect."""
        return [call for call in self._under_way.values() if call.function.is_recorded]

    def _hold(self, size: int) -> None:
        with self._reply_lock:
            self._reply_bytes += size
